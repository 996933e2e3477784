"""A run of the page that lives: its state in words, and why it does not go on."""

import fcntl
import time

import pytest
from samples import changed, sample_lines, write_lines, write_sample

from evo.logs.records import Generation, RunEnd
from replay.reports.live_runs import Run


def not_continued(path):
    """A run that could not go on, as another process writes it."""
    run = Run(path, 0)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        run.go_on()
        deadline = time.monotonic() + 60
        while not run.said:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    return run


def test_why_a_run_did_not_go_on_is_forgotten_once_its_log_grows(tmp_path):
    path = write_sample(tmp_path / "a.jsonl")
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:-3]))
    run = not_continued(path)
    said = run.said
    run.refresh()
    assert run.words(run.state).endswith(said)
    path.write_bytes(b"".join(whole[:-1]))  # somebody resumed it elsewhere
    run.refresh()
    assert run.said == ""
    assert said not in run.words(run.state)


def test_why_a_run_did_not_go_on_is_forgotten_once_it_is_asked_to_again(tmp_path):
    run = not_continued(write_sample(tmp_path / "a.jsonl"))
    run.go_on()
    assert run.said == ""


@pytest.mark.parametrize(
    ("message", "state", "words"),
    [
        ("paused", "paused", "3 of 4 generations"),
        (None, "stopped", "3 of 4 generations"),
        ("no sandbox", "stopped", "3 of 4 generations: interrupted: no sandbox"),
    ],
)
def test_a_run_that_was_asked_to_end_is_called_so(tmp_path, message, state, words):
    lines = changed(sample_lines(generations=4), RunEnd, reason="interrupted", message=message)
    last = max(k for k, line in enumerate(lines) if isinstance(line, Generation))
    path = write_lines(tmp_path / "a.jsonl", [*lines[:last], *lines[last + 1 :]])
    run = Run(path, 0)
    run.refresh()
    assert run.state == state
    assert run.words(state) == words
