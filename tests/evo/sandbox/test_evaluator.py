"""The pool of workers: sharing, dying, closing, and what an evaluation depends on."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from endpoints import together
from toy import GOOD, IMPORTS_US, LIMITS, NEEDS_SCIPY, NO_IMPORT, SCORE, Remnants, make_task

from evo import sandbox
from evo.logs.records import Limits
from evo.sandbox import Evaluator, EvaluatorClosed
from evo.sandbox import evaluator as driver
from evo.sandbox.messages import Ready

SLEEP = "import time\ndef construct():\n    time.sleep(600)"
RANDOM = """
import random, os, secrets, subprocess, sys, uuid
import numpy as np
def construct():
    draws = [random.random(), np.random.rand(), np.random.default_rng().random(),
             random.Random().random(), secrets.randbelow(1000) / 1000,
             os.urandom(1)[0] / 256, uuid.uuid4().int / 2**128, hash("text") % 1000 / 1000]
    code = "import random; print(random.random())"
    draws[-1] += float(subprocess.check_output([sys.executable, "-c", code]))
    random.seed()
    return np.array(draws).reshape(4, 2) + random.random()
"""


def test_programs_find_the_same_packages_however_this_one_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a wheel, `evo` and `replay` lie beside NumPy in a folder of packages."""
    checkout, found = os.path.realpath(driver._PARENT), driver._packages()
    for name in ("evo", "replay"):
        (tmp_path / name).symlink_to(f"{checkout}/{name}")
    for name in ("numpy", "scipy"):
        (tmp_path / name).symlink_to(Path(importlib.import_module(name).__file__ or "").parent)
    monkeypatch.setattr(driver, "_PARENT", str(tmp_path))
    for folder in (checkout, str(tmp_path)):
        monkeypatch.setattr(driver, "_packages", lambda folder=folder: (folder, *found))
        with Evaluator(1) as evaluator:
            assert evaluator.evaluate(make_task(), NEEDS_SCIPY, LIMITS).status == "ok"
            error = evaluator.evaluate(make_task(), IMPORTS_US, LIMITS).error or ""
            assert NO_IMPORT in error


DRAWING = """
import random
import numpy as np
def score(value):
    return {"fitness": random.random() + np.random.rand()}
"""


def test_evaluation_is_a_function_of_the_program(evaluator: Evaluator) -> None:
    def found(by: Evaluator, program: str, draw: int = 0, seed: int = 0) -> tuple[object, object]:
        how = {"keep_value": True, "draw": draw, "seed": seed}
        made = by.evaluate(make_task(DRAWING), program, LIMITS, **how)  # type: ignore[arg-type]
        assert made.value is not None
        return made.value, made.fitness

    first, other = (found(evaluator, f"{RANDOM}{end}") for end in ("", "#"))
    assert found(evaluator, RANDOM) == first == found(evaluator, RANDOM, seed=8)
    assert all(one != its for one, its in zip(first, other, strict=True))
    with Evaluator(1) as another:
        assert found(another, RANDOM) == first
    # Later draws are keyed by run seed and draw, and never by the program.
    later = found(evaluator, RANDOM, 1, 7)
    assert later == found(evaluator, f"{RANDOM}#", 1, 7)
    assert later not in (found(evaluator, RANDOM, 2, 7), found(evaluator, RANDOM, 1, 8), first)


def test_a_value_is_scored_within_the_limits_of_its_own_request(evaluator: Evaluator) -> None:
    task = make_task(
        "import resource\ndef score(value):\n"
        "    return {'fitness': resource.getrlimit(resource.RLIMIT_AS)[0] / 2**20}"
    )
    for memory in (900, 1000):
        limits = Limits(seconds=30, memory_mb=memory)
        assert evaluator.evaluate(task, GOOD, limits).fitness == memory


def test_many_threads_share_the_workers(remnants: Remnants) -> None:
    programs = [f"def construct():\n    return [[{i}, {i}]] * 4" for i in range(40)]
    tasks = [make_task(), make_task(SCORE + "#")]
    with Evaluator(2) as evaluator:
        found = together(
            40, lambda i: evaluator.evaluate(tasks[i % 2], programs[i], LIMITS).fitness
        )
    assert found == [float(i) for i in range(len(programs))]


def test_closing_wakes_every_waiting_thread(remnants: Remnants) -> None:
    before = remnants.count()
    evaluator = Evaluator(2)
    assert remnants.settled(before) == before  # nothing starts before the first use
    evaluator.evaluate(make_task(), GOOD, LIMITS)
    threading.Timer(0.7, evaluator.close).start()
    began = time.monotonic()

    def evaluate(_: int) -> None:
        with pytest.raises(EvaluatorClosed):
            evaluator.evaluate(make_task(), SLEEP, Limits(seconds=600))

    together(5, evaluate)
    assert time.monotonic() - began < 120  # the programs would take 600 s
    assert remnants.settled(before) == before
    with pytest.raises(EvaluatorClosed):
        evaluator.evaluate(make_task(), GOOD, LIMITS)
    evaluator.close()


def test_a_worker_that_dies_is_replaced(remnants: Remnants) -> None:
    with Evaluator(1) as evaluator:
        evaluator.evaluate(make_task(), GOOD, LIMITS)
        before = remnants.count()
        (worker,) = evaluator._pool._alive
        killer = threading.Timer(0.3, os.kill, (worker.process.pid, signal.SIGKILL))
        killer.start()
        program = "import time\ndef construct():\n    time.sleep(1.5)\n    return [[0, 0]] * 4"
        evaluation = evaluator.evaluate(make_task(), program, Limits(seconds=60))
        killer.join()
        assert (evaluation.status, evaluation.fitness) == ("ok", 0.0)
        assert {worker} != evaluator._pool._alive
        wait_until(lambda: remnants.settled(before, 0) == before)


def test_a_driver_that_is_killed_leaves_nothing(remnants: Remnants, tmp_path: Path) -> None:
    before = remnants.count()["processes"]
    script = tmp_path / "driver.py"
    script.write_text(
        f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).resolve().parents[3])!r}]
from evo.logs.records import Limits
from evo.sandbox import Evaluator, evaluator
from toy import make_task
evaluator._PARENT = {driver._PARENT!r}
pool = Evaluator(1)
print(pool.protections, flush=True)
pool.evaluate(make_task(), {SLEEP!r}, Limits(seconds=600))
"""
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.3)
        assert remnants.count()["processes"] > before
        process.kill()
    wait_until(lambda: remnants.count()["processes"] == before)


def wait_until(condition: Callable[[], bool]) -> None:
    """What ends because its parent was killed takes a moment."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_forked_copy_leaves_the_original_alone(evaluator: Evaluator) -> None:
    pid = os.fork()
    if pid == 0:
        evaluator.close()
        try:
            evaluator.evaluate(make_task(), GOOD, LIMITS)
        except EvaluatorClosed:
            os._exit(42)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42
    assert evaluator.evaluate(make_task(), GOOD, LIMITS).status == "ok"


def test_missing_layers_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_warned", threading.Event())
    ready = Ready(protections=(), missing={"seccomp": "not known here"}, folder="")
    with pytest.warns(sandbox.SandboxWarning, match="seccomp .not known here.: programs may"):
        driver._warn_once(ready)
    driver._warn_once(ready)


def test_bad_arguments() -> None:
    for workers in (0, -1):
        with pytest.raises(ValueError, match=f"got {workers}"):
            Evaluator(workers)
    with pytest.raises(ValueError, match=r"'moat'.*'seccomp'"):
        Evaluator(without=["moat"])
