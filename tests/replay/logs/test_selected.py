"""Runs that are chosen by what they were made with are those that a selection of rows gives."""

import pytest
from test_report import pool

import replay
from replay.logs.selected import COLUMNS, chosen, chosen_tables, in_words
from replay.logs.tables import load_tables


@pytest.fixture
def frame(tmp_path):
    return replay.load(pool(tmp_path, children=2, runs=2), pool(tmp_path, children=4, runs=3))


def test_nothing_that_is_asked_chooses_all(frame):
    assert chosen(frame, None).equals(frame)
    assert chosen(frame, {}).equals(frame)


def test_every_column_chooses_whole_runs(frame):
    for column in set(COLUMNS) & set(frame):
        for value in frame[column].unique():
            found = chosen(frame, {column: [str(value)]})
            assert found.equals(frame[frame[column] == value])
            assert (
                found.groupby("run")
                .size()
                .equals(frame[frame["run"].isin(found["run"])].groupby("run").size())
            )


def test_values_of_one_column_are_either_and_columns_are_both(frame):
    both = chosen(frame, {"children": ["2", "4.0"], "seed": ["1"]})
    assert both.equals(frame[frame["seed"] == 1])
    assert sorted(both["children"].unique()) == [2, 4]


def test_all_tables_hold_the_same_runs(tmp_path):
    tables = load_tables(pool(tmp_path, children=2, runs=2), pool(tmp_path, children=4, runs=3))
    part = chosen_tables(tables, {"children": ["4"]})
    assert [set(table["children"]) for table in part] == [{4}] * 3
    assert [set(table["run"]) for table in part] == [set(part.runs["run"])] * 3


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"child": ["4"]}, "expected a column among .*, got 'child'"),
        ({"best_fitness": ["0.5"]}, "expected a column among"),
        ({"children": ["5"]}, "no run has children = 5; there are runs of 2, 4"),
        ({"children": ["4"], "seed": ["9"]}, "no run that is left has seed = 9; .* of 0, 1, 2"),
        ({"model": ["a", "b"]}, "no run has model = a or b; there are runs of"),
        ({"settings": ["feedback"]}, "no run has settings = 'feedback'; .* of 'max_tokens"),
    ],
)
def test_what_no_run_has_is_said_with_what_there_is(frame, where, says):
    with pytest.raises(ValueError, match=f"^--where: {says}"):
        chosen(frame, where)


def test_a_choice_reads_as_it_is_written():
    assert in_words({"model": ["a", "b"], "children": ["4"]}) == "model=a or b, children=4"
