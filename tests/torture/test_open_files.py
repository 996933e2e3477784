"""A process that may open few files loses no reply, and makes as many calls at once as fit."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from killing import seen_by, serve_as_model

import evo
from evo.gate.server import Latency, OfflineServer
from evo.models.open_files import fitting

CODE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from evo.cli.entry import main
sys.exit(main(sys.argv[1:]))
"""
CALLS = 78


def run(soft: int, hard: int, log: Path) -> subprocess.CompletedProcess[str]:
    shape = ["-T", "1", "-N", str(CALLS), "--max-concurrent", "200", "--workers", "1"]
    command = ["run", "mmd", "--model", "served", *shape, "--log", str(log), "-q"]
    code = CODE.format(soft=soft, hard=hard)
    return subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize(("hard", "lowered"), [(64, True), (1024, False)])
@pytest.mark.thorough
def test_few_open_files_lower_the_calls_in_flight_and_lose_no_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hard: int, lowered: bool
) -> None:
    requests, log = tmp_path / "requests.jsonl", tmp_path / "a.jsonl"
    with OfflineServer(request_log=requests, latency=Latency(0.3, 0.1)) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        done = run(64, hard, log)
    assert done.returncode == 0, done.stderr
    assert ("calls in flight in place of 200" in done.stderr) == lowered
    assert "Too many open files" not in done.stderr
    assert Counter(seen_by(requests)).most_common(1)[0][1] == 1
    read = evo.read_log(log)
    assert (read.finished, len(read.children)) == (True, CALLS)
    assert all(child.reply is not None for child in read.children)


def test_the_limit_is_left_alone_where_all_fits() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert fitting(20, 2) == 20
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
