"""Hostile programs are contained, in time, and leave nothing behind."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_programs import ALL, GOOD, Hostile
from toy import LIMITS, Remnants, make_task

from evo import load_task
from evo.records import Evaluation
from evo.sandbox import LAYERS, Evaluator

ROOT = Path(__file__).resolve().parents[3]
BENIGN = f"def construct():\n    return {GOOD}"


@pytest.fixture(scope="module")
def surroundings(
    tmp_path_factory: pytest.TempPathFactory, remnants: Remnants
) -> Iterator[dict[str, object]]:
    """What a hostile program may be after: a key, a log, a home folder, local servers."""
    home = tmp_path_factory.mktemp("home")
    log = home / "run.jsonl"
    log.write_text("the log")
    secret = secrets.token_hex()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as local,
        pytest.MonkeyPatch.context() as patch,
    ):
        path = f"/tmp/{secret[:16]}.socket"
        local.bind(path)
        local.listen()
        patch.setenv("OPENAI_API_KEY", secret)
        yield {
            "home": home,
            "log": log,
            "pid": os.getpid(),
            "port": server.getsockname()[1],
            "root": ROOT,
            "secret": secret,
            "socket": path,
            "token": remnants.token,
        }
        os.remove(path)
    assert log.read_text() == "the log"
    assert [entry.name for entry in home.iterdir()] == ["run.jsonl"]


def evaluate_and_look(evaluator: Evaluator, remnants: Remnants, program: str) -> Evaluation:
    """Evaluate a program within its deadline and find the machine as it was."""
    assert evaluator.evaluate(make_task(), BENIGN, LIMITS).status == "ok"
    before = remnants.count()
    began = time.monotonic()
    evaluation = evaluator.evaluate(make_task(), program, LIMITS)
    elapsed = time.monotonic() - began
    assert elapsed < LIMITS.seconds + 1.0
    assert evaluation.seconds <= elapsed
    after = evaluator.evaluate(make_task(), BENIGN, LIMITS)
    assert (after.status, after.fitness) == ("ok", 0.5)
    assert remnants.settled(before) == before
    return evaluation


@pytest.mark.parametrize("hostile", ALL, ids=lambda hostile: hostile.name)
def test_contained(
    hostile: Hostile,
    evaluator: Evaluator,
    remnants: Remnants,
    surroundings: dict[str, object],
) -> None:
    missing = set(hostile.needs) - set(evaluator.protections)
    if missing:
        pytest.skip(f"this platform lacks {missing}")
    evaluation = evaluate_and_look(evaluator, remnants, hostile.program(**surroundings))
    assert "Escaped" not in (evaluation.error or "")
    assert evaluation.status in hostile.statuses, evaluation
    assert hostile.says in (evaluation.error or "")
    assert len(evaluation.error or "") < 60_000
    assert evaluation.fitness in (None, 0.5, 0.25)


LASTING = (
    "endless loop inside C",
    "fork bomb",
    "daemon that holds stdout",
    "executed child in the background",
    "threads that outlive the call",
    "1 GB of output",
    "many unreadable folders",
    "writes results to every descriptor",
    "os._exit before returning",
    "returns NaN",
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::evo.sandbox.evaluator.SandboxWarning")
@pytest.mark.parametrize(
    "without",
    [("pid",), ("mount",), ("user",), ("landlock", "seccomp"), tuple(LAYERS)],
    ids="-".join,
)
def test_time_and_remnants_without_layers(
    without: tuple[str, ...], remnants: Remnants, surroundings: dict[str, object]
) -> None:
    with Evaluator(1, without=without) as evaluator:
        assert not set(without) & set(evaluator.protections)
        for hostile in ALL:
            if hostile.name in LASTING:
                program = hostile.program(**surroundings)
                evaluation = evaluate_and_look(evaluator, remnants, program)
                assert evaluation.status in (*hostile.statuses, "timeout"), hostile.name


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="already an ordinary user")
def test_contained_as_an_ordinary_user() -> None:
    tests = [Path(__file__).name, "test_shared.py", "test_evaluator.py"]
    done = subprocess.run(
        [sys.executable, "as_user.py", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), "USER": "ordinary", "HOME": "/"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


@pytest.mark.parametrize(
    ("circles", "status"),
    [
        ("np.full((26, 2), 0.5), np.zeros(26)", "ok"),
        ("np.full((26, 2), 0.5), np.full(26, -0.1)", "invalid"),
        ("np.full((26, 2), 0.5), np.full(26, 0.1)", "invalid"),
        ("np.full((26, 2), 0.5), np.full(26, np.nan)", "invalid"),
    ],
)
def test_degenerate_constructions(evaluator: Evaluator, circles: str, status: str) -> None:
    task = load_task("circle_packing")
    program = f"import numpy as np\ndef construct_packing():\n    return {circles}, 99.0"
    assert evaluator.evaluate(task.record, program, task.limits).status == status
