"""Threads of explorers when the interpreter exits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

THREAD = """
import threading, time
from replay.explorers.background import start_thread, wait

closed = threading.Event()

def work():
    while not wait(threading.Event(), 0.05):
        assert not closed.is_set()
    time.sleep(0.2)
    print("ended", not closed.is_set())

start_thread(work)
import atexit
atexit.register(closed.set)  # as a kernel closes its sockets
"""


def test_threads_end_before_the_interpreter_closes_what_they_write_to():
    done = subprocess.run([sys.executable, "-c", THREAD], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("ended True\n", "")


CELL = """
import threading, time
from synthetic_runs import sweep_runs
import replay.explorers as explorers

made = explorers.explore_selection(sweep_runs(4, 8))
made._on_message({"kind": "mounted", "dark": False, "ratio": 1, "width": 900})
rest, view = made._debounce, made._spec.view

def show_again(still):
    while still():
        with made._lock:
            made._png = bytes([len(made._png) % 2]) * (99_999 + len(made._png) % 2)
            made._present(coarse=False)
        time.sleep(0.002)

rest._work = show_again
with made._lock:
    rest.soon()
time.sleep(0.5)
"""


@pytest.mark.slow
def test_a_kernel_that_is_shut_down_while_an_explorer_draws_says_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    with (tmp_path / "errors").open("w+") as errors:
        manager, client = start_new_kernel(stderr=errors, cwd=str(tmp_path))
        try:
            reply = client.execute_interactive(CELL, timeout=60)
            assert reply["content"]["status"] == "ok"
            client.stop_channels()
        finally:
            manager.shutdown_kernel()
        errors.seek(0)
        assert "Traceback" not in errors.read()
