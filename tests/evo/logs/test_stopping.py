"""Requests to pause and to stop, by files beside logs."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import evo
from evo.logs.journal import encode_line, write_new
from evo.logs.stopping import StopRequests, stop_file
from evo.runs.configuration import make_header


def test_a_request_to_stop_is_heeded(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    write_new(log, encode_line(make_header("mmd")))
    evo.stop(log)  # meant for an earlier session
    heard = threading.Event()
    with StopRequests(heard.set) as requests:
        requests.watch(tmp_path / "other.jsonl")
        requests.watch(log)
        time.sleep(0.5)
        assert not heard.is_set()
        evo.stop(log)
        assert heard.wait(60)
    assert not stop_file(log).exists()
