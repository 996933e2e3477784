"""Ctrl-C gives calls under way five seconds, a second one ends them at once; no call is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from killing import seen_by
from tiers import thorough_after

import evo
from evo.gate.server import Latency, OfflineServer
from evo.runs.verification import verify

pytestmark = pytest.mark.slow

CALLS = 16
CODE = """
import signal, sys, threading, time
from dataclasses import dataclass
import evo

signal.signal(signal.SIGINT, signal.default_int_handler)

taken = threading.Lock()

@dataclass(frozen=True)
class Endless:
    name = "endless"
    def check(self, program, archive):
        if not taken.acquire(blocking=False):
            return None
        while True:
            time.sleep(0.001)

url, log, busy = sys.argv[1:]
try:
    evo.run(
        "mmd", model=evo.Model("offline", base_url=url), generations=1, children=16,
        max_concurrent=16, workers=1, progress=False, log=log,
        filters=[Endless()] if busy else [],
    )
except KeyboardInterrupt:
    print(time.time(), flush=True)
"""


def interrupted(tmp_path: Path, wait: float, *, busy: bool, twice: bool) -> float:
    """Seconds from the last Ctrl-C to the end of a run with 16 calls in flight."""
    requests = tmp_path / "requests.jsonl"
    with OfflineServer(latency=Latency(wait), request_log=requests) as server:
        command = [sys.executable, "-c", CODE, server.url, str(tmp_path / "a.jsonl"), "busy" * busy]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                deadline = time.monotonic() + 120
                while len(seen_by(requests)) < CALLS if busy else server._in_flight < CALLS:
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
                for _ in range(1 + twice):
                    time.sleep(0.5)
                    began = time.time()
                    process.send_signal(signal.SIGINT)
                assert process.stdout is not None
                return float(process.stdout.readline()) - began
            finally:
                process.kill()


@pytest.mark.parametrize("busy", thorough_after(1, [False, True]), ids=["calls", "filter"])
@pytest.mark.parametrize("twice", thorough_after(1, [True, False]), ids=["twice", "once"])
def test_ctrl_c_gives_calls_five_seconds_and_a_second_one_none(
    tmp_path: Path, busy: bool, twice: bool
) -> None:
    """While an endpoint is slow, or while a filter takes for ever."""
    seconds = interrupted(tmp_path, 0.0 if busy else 60.0, busy=busy, twice=twice)
    # An idle machine ends within one second after that; a busy one still tells both apart.
    assert (0 if twice else 4.9) <= seconds < (4.5 if twice else 20)
    log = evo.read_log(tmp_path / "a.jsonl")
    assert not verify(log.path).faults
    assert len(log.children) < CALLS
    assert sum(len(call.attempts) for call in log.calls) == CALLS  # each was sent, and may cost
    if not busy:
        with OfflineServer() as server:  # the endpoint is well again
            model = evo.Model("offline", base_url=server.url)
            whole = evo.resume(log.path, model=model, progress=False)
        assert not verify(log.path).faults
        assert len(whole.children) == CALLS
        attempts = [attempt for call in whole.calls for attempt in call.attempts]
        answered = [attempt for attempt in attempts if attempt.status == "ok"]
        assert (len(answered), len(attempts)) == (CALLS, 2 * CALLS)  # what was spent stays counted
