"""Which runs count, and forks of one run as one."""

from types import SimpleNamespace

import pandas as pd
import pytest

from replay.reports.counting import begun, by_root, noise_note


def runs_of(*rows):
    return pd.DataFrame(rows, columns=["run", "root", "forked_from", "rescored"])


def test_runs_without_a_complete_generation_are_left_out_unless_all_are():
    runs = pd.DataFrame({"run": ["a", "b"], "generations": [0, 2]})
    generations = pd.DataFrame({"run": ["a", "b", "b"], "generation": [0, 0, 1]})
    left, rows = begun(SimpleNamespace(runs=runs, generations=generations))
    assert left["run"].tolist() == ["b"]
    assert rows["run"].tolist() == ["b", "b"]
    none = runs.assign(generations=0)
    left, rows = begun(SimpleNamespace(runs=none, generations=generations))
    assert left is none
    assert rows is generations


def test_forks_and_rescored_logs_of_one_run_have_one_value_their_mean():
    runs = runs_of(
        ("a", "h1", "", False), ("a-fork", "h1", "a", False), ("b", "h2", "", False),
        ("b-again", "h2", "", True), ("c", "h3", "", False),
    )  # fmt: skip
    values = pd.Series([1.0, 2.0, 4.0, 8.0, 16.0], index=runs["run"])
    assert by_root(runs, values).tolist() == [1.5, 6.0, 16.0]


def test_runs_of_another_tool_with_one_header_stay_apart():
    runs = runs_of(("a", "h", "", False), ("b", "h", "", False))
    values = pd.Series([1.0, 3.0], index=["a", "b"])
    assert by_root(runs, values).tolist() == [1.0, 3.0]


@pytest.mark.parametrize("order", [["a", "b", "c"], ["c", "a", "b"]])
def test_values_find_their_runs_by_name_whatever_their_order(order):
    runs = runs_of(("b", "h1", "", False), ("a", "h1", "b", False), ("c", "h2", "", False))
    values = pd.Series({"a": 1.0, "b": 3.0, "c": 9.0})[order]
    assert sorted(by_root(runs, values)) == [2.0, 9.0]


def test_noise_is_noted_with_the_number_of_runs_where_it_is_not_all():
    runs = pd.DataFrame({"run": ["a", "b"], "noise": ["evaluations are noisy: so", ""]})
    assert noise_note(runs) == "in 1 of 2 runs evaluations are noisy: so"
    assert noise_note(runs[:1]) == "evaluations are noisy: so"
    assert noise_note(runs[1:]) == ""
