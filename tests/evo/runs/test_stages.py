"""Runs on a task whose evaluation has stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from evo_runs import same_run

import evo
import replay
from evo.runs.stages import is_audited
from replay.logs.tables import load_tables
from replay.reports.report import groups, sections

QUIET: dict[str, Any] = {"progress": False, "workers": 1}
PROGRAM = "def pair():\n    return [0.5, 0.25]\n"


def cheap(value: list[float]) -> float:
    return value[0]


def thorough(value: list[float]) -> float:
    return value[1]


def task(*thresholds: Any) -> evo.Task:
    return evo.task("pairs", initial_program=PROGRAM, evaluate=[cheap, thorough],
                    thresholds=thresholds, statement="Two numbers.")  # fmt: skip


def llm(messages: Any, seed: int) -> str:
    """Draws two numbers of the seed, some of them alike."""
    first, second = seed % 7 / 7, seed // 7 % 5 / 5
    return f"```python\ndef pair():\n    return [{first}, {second}]\n```"


def run(path: Path, *thresholds: Any, **options: Any) -> evo.Log:
    how = {"model": llm, "generations": 3, "children": 5, "seed": 3, "log": path, **QUIET}
    return evo.run(task(*thresholds), **how | options)


@pytest.mark.parametrize("search", ["greedy", "population", "islands"])
def test_a_refused_program_is_partial_and_no_parent(search: str, tmp_path: Path) -> None:
    log = run(tmp_path / "a.jsonl", 0.5, search=search)
    found = {child.evaluation.status for child in log.children}
    assert found == {"ok", "partial"}
    refused = {
        (child.generation, child.index)
        for child in log.children
        if child.evaluation.status == "partial"
    }
    assert not refused & {place for child in log.children for place in child.parents}
    for child in log.children:
        first, *rest = child.evaluation.stages
        assert (first >= 0.5) == bool(rest) == (child.evaluation.status == "ok")
    assert evo.rerun(log.path).same
    assert not evo.verify(log.path).faults


def test_the_initial_program_is_evaluated_in_full(tmp_path: Path) -> None:
    log = run(tmp_path / "a.jsonl", 0.9, generations=1)
    assert log.initial is not None
    assert (log.initial.evaluation.fitness, log.initial.evaluation.stages) == (0.25, (0.5, 0.25))


@pytest.mark.parametrize("search", ["greedy", "population"])
def test_a_child_may_have_to_be_better_than_its_parent(search: str, tmp_path: Path) -> None:
    log = run(tmp_path / "a.jsonl", "parent", search=search)
    assert log.initial is not None
    stages = {(0, 0): log.initial.evaluation.stages}
    best = (0, 0)
    bests = [best, *(generation.best for generation in log.generations)]
    for child in log.children:
        stages[child.generation, child.index] = child.evaluation.stages
        parent = child.parents[0] if child.parents else bests[child.generation - 1]
        better = child.evaluation.stages[0] > stages[parent][0]
        assert better == (child.evaluation.status == "ok"), child
    assert evo.rerun(log.path).same


@pytest.mark.parametrize("thresholds", [(0.5,), ("parent",)])
def test_a_run_that_was_stopped_anywhere_comes_out_the_same(
    thresholds: Any, tmp_path: Path
) -> None:
    whole = run(tmp_path / "whole.jsonl", *thresholds, audit=2, search="population")
    lines = Path(whole.path).read_bytes().splitlines(keepends=True)
    for kept in range(4, len(lines) - 1, 11):  # a generation has twelve
        path = tmp_path / f"{kept}.jsonl"
        path.write_bytes(b"".join(lines[:kept]))
        again = evo.resume(path, model=llm, generations=3, **QUIET)
        assert same_run(again, whole)
    (fork,) = evo.fork(whole.path, at=2, model=llm, generations=3, log_dir=tmp_path / "f", **QUIET)
    assert same_run(fork, whole)


def test_some_refused_children_are_evaluated_in_full_beside_the_search(tmp_path: Path) -> None:
    plain = run(tmp_path / "plain.jsonl", 0.5)
    log = run(tmp_path / "audited.jsonl", 0.5, audit=3)
    audited = [child for child in log.children if child.evaluation.audit is not None]
    assert audited
    for child in log.children:
        refused = child.evaluation.status == "partial"
        expected = refused and is_audited(log.header, (child.generation, child.index))
        assert (child in audited) == expected
    for child in audited:
        assert child.evaluation.audit is not None
        assert len(child.evaluation.audit.stages) == 2
        assert child.evaluation.audit.fitness == child.evaluation.audit.stages[1]

    def bare(each: evo.Log) -> list[object]:
        return [
            (child.program, child.parents,
             msgspec.structs.replace(child.evaluation, seconds=None, audit=None))
            for child in each.children
        ]  # fmt: skip

    assert bare(log) == bare(plain)  # no search sees it
    assert evo.rerun(log.path).same
    with pytest.raises(ValueError, match="has no stages that could refuse a child"):
        evo.run("mmd", audit=20, log=tmp_path / "b.jsonl", **QUIET)


def test_rescoring_judges_the_refused_ones_on_demand(tmp_path: Path) -> None:
    log = run(tmp_path / "a.jsonl", 0.5)
    as_it_was = evo.rescore(log.path, log=tmp_path / "b.jsonl")
    assert as_it_was.status_counts == log.status_counts
    whole = evo.rescore(log.path, all_stages=True, log=tmp_path / "c.jsonl")
    assert set(whole.status_counts) == {"ok"}
    for child in whole.children:
        assert child.evaluation.fitness == child.evaluation.stages[1]


def test_several_draws_are_decided_by_the_first(tmp_path: Path) -> None:
    log = run(tmp_path / "a.jsonl", 0.5, draws=2, generations=2)
    for child in log.children:
        assert child.evaluation.draws == (2 if child.evaluation.status == "ok" else 1)
    assert evo.rerun(log.path).same


def test_a_searcher_goes_through_the_stages(tmp_path: Path) -> None:
    log = run(tmp_path / "a.jsonl", 0.5, generations=1)
    with evo.Searcher(task(0.5), children=5, generations=1, seed=3, log=tmp_path / "b.jsonl",
                      workers=1) as searcher:  # fmt: skip
        for prompt in searcher.ask():
            searcher.tell(prompt, llm(prompt.messages, prompt.seed))
        told = searcher.log
    assert [c.evaluation.stages for c in sorted(told.children, key=lambda c: c.index)] == [
        c.evaluation.stages for c in log.children
    ]


def test_a_report_says_what_the_stages_spared(tmp_path: Path) -> None:
    log = run(tmp_path / "a.jsonl", 0.5, audit=2)
    children = replay.children(log.path)
    assert children["stages"].tolist() == [len(c.evaluation.stages) for c in log.children]
    audits = [child.evaluation.audit for child in log.children]
    assert children["audit_status"].dropna().tolist() == [a.status for a in audits if a]
    assert children["audit_fitness"].dropna().tolist() == [a.fitness for a in audits if a]
    [group] = groups(load_tables(log.path))
    [section] = [each for each in sections(group) if each.title == "Stages"]
    found = dict(zip(section.cells["quantity"], section.cells["value"], strict=True))
    refused = log.status_counts["partial"]
    assert found["evaluated"] == len(log.children)
    assert found["refused by stage 1"] == refused
    assert found["seconds saved"] > 0
    assert found["audited"] == sum(audit is not None for audit in audits) > 0
    best = [log.trajectory[child.generation - 1] for child in log.children]
    won = [a.fitness > b for a, b in zip(audits, best, strict=True) if a and a.fitness is not None]
    assert found["would have been the best"] == sum(won)
    plain = evo.run("mmd", generations=1, children=2, log=tmp_path / "b.jsonl", **QUIET)
    [group] = groups(load_tables(plain.path))
    assert "Stages" not in [each.title for each in sections(group)]
