"""The rows of a log: generations, children and attempts agree with the lines they come from."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import changed, sample_header, sample_lines, write_lines, write_sample

import evo
import replay
from evo.logs.log import read_log
from evo.logs.records import Evaluation, Initial, SearchRecord
from evo.runs.configuration import make_header
from evo.runs.state import state_of
from evo.searches import Islands, Member, Population
from evo.values import fields_of
from replay.logs.costs import Calls
from replay.logs.decode import read_run
from replay.logs.rows import (
    _total,
    attempt_rows,
    child_rows,
    evaluation_of,
    generation_rows,
    islands_of,
    programs_of,
    run_row,
    search_of,
    settings_of,
)
from replay.reports.configurations import configuration_labels

replace = msgspec.structs.replace
HEADER = sample_header()


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("logs") / "a.jsonl", generations=4, children=3)


@pytest.fixture(scope="module")
def calls(log):
    return Calls(read_run(log, "a"))


@pytest.fixture(scope="module")
def spent(calls):
    return calls.spent("worst_case")


def test_rows_of_generations_add_up_to_that_of_the_run(calls, spent, log):
    rows, run = generation_rows(calls, spent), run_row(calls, spent)
    read = read_log(log)
    assert rows["generation"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(rows["best_fitness"], read.trajectory)
    assert rows["n_calls"].sum() == run["n_calls"][0] == len(read.children)
    assert rows["seconds"].tolist() == [0.0, 1.5, 1.5, 1.5, 1.5]
    for name in ("tokens", "prompt_tokens", "completion_tokens", "flops", "dollars", "n_attempts"):
        assert rows[name].sum() == pytest.approx(run[name][0]), name
    assert run["gain"] == rows["best_fitness"][-1] - rows["best_fitness"][0]


def test_rows_of_generations_count_the_children_that_are_ok_and_know_their_best(calls, spent, log):
    rows, read = generation_rows(calls, spent), read_log(log)
    for number in range(1, 5):
        fitness = [
            c.evaluation.fitness for c in read.children
            if c.generation == number and c.evaluation.fitness is not None
        ]  # fmt: skip
        assert rows["n_ok"][number] == len(fitness)
        if fitness:
            assert rows["generation_best"][number] == max(fitness)
        else:
            assert np.isnan(rows["generation_best"][number])
    assert (rows["n_ok"][0], rows["generation_best"][0]) == (1, 0.1)


def test_under_greedy_a_child_without_stated_parents_rewrote_the_best_so_far(calls, spent, log):
    rows, read = child_rows(calls, spent), read_log(log)
    assert rows["generation"].tolist() == sorted(c.generation for c in read.children)
    assert rows["draws"].tolist() == [1] * 12
    trajectory = read.trajectory
    parents = rows["parent_fitness"]
    assert parents.tolist() == [trajectory[g - 1] for g in rows["generation"]]


def test_each_attempt_is_a_row_beside_its_child(calls, spent):
    rows, children = attempt_rows(calls), child_rows(calls, spent)
    number = np.array(rows["attempt"])
    assert len(number) == children["n_attempts"].sum()
    assert (number == 0).sum() == 12
    firsts = [*zip(rows["generation"][number == 0], rows["index"][number == 0], strict=True)]
    assert firsts == [*zip(children["generation"], children["index"], strict=True)]


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4))
def test_the_island_of_a_child_is_the_one_whose_population_it_joins(islands, children, generation):
    search = Islands(islands=islands, interval=1000, population=Population(size=50))
    header = replace(
        HEADER,
        children=children,
        search=SearchRecord(name="islands", fields=fields_of(search)),
    )
    state = search.start(Member((0, 0), 0.0), 0)
    for number in range(1, generation + 1):
        state = search.fold(state, [Member((number, i), 1.0) for i in range(children)])
    places = np.array([(g, i) for g in range(1, generation + 1) for i in range(children)])
    found = islands_of(header, places[:, 0], places[:, 1])
    for (number, index), island in zip(places.tolist(), found.tolist(), strict=True):
        assert (number, index) in {m.place for m in state.islands[int(island)].members}
    assert np.isnan(islands_of(HEADER, places[:, 0], places[:, 1])).all()


def test_what_endpoints_report_is_summed_as_far_as_they_do_and_costs_are_not():
    values = np.array([1.0, np.nan, 3.0])
    assert _total("prompt_tokens", values) == 4.0
    assert np.isnan(_total("tokens", values))
    assert np.isnan(_total("prompt_tokens", values * np.nan))


def test_a_search_is_named_and_another_tool_is_its_own_search():
    assert search_of(sample_header()) == "greedy"
    assert search_of(sample_header(source="table")) == "table"
    assert search_of(sample_header(source="self-evolving-allocation")) == "greedy"
    assert search_of(sample_header(source="openevolve")) == "openevolve"
    named = replace(sample_header(source="openevolve"), search=SearchRecord(name="islands"))
    assert search_of(named) == "islands"


def test_settings_are_flat_and_leave_out_what_has_no_value():
    header = make_header("mmd", search=Population(size=7), temperature=0.5)
    found = settings_of(header)
    assert found["search.fields.size"] == 7
    assert found["sampling.temperature"] == 0.5
    assert found["draws"] == 1
    for name in {*found} - {"model"}:  # the stand-in has no id
        assert found[name] is not None
        assert not isinstance(found[name], list | dict)
    assert not {"advice", "filters", "statement", "models"} & {*found}
    assert settings_of(make_header("mmd", advice=3))["advice"] == 3
    filtered = settings_of(make_header("mmd", filters="same_program"))
    assert json.loads(filtered["filters"])[0]["name"] == "same_program"


def test_of_two_configurations_the_one_without_a_filter_is_not_said_to_have_some():
    plain, filtered = (
        json.dumps(settings_of(make_header("mmd", filters=each)), sort_keys=True)
        for each in ((), "same_program")
    )
    labels = configuration_labels(pd.Series([plain, filtered]))
    assert labels[0] == "all else as by default"
    assert labels[1].startswith("filters ")


@pytest.mark.parametrize(
    ("change", "programs", "evaluation"),
    [
        ({"seed": 8}, False, True),
        ({"children": 4}, False, True),
        ({"feedback": True}, False, True),
        ({"draws": 2}, True, False),
        ({"confirm": 2}, True, False),
        ({"versions": {"a": "b"}}, True, True),
    ],
)
def test_how_programs_were_made_is_apart_from_how_they_were_evaluated(change, programs, evaluation):
    one = sample_header()
    other = replace(one, **change)
    assert (programs_of(one) == programs_of(other)) == programs
    assert (evaluation_of(one) == evaluation_of(other)) == evaluation


LOGS = Path(__file__).resolve().parents[3] / "logs"


def one_of_each_kind() -> list[Path]:
    """The first shipped log of a run of each folder and name, numbers in the name left out."""
    kinds: dict[tuple[Path, str], Path] = {}
    for path in sorted([*LOGS.glob("corpus/**/*.jsonl*"), *LOGS.glob("samples/**/*.jsonl*")]):
        kinds.setdefault((path.parent, re.sub(r"\d+", "", path.name)), path)
    return [path for path in kinds.values() if _is_a_run(path)]


def _is_a_run(path: Path) -> bool:
    try:
        log = evo.read_log(path)
    except ValueError:  # a study's own lines
        return False
    return log.header.source == "evo" and not log.header.compact and log.initial is not None


SHIPPED = one_of_each_kind()


def test_there_are_logs_of_many_searches():
    assert len({search_of(evo.read_log(path).header) for path in SHIPPED}) > 3


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(LOGS)))
def test_the_table_of_a_shipped_log_is_what_its_fold_says(path):
    log = evo.read_log(path)
    state = state_of(log, children=log.outcomes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # logs of the paper's rules, of which tables say so
        frame, children = replay.load(path), replay.children(path)
    np.testing.assert_array_equal(frame["best_fitness"], state.trajectory)
    assert len(frame) == len(log.generations) + 1
    own = [0 if each.inherited else 1 for each in log.generations]
    for cost, calls, counted in zip(state.costs, frame["n_calls"], [1, *own], strict=True):
        assert not counted or math.isclose(cost["calls"], calls)
    for g in range(1, len(frame)):
        row = frame.iloc[g]
        made = [each for each in log.outcomes if each.generation == g]
        fitness = [each.evaluation.fitness for each in made if each.evaluation.status == "ok"]
        assert row["n_ok"] == len(fitness)
        np.testing.assert_equal(row["generation_best"], max(fitness, default=np.nan))
        assert row["seconds"] == (
            0.0 if log.generations[g - 1].inherited else log.generations[g - 1].seconds
        )
    told = {(each.generation, each.index): each for each in log.outcomes}
    assert [*zip(children["generation"], children["index"], strict=True)] == [*told]
    for name, column in children[["status", "fitness", "notes", "error", "draws"]].items():
        said = [getattr(each.evaluation, str(name)) for each in told.values()]
        assert [None if pd.isna(value) else value for value in column] == said
    assert [*map(tuple, children["parents"])] == [tuple(each.parents) for each in told.values()]
    before = [state.trajectory[min(g, len(state.trajectory)) - 1] for g, _ in told]
    np.testing.assert_array_equal(children["best_fitness"], before)


def test_generation_0_took_the_seconds_of_its_evaluation(tmp_path: Path) -> None:
    def seconds(**fields: object) -> float:
        lines = changed(sample_lines(generations=2), Initial, **fields)
        frame = replay.load(write_lines(tmp_path / f"{len([*tmp_path.iterdir()])}.jsonl", lines))
        assert frame["evaluation_seconds"].notna().tolist()[1:] == [True, True]
        return float(frame["evaluation_seconds"].iloc[0])

    one = Evaluation(status="ok", fitness=0.1, seconds=0.9)
    assert seconds(evaluation=one) == 0.9
    assert seconds(evaluation=one, second=one) == 1.8
    assert seconds(evaluation=one, inherited=True) == 0.0
    assert np.isnan(seconds(evaluation=Evaluation(status="ok", fitness=0.1, seconds=None)))
