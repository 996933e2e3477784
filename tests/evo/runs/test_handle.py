"""The verbs: one function that prepares work, called at once or in the background."""

from __future__ import annotations

import contextvars
import re
import subprocess
import sys
import threading

import pytest

import evo
from evo.models.client import EndpointRefused
from evo.plugins import MistakenType
from evo.runs.handle import Control, Handle, Prepared, begin


@pytest.mark.parametrize(
    ("verb", "first"),
    [(evo.sweep, "2, 'ucb1',"), (evo.start_sweep, "2, 'ucb1',"), (evo.allocate_live, "3, 3,")],
)
def test_more_values_than_a_verb_takes_by_place_are_answered_with_the_call(verb, first):
    words = rf"{verb.__name__}: expected .* by name, .* value {first} has no name"
    with pytest.raises(TypeError, match=words):
        verb("mmd", "ucb1", 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: evo.sweep(evo.load_task("mmd")), "sweep: a task is given by name; write sweep"),
        (
            lambda: evo.select_best(evo.load_task("mmd"), choices=[{"children": 1}]),
            r"select_best: a task is given by name; write select_best\(choices, task=",
        ),
        (
            lambda: evo.start_allocation("mmd"),
            r"start_allocation: missing .* 'policy'; write start_allocation\(task, policy, ",
        ),
        (
            lambda: evo.sweep({"children": [1]}, space={"children": [1]}),
            r"sweep: multiple values for argument 'space'; write sweep\(space, ",
        ),
        (
            lambda: evo.sweep({"children": [1]}, task="mmd", sedes=[1]),
            "'sedes'; did you mean 'seeds'",
        ),
    ],
)
def test_a_call_that_does_not_fit_is_answered_with_one_that_does(call, words):
    with pytest.raises(MistakenType, match=words):
        call()


def test_what_is_done_stays_done_when_it_is_asked_to_end(tmp_path) -> None:
    handle = evo.start("mmd", generations=1, children=1, log=tmp_path / "a.jsonl", progress=False)
    handle.wait()
    for ask in (handle.pause, handle.stop):
        ask()
        assert repr(handle).startswith("<Handle done")


def test_a_wish_of_before_is_heeded_at_once() -> None:
    heard, control = list[str](), Control()
    control.heed(control.ended, lambda: heard.append("first"))
    control.end()
    control.heed(control.stopping, lambda: heard.append("later"))
    assert heard == ["first", "later"]


def test_work_in_the_background_keeps_the_context_that_it_began_in() -> None:
    """A notebook names the cell there, under which progress is shown."""
    cell = contextvars.ContextVar("cell", default="none")
    cell.set("first")
    gate = threading.Event()

    def work(control: Control) -> str:
        gate.wait(30)
        return cell.get()

    handle = begin(Prepared([], work))
    cell.set("second")
    gate.set()
    assert handle.wait(30) == "first"


def test_after_ctrl_c_an_error_says_where_the_work_is_and_how_it_goes_on(tmp_path) -> None:
    first, second = paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]

    def work(control: Control) -> None:
        raise KeyboardInterrupt

    for begun, words in [
        ([], "interrupted before anything was begun"),
        ([first], f"interrupted; what was made is in {first}, and the same call goes on there"),
        ([first, second], f"in {first} and 1 more, and the same call"),
    ]:
        for path in begun:
            path.touch()
        with pytest.raises(KeyboardInterrupt, match=re.escape(words)):
            Prepared(paths, work).do()


def test_ctrl_c_while_one_waits_for_a_handle_says_that_the_work_goes_on(monkeypatch) -> None:
    handle = Handle(Prepared([], lambda control: None))

    def interrupted(timeout: float | None) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(handle._done, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"in the background: handle\.stop\(\) ends it"):
        handle.wait()


SCRIPT = """
import evo, time
def slow(messages):
    time.sleep(60)
handle = evo.start("mmd", model=slow, generations=1, children=1, log="a.jsonl", progress=False)
while not handle.log.children and handle.log.initial is None:
    time.sleep(0.05)
"""


def test_a_script_that_ends_before_its_work_says_so(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "a.jsonl: the process ends while this work is running in the background" in done.stderr
    whole = SCRIPT.replace("time.sleep(60)", "pass").replace("a.jsonl", "b.jsonl")
    whole += "handle.wait()\n"
    done = subprocess.run(
        [sys.executable, "-c", whole], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "the process ends" not in done.stderr
    driven = "import evo\nevo.Searcher('mmd', generations=1, children=2, log='c.jsonl').ask()\n"
    done = subprocess.run(
        [sys.executable, "-c", driven], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "the process ends" not in done.stderr  # it waits for replies, and is no work of its own


def test_a_handle_shows_logs_as_they_stand_and_waits_as_long_as_it_is_told(tmp_path) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def model(messages: list[dict[str, str]]) -> str:
        asked.set()
        assert go_on.wait(60)
        return "no program"

    options = {"generations": 1, "children": 1, "progress": False}
    handle = evo.start("mmd", model=model, log=tmp_path / "a.jsonl", **options)
    assert asked.wait(60)
    with pytest.raises(TimeoutError, match=r"still running after 0\.01 s"):
        handle.wait(0.01)
    assert handle.running
    assert (handle.log.path, len(handle.log.children)) == (tmp_path / "a.jsonl", 0)
    go_on.set()
    assert len(handle.wait(60).children) == 1
    assert len(handle.log.children) == 1


def test_a_handle_raises_what_ended_its_work_whenever_it_is_waited_for(tmp_path) -> None:
    def model(messages: list[dict[str, str]]) -> str:
        raise ZeroDivisionError("as it happens")

    options = {"generations": 1, "children": 1, "progress": False}
    handle = evo.start("mmd", model=model, log=tmp_path / "a.jsonl", **options)
    for _ in range(2):
        with pytest.raises(EndpointRefused, match="as it happens"):
            handle.wait(60)
    assert not handle.running
    assert handle.log.ends[-1].reason == "refused"
