import gzip
import json

import numpy as np
import pytest
from foreign_samples import DATA, paper_child, paper_run, statuses, trajectory, write_paper

import replay
from evo.logs.cost import lacks_usage
from evo.logs.journal import LogError
from evo.logs.log import read_log
from evo.runs.verification import verify
from evo.studies.allocation.journal import read_journal
from replay.cli.entry import main
from replay.importers import LogFormatError, detect, keep, read, write
from replay.importers import read as read_all
from replay.importers.paper_export import export_paper

REAL = DATA / "paper_format" / "results"


def test_what_the_source_says_and_no_more(tmp_path):
    write_paper(tmp_path)
    assert detect(tmp_path) == "paper"
    (run,) = read(tmp_path)
    assert run.name == "mmd/small/greedy_C6_T2_N3_seed41"
    assert (run.header.children, run.header.seed, run.header.task.name) == (3, 41, "mmd")
    assert run.header.model.active_parameters == 1_000_000
    assert run.header.sampling.max_tokens == 900  # what its timeout was taken for
    assert run.header.sampling.temperature is None
    assert statuses(run) == [None, "ok", "ok", "ok", "no_reply", "no_program"]
    assert run.children[2].evaluation.fitness == 0  # a legal zero
    assert run.children[0].evaluation.fitness is None
    assert all(child.evaluation.seconds is None for child in run.children)
    assert trajectory(run) == [0.1, 0.3, 0.5]
    assert [g.seconds for g in run.generations] == [9.5, 4.0]
    assert [a.status for a in run.children[4].attempts] == ["timeout", "error"]
    assert run.children[0].attempts[0].usage["prompt_tokens_details"] == {"cached_tokens": 60}
    assert "programs" in run.lost
    assert "\n" not in run.lost


def test_tables_of_the_imported_log(tmp_path):
    (run,) = read(write_paper(tmp_path / "in"))
    target = tmp_path / "out" / "run.jsonl.gz"
    write(run, target)
    assert verify(target).faults == ()
    frame, children = replay.load(target), replay.children(target)
    assert frame["best_fitness"].tolist() == [0.1, 0.3, 0.5]
    assert frame["seconds"].tolist() == [0, 9.5, 4.0]
    assert children["improved"].tolist() == [False, True, False, True, False, False]
    known = children["fitness"].notna()
    assert known.tolist() == [False, True, True, True, False, False]
    # 40 uncached and 20 new tokens of a call, 900 for the timeout.
    flops = np.array([60, 60, 60, 60, np.nan, 60]) * 2e6
    np.testing.assert_allclose(np.delete(children["flops"], 4), np.delete(flops, 4))
    written = target.read_bytes()
    write(run, target)
    source = write_paper(tmp_path / "other")
    source.write_text(json.dumps(paper_run() | {"seed": 7}))
    (other,) = read(source)
    with pytest.raises(LogError, match="exists already and differs"):
        write(other, target)
    assert target.read_bytes() == written


def test_a_result_that_is_compressed_or_called_otherwise_is_read_beside_others(tmp_path):
    path = write_paper(tmp_path)
    named = path.with_name("greedy_C6_T2_N3_seed42.json.gz")
    named.write_bytes(gzip.compress(json.dumps(paper_run() | {"seed": 42}).encode()))
    mine = path.with_name("mine.json")
    mine.write_text(json.dumps(paper_run() | {"seed": 43}))
    path.with_name("settings.json").write_text('{"seed": 1}')
    path.with_name("torn.json.gz").write_bytes(named.read_bytes()[:20])
    runs = read(tmp_path)
    names = {run.header.seed: run.name.rpartition("/")[2] for run in runs}
    assert names == {41: path.stem, 42: named.stem, 43: mine.stem}
    assert {run.header.search for run in runs} == {runs[0].header.search}
    assert detect(mine) == "paper"


def bandit_run():
    arms = [paper_run() | {"seed": seed} for seed in (40, 41)]
    for arm in arms:
        del arm["task"]
    choices = {"selections": [0, 1, 1, 0], "rewards": [0.3, 0.3, 0.5, 0.5]}
    best = {"running_best": [0.3, 0.3, 0.5, 0.5]}
    return {"algo": "ucb", "task": "mmd", "seed": 3, "arm_results": arms} | choices | best


@pytest.mark.filterwarnings("ignore:not carried over")
def test_a_bandit_result_holds_its_arms_and_its_choices(tmp_path):
    path = tmp_path / "in" / "ucb_C12_T4_K2_seed3.json"
    path.parent.mkdir()
    path.write_text(json.dumps(bandit_run()))
    runs = read(path, "paper")
    assert [run.header.seed for run in runs] == [40, 41]
    assert [run.name for run in runs] == [f"{path.stem}/arm-{k:02}" for k in (0, 1)]
    assert {run.header.task.name for run in runs} == {"mmd"}
    keep(read(tmp_path / "in"), tmp_path / "out")  # a folder of results
    journal = read_journal(tmp_path / "out" / path.stem / "allocation.jsonl")
    assert (journal.header.policy, journal.header.seed) == ("ucb", 3)
    assert journal.asked == dict(enumerate([0, 1, 1, 0]))
    assert [told.reward for told in journal.told.values()] == [0.3, 0.3, 0.5, 0.5]
    frame = replay.load(tmp_path / "out" / path.stem / "allocation.jsonl")
    assert frame["seed"].tolist() == [40] * 3 + [41] * 3
    assert main(["export", "paper", str(tmp_path / "out"), "-o", str(tmp_path / "back")]) == 0
    assert len(read_all(tmp_path / "back")) == len(runs)  # no arm has a file of its own, too
    exported = tmp_path / "back" / "bandit" / "mmd" / "small" / path.name
    stated = json.loads(exported.read_text())
    for name in ("algo", "seed", "selections", "rewards", "running_best"):
        assert stated[name] == bandit_run()[name]
    assert stated["arm_pulls"] == [2, 2]
    assert [statuses(run) for run in read(exported)] == [statuses(run) for run in runs]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"selections": [0, 1, 1, 1]}, "arm 0 was selected 1 times but has 2 generations"),
        ({"selections": [0, 1, 1, 0, 2]}, "as many rewards"),
        ({"rewards": ["a", 1, 1, 1]}, "float"),
        (lambda run: run.pop("trajectory"), "trajectory"),
        (lambda run: run["trajectory"].pop(1), "generations 0, 1, 2"),
        (lambda run: run.update(N="3"), r"\.N"),
        (lambda run: run.update(N=0), "at least 1"),
        (lambda run: run.update(N=2), "expected children 0 to 1, got 2"),
        (lambda run: run["trajectory"][2].update(best_fitness=0.9), "states best fitness 0.9"),
        (lambda run: run["trajectory"][1]["children"][1].update(idx=0), "twice"),
    ],
)
def test_damage_names_file_and_place(tmp_path, change, message):
    path = write_paper(tmp_path)
    run = paper_run()
    if callable(change):
        change(run)
    else:
        run = bandit_run() | change
    path.write_text(json.dumps(run))
    with pytest.raises(LogFormatError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


@pytest.mark.filterwarnings("ignore:not carried over")
def test_export_is_what_import_reads(tmp_path):
    source = write_paper(tmp_path / "in")
    (run,) = read(source)
    write(run, tmp_path / "run.jsonl")
    exported = export_paper(read_log(tmp_path / "run.jsonl"), tmp_path / "out")
    assert exported == tmp_path / "out" / "mmd" / "small" / "greedy_C6_T2_N3_seed41.json"
    (again,) = read(exported)
    assert statuses(again) == statuses(run)
    for one, other in zip(again.children, run.children, strict=True):
        assert one.evaluation.fitness == other.evaluation.fitness
        assert [a.usage for a in one.attempts] == [a.usage for a in other.attempts]
    assert again.header.model == run.header.model
    stated = json.loads(exported.read_text())
    assert stated["final_fitness"] == 0.5
    assert [g["n_improved"] for g in stated["trajectory"]] == [0, 1, 1]
    assert [g["n_valid"] for g in stated["trajectory"]] == [0, 3, 1]
    assert stated["flops"]["exclude"]["sum_prompt_tokens"] == 500
    raw = paper_run()
    del raw["trajectory"][1]["children"][0]
    raw["trajectory"][2]["children"][2] = paper_child(2, 0.3, True)  # as good as its parent
    source.write_text(json.dumps(raw))
    (changed,) = read(source)
    assert statuses(changed)[0] is None  # a call that left nothing
    write(changed, tmp_path / "changed.jsonl")
    exported = export_paper(read_log(tmp_path / "changed.jsonl"), tmp_path / "again")
    stated = json.loads(exported.read_text())
    assert [g["n_improved"] for g in stated["trajectory"]] == [0, 1, 1]


@pytest.mark.filterwarnings("ignore:not carried over")
@pytest.mark.skipif(not REAL.is_dir(), reason="the real logs are not beside the project")
def test_real_logs(tmp_path):
    runs = read(REAL)
    for run in runs:
        write(run, tmp_path / f"{run.name}.jsonl")
    frame, children = replay.load(tmp_path), replay.children(tmp_path)
    mmd = children[children["task"] == "mmd"]
    assert (len(mmd), (mmd["status"] == "ok").sum(), mmd["improved"].sum()) == (900, 599, 127)
    ht = children[children["task"] == "ht"]
    assert (len(ht), (ht["status"] != "ok").sum()) == (36, 35)
    last = frame[frame["task"] == "mmd"].groupby("run").last()
    medians = last.groupby("children")["best_fitness"].median().round(3)
    assert medians.to_dict() == {36: 0.491, 12: 0.063, 6: 0.063, 3: 0.131, 1: 0.063}
    # Their own sums of FLOPs, run by run.
    for run in runs:
        stated = json.loads(run.source.read_text())["flops"]["worst_case"]["total_flops"]
        ours = frame.loc[frame["source"].str.endswith(f"{run.name}.jsonl"), "flops"].sum()
        assert ours == pytest.approx(stated, rel=1e-12)
        written = read_log(tmp_path / f"{run.name}.jsonl")
        (again,) = read(export_paper(written, tmp_path / "exported"))
        assert statuses(again) == statuses(run)


def test_what_an_endpoint_refused_cost_nothing_and_every_timeout_may_have(tmp_path):
    source = write_paper(tmp_path)
    raw = json.loads(source.read_text())
    attempt = {"attempt_idx": 0, "latency_s": 1.0, "usage": None, "finish_reason": None}
    told = [
        ("error:InternalServerError", "Error code: 500 - {'error': 'busy'}"),
        ("error:APITimeoutError", "Request timed out."),
        ("error:429", "HTTP 429: slow down"),  # as `replay export paper` has it
    ]
    children = raw["trajectory"][1]["children"]
    for child, (status, error) in zip(children, told, strict=False):
        refused = attempt | {"status": status, "error": error, "timed_out": False}
        child["attempts"] = [refused, *child["attempts"]]
    path = tmp_path / "more" / "greedy_C6_T2_N3_seed41.json"
    path.parent.mkdir()
    path.write_text(json.dumps(raw))
    (run,) = read(path)
    refused, late, ours = (child.attempts[0] for child in run.children[:3])
    assert (refused.status, refused.http_status, late.status) == ("error", 500, "timeout")
    assert [lacks_usage(each) for each in (refused, late, ours)] == [False, True, False]
    assert ours.http_status == 429
