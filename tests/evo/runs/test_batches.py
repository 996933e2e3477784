"""Texts tried on growing batches: who is dropped, on which luck, and the one test at the end."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import scipy.stats
from evo_runs import same_run
from hypothesis import given
from hypothesis import strategies as st

import evo
import replay
from evo.models.client import Call, ModelClient
from evo.runs.accept import ALPHA
from evo.runs.batches import batch_order, batch_sizes, behind, certify
from evo.runs.bounds import cost_bound
from evo.runs.dataset import instance_seed, text_key
from evo.runs.state import costs_of_log
from evo.tasks.instances import read_instances
from evo.tasks.task import SHIPPED, load_task
from replay.cli.entry import main

QUIET = {"progress": False}
SEARCH, CHECK = 32, 12
DEFECTIVE = "You solve problems. Give the answer in words."
RUN = {"generations": 3, "children": 6, "model": "offline-2", "seed": 3, "feedback": True}

scores = st.lists(st.integers(0, 1).map(float), min_size=1, max_size=30)


def checked_task(folder: Path, initial: str = DEFECTIVE) -> Path:
    """Word problems, some of them for checking, and a prompt that asks for the wrong format."""
    folder.mkdir()
    shutil.copy(SHIPPED / "word_problems" / "evaluator.py", folder)
    (folder / "initial_program.txt").write_text(initial + "\n")
    rows = (SHIPPED / "word_problems" / "instances.jsonl").read_text().splitlines()
    lines = [json.dumps({**json.loads(row), "check": k >= SEARCH})
             for k, row in enumerate(rows[: SEARCH + CHECK])]  # fmt: skip
    (folder / "instances.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "task.toml").write_text('evolves = "text"\ninstances = "instances.jsonl"\n')
    return folder


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checked_task(tmp_path_factory.mktemp("tasks") / "checked")


@pytest.fixture(scope="module")
def raced(task: Path) -> evo.Log:
    return evo.run(task, batches=8, log=task.parent / "raced.jsonl", **RUN, **QUIET)


def test_batches_double_and_depend_on_the_generation_alone() -> None:
    assert batch_sizes(4, 16) == [4, 8, 16]
    assert batch_sizes(5, 12) == [5, 10, 12]
    assert batch_sizes(50, 12) == [12]
    places = [0, 2, 3, 7, 9]
    assert sorted(batch_order(1, 2, places)) == places
    assert batch_order(1, 2, places) == batch_order(1, 2, places)
    assert len({tuple(batch_order(1, g, places)) for g in range(20)}) > 10


@given(own=scores, left=st.integers(0, 60), data=st.data())
def test_nobody_is_behind_an_equal_or_a_weaker_one(
    own: list[float], left: int, data: st.DataObject
) -> None:
    assert not behind(own, own, left)
    assert not behind(own, [], left)
    weaker = [data.draw(st.floats(0, x)) for x in own]
    assert not behind(own, weaker, left)
    assert behind([0.0] * 9, [1.0] * 9, 100)
    ahead = [1.0] * len(own)
    assert bool(behind(own, ahead, 0)) == (sum(own) < len(own))


def test_the_p_of_a_text_that_is_behind_is_that_of_a_paired_t_test() -> None:
    own, other = [0.0, 0.1, 0.2, 0.1, 0.3, 0.0], [0.4, 0.3, 0.9, 0.5, 0.4, 0.2]
    p = scipy.stats.ttest_rel(other, own, alternative="greater").pvalue
    assert behind(own, other, 20) == f"gained 2.7: paired t test, one-sided p = {p:.2g}"
    assert "full scores on the 1 left" in behind(own, other, 1)


SUMS = [{"prompt": f"What is {k} + 1?", "want": str(k + 1)} for k in range(12)]


def right(reply: str, row: dict[str, str]) -> bool:
    return reply.strip().endswith(row["want"])


def solver(messages: list[dict[str, str]], seed: int) -> str:
    """Rewrites the text, and answers rows only under an exact one."""
    question = messages[-1]["content"]
    if "```text" in question:
        return f"```text\nAnswer {'exactly' if seed % 2 else 'briefly'}.\n```"
    return str(int(question.split()[2]) + 1) if "exactly" in messages[0]["content"] else "?"


def sums(**more: Any) -> evo.Task:
    return evo.task("sums", initial_program="Answer.", evaluate=right, instances=SUMS,
                    statement="Sums.", **more)  # fmt: skip


@pytest.mark.parametrize("where", ["sandbox", "here"])
def test_rows_given_in_a_notebook_are_raced_where_their_scores_lie_between_0_and_1(
    where: str, tmp_path: Path
) -> None:
    how = {"model": solver, "batches": 5, "generations": 2, "children": 4, **QUIET}
    log = evo.run(sums(scale="unit", where=where), log=tmp_path / "a.jsonl", **how)
    assert log.best.fitness == 1
    tried = {len(c.evaluation.instances) for c in log.children if c.evaluation.status == "partial"}
    assert tried
    assert tried <= {5, 10}
    with pytest.raises(ValueError, match=r"scores between 0 and 1, and .*evo.task\(.*scale='unit'"):
        evo.run(sums(where=where), log=tmp_path / "b.jsonl", **how)


@pytest.mark.parametrize("where", ["sandbox", "here"])
def test_why_no_row_of_a_batch_has_a_score_is_quoted_with_a_row(where: str, tmp_path: Path) -> None:
    def strict(reply: str, row: dict[str, str]) -> bool:
        if reply == "?":
            raise KeyError("answer")
        return reply.endswith("1")

    def model(messages: list[dict[str, str]], seed: int) -> str | None:
        system, question = messages[0]["content"], messages[-1]["content"]
        if "```text" in question:
            return f"```text\n{'Fail' if seed % 2 else 'Be silent'}.\n```"
        return "?" if "Fail" in system else None if "silent" in system else "1"

    made = evo.task("s", initial_program="Answer.", evaluate=strict, instances=SUMS[:8],
                    statement="Sums.", scale="unit", where=where)  # fmt: skip
    how = {"model": model, "generations": 1, "children": 4, **QUIET}
    for batches in (2, 8):  # dropped on the way, and tried on all
        log = evo.run(made, log=tmp_path / f"{where}-{batches}.jsonl", batches=batches, **how)
        whys = {child.program: child.evaluation for child in log.children}
        assert len(whys) == 2
        for text, found in whys.items():
            said = "; no instance got a reply: the model returned none"
            if "Fail" in text:
                tried = "|".join(each.id for each in found.instances)
                said = f"; none has a score; on instance ({tried}): KeyError: 'answer'"
            assert re.search(f"{said}$", found.error)


def test_a_program_on_a_data_set_is_told_that_only_texts_are_raced() -> None:
    def double(x: float) -> float:
        return 2 * x

    rows = [{"input": k, "want": 2 * k} for k in range(4)]
    lengths = [{"want": 5}]
    program = evo.task("d", initial_program=double, instances=rows, statement="x",
                       evaluate=lambda value, row: value == row["want"])  # fmt: skip
    text = evo.task("t", initial_program="Hello", instances=lengths, statement="x", where="here",
                    evaluate=lambda text, row: len(text) == row["want"])  # fmt: skip
    for task, why in ((program, "evolves a program"), (text, "evolves a text that no model")):
        with pytest.raises(ValueError, match=f"batches: only texts under which .*{why}"):
            evo.run(task, batches=2, **QUIET)


def test_dropped_texts_are_partial_and_neither_best_nor_parent(
    raced: evo.Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dropped = [c for c in raced.children if c.evaluation.status == "partial"]
    assert dropped
    for child in dropped:
        assert child.evaluation.fitness is None
        assert len(child.evaluation.instances) < SEARCH
        assert len(child.evaluation.instances) in batch_sizes(8, SEARCH)
        assert re.fullmatch(
            rf"dropped after {len(child.evaluation.instances)} of {SEARCH} instances, \S+ of them "
            r"gained; on the same ones its (parent|best sibling) gained \S+: (full scores on the "
            r"\d+ left would not make up for that|paired t test, one-sided p = \S+)",
            child.evaluation.error or "",
        )
    parents = {place for child in raced.children for place in child.parents}
    assert not parents & {(c.generation, c.index) for c in dropped}
    assert raced.trajectory[0] == 0  # the prompt asks for the wrong format
    assert raced.trajectory[-1] > 0.2
    assert not evo.verify(raced.path).faults
    frame = replay.children(raced)
    assert (frame["status"] == "partial").sum() == len(dropped)
    assert frame.loc[frame["status"] == "partial", "fitness"].isna().all()
    assert f"({len(dropped)} dropped on a batch" in repr(raced)
    assert main(["report", str(raced.path), "-o", str(tmp_path / "report.png")]) == 0
    said = f"dropped on a batch or refused by a stage, {len(dropped)} in all"
    assert said in capsys.readouterr().out


def test_children_of_a_generation_meet_the_same_luck(raced: evo.Log) -> None:
    texts = {text_key(c.program): c for c in raced.children if c.program}
    for child in texts.values():
        tried = {each.id for each in child.evaluation.instances}
        if child.evaluation.status == "partial":
            order = batch_order(3, child.generation, list(range(SEARCH)))
            rows = read_instances(raced.header.task)
            assert tried == {rows[place]["id"] for place in order[: len(tried)]}


def test_check_instances_are_used_once_at_the_end(raced: evo.Log) -> None:
    best = raced.best.program
    assert best is not None
    asked = [call for call in raced.instance_calls if call.index >= SEARCH]
    initial = raced.header.task.files[raced.header.task.program_file]
    assert {call.program for call in asked} == {text_key(initial), text_key(best)}
    assert len(asked) == 2 * CHECK
    stats = raced.ends[-1].stats
    assert stats["check_use"] == 1
    assert stats["check_instances"] == CHECK
    assert stats["check_gain"] == pytest.approx(stats["check_final"] - stats["check_initial"])
    assert stats["check_low"] < stats["check_gain"]
    assert stats["check_detectable"] > 0
    assert all(len(c.evaluation.instances) <= SEARCH for c in raced.children)
    assert replay.load(raced)["n_calls"].sum() == len(raced.calls)


def test_every_text_meets_the_same_luck_in_the_test_at_the_end(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, call = set[tuple[int, int]](), ModelClient.call

    def noted(self: ModelClient, messages: Any, *, seed: int, generation: int, index: int) -> Call:
        asked.add((index - RUN["children"], seed))
        return call(self, messages, seed=seed, generation=generation, index=index)

    monkeypatch.setattr(ModelClient, "call", noted)
    evo.run(task, batches=8, log=tmp_path / "a.jsonl", **RUN, **QUIET)
    held = range(SEARCH, SEARCH + CHECK)
    assert {each for each in asked if each[0] >= SEARCH} == {
        (index, instance_seed("3/check", index)) for index in held
    }


def test_resume_from_any_line_and_rerun(
    raced: evo.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = raced.path.read_bytes().splitlines(keepends=True)
    for kept in (len(lines) // 4, len(lines) - 5, len(lines) - 1):
        path = tmp_path / f"{kept}.jsonl"
        path.write_bytes(b"".join(lines[:kept]))
        resumed = evo.resume(path, generations=3, **QUIET)
        assert same_run(resumed, raced)
        assert resumed.ends[-1].stats["check_low"] == raced.ends[-1].stats["check_low"]
    longer = evo.resume(path, generations=4, **QUIET)
    assert longer.ends[-1].stats.get("check_use") in (None, 2.0)
    monkeypatch.delattr(ModelClient, "call")
    outcome = evo.rerun(raced)
    assert outcome.same, str(outcome)


@pytest.mark.thorough
def test_a_search_of_several_parents_races_too(task: Path, tmp_path: Path) -> None:
    log = evo.run(task, batches=8, search="population", log=tmp_path / "p.jsonl", **RUN, **QUIET)
    assert log.trajectory[-1] > 0
    assert evo.rerun(log).same


@pytest.mark.slow
@pytest.mark.thorough
def test_a_budget_reserves_the_test_at_the_end(task: Path, raced: evo.Log, tmp_path: Path) -> None:
    worst = cost_bound(raced.header, 3, retries=0)
    assert worst.final["calls"] == 2 * CHECK
    spent = costs_of_log(raced)
    before = sum(cost["calls"] for cost in spent[:3])  # that is generations 0 to 2
    options = {"batches": 8, **RUN, **QUIET}
    for limit, made in ((before + 2 * CHECK, 2), (before + 2 * CHECK + 1, 3)):
        log = evo.run(task, log=tmp_path / f"{made}.jsonl", budget={"calls": limit}, **options)
        assert len(log.generations) == made
        assert "check_use" in log.ends[-1].stats
    many = {k: v for k, v in options.items() if k != "seed"} | {"budget": {"calls": 500}}
    logs = evo.run_many(task, seeds=[1, 2], log_dir=tmp_path, **many)
    again = evo.run_many(task, seeds=[1, 2], log_dir=tmp_path, resume=True, **many)
    assert [len(log.calls) for log in again] == [len(log.calls) for log in logs]


def test_an_arm_is_tested_by_going_on_with_it(task: Path, tmp_path: Path) -> None:
    options = {"arms": [3], "rounds": 2, "children": 6, "model": "offline-2", "batches": 8}
    done = evo.allocate_live(task, "single", log_dir=tmp_path, feedback=True, **options, **QUIET)
    (arm,) = done.arms
    assert "check_use" not in arm.ends[-1].stats
    tested = evo.resume(arm.path, generations=2, **QUIET)
    assert tested.ends[-1].stats["check_use"] == 1
    assert len(tested.calls) == len(arm.calls) + 2 * CHECK


def test_the_test_says_what_it_could_have_found() -> None:
    gains = [1.0] * 8 + [0.0] * 24
    first = certify([0.0] * 32, gains, 1)
    second = certify([0.0] * 32, gains, 2)
    assert first["check_alpha"] + second["check_alpha"] < 0.05
    assert second["check_low"] < first["check_low"] < first["check_gain"] == 0.25
    assert second["check_detectable"] > first["check_detectable"] > 0.1


def test_a_rust_program_is_taken_whatever_its_tag(tmp_path: Path) -> None:
    rust = 'fn main() {\n    let total: u32 = (1..10).sum();\n    println!("{}", total);\n}\n'
    folder = tmp_path / "rust"
    folder.mkdir()
    (folder / "evaluator.py").write_text(
        "import os\ndef evaluate(program_path):\n"
        "    text = open(program_path).read()\n    return {'combined_score': len(text) / 1000}\n"
    )
    (folder / "initial_program.txt").write_text(rust)
    (folder / "task.toml").write_text('evolves = "text"\n')
    for model in ("offline", "offline-2"):
        log = evo.run(folder, generations=1, children=8, model=model,
                      log=tmp_path / f"{model}.jsonl", **QUIET)  # fmt: skip
        assert {c.program for c in log.children if c.program} == {rust}
        assert log.status_counts["ok"] > 4


def test_load_task_keeps_what_is_for_checking(task: Path) -> None:
    assert sum(each["check"] for each in read_instances(load_task(task).record)) == CHECK


def test_the_checks_of_a_run_share_the_error_rate() -> None:
    levels = [certify([0.1, 0.2], [0.5, 0.5], use)["check_alpha"] for use in range(1, 2001)]
    assert levels[:3] == pytest.approx([ALPHA / 2, ALPHA / 6, ALPHA / 12])
    assert ALPHA * 0.999 < sum(levels) < ALPHA
