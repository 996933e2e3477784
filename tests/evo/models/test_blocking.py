"""Calls on helper threads, which may be given up."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from evo.models.blocking import Helpers


@pytest.fixture
def helpers() -> Iterator[Helpers]:
    made = Helpers()
    yield made
    made.close()


def ended(thread: threading.Thread) -> bool:
    thread.join(30)
    return not thread.is_alive()


def test_calls_one_after_the_other_are_made_by_one_daemon_thread(helpers: Helpers) -> None:
    used = {helpers.start(threading.current_thread).answer.result(30) for _ in range(50)}
    (thread,) = used
    assert thread is not threading.current_thread()
    assert thread.daemon
    helpers.close()
    assert ended(thread)
    assert helpers.start(lambda: "again").answer.result(30) == "again"


def test_calls_at_the_same_time_are_made_by_several_threads(helpers: Helpers) -> None:
    meeting = threading.Barrier(3)
    works = [helpers.start(lambda: meeting.wait(30)) for _ in range(3)]
    assert sorted(work.answer.result(30) for work in works) == [0, 1, 2]


def test_errors_of_any_kind_and_context_variables_reach_the_other_side(helpers: Helpers) -> None:
    variable = contextvars.ContextVar[str]("variable")
    variable.set("mine")
    assert helpers.start(variable.get).answer.result(30) == "mine"
    for error in (ValueError("wrong"), SystemExit(3)):

        def fail(error: BaseException = error) -> None:
            raise error

        work = helpers.start(fail)
        with pytest.raises(type(error)) as raised:
            work.answer.result(30)
        assert raised.value is error
        assert work.over.done()


def test_what_was_given_up_goes_on_silently_and_its_thread_ends(
    helpers: Helpers, capfd: pytest.CaptureFixture[str]
) -> None:
    for fails in (False, True):
        goes_on, began = threading.Event(), threading.Event()
        threads: list[threading.Thread] = []

        def slow(
            fails: bool = fails,
            goes_on: threading.Event = goes_on,
            began: threading.Event = began,
            threads: list[threading.Thread] = threads,
        ) -> None:
            threads.append(threading.current_thread())
            began.set()
            goes_on.wait(30)
            if fails:
                raise ValueError("nobody hears it")

        work = helpers.start(slow)
        assert began.wait(30)
        assert work.answer.cancel()
        assert not work.over.done()
        other = helpers.start(threading.current_thread).answer.result(30)
        assert other is not threads[0]
        goes_on.set()
        work.over.result(30)
        assert ended(threads[0])
    assert capfd.readouterr() == ("", "")


def test_the_process_ends_while_a_call_goes_on() -> None:
    code = (
        "import time; from evo.models.blocking import Helpers; "
        "Helpers().start(lambda: time.sleep(300)).answer.cancel()"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=200)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert time.monotonic() - began < 150
