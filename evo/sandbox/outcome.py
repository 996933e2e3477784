"""What a program's end means: from bytes and exit statuses to an evaluation."""

from __future__ import annotations

import math
import os
import re
import signal

import msgspec

from evo.records import Evaluation, Isolation, Limits
from evo.sandbox.messages import Returned, short
from evo.sandbox.processes import Ended

_PATH = re.compile(r"/[^\s\"':]+")  # what is matched once is never tried again: linear in the text
_FOLDER = re.compile(r"/(?:site-packages/|lib/python3\.\d+/|(?=program\.py\b))")
"""Where the folders of libraries and of the program end, in tracebacks and warnings."""

_MAX_ERROR = 8000  # characters, besides what was printed
_MAX_METRICS = 1 << 18  # characters of all names, and 20 for each number
_RETURNED = msgspec.msgpack.Decoder(Returned)


def read_returned(ended: Ended, limits: Limits, isolation: Isolation) -> Returned:
    """What a program sent before its end, or what its end means if it sent nothing whole.

    Where the evaluator runs apart, a program may return a value and has no say in its metrics.
    """
    if ended.timed_out:
        return _timeout(f"no value within {limits.seconds:g} s")
    if ended.excess:
        return Returned(kind="error", text=ended.excess)
    if ended.too_much:
        return Returned(kind="invalid", text=f"the value is larger than {limits.value_mb} MiB")
    if ended.sent:
        try:
            returned = _RETURNED.decode(ended.sent)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Returned(kind="error", text=f"the program sent no well-formed value: {error}")
        if returned.kind == ("value" if isolation == "shared" else "metrics"):
            return Returned(kind="error", text="the program sent what is not its to send")
        return returned
    killer = os.WTERMSIG(ended.status) if os.WIFSIGNALED(ended.status) else 0
    if killer in (signal.SIGKILL, signal.SIGXCPU) and ended.cpu_seconds > limits.seconds:
        return _timeout(f"over {limits.seconds:g} s of processor time")
    return Returned(kind="error", text=f"the program {ending(ended.status)} without returning")


def _timeout(text: str) -> Returned:
    return Returned(kind="timeout", text=text)


def ending(status: int) -> str:
    """How a process ended, in words."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by signal {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def from_metrics(returned: Returned) -> Evaluation:
    """The evaluation of an evaluator's own metrics, whose `combined_score` is the fitness."""
    metrics = dict(returned.metrics)
    fitness = metrics.pop("combined_score", math.nan)
    if not math.isfinite(fitness):
        return Evaluation(status="invalid", error=f"combined_score is not finite: {fitness!r}")
    finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
    return Evaluation(status="ok", fitness=fitness, metrics=finite, error=returned.text or None)


def within_reason(evaluation: Evaluation) -> Evaluation:
    """The same evaluation, of a size that every log can keep, whoever made up its texts."""
    if sum(len(name) + 20 for name in evaluation.metrics) > _MAX_METRICS:
        text = f"the names of the metrics are too many or too long: over {_MAX_METRICS} bytes"
        return Evaluation(status="invalid", error=text)
    if evaluation.error is None or len(evaluation.error) <= _MAX_ERROR:
        return evaluation
    return msgspec.structs.replace(evaluation, error=short(evaluation.error, _MAX_ERROR))


def with_output(error: str, ended: Ended) -> str:
    """An error's text with what the program printed."""
    parts = [error]
    parts += [
        f"--- {name} ---\n{text.strip()}"
        for name, text in (("stdout", ended.stdout), ("stderr", ended.stderr))
        if text.strip()
    ]
    return without_folders("\n".join(parts))


def without_folders(text: str) -> str:
    """The same text on every machine: files of libraries and the program by their names alone."""

    def shortened(path: re.Match[str]) -> str:
        ends = [folder.end() for folder in _FOLDER.finditer(path[0])]
        return path[0][ends[-1] :] if ends else path[0]

    return _PATH.sub(shortened, text)
