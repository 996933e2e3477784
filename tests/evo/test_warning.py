"""Warnings name the line that called."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor

import pytest
from synthetic_runs import chain_runs

import evo
import replay
from evo.warning import and_more, warn


def test_a_warning_names_the_line_that_called_however_deep_its_cause() -> None:
    frame, _ = chain_runs(sizes=(2, 4), budget=16, seeds=range(6))
    repeated = frame.assign(repeat_of=[None if seed else "x" for seed in frame["seed"]])
    for call in (
        lambda: replay.compare(repeated, by="children"),
        lambda: replay.depth_breadth(repeated),
        functools.partial(functools.singledispatch(warn), "these runs"),  # by a function of Python
    ):
        with pytest.warns(UserWarning, match="runs") as caught:
            call()
        assert {each.filename for each in caught} == {__file__}


def test_a_warning_of_a_thread_is_given_though_no_line_called() -> None:
    with (
        pytest.warns(RuntimeWarning, match="from a thread"),
        ThreadPoolExecutor(1) as threads,
    ):
        threads.submit(warn, "from a thread", RuntimeWarning).result()


def test_a_warning_of_a_thread_names_the_line_that_began_its_work(tmp_path) -> None:
    def refuses(value):
        raise ValueError("not legal")

    task = evo.task(
        "t", initial_program="def f():\n    return 1\n", evaluate=refuses, statement="s"
    )
    with pytest.warns(UserWarning, match="the search begins without a fitness") as caught:
        evo.run_many(
            task, seeds=[1, 2], generations=1, children=1, log_dir=tmp_path, progress=False
        )
    assert {each.filename for each in caught} == {__file__}


@pytest.mark.parametrize("most", range(1, 7))
def test_the_first_are_named_and_the_rest_is_counted(most: int) -> None:
    names = ["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl", "e.jsonl"]
    named, _, more = and_more(names, most).partition(" and ")
    assert named.split(", ") == names[:most]
    assert more == (f"{len(names) - most} more" if most < len(names) else "")
