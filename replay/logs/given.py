"""A path that is given in place of a frame or a log is answered with what loads it."""

from __future__ import annotations

import os
from typing import Literal

import pandas as pd

from evo.logs.log import Log
from evo.plugins import MistakenType

Loader = Literal["replay.load", "replay.children", "replay.load_sweep", "evo.read_log"]

ROW = ("run", "generation", "best_fitness")
"""Columns that every table of `replay.load` has."""


def check_loaded(verb: str, given: object, loader: Loader, *, numbers: bool = False) -> None:
    """Raises MistakenType if a verb is not given what a function returns, such as a path.

    Args:
        verb: The name of the verb.
        given: Its first argument.
        loader: The function that returns what the verb takes.
        numbers: Whether the verb takes numbers, too.
    """
    if isinstance(given, pd.DataFrame):
        _check_table(verb, given, loader, numbers=numbers)
        return
    if isinstance(given, Log):  # a path, too
        if loader == "evo.read_log":
            return
        what, shown = "a log", "log"
    elif isinstance(given, str | os.PathLike):
        shown = repr(os.fspath(given))
        what = f"the path {shown}"
    elif _is_list_of_logs(given):
        what, shown = "a list of paths or logs", "logs"
    elif numbers:
        return
    else:
        raise MistakenType(f"{verb}: expected what {loader} returns, got {named(given)}")
    raise MistakenType(
        f"{verb}: expected what {loader} returns, got {what}; load it first: "
        f"{verb}({loader}({shown}), ...)"
    )


def check_runs(frame: pd.DataFrame) -> None:
    """Raises ValueError if a table holds no run, as after a selection that nothing meets."""
    if frame.empty:
        raise ValueError(
            "expected at least one run, got an empty frame; if rows were selected, compare the "
            "values that were asked for with those that are logged, such as frame['task'].unique()"
        )


def check_result(verb: str, given: object, kind: str, maker: str) -> None:
    """Raises MistakenType if a verb is given anything but the result of a certain function.

    Args:
        verb: The name of the verb.
        given: Its first argument.
        kind: The name of the class of what it takes, which need not be imported for this.
        maker: The function that returns such a result.

    Example:
        >>> check_result("pulls", None, "Allocation", "evo.allocate_live")
        Traceback (most recent call last):
        evo.plugins.MistakenType: pulls: expected what evo.allocate_live returns, got None
    """
    if all(each.__name__ != kind for each in type(given).__mro__):
        raise MistakenType(f"{verb}: expected what {maker} returns, got {named(given)}")


def _check_table(verb: str, given: pd.DataFrame, loader: Loader, *, numbers: bool) -> None:
    """Raises MistakenType for another table than that of runs and their generations.

    That of children has a best fitness, too: the one before the child's generation.
    """
    columns = {*given.columns}
    if loader == "evo.read_log":
        raise MistakenType(f"{verb}: expected what {loader} returns, got a DataFrame")
    if loader != "replay.load":
        return
    if {"status", "index"} <= columns:
        what = "replay.children, a row per child"
    elif not numbers and "configuration" in columns and "generation" not in columns:
        what = "replay.load_sweep, a row per run"
    elif not numbers and (missing := [name for name in ROW if name not in columns]):
        raise MistakenType(
            f"{verb}: expected what {loader} returns, got a table without {', '.join(missing)}"
        )
    else:
        return
    raise MistakenType(
        f"{verb}: expected what {loader} returns, a row per run and generation, got the table of "
        f"{what}; load the same logs with {loader}"
    )


def named(given: object) -> str:
    """What was given, in words."""
    if isinstance(given, pd.DataFrame):
        return "a DataFrame"
    return "None" if given is None else f"a value of type {type(given).__name__}"


def _is_list_of_logs(given: object) -> bool:
    if not isinstance(given, list | tuple) or not given:
        return False
    return all(isinstance(each, str | os.PathLike | Log) for each in given)
