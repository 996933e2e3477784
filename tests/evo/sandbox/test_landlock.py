"""What the layer Landlock keeps in."""

from __future__ import annotations

import pytest
from toy import LIMITS, make_task

from evo.sandbox import Evaluator, landlock

NAMESPACES = ("mount", "pid", "network")


TASK = make_task("def score(value):\n    return 1.0\n")


SIGNAL = """
import os

def construct():
    try:
        os.kill(os.getppid(), 0)
        return "reached"
    except PermissionError:
        return "refused"
"""


def test_signals_stop_at_the_wall_of_landlock() -> None:
    if landlock.version() < landlock.SIGNALS:
        pytest.skip("this kernel's Landlock has no scope for signals")
    with Evaluator(1, without=(*NAMESPACES, "user")) as evaluator:
        assert "signals" in evaluator.protections
        seen = evaluator.evaluate(TASK, SIGNAL, LIMITS, keep_value=True)
    assert seen.value == "refused"


def test_where_nothing_keeps_signals_in_that_is_said() -> None:
    with Evaluator(1, without=(*NAMESPACES, "user", "landlock")) as evaluator:
        assert "signals" not in evaluator.protections
        assert evaluator._pool.ready is not None
        assert "Landlock" in evaluator._pool.ready.missing["signals"]
        seen = evaluator.evaluate(TASK, SIGNAL, LIMITS, keep_value=True)
    assert seen.value == "reached"
