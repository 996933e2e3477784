"""A run of the page that lives: its state in words, and why it does not go on."""

import fcntl
import gc
import subprocess
import time
from pathlib import Path

import pytest
from samples import changed, sample_lines, write_lines, write_sample

import evo
from evo.logs.records import Generation, RunEnd, Session
from replay.reports.live_runs import Run


def begun(path):
    """A log whose run has not reached its goal."""
    write_sample(path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
    return path


def not_continued(path):
    """A run that could not go on, as another process writes it."""
    run = Run(path, 0)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        await_failure(run)
    return run


def await_failure(run):
    """Continues a run until it is said why it did not go on."""
    run.go_on()
    deadline = time.monotonic() + 60
    while not run.said:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_why_a_run_does_not_go_on_is_said(tmp_path):
    assert "a.jsonl" in not_continued(begun(tmp_path / "a.jsonl")).said


def test_a_page_that_is_closed_leaves_a_run_that_goes_on_alone(tmp_path):
    """A process and its file that nobody held were warned of in whatever test came next."""
    run = Run(write_sample(tmp_path / "a.jsonl"), 0)
    run.go_on()
    del run
    gc.collect()  # a ResourceWarning is an error here


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
    run = not_continued(begun(tmp_path / "a.jsonl"))
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


def test_a_run_that_cannot_go_on_and_says_nothing_is_said_to_have_failed(tmp_path, monkeypatch):
    run = Run(write_sample(tmp_path / "a.jsonl"), 0)
    begin = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda words, **how: begin(["false"], **how))
    await_failure(run)
    assert "status 1" in run.said


def paused(folder, in_flight):
    """The arms of an allocation that was paused while its first pulls were under way."""
    handle = evo.start_allocation(
        "mmd", "random", arms=2, rounds=4000, children=2, model="offline", in_flight=in_flight,
        progress=False, log_dir=folder,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while sum(len(evo.read_log(each).outcomes) for each in handle.paths if each.exists()) < 8:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    handle.pause()
    handle.wait()
    return [Run(Path(path), k) for k, path in enumerate(handle.paths)]


@pytest.mark.parametrize("in_flight", [1, 2])
def test_the_arms_of_a_paused_allocation_are_paused_and_go_on_with_it(tmp_path, in_flight):
    for run in paused(tmp_path, in_flight):
        run.refresh()
        assert run.state == "paused"
        assert run.study == "allocation"
        assert run.words("paused").endswith("goes on with its allocation")
        assert " of " not in run.words("running")  # it has no T of its own


@pytest.mark.parametrize(
    ("reason", "state"),
    [("completed", "completed"), ("interrupted", "stopped"), ("", "interrupted")],
)
def test_a_run_without_a_goal_is_over_when_its_log_says_so(tmp_path, reason, state):
    lines = changed(sample_lines(generations=3), Session, generations=None)
    lines = changed(lines, RunEnd, reason=reason or "completed")
    path = write_lines(tmp_path / "arm-00.jsonl", lines if reason else lines[:-1])
    run = Run(path, 0)
    run.refresh()
    assert run.state == state


def test_a_single_generation_is_named_so(tmp_path):
    run = Run(write_sample(tmp_path / "a.jsonl", generations=1), 0)
    run.refresh()
    assert run.words(run.state) == "1 of 1 generation"
