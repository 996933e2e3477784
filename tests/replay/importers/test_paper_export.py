import gzip
import hashlib
import json
from pathlib import Path

import msgspec
import pytest
from samples import changed, sample_lines, write_lines, write_sample

import evo
import replay
from evo.logs.journal import LogError
from evo.logs.log import read_log
from evo.logs.records import Fork, Generation, Header, SearchRecord
from replay.cli.entry import main
from replay.importers import keep, read
from replay.importers.paper_export import export, export_bandit, export_paper

SAMPLES = Path(__file__).resolve().parents[3] / "logs" / "samples"
LOST = "not carried over: "


def run_of(path, **header):
    """A sample log whose header has these fields."""
    seed = header.get("seed", 7)
    return write_lines(path, changed(sample_lines(seed=seed), Header, **header))


def fork_of(path, root, copy):
    fork = Fork(at=1, copy=copy, parent=root, through="1" * 64, root=root, segments=())
    return run_of(path, fork=fork, seed=100 + copy)


def loaded(folder):
    return replay.load(folder, progress=False).groupby("run").first()


@pytest.mark.filterwarnings("ignore:not carried over")
def test_a_search_is_in_the_file_and_read_back(tmp_path):
    names = ("greedy", "islands", "my search")
    for name in names:
        search = None if name == "greedy" else SearchRecord(name=name, fields={"islands": 2})
        run_of(tmp_path / "in" / f"{name}.jsonl", search=search)
    written = export(replay.find_logs(tmp_path / "in"), tmp_path / "out")
    assert [path.name.partition("_C")[0] for path in written] == ["greedy", "islands", "my-search"]
    keep(read(tmp_path / "out"), tmp_path / "back")
    assert sorted(loaded(tmp_path / "back")["search"]) == sorted(names)
    for path in (tmp_path / "in").iterdir():
        one = read_log(path)
        [again] = read(export_paper(one, tmp_path / path.stem))
        assert [g.best_fitness for g in again.generations] == one.trajectory[1:].tolist()


def test_an_arm_of_another_search_is_none_of_greedy(tmp_path):
    folder = SAMPLES / "side-by-side-bandit" / "ucb1-circle_packing-s0"
    with pytest.warns(UserWarning, match=f"{LOST}.*settings of islands, openevolve, shinka"):
        written = export_bandit(folder / "allocation.jsonl", tmp_path / "out")
    keep(read(written), tmp_path / "back")
    assert loaded(tmp_path / "back")["search"].tolist() == loaded(folder)["search"].tolist()


@pytest.mark.filterwarnings("ignore:not carried over")
def test_arms_that_were_compressed_since_are_found(tmp_path, capsys):
    folder = SAMPLES / "side-by-side-bandit" / "ucb1-circle_packing-s0"
    assert not list(folder.glob("arm-*.jsonl"))  # its journal names these
    assert main(["export", "paper", str(folder), "-o", str(tmp_path / "out")]) == 0
    [line] = capsys.readouterr().out.splitlines()
    best = json.loads(Path(line).read_text())["final_best_fitness"]
    assert best == pytest.approx(replay.load(folder, progress=False)["best_fitness"].max())


@pytest.mark.filterwarnings("ignore:not carried over")
@pytest.mark.parametrize("given", ["folder", "journal"])
def test_an_allocation_whose_arms_lie_elsewhere_keeps_its_choices(tmp_path, capsys, given):
    how = {"children": 2, "progress": False}
    logs = evo.run_many("mmd", seeds=range(2), generations=4, log_dir=tmp_path / "before", **how)
    folder = tmp_path / "allocation"
    made = evo.allocate_live("mmd", "ucb1", arms=list(logs), rounds=3, log_dir=folder, **how)
    capsys.readouterr()
    source = folder if given == "folder" else folder / "allocation.jsonl"
    assert main(["export", "paper", str(source), "-o", str(tmp_path / "out")]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(Path(line).read_text())["selections"] == made.pulls.tolist()
    pulled = [len(arm.generations) for arm in read(tmp_path / "out")]
    assert pulled == [made.pulls.tolist().count(arm) for arm in (0, 1)]


def test_what_is_lost_is_one_sentence_of_what_there_was(tmp_path, capsys):
    log = read_log(write_sample(tmp_path / "in" / "a.jsonl"))
    failed = sum(each.evaluation.status != "ok" for each in log.outcomes)
    with pytest.warns(UserWarning, match=LOST) as caught:
        export_paper(log, tmp_path / "out")
    [words] = [str(each.message) for each in caught]
    assert f"the status of {failed:,} failed children" in words
    assert "min_max_distance is mmd" in words
    for absent in ("fork", "several models", "parents", "configurations", "under way"):
        assert absent not in words
    assert main(["export", "paper", str(tmp_path / "in"), "-o", str(tmp_path / "more")]) == 0
    assert capsys.readouterr().err == f"replay: note: {words}\n"


def test_runs_of_two_configurations_are_told_apart_no_more(tmp_path):
    run_of(tmp_path / "a.jsonl", seed=1)
    run_of(tmp_path / "b.jsonl", seed=2, feedback=True)
    with pytest.warns(UserWarning, match="which of 2 configurations a run is of"):
        export(replay.find_logs(tmp_path), tmp_path / "out")


def test_islands_of_another_tool_are_said_to_be_mixed(tmp_path):
    run_of(tmp_path / "a.jsonl", source="CodeEvolve", mixed=2)
    with pytest.warns(UserWarning, match="that 1 of the runs may hold programs of other runs"):
        export(replay.find_logs(tmp_path), tmp_path / "out")


def test_a_collision_is_found_before_the_first_file_and_names_the_logs(tmp_path):
    for name, seed in (("a", 1), ("b", 2), ("c", 2), ("d", 2)):
        run_of(tmp_path / "in" / f"{name}.jsonl", seed=seed)
    logs = replay.find_logs(tmp_path / "in")
    with pytest.raises(LogError, match=r"b\.jsonl, .*c\.jsonl and 1 more: .* seeds, and that is 2"):
        export(logs, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.warns(UserWarning, match=LOST):
        [there] = export(logs[1:2], tmp_path / "out")
    with pytest.warns(UserWarning, match=LOST):
        assert export(logs[1:2], tmp_path / "out") == [there]
    there.write_text("{}")
    with pytest.raises(LogError, match=f"b.jsonl: {there} exists already and differs"):
        export(logs[:2], tmp_path / "out")
    assert [*(tmp_path / "out").rglob("*.json")] == [there]


def test_forks_that_share_generations_are_no_independent_runs(tmp_path):
    root, other = "a" * 64, "b" * 64
    logs = [fork_of(tmp_path / f"{k}.jsonl", root, k) for k in range(3)]
    with pytest.raises(LogError, match=r"0\.jsonl, .* and 1 more: share the generations before"):
        export(logs, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    logs[1:] = [fork_of(tmp_path / "other.jsonl", other, 1)]
    with pytest.warns(UserWarning, match="that 2 of the runs are forks"):
        assert len(export(logs, tmp_path / "out")) == 2


def test_a_fork_is_related_to_the_run_that_it_left(tmp_path):
    source = write_sample(tmp_path / "a.jsonl")
    fork = fork_of(tmp_path / "b.jsonl", hash_of_header(source), 1)
    with pytest.raises(LogError, match="independent runs"):
        export([source, fork], tmp_path / "out")


def hash_of_header(path):
    """The hash by which a fork names the run that it began with."""
    return hashlib.sha256(path.read_bytes().partition(b"\n")[0]).hexdigest()


@pytest.mark.filterwarnings("ignore:not carried over")
def test_a_run_of_unknown_seed_is_read_again(tmp_path):
    source = run_of(tmp_path / "in" / "a.jsonl", seed=-1)
    (packed := tmp_path / "in" / "b.jsonl.gz").write_bytes(gzip.compress(source.read_bytes()))
    for path in (source, packed):
        [written] = export([path], tmp_path / path.stem)
        [again] = read(tmp_path / path.stem)
        assert again.header.seed == -1
    with pytest.raises(LogError, match=r"a\.jsonl and .*b\.jsonl\.gz: .* that is unknown for all"):
        export([source, packed], tmp_path / "both")
    assert export([source], tmp_path / "b.jsonl") == [written]  # the same run
    next((tmp_path / "a").rglob("*.json")).write_text("{}")
    with pytest.raises(LogError, match=r"seeds, which is unknown here; export it to a folder of"):
        export([source], tmp_path / "a")


def test_a_run_that_passed_over_a_better_child_is_refused(tmp_path):
    stays = {"best_fitness": 0.1, "best": (0, 0), "improved": False}
    lines = [
        msgspec.structs.replace(line, **stays) if isinstance(line, Generation) else line
        for line in sample_lines()
    ]
    with pytest.raises(LogError, match=r"min_improvement=, confirm= or a filter"):
        export_paper(read_log(write_lines(tmp_path / "a.jsonl", lines)), tmp_path / "out")


def test_a_folder_without_results_is_told_what_they_are_called(tmp_path):
    with pytest.raises(LogError, match="expected results in this folder, called greedy_C<C>"):
        read(tmp_path, "paper")


def test_nothing_to_write_is_said(tmp_path):
    with pytest.raises(LogError, match="expected the paths of one log or more, got none"):
        export([], tmp_path / "out")
    assert not (tmp_path / "out").exists()
