"""Requests to pause and to stop, by files beside logs."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import evo
from evo.logs import stopping
from evo.logs.journal import LogError, encode_line, write_new
from evo.logs.lines import PREFIX
from evo.logs.stopping import StopRequests, stop, stop_file
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


def test_a_request_stands_beside_the_log_under_its_whole_name(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_bytes(PREFIX + b"rest")
    for wish in ("stop", "pause"):
        stop(log, wish)
        assert stop_file(log, wish) == tmp_path / f"a.jsonl.{wish}"
        assert stop_file(log, wish).is_file()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"path": None}, ValueError, "path: expected a log, or give control='redis://host"),
        ({"wish": "go on"}, ValueError, "wish: 'go on' needs a server, or give control="),
        ({"path": "none.jsonl"}, LogError, "none.jsonl: no such log"),
        ({"path": "."}, LogError, "no such log"),
        ({"path": "other"}, LogError, "not a log that anything is writing; nothing was asked"),
    ],
)
def test_what_cannot_be_asked_is_said_and_leaves_no_request(
    given: dict[str, str | None], error: type[Exception], message: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_bytes(PREFIX)
    Path("other").write_text("{}")
    with pytest.raises(error, match=message):
        stop(**{"path": "a.jsonl", **given})  # type: ignore[arg-type]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "other"]


def test_requests_of_another_kind_are_left_and_one_is_heeded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "POLL", 0.01)
    log, heard, calls = tmp_path / "a.jsonl", threading.Event(), list[int]()
    log.write_bytes(PREFIX)

    def act() -> None:
        calls.append(1)
        heard.set()

    with StopRequests(act, "pause") as requests:
        requests.watch(log)
        stop(log)
        assert not heard.wait(0.1)
        stop(log, "pause")
        assert heard.wait(20)
        time.sleep(0.05)
    assert calls == [1]
    assert stop_file(log).is_file()  # of the other kind, which somebody else heeds
    assert not stop_file(log, "pause").exists()
