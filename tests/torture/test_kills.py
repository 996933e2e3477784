"""Kills at random moments: nothing logged is asked again, nothing is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

import evo
from evo.llm.server import OfflineServer

pytestmark = pytest.mark.slow

TIMES = int(os.environ.get("EVO_TORTURE", "1"))
SERVED = """
["served"]
id = "offline"
base_url = "{url}/v1"
active_parameters = 1000
"""


def seen_by(request_log: Path) -> list[int]:
    """Seeds of the requests that the server answered."""
    lines = request_log.read_text().splitlines() if request_log.exists() else []
    return [json.loads(line)["seed"] for line in lines]


def lines_of(folder: Path) -> int:
    """Lines of all logs in a folder."""
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.jsonl"))


def kill_after(command: list[str], folder: Path, lines: int, seconds: float) -> bool:
    """Kills a command some seconds after it logged so many lines; whether it ended before."""
    goal = lines_of(folder) + lines
    with subprocess.Popen(
        [sys.executable, "-m", "evo", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        while process.poll() is None and lines_of(folder) < goal:
            time.sleep(0.005)
        time.sleep(seconds)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return False
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
        return True


def finish(command: list[str]) -> None:
    """Runs a command to its end."""
    subprocess.run([sys.executable, "-m", "evo", *command], check=True, capture_output=True)


def serve_as_model(server: OfflineServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `--model served` mean this server, in this process and those it starts."""
    models = tmp_path / "models.toml"
    models.write_text(SERVED.format(url=server.url.removesuffix("/v1")))
    monkeypatch.setenv("EVO_MODELS", str(models))


VERBS = {
    "run": ["run", "mmd", "--seeds", "3:5", "-T", "10", "-N", "6", "--resume"],
    "allocate": ["allocate", "mmd", "--policy", "thompson", "--arms", "3", "--rounds", "24"],
    "sweep": ["sweep", "{toml}"],
    "select": ["select", "mmd", "--vary", "children=3,4", "-T", "5", "--seeds", "3:6"],
}
SWEEP = """
task = "mmd"
seeds = [3, 4]
[base]
model = "served"
[space]
children = [3, 5]
generations = [4, 9]
"""


def outcomes(folder: Path) -> dict[tuple[str, int], object]:
    """What is logged of each child: by its log, without the clock and the place."""
    found = {}
    for path in folder.rglob("*.jsonl"):
        if path.read_bytes()[:40].count(b'"kind":"header"'):
            log = evo.read_log(path)
            assert not [fault for fault in evo.verify(path).faults if "torn" not in fault]
            for child in log.children:
                evaluation = msgspec.structs.replace(child.evaluation, seconds=0.0)
                found[path.name, child.seed] = (child.reply, child.program, evaluation)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_kills_lose_nothing_and_repeat_nothing(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = random.Random(verb)
    (tmp_path / "s.toml").write_text(SWEEP)
    base = [part.format(toml=tmp_path / "s.toml") for part in VERBS[verb]]
    base += ["-q"] + (["--model", "served"] if verb != "sweep" else [])
    folder, requests = tmp_path / "killed", tmp_path / "requests.jsonl"
    with OfflineServer(request_log=requests) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        logged: dict[tuple[str, int], object] = {}
        before = 0
        for _ in range(2 * TIMES):
            folder.mkdir(exist_ok=True)
            command = [*base, "--log-dir", str(folder)]
            ended = kill_after(command, folder, draws.randint(0, 12), draws.random() * 0.2)
            asked = seen_by(requests)[before:]
            now = outcomes(folder)
            assert now | logged == now, "what was logged is lost"
            again = Counter(asked) & Counter(seed for _, seed in logged)
            assert not again, "a logged call was made again"
            before, logged = before + len(asked), now
            if ended:
                break
        finish([*base, "--log-dir", str(folder)])
        finish([*base, "--log-dir", str(tmp_path / "whole")])
    assert outcomes(folder) == outcomes(tmp_path / "whole")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_run_cleanly(number: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    command = ["run", "mmd", "-T", "500", "-N", "4", "--log", str(path), "-q"]
    with subprocess.Popen(
        [sys.executable, "-m", "evo", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if path.exists() and b'"kind":"generation"' in path.read_bytes():
                break
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert b"evo resume" in errors
    log = evo.read_log(path)
    assert log.ends[-1].reason == "interrupted"
    assert not evo.verify(path).faults
    goal = len(log.generations) + 1
    assert len(evo.resume(path, generations=goal, progress=False).generations) == goal
