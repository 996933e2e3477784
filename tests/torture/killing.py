"""Commands that are killed while they work, and what the server they call has seen."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

import pytest
from forked import PROCESSES

from evo.gate.server import OfflineServer
from evo.logs.locks import lock

SERVED = """
["served"]
id = "offline"
base_url = "{url}/v1"
active_parameters = 1000
"""


def seen_by(request_log: Path) -> list[int]:
    """Seeds of the requests that the server answered."""
    text = request_log.read_text() if request_log.exists() else ""
    whole = text.splitlines(keepends=True)
    return [json.loads(line)["seed"] for line in whole if line.endswith("\n")]  # one may be halfway


def lines_of(folder: Path) -> int:
    """Lines of all logs in a folder."""
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.jsonl"))


def serve_as_model(server: OfflineServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `--model served` mean this server, in this process and those it starts."""
    models = tmp_path / "models.toml"
    models.write_text(SERVED.format(url=server.url.removesuffix("/v1")))
    monkeypatch.setenv("EVO_MODELS", str(models))


def _command(arguments: list[str], environment: dict[str, str], output: str) -> None:
    from evo.cli.entry import main

    os.environ.clear()
    os.environ.update(environment)
    with open(output, "w") as sys.stdout:
        sys.stderr = sys.stdout
        sys.exit(main(arguments))


def start(command: list[str], output: str) -> multiprocessing.process.BaseProcess:
    """`evo` with these arguments, in a process of its own that need not import all of it anew."""
    process = PROCESSES.Process(target=_command, args=(command, dict(os.environ), output))
    process.start()
    return process


def until_free(folder: Path) -> None:
    """Waits while a process that was being started when its parent was killed holds a log."""
    deadline = time.monotonic() + 5
    for path in folder.rglob("*.jsonl"):
        with path.open("r+b") as file:
            while not lock(file.fileno(), wait=False) and time.monotonic() < deadline:
                time.sleep(0.01)


def kill_after(command: list[str], folder: Path, lines: int, seconds: float) -> bool:
    """Kills a command some seconds after it logged so many lines; whether it ended before."""
    goal = lines_of(folder) + lines
    with tempfile.NamedTemporaryFile("r") as output:
        process = start(command, output.name)
        while process.is_alive() and lines_of(folder) < goal:
            time.sleep(0.01)
        time.sleep(seconds)
        process.kill()
        process.join()
        assert process.exitcode in (0, -9), output.read()
        until_free(folder)
        return process.exitcode == 0


def finish(*commands: list[str]) -> None:
    """Runs commands to their end, all at once."""
    with tempfile.NamedTemporaryFile("r") as output:
        processes = [start(command, output.name) for command in commands]
        for process in processes:
            process.join()
            assert process.exitcode == 0, output.read()
