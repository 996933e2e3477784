import math
from pathlib import Path

import numpy as np
import pytest
from samples import write_sample

import replay
from evo.logs.log import read_log
from evo.logs.maintenance import compact
from replay.logs.lineage import MOST_LINES, compare_programs, parent_of, program_of


@pytest.fixture
def log(tmp_path: Path):
    return read_log(write_sample(tmp_path / "a.jsonl", generations=6, children=4, seed=3))


def test_programs_of_any_length_take_little_time() -> None:
    with pytest.raises(ValueError, match="too long to compare"):
        compare_programs("", "x\n" * (MOST_LINES + 1))


def test_every_child_rewrites_the_best_before_it(log) -> None:
    best, place = log.initial.evaluation.fitness, (0, 0)
    for generation in log.generations:
        assert parent_of(log, generation.generation) == place
        if generation.improved:
            assert log.child(*generation.best).evaluation.fitness > best
            best, place = generation.best_fitness, generation.best
    assert parent_of(log, len(log.generations) + 1) == place
    assert parent_of(log, len(log.generations) + 2) is None
    assert parent_of(log, 0) is None


def test_the_lineage_leads_from_the_initial_program_to_the_best(log) -> None:
    table = replay.lineage(log)
    assert len(table) == 1 + sum(each.improved for each in log.generations) > 2
    assert table["program"].iloc[-1] == log.best.program
    assert table["program"].iloc[0] == program_of(log, (0, 0))
    assert math.isclose(table["fitness"].iloc[0] + table["gain"].sum(), log.best.evaluation.fitness)
    assert table["calls"].sum() == log.best.generation * log.header.children
    assert (table["gain"][1:] > 0).all()
    changed = table[["added", "removed"]][1:]
    assert (changed.sum(axis=1) > 0).all()


def test_lines_are_counted_as_added_or_removed() -> None:
    folder = Path(__file__).resolve().parents[3] / "logs" / "samples" / "searches"
    table = replay.lineage(read_log(folder / "circle_packing-greedy-s40.jsonl.gz"))
    lines = np.array([len(program.splitlines()) for program in table["program"]])
    assert (np.diff(lines) != 0).any()
    assert (table["added"] - table["removed"])[1:].tolist() == np.diff(lines).tolist()


def test_without_programs_only_the_changes_are_unknown(log, tmp_path: Path) -> None:
    small = replay.lineage(compact(log.path, tmp_path / "small.jsonl"))
    whole = replay.lineage(log)
    known = ["generation", "index", "fitness", "gain", "calls"]
    assert small[known].equals(whole[known])
    assert small["added"].isna().all()
