"""Hostile programs are contained to what a machine promises, in time, and leave nothing behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from hostile_programs import ALL, Hostile
from tiers import thorough_after
from toy import HURRY

import evo
from evo.sandbox.evaluator import _PATIENCE_SECONDS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RAISED = max(1, int(os.environ.get("EVO_TORTURE", "1")))
ONE_IN = max(1, 16 // RAISED)  # EVO_TORTURE=16 and more: every program

MACHINES = {
    "all layers": [],
    "root without namespaces": ["--filter"],
    "user without namespaces": ["--filter", "--user"],
    "user with namespaces": ["--user"],
    "nothing": ["--filter", "--user", "--nothing"],
}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be anybody")


def run(options: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python on another kind of machine."""
    paths = (ROOT, ROOT / "tests" / "evo" / "sandbox", HERE)
    command = [sys.executable, str(HERE / "container.py"), *options, *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "HOME": "/"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd="/")
    if "Permission denied" in done.stderr and "expose" in done.stderr:
        pytest.skip("the interpreter cannot be shown to other users here")
    return done


def faults(hostile: Hostile, found: dict[str, object], protections: set[str]) -> list[str]:
    """What a machine with these layers promises, and was not so."""
    elapsed, error = float(str(found["elapsed"])), str(found["error"])
    promised = set(hostile.needs) <= protections
    wrong = []
    late = 1 if RAISED > 1 else 20  # a busy machine is no fault, but of whoever asks for more
    stuck = 2 * HURRY.seconds + _PATIENCE_SECONDS  # where it may stop or end its sandbox
    if elapsed > HURRY.seconds + late + (0 if promised else stuck):
        wrong.append(f"took {elapsed:.1f} s")
    if found["benign"] != [0.5, 0.5]:
        wrong.append(f"another program is {found['benign']}")
    if len(error) > 60_000:
        wrong.append("endless error")
    if promised:
        if "Escaped" in error or found["fitness"] not in (None, 0.5, 0.25) or not found["log"]:
            wrong.append("escaped")
        if found["left"]:
            wrong.append(f"left {found['left']}")
        if found["status"] not in (*hostile.status, "timeout") or (
            found["status"] != "timeout" and hostile.says not in error
        ):
            wrong.append(f"is {found['status']}: {error[:300]}")
    return wrong


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize("machine", thorough_after(1, MACHINES))
def test_hostile_programs_are_contained(machine: str) -> None:
    number = list(MACHINES).index(machine)
    options = [option for option in MACHINES[machine] if option != "--nothing"]
    nothing = ["--nothing"] if "--nothing" in MACHINES[machine] else []
    share = [f"marker-{uuid.uuid4().hex}", str(number % ONE_IN), str(ONE_IN)]
    done = run(options, str(HERE / "attack.py"), *share, *nothing)
    assert done.returncode == 0, done.stderr[-3000:]
    first, *lines = map(json.loads, done.stdout.splitlines())
    protections = set(first["protections"])
    programs = {hostile.name: hostile for hostile in ALL}
    assert len(lines) == len(ALL[number % ONE_IN :: ONE_IN])
    wrong = {line["name"]: faults(programs[line["name"]], line, protections) for line in lines}
    assert not {name: said for name, said in wrong.items() if said}
    print(f"{machine}: {len(lines)} programs, slowest {max(x['elapsed'] for x in lines):.2f} s")


@pytest.mark.slow
@needs_root
@pytest.mark.thorough
def test_a_whole_run_as_root_in_a_container_without_namespaces(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    arguments = ["run", "mmd", "-T", "1", "-N", "6", "-q", "--log", str(log)]
    done = run(["--filter"], "-m", "evo", *arguments)
    assert done.returncode == 0, done.stderr
    found = evo.read_log(log)
    assert not {"mount", "pid", "network"} & set(found.sessions[0].protections)
    assert [child.evaluation.status for child in found.children] == ["ok"] * 6


BOUNDS = """
import json, sys
from toy import make_task
from evo.logs.records import Limits
from evo.sandbox import Evaluator
TOP = '''
import os, signal, time
def apart(action):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        action()
        os._exit(0)
'''
FORKS = TOP + '''
def construct():
    for count in range(300):
        try:
            apart(lambda: time.sleep(20))
        except OSError:
            break
    raise ValueError(f"forked {count} times")
'''
MEMORY = TOP + '''
def hold():
    kept = bytearray(b"x") * (200 << 20)
    time.sleep(20)
def construct():
    left = 6
    while left:
        try:
            apart(hold)
            left -= 1
        except OSError:  # somebody else's processes of this user count as well
            time.sleep(0.1)
    time.sleep(100)
'''
limits = Limits(seconds=120, memory_mb=512, processes=8)
with Evaluator(1) as evaluator:
    found = [evaluator.evaluate(make_task(), text, limits) for text in (FORKS, MEMORY)]
    print(json.dumps([evaluator.protections, *([e.error, e.seconds] for e in found)]))
"""


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize("machine", thorough_after(1, list(MACHINES)[:-1]))
def test_processes_and_the_memory_of_all_of_them_are_bounded(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVO_MAX_LIMITS", "memory_mb=800")  # three quarters for one worker
    done = run(MACHINES[machine], "-W", "ignore", "-c", BOUNDS)
    assert done.returncode == 0, done.stderr[-3000:]
    protections, (forks, _), (memory, seconds) = json.loads(done.stdout)
    assert "memory" in protections
    if "processes" in protections:
        assert 1 <= int(re.findall(r"forked (\d+)", forks)[-1]) <= 8
    else:  # root as itself
        assert "more than 8 processes" in forks
    assert "its processes hold over 600 MiB together" in memory
    assert seconds < 90
