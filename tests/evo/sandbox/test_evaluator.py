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
from toy import HURRY, LIMITS, SCORE, Remnants, make_task

from evo import sandbox
from evo.logs.records import Evaluation, Limits
from evo.prompt import last_line
from evo.sandbox import Evaluator, EvaluatorClosed, SandboxError
from evo.sandbox import evaluator as driver
from evo.sandbox.messages import Ready
from evo.sandbox.outcome import Ended, read_returned, without_folders

GOOD = "def construct():\n    return [[0.5, 0.5]] * 4"
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


def test_value_and_metrics(evaluator: Evaluator) -> None:
    program = "import numpy as np\ndef build():\n    return np.arange(8.0).reshape(4, 2)"
    evaluation = evaluator.evaluate(make_task(), program, LIMITS, keep_value=True)
    assert evaluation.fitness == 3.5
    assert evaluation.metrics == {"objective": 28.0}
    assert evaluation.value == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    assert evaluator.evaluate(make_task(), program, LIMITS).value is None


WORKS = {
    "first entry": f"""
def build():
    raise RuntimeError("not preferred")
{GOOD}
if __name__ == "__main__":
    raise SystemExit("main ran")
""",
    "own source": f"import inspect\n{GOOD}\nassert 'inspect' in open(__file__).read()\n"
    "assert 'return' in inspect.getsource(construct)",
    "scipy": f"from scipy.optimize import minimize\nminimize(abs, 1.0)\n{GOOD}",
}
FAILS = {
    "this package": (
        "import sys\nfor name in [n for n in sys.modules if n.startswith('replay')]:\n"
        f"    del sys.modules[name]\nimport replay\n{GOOD}",
        "named 'replay'\nthe package 'replay' cannot be imported inside the sandbox",
    ),
    "lone surrogates": (f"{GOOD}\n#\ud800", "valid Unicode"),
    "its own line": ("def construct():\n    return 1 / 0", "return 1 / 0"),
}


@pytest.mark.parametrize("name", WORKS)
def test_programs_that_work(evaluator: Evaluator, name: str) -> None:
    assert evaluator.evaluate(make_task(), WORKS[name], LIMITS).status == "ok"


@pytest.mark.parametrize("name", FAILS)
def test_programs_that_fail_are_told_why(evaluator: Evaluator, name: str) -> None:
    program, says = FAILS[name]
    evaluation = evaluator.evaluate(make_task(), program, LIMITS)
    assert evaluation.status == "error"
    assert says in (evaluation.error or "")
    assert (evaluation.error or "").count("File ") <= 1  # no frame but the program's


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
            assert evaluator.evaluate(make_task(), WORKS["scipy"], LIMITS).status == "ok"
            program, says = FAILS["this package"]
            assert says in (evaluator.evaluate(make_task(), program, LIMITS).error or "")


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


KEYED_SCORE = """
import random, secrets, subprocess, sys, uuid
CODE = "import random, secrets, uuid; print(random.random(), secrets.token_hex(), uuid.uuid4())"
def score(value):
    drawn = random.random(), secrets.token_hex(), uuid.uuid4(), hash("text"), list({"a", "b", "c"})
    raise ValueError(f"{drawn} {subprocess.check_output([sys.executable, '-c', CODE])}")
"""


def test_an_evaluators_randomness_is_keyed_in_processes_that_it_starts_too(
    evaluator: Evaluator, remnants: Remnants
) -> None:
    task, other = make_task(KEYED_SCORE), f"{GOOD}  # another"
    first = [evaluator.evaluate(task, each, LIMITS).error for each in (GOOD, other, GOOD)]
    assert first[0] == first[2] != first[1]
    luck = [evaluator.evaluate(task, each, LIMITS, draw=1).error for each in (GOOD, other)]
    assert luck[0] == luck[1] != first[0]
    with Evaluator(1) as fresh:  # another process, in which nothing was scored before
        assert fresh.evaluate(task, other, LIMITS).error == first[1]
        assert fresh.evaluate(task, GOOD, LIMITS, draw=1).error == luck[0]


def test_a_value_is_scored_within_the_limits_of_its_own_request(evaluator: Evaluator) -> None:
    task = make_task(
        "import resource\ndef score(value):\n"
        "    return {'fitness': resource.getrlimit(resource.RLIMIT_AS)[0] / 2**20}"
    )
    for memory in (900, 1000):
        limits = Limits(seconds=30, memory_mb=memory)
        assert evaluator.evaluate(task, GOOD, limits).fitness == memory


def test_paths_in_errors_are_shortened_in_time_linear_in_their_length() -> None:
    text = 'File "/tmp/x/program.py", line 1 /usr/lib/python3.11/json/a.py /a/site-packages/np/b.py'
    assert without_folders(text) == 'File "program.py", line 1 json/a.py site-packages/np/b.py'
    began = time.perf_counter()
    without_folders("/a" * 200_000)
    assert time.perf_counter() - began < 60  # it took hours


def test_a_kill_is_a_timeout_only_beyond_the_processor_time() -> None:
    for seconds, status, says in ((0.5, "error", "signal SIGKILL"), (1.5, "timeout", "over 1 s")):
        found = read_returned(Ended(b"", 9, seconds, None, ""), Limits(seconds=1), "separate")
        assert isinstance(found, Evaluation)
        assert (found.status, says in (found.error or "")) == (status, True)


def test_a_process_that_cannot_be_locked_in_is_no_fault_of_its_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fails = "from evo.sandbox.jail import Jail; Jail.enter = lambda *_, **__: open('/no lock')"
    monkeypatch.setattr(driver, "_MAIN", driver._MAIN.replace("; main()", f"; {fails}; main()"))
    with Evaluator(1) as broken, pytest.raises(SandboxError, match=r"(?s)locked in: .*no lock"):
        broken.evaluate(make_task(), GOOD, LIMITS)


@pytest.mark.parametrize(
    ("score", "status", "says"),
    [
        ("raise ValueError('too near')", "invalid", "too near"),
        ("return {'fitness': float('nan')}", "invalid", "fitness is not finite"),
        ("return {'fitness': 1.0, 'area': float('inf')}", "invalid", "area is not finite"),
        ("return {'area': 1.0}", "error", "key 'fitness'"),
        ("return {'fitness': 'high'}", "error", "must return numbers"),
        ("return {'fitness': 1.0, 'gap': 'x'}", "error", "'gap': 'x'; words go into 'notes'"),
        ("return 'high'", "error", "must return a number, a dict"),
        ("return 1 / 0", "error", "ZeroDivisionError"),
        ("import os; os._exit(3)", "error", "exit code 3"),
        ("while True: pass", "timeout", "scoring"),
        ("return {'fitness': 10**400}", "invalid", "fitness is not finite: inf"),
        ("return {'fitness': type('R', (), {'__repr__': None})()}", "error", "evaluator failed"),
        ("return {'fitness': 1.0, '\\ud800' * 2: 'x'}", "error", "must return numbers"),
        ("raise ValueError('x' * 1_000_000)", "invalid", "xxx"),
        ("return {'fitness': 'x' * 1_000_000}", "error", "must return numbers"),
        ("return {'fitness': 1.0, 'k' * 1_000_000: 1.0}", "invalid", "too long"),
    ],
)
def test_failing_evaluators(evaluator: Evaluator, score: str, status: str, says: str) -> None:
    limits = HURRY if status == "timeout" else LIMITS
    evaluation = evaluator.evaluate(make_task(f"def score(value):\n    {score}"), GOOD, limits)
    assert evaluation.status == status
    assert says in (evaluation.error or "")
    assert len(evaluation.error or "") < 10_000
    assert evaluator.evaluate(make_task(), GOOD, LIMITS).status == "ok"


def test_output_is_kept_in_errors_only(evaluator: Evaluator) -> None:
    noisy = "print('out loud')\nimport sys\nprint('quietly', file=sys.stderr)\n"
    limits = Limits(seconds=30, output_kb=1)
    assert evaluator.evaluate(make_task(), noisy + GOOD, limits).error is None
    error = evaluator.evaluate(make_task(), f"{noisy}print('x' * 9999)\n1 / 0", limits).error or ""
    for text in ("out loud", "quietly", "ZeroDivisionError", "line 5", "bytes dropped"):
        assert text in error
    assert len(error) < 3000


def test_what_an_evaluator_printed_is_kept_with_its_failure_alone(evaluator: Evaluator) -> None:
    noisy = "import sys\ndef score(value):\n    print('it scores')\n"
    for end, status in (("raise ValueError('bad')", "invalid"), ("return [][0]", "error")):
        task = make_task(f"{noisy}    print('x' * 9999, 'aloud', file=sys.stderr)\n    {end}")
        found = evaluator.evaluate(task, GOOD, LIMITS)
        error = found.error or ""
        assert found.status == status
        assert "aloud" in error
        assert "characters dropped" in error
        assert len(error) < 3000
        assert "xxx" not in last_line(error)  # which is all that a prompt shows of it
    again = evaluator.evaluate(make_task(f"{noisy}    raise ValueError('bad')"), GOOD, LIMITS)
    assert (again.error or "").endswith("of the evaluator ---\nit scores")
    assert last_line(again.error) == "bad"
    fine = evaluator.evaluate(make_task(f"{noisy}    return 1.0"), GOOD, LIMITS)
    assert (fine.status, fine.error, fine.notes) == ("ok", None, "")


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
from evo.logs.records import Evaluation, Limits
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
