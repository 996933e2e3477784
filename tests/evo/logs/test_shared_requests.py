"""Requests to pause, to stop and to go on that live in a Redis server, which the tests start."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from evo_runs import QUIET, same_run
from redis_servers import needs_redis, serving

import evo
from evo.cli import main
from evo.logs.journal import LogError
from evo.logs.shared_requests import ask

pytestmark = [needs_redis, pytest.mark.filterwarnings("ignore:none of the first 8 programs is ok")]

REPLY = (
    "```python\ndef construct():\n    return [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, {}.5]]\n```"
)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with serving(tmp_path) as place:
        yield place


def counting() -> Any:
    """A model that takes `seconds` for each reply, and counts its calls."""
    lock = threading.Lock()

    def model(messages: Any, seed: int = 0) -> str:
        with lock:
            model.calls += 1  # type: ignore[attr-defined]
        time.sleep(model.seconds)  # type: ignore[attr-defined]
        return REPLY.format(seed % 100)

    model.calls = 0  # type: ignore[attr-defined]
    model.seconds = 0.2  # type: ignore[attr-defined]
    return model


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_still(model: Any) -> bool:
    """Whether no call begins within a while."""
    before = model.calls
    time.sleep(0.3)
    return model.calls == before


def options(model: Any, address: str | None, **more: Any) -> dict[str, Any]:
    shape = {"generations": 20, "children": 2, "max_concurrent": 2, **QUIET, **more}
    return {"model": model, "control": address, **shape}


def test_a_pause_holds_all_calls_until_somebody_asks_to_go_on(address, tmp_path) -> None:
    model = counting()
    handle = evo.start("mmd", log=tmp_path / "a.jsonl", **options(model, address))
    until(lambda: model.calls > 5)
    assert main(["pause", "--control", address]) == 0
    until(lambda: is_still(model))
    assert model.calls < 40
    assert repr(handle).startswith("<Handle held")
    assert handle.running
    model.seconds = 0.0
    assert main(["go-on", "--control", address]) == 0
    log = handle.wait(60)
    assert (model.calls, log.finished) == (40, True)
    other = counting()
    other.seconds = 0.0
    assert same_run(log, evo.run("mmd", log=tmp_path / "b.jsonl", **options(other, None)))


def test_a_stop_from_elsewhere_leaves_a_log_that_goes_on(address, tmp_path, capsys) -> None:
    path, model = tmp_path / "a.jsonl", counting()
    handle = evo.start("mmd", log=path, **options(model, address))
    until(lambda: model.calls > 5)
    with pytest.raises(LogError, match=r"no session that listens .* works on it"):
        evo.stop(tmp_path / "other", control=address)
    evo.stop(path, control=address)
    log = handle.wait(60)
    assert log.ends[-1].reason == "interrupted"
    with pytest.raises(LogError, match="no session"):  # which has taken its note away
        evo.stop(path, control=address)
    model.seconds = 0.0
    log = evo.run("mmd", log=path, **options(model, address))  # the request is not for this one
    assert (model.calls, log.finished) == (40, True)


def test_a_folder_stands_for_all_that_is_worked_on_in_it(address, tmp_path, capsys) -> None:
    models = [counting(), counting()]
    handles = [
        evo.start(
            "mmd", log=tmp_path / name / "a.jsonl", **options(model, address, generations=400)
        )
        for name, model in zip("xy", models, strict=True)
    ]
    until(lambda: min(model.calls for model in models) > 3)
    assert main(["stop", str(tmp_path / "x"), "--control", address]) == 0
    assert "1 session asked to stop" in capsys.readouterr().out
    assert not handles[0].wait(60).finished
    assert handles[1].running
    evo.stop(control=address)
    assert not handles[1].wait(60).finished


@pytest.mark.parametrize("asked", ["go on", "stop"])
def test_who_begins_during_a_pause_waits_before_the_first_call(asked, address, tmp_path) -> None:
    evo.stop(wish="pause", control=address)
    model = counting()
    shape = options(model, address, generations=1)
    handle = evo.start("mmd", log=tmp_path / "a.jsonl", **shape)
    until(lambda: handle.log)
    time.sleep(0.5)
    assert (handle.running, model.calls) == (True, 0)
    evo.stop(wish=asked, control=address)
    assert handle.wait(60).finished == (asked == "go on")
    assert model.calls == (2 if asked == "go on" else 0)


def test_a_wider_pause_is_lifted_as_a_whole(address, tmp_path) -> None:
    evo.stop(tmp_path, wish="pause", control=address)
    evo.stop(tmp_path / "x", wish="pause", control=address)
    with pytest.raises(LogError, match=f"still paused .* with {tmp_path}"):
        evo.stop(tmp_path / "x", wish="go on", control=address)
    evo.stop(wish="go on", control=address)
    shape = options(counting(), address, generations=1)
    log = evo.run("mmd", log=tmp_path / "x" / "a.jsonl", **shape)
    assert log.finished


def test_an_allocation_and_a_selection_by_rows_are_held_and_stopped(address, tmp_path) -> None:
    model = counting()
    folder, shape = tmp_path / "a", options(model, address)
    del shape["generations"]
    handle = evo.start_allocation("mmd", "ucb1", arms=2, rounds=40, log_dir=folder, **shape)
    until(lambda: model.calls > 5)
    evo.stop(folder, wish="pause", control=address)
    until(lambda: is_still(model))
    assert handle.running
    evo.stop(folder / "arm-01.jsonl", control=address)
    assert len(handle.wait(60).told) < 40

    agent = counting()
    choices = [{"k": 1}, {"k": 2}]
    evo.stop(tmp_path / "s", wish="pause", control=address)
    selecting = evo.start_selection(
        choices, evaluate=lambda row, k: len(agent([], row * k)), data=list(range(20)),
        log_dir=tmp_path / "s", control=address, bounds=(0, 200), **QUIET,
    )  # fmt: skip
    time.sleep(0.5)
    assert (selecting.running, agent.calls) == (True, 0)
    evo.stop(wish="go on", control=address)
    selecting.wait(60)
    assert agent.calls


def test_a_server_that_dies_ends_nothing_and_is_heard_when_it_is_back(tmp_path) -> None:
    path, model = tmp_path / "a.jsonl", counting()
    handles = []

    def lose_the_server() -> None:
        with serving(tmp_path) as address:
            handles.append(evo.start("mmd", log=path, **options(model, address, generations=400)))
            until(lambda: model.calls > 3)
        time.sleep(0.6)
        model.seconds = 0.01

    with pytest.warns(UserWarning, match=r"cannot be read .* stays as it is, going on"):
        lose_the_server()
    seen = model.calls
    until(lambda: model.calls > seen)
    with serving(tmp_path) as address:
        until(lambda: ask(address, "pause"))
        until(lambda: is_still(model))
        evo.stop(path, control=address)
        assert handles[0].wait(60).ends[-1].reason == "interrupted"


def test_mistakes_are_said_before_the_first_call(address, tmp_path, capsys, monkeypatch) -> None:
    command = ["run", "mmd", "-T", "1", "-N", "1", "--log", str(tmp_path / "a.jsonl"), "-q"]
    for arguments, words in (
        ([*command, "--control", "host"], "expected the address of a Redis server"),
        ([*command, "--control", f"unix://{tmp_path}/none.sock"], "as a place of requests"),
        (["stop", "--control", address], "/: no session that listens"),
    ):
        assert main(arguments) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "a.jsonl").exists()
    with pytest.raises(ValueError, match="'go on' needs a server"):
        evo.stop(tmp_path / "a.jsonl", wish="go on")
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ValueError, match=r"pip install 'evo-replay\[redis\]'"):
        evo.run("mmd", log=tmp_path / "a.jsonl", **options(counting(), address))


def test_a_password_is_told_to_nobody(tmp_path, capsys) -> None:
    with serving(tmp_path, "--requirepass", "s3cret") as address:
        own = address.replace("//", "//:s3cret@", 1)
        log = evo.run("mmd", log=tmp_path / "a.jsonl", **options(counting(), own, generations=1))
        assert b"s3cret" not in log.path.read_bytes()
        assert main(["pause", "--control", own]) == 0
        assert main(["stop", "--control", own.replace("s3cret", "other")]) == 2
        shown = capsys.readouterr()
        assert not {"s3cret", "other"} & {*shown.out.split(), *shown.err.split(":")}
