"""What a program may do to processes other than itself."""

from __future__ import annotations

import sys
from typing import cast

import msgspec
import pytest
from toy import LIMITS, make_task

from evo.sandbox import Evaluator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")

NAMESPACES = ("mount", "pid", "network")
TASK = make_task("def score(value):\n    return 1.0\n")
SETTING = """
import os, resource, time

def construct():
    child = os.fork()  # of the same user: nothing but the filter keeps a program from it
    if child == 0:
        time.sleep(60)
        os._exit(0)
    lowest = os.getpriority(os.PRIO_PROCESS, 0)
    some = os.sched_getaffinity(0)
    calls = {
        "prlimit": lambda pid: resource.prlimit(pid, resource.RLIMIT_CORE),
        "setpriority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, lowest),
        "affinity": lambda pid: os.sched_setaffinity(pid, some),
        "scheduler": lambda pid: os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0)),
        "parameters": lambda pid: os.sched_setparam(pid, os.sched_param(0)),
    }
    done = {}
    for name, call in calls.items():
        for who, pid in {"itself": 0, "child": child}.items():
            try:
                call(pid)
                done[f"{name} of {who}"] = "works"
            except PermissionError:
                done[f"{name} of {who}"] = "refused"
    try:
        os.setpriority(os.PRIO_USER, 0, lowest)
        done["setpriority of user"] = "works"
    except PermissionError:
        done["setpriority of user"] = "refused"
    os.kill(child, 9)
    return [[key, done[key]] for key in done]
"""


@pytest.mark.parametrize("without", [(), NAMESPACES])
def test_settings_of_other_processes_are_refused_and_its_own_are_not(
    without: tuple[str, ...],
) -> None:
    with Evaluator(1, without=without) as evaluator:
        if "seccomp" not in evaluator.protections:
            pytest.skip("this kernel has no filter")
        seen = evaluator.evaluate(TASK, SETTING, LIMITS, keep_value=True)
    assert seen.status == "ok", seen.error
    pairs = cast("list[tuple[str, str]]", seen.value)
    done = dict(pairs)
    assert len(done) == 11
    expected = {name: "works" if name.endswith("itself") else "refused" for name in done}
    assert done == expected


HOLDING = """
import os, time
def construct():
    for _ in range({count}):
        if os.fork() == 0:
            held = bytearray(b"x") * (60 << 20)
            time.sleep(10)
            os._exit(0)
    time.sleep(1.5)
    return 1.0
"""


@pytest.mark.parametrize(("count", "status"), [(1, "ok"), (5, "error")])
def test_what_processes_hold_together_is_bounded_though_each_keeps_to_its_limit(
    count: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVO_MAX_LIMITS", "memory_mb=240")
    with Evaluator(1) as evaluator:
        if "memory" not in evaluator.protections:
            pytest.skip("what processes hold cannot be seen here")
        limits = msgspec.structs.replace(LIMITS, memory_mb=240)
        found = evaluator.evaluate(TASK, HOLDING.format(count=count), limits)
    assert found.status == status
    words = "the program ran out of memory: its processes hold over 240 MiB together"
    assert (words in (found.error or "")) == (status == "error")
