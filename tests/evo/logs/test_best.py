"""The best program of a log."""

from __future__ import annotations

from pathlib import Path

from samples import changed, sample_lines, write_lines

from evo.logs.best import Best
from evo.logs.log import read_log
from evo.logs.records import Evaluation, Initial


def test_its_fitness_is_that_of_its_evaluation() -> None:
    for evaluation in (
        Evaluation(status="ok", fitness=0.25),
        Evaluation(status="error", error="broke"),
    ):
        assert Best("x = 1", evaluation, 1, 2).fitness == evaluation.fitness


def test_the_best_and_the_parent_of_a_log_say_where_they_stand(tmp_path: Path) -> None:
    lines = sample_lines(generations=3)
    log = read_log(write_lines(tmp_path / "a.jsonl", lines))
    for found in (log.best, log.parent):
        child = log.child(found.generation, found.index)
        assert found.evaluation == child.evaluation
        assert found.program == child.program
        assert found.value == child.evaluation.value
    assert (
        log.best.fitness
        == log.best_fitness
        == max(
            each.evaluation.fitness for each in log.outcomes if each.evaluation.fitness is not None
        )
    )
    # Before its first generation a log has the program that it began with.
    begun = lines[:3]
    first = read_log(write_lines(tmp_path / "b.jsonl", begun)).best
    assert (first.generation, first.index, first.fitness) == (0, 0, 0.1)
    assert first.program == log.header.task.files[log.header.task.program_file]
    failed = Initial(evaluation=Evaluation(status="error", error="broke"))
    broken = [*changed(begun[:2], type(begun[0])), failed]
    assert read_log(write_lines(tmp_path / "c.jsonl", broken)).best.fitness is None
