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


def kill_and_resume(command: list[str], seconds: float) -> bool:
    """Starts a command and kills it after so long; returns whether it was done by then."""
    with subprocess.Popen(
        [sys.executable, "-m", "evo", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return False
        assert process.returncode == 0, errors.decode()
        return True


@pytest.mark.slow
def test_kill_9_at_random_moments_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = random.Random(1)
    path, request_log = tmp_path / "killed.jsonl", tmp_path / "requests.jsonl"
    with OfflineServer(request_log=request_log) as server:
        models = tmp_path / "models.toml"
        models.write_text(SERVED.format(url=server.url.removesuffix("/v1")))
        monkeypatch.setenv("EVO_MODELS", str(models))
        start = ["run", "mmd", "--model", "served", "-T", "12", "-N", "8", "--seed", "3", "-q"]
        command, kills = [*start, "--log", str(path)], 0
        logged_before: set[int] = set()
        asked_before = 0
        while True:
            done = kill_and_resume(command, 0.4 + draws.random() * 2.5)
            asked = seen_by(request_log)
            again = logged_before & set(asked[asked_before:])
            assert not again, "a logged call was made again"
            asked_before = len(asked)
            if path.exists() and path.read_bytes().count(b"\n") > 0:
                logged_before = {o.seed for o in evo.read_log(path).outcomes}
                command = ["resume", str(path), "-T", "12", "-q"]
            if done:
                if kills >= 20:
                    break
                path.unlink()
                logged_before, command = set(), [*start, "--log", str(path)]
            kills += not done
        whole = evo.run(
            "mmd",
            model="served",
            generations=12,
            children=8,
            seed=3,
            log=tmp_path / "whole.jsonl",
            progress=False,
        )
    assert timeless(evo.read_log(path).children) == timeless(whole.children)
    assert not evo.verify(path).faults


@pytest.mark.slow
def test_kill_9_at_random_moments_of_an_allocation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = random.Random(2)
    folder, request_log = tmp_path / "killed", tmp_path / "requests.jsonl"
    with OfflineServer(request_log=request_log) as server:
        models = tmp_path / "models.toml"
        models.write_text(SERVED.format(url=server.url.removesuffix("/v1")))
        monkeypatch.setenv("EVO_MODELS", str(models))
        common = ["allocate", "mmd", "--model", "served", "--policy", "thompson", "-q"]
        command = [*common, "--arms", "4", "--rounds", "40", "-N", "4", "--log-dir", str(folder)]
        kills, asked_before = 0, 0
        logged_before: set[int] = set()
        done = False
        while not done:
            limit = 60.0 if kills >= 10 else 0.8 + draws.random() * 1.5
            done = kill_and_resume(command, limit)
            asked = seen_by(request_log)
            assert not logged_before & set(asked[asked_before:])
            asked_before = len(asked)
            logs = [p for p in folder.glob("arm-*.jsonl") if p.read_bytes().count(b"\n")]
            logged_before = {o.seed for p in logs for o in evo.read_log(p).outcomes}
            kills += not done
        killed = evo.allocate_live(
            "mmd", "thompson", model="served", arms=4, rounds=40, children=4, log_dir=folder,
            progress=False,
        )  # fmt: skip
        whole = evo.allocate_live(
            "mmd", "thompson", model="served", arms=4, rounds=40, children=4,
            log_dir=tmp_path / "whole", progress=False,
        )  # fmt: skip
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
