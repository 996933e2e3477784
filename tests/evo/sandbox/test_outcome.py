"""How an end is described: what was sent, how a process ended, and texts fit for every log."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.records import Evaluation, Limits
from evo.sandbox import EVALUATOR_FAILED
from evo.sandbox.outcome import (
    Ended,
    Printed,
    describe,
    ending,
    evaluation_of,
    failed,
    read_returned,
    short,
    without_folders,
)

LIMITS = Limits(seconds=10)
OK = Evaluation(status="ok", fitness=0.5)


def ended(sent: Any = None, status: int = 0, cpu: float = 0.0, **how: Any) -> Ended:
    raw = b"" if sent is None else sent if isinstance(sent, bytes) else msgspec.msgpack.encode(sent)
    return Ended(raw, status, cpu, how.get("stopped"), "")


def value(raw: bytes) -> bytes:
    return msgspec.msgpack.encode(raw)


@pytest.mark.parametrize(
    ("sent", "separate", "shared"),
    [
        (value(b"value"), b"value", None),
        (failed("no"), failed("no"), failed("no")),
        (failed("no", "invalid"), failed("no", "invalid"), failed("no", "invalid")),
        (failed("late", "timeout"), failed("late", "timeout"), failed("late", "timeout")),
        (OK, None, OK),  # a program has no say in its fitness
        (Evaluation(status="rejected"), None, None),
        (Evaluation(status="no_reply"), None, None),
    ],
)
def test_a_program_sends_a_value_and_its_evaluator_a_fitness(
    sent: object, separate: object, shared: object
) -> None:
    for isolation, expected in (("separate", separate), ("shared", shared)):
        found = read_returned(ended(sent), LIMITS, isolation)  # type: ignore[arg-type]
        if expected is None:
            assert isinstance(found, Evaluation)
            assert found.error == "the program sent what is not its to send"
        else:
            assert found == expected


def test_a_shared_construction_has_no_place_in_a_log() -> None:
    found = read_returned(ended(msgspec.structs.replace(OK, value=[1, 2])), LIMITS, "shared")
    assert found == OK


@pytest.mark.parametrize(
    "raw", [b"\xc1", b"\x91" * 3000, value(b"value")[:-1], msgspec.msgpack.encode({"a": 1})]
)
def test_what_is_not_well_formed_is_an_error(raw: bytes) -> None:
    found = read_returned(ended(raw), LIMITS, "separate")
    assert isinstance(found, Evaluation)
    assert found.status == "error"
    assert (found.error or "").startswith("the program sent no well-formed value")


def test_what_it_was_killed_for_comes_first() -> None:
    stopped = failed("over 10 s", "timeout")
    assert read_returned(ended(value(b"x"), stopped=stopped), LIMITS, "separate") is stopped


@pytest.mark.parametrize(
    ("killer", "cpu", "status"),
    [
        (signal.SIGKILL, 10.1, "timeout"),
        (signal.SIGXCPU, 10.1, "timeout"),
        (signal.SIGKILL, 10.0, "error"),  # within its time: something else killed it
        (signal.SIGSEGV, 99.0, "error"),
    ],
)
def test_a_kill_beyond_the_limit_of_processor_time_is_a_timeout(
    killer: int, cpu: float, status: str
) -> None:
    found = read_returned(ended(status=killer, cpu=cpu), LIMITS, "separate")
    assert isinstance(found, Evaluation)
    assert found.status == status
    if status == "error":
        name = signal.Signals(killer).name
        assert found.error == f"the program was ended by signal {name} without returning"


def test_of_a_shared_process_nobody_knows_who_ended_it() -> None:
    found = read_returned(ended(status=3 << 8), LIMITS, "shared")
    assert isinstance(found, Evaluation)
    assert found.error == (
        f"{EVALUATOR_FAILED}: it, or the program, ended with exit code 3 without returning"
    )
    assert (
        ending(os.W_EXITCODE(0, 0) if hasattr(os, "W_EXITCODE") else 0) == "ended with exit code 0"
    )
    assert ending(64).startswith("was ended by signal")
    assert ending(signal.SIGKILL) == "was ended by signal SIGKILL"
    nameless = min(set(range(1, 64)) - {each.value for each in signal.Signals})
    assert ending(nameless) == f"was ended by signal {nameless}"


@given(st.text(max_size=60), st.integers(2, 30))
def test_a_long_text_keeps_both_its_ends(text: str, most: int) -> None:
    found = short(text, most)
    if len(text) <= most:
        assert found == text.encode("utf-8", "backslashreplace").decode()
    else:
        start, _, end = found.partition("\n...\n")
        assert text.startswith(start) or "\\u" in found
        assert text.endswith(end) or "\\u" in found
    found.encode()


def test_an_error_says_what_to_do() -> None:
    def shown(error: BaseException) -> str:
        try:
            raise error
        except BaseException as raised:
            return describe(raised)

    assert "the program called sys.exit" in shown(SystemExit(3))
    assert "the program ran out of memory" in shown(MemoryError())
    assert shown(ModuleNotFoundError("no", name="cv2.aruco")).endswith(
        "'cv2' is not installed: pip install opencv-python"
    )
    assert shown(ModuleNotFoundError("no", name="shapely")).endswith("pip install shapely")
    assert shown(ModuleNotFoundError("no", name="shinka.core")).endswith(
        "pip install shinka-evolve"
    )
    assert "'evo' cannot be imported inside the sandbox" in shown(
        ModuleNotFoundError("no", name="evo.runs")
    )
    assert "pip install" not in shown(ModuleNotFoundError("no"))
    own = shown(ModuleNotFoundError("no", name="helper"))
    assert "no package 'helper' is installed, and the sandbox sees none of your files" in own
    assert "import from it above the function" in own
    assert "pip install" not in own
    missing = shown(FileNotFoundError(2, "No such file or directory", "data.csv"))
    assert "the sandbox sees none of your files; a module or file of your own is" in missing
    with pytest.raises(FileNotFoundError) as raised:
        subprocess.run(["no-such-command"], check=False)
    assert "your files" not in describe(raised.value)
    assert "your files" not in shown(FileNotFoundError("no such city"))


def test_an_exception_that_cannot_be_shown_is_described_all_the_same() -> None:
    class Hostile(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise SystemExit

        @property
        def __traceback__(self) -> None:  # type: ignore[override]
            raise OSError

    assert describe(Hostile()).endswith("that cannot be shown")


def test_a_fitness_that_is_no_number_is_invalid_and_its_metrics_are_left_out() -> None:
    for number in (math.nan, math.inf):
        found = evaluation_of(Evaluation(status="ok", fitness=number, metrics={"a": 1.0}), "", 2.0)
        assert (found.status, found.fitness, found.metrics) == ("invalid", None, {})
        assert found.seconds == 2.0
    kept = evaluation_of(
        Evaluation(status="ok", fitness=0.5, metrics={"a": 1.0, "b": math.nan}), "", 1.0
    )
    assert kept.metrics == {"a": 1.0}
    assert kept.error is None


def test_the_names_of_metrics_have_a_limit_and_scores_of_instances_have_none() -> None:
    most = (1 << 18) // 26
    named = {f"m{k:05}": 0.0 for k in range(most)}
    assert (
        evaluation_of(Evaluation(status="ok", fitness=0.5, metrics=named), "", 1.0).status == "ok"
    )
    over = {**named, "x" * 30: 0.0}
    assert (
        evaluation_of(Evaluation(status="ok", fitness=0.5, metrics=over), "", 1.0).status
        == "invalid"
    )
    scores = {str(k): 0.0 for k in range(20_000)}
    wide = Evaluation(status="ok", fitness=0.5, metrics=scores)
    assert evaluation_of(wide, "", 1.0, instances=20_000).status == "ok"
    assert evaluation_of(wide, "", 1.0, instances=100).status == "invalid"


def test_only_a_failure_shows_what_was_printed() -> None:
    assert (
        evaluation_of(failed("no"), "\n--- stdout ---\nhere", 1.0).error
        == "no\n--- stdout ---\nhere"
    )
    assert evaluation_of(OK, "\n--- stdout ---\nhere", 1.0).error is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('File "/tmp/x1/program.py", line 3', 'File "program.py", line 3'),
        ("/usr/lib/python3.11/json/decoder.py:355", "json/decoder.py:355"),
        ("/a/lib/python3.12/site-packages/numpy/core.py", "site-packages/numpy/core.py"),
        ("/a/lib64/python3.12/site-packages/numpy/core.py", "site-packages/numpy/core.py"),
        ("/a/site-packages/numpy/core.py", "site-packages/numpy/core.py"),
        ("/usr/lib64/python3.12/json/decoder.py:355", "json/decoder.py:355"),
        ("/home/me/data.csv", "/home/me/data.csv"),
        ("1/2 and a // b", "1/2 and a // b"),
    ],
)
def test_folders_of_this_machine_are_left_out(text: str, shown: str) -> None:
    assert without_folders(text) == shown
    assert without_folders(shown) == shown


def test_of_what_an_evaluator_prints_the_end_is_kept() -> None:
    printed = Printed()
    assert printed.shown() == ""
    assert printed.write(" \n") == 2
    assert printed.shown() == ""
    for _ in range(1000):
        assert printed.write("0123456789") == 10
    shown = printed.shown()
    assert "... 8002 characters dropped ..." in shown
    assert shown.endswith("0123456789")
    assert len(shown.rpartition("\n")[2]) == 2000


def test_paths_in_errors_are_shortened_in_time_linear_in_their_length() -> None:
    text = 'File "/tmp/x/program.py", line 1 /usr/lib/python3.11/json/a.py /a/site-packages/np/b.py'
    assert without_folders(text) == 'File "program.py", line 1 json/a.py site-packages/np/b.py'
    began = time.perf_counter()
    without_folders("/a" * 200_000)
    assert time.perf_counter() - began < 60  # it took hours
