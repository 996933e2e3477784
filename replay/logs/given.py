"""A path that is given in place of a frame or a log is answered with what loads it."""

from __future__ import annotations

import os
from typing import Literal

from evo.logs.log import Log
from evo.plugins import MistakenType

Loader = Literal["replay.load", "replay.children", "replay.load_sweep", "evo.read_log"]


def check_loaded(verb: str, given: object, loader: Loader) -> None:
    """Raises MistakenType if a verb is given a path, or logs, that have yet to be loaded.

    Args:
        verb: The name of the verb.
        given: Its first argument.
        loader: The function that returns what the verb takes.
    """
    if isinstance(given, Log):  # a path, too
        if loader == "evo.read_log":
            return
        what, shown = "a log", "log"
    elif isinstance(given, str | os.PathLike):
        shown = repr(os.fspath(given))
        what = f"the path {shown}"
    elif _is_list_of_logs(given):
        what, shown = "a list of paths or logs", "logs"
    else:
        return
    raise MistakenType(
        f"{verb}: expected what {loader} returns, got {what}; load it first: "
        f"{verb}({loader}({shown}), ...)"
    )


def _is_list_of_logs(given: object) -> bool:
    if not isinstance(given, list | tuple) or not given:
        return False
    return all(isinstance(each, str | os.PathLike | Log) for each in given)
