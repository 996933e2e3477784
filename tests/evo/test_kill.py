"""Kills at random moments: nothing logged is asked again, nothing is lost."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_search import timeless

import evo
from evo.llm.server import OfflineServer

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
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("*.jsonl"))


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


@pytest.mark.slow
def test_kill_9_at_20_random_moments_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = random.Random(1)
    folder, request_log = tmp_path / "logs", tmp_path / "requests.jsonl"
    folder.mkdir()
    path = folder / "killed.jsonl"
    shape = ["-T", "1000", "-N", "8", "-q"]
    start = ["run", "mmd", "--model", "served", "--seed", "3", "--log", str(path), *shape]
    goon = ["resume", str(path), "-T", "1000", "-q"]
    with OfflineServer(request_log=request_log) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        logged: set[int] = set()
        asked_before = 0
        for kill in range(21):
            begun = path.exists() and path.read_bytes().count(b"\n") > 0
            command = goon if begun else start
            if path.exists() and not begun:
                path.unlink()  # killed before its header was written
            if kill < 20:
                assert not kill_after(command, folder, draws.randint(0, 12), draws.random() * 0.2)
            else:
                generations = len(evo.read_log(path).generations) + 2
                finish(["resume", str(path), "-T", str(generations), "-q"])
            asked = seen_by(request_log)
            assert not logged & set(asked[asked_before:]), "a logged call was made again"
            asked_before = len(asked)
            if path.exists() and path.read_bytes().count(b"\n") > 0:
                logged = {outcome.seed for outcome in evo.read_log(path).outcomes}
        whole = evo.run(
            "mmd",
            model="served",
            generations=generations,
            children=8,
            seed=3,
            log=tmp_path / "whole.jsonl",
            progress=False,
        )
    assert timeless(evo.read_log(path).children) == timeless(whole.children)
    assert not evo.verify(path).faults


@pytest.mark.slow
def test_kill_9_at_10_random_moments_of_an_allocation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = random.Random(2)
    folder, request_log = tmp_path / "killed", tmp_path / "requests.jsonl"
    common = ["allocate", "mmd", "--model", "served", "--policy", "thompson", "-q"]
    command = [*common, "--arms", "4", "--rounds", "160", "-N", "4", "--log-dir", str(folder)]
    settings = {"model": "served", "arms": 4, "rounds": 160, "children": 4, "progress": False}
    with OfflineServer(request_log=request_log) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        logged: set[int] = set()
        asked_before = 0
        for kill in range(11):
            if kill < 10:
                assert not kill_after(command, folder, draws.randint(0, 20), draws.random() * 0.2)
            else:
                finish(command)
            asked = seen_by(request_log)
            assert not logged & set(asked[asked_before:]), "a logged call was made again"
            asked_before = len(asked)
            logs = [p for p in folder.glob("arm-*.jsonl") if p.read_bytes().count(b"\n")]
            logged = {outcome.seed for p in logs for outcome in evo.read_log(p).outcomes}
        killed = evo.allocate_live("mmd", "thompson", log_dir=folder, **settings)
        whole = evo.allocate_live("mmd", "thompson", log_dir=tmp_path / "whole", **settings)
    assert killed.pulls.tolist() == whole.pulls.tolist()
    assert killed.best_fitness.tolist() == whole.best_fitness.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_run_cleanly(number: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    command = ["run", "mmd", "-T", "500", "-N", "4", "--log", str(path), "-q"]
    with subprocess.Popen(
        [sys.executable, "-m", "evo", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if path.exists() and b'"kind":"generation"' in path.read_bytes():
                break
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert b"evo resume" in errors
    log = evo.read_log(path)
    assert log.ends[-1].reason == "interrupted"
    assert not evo.verify(path).faults
    goal = len(log.generations) + 1
    assert len(evo.resume(path, generations=goal, progress=False).generations) == goal
