"""Describes how a program ended: turns exceptions, exit statuses and output into an evaluation."""

from __future__ import annotations

import io
import math
import os
import re
import signal
import traceback
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec.structs import replace

from evo.logs.fitting import MOST_NOTES, fit_text
from evo.logs.records import Evaluation, Isolation, Limits
from evo.sandbox import EVALUATOR_FAILED

_PATH = re.compile(r"/[^\s\"':]+")  # what is matched once is never tried again: linear in the text
_FOLDER = re.compile(r"/(?:lib(?:64)?/python3\.\d+/|(?=site-packages/|program\.py\b))")
"""Where the folders of libraries and of the program end, in tracebacks and warnings."""

_NOT_SHOWN = (os.path.dirname(__file__), "<frozen importlib")  # frames outside the program
_MAX_ERROR = 8000  # characters, besides what was printed
_MOST_PRINTED = 2000  # characters of what an evaluator printed that are kept, the last ones
_MAX_METRICS = 1 << 18  # characters of all names, and 20 for each number
_FAILED = ("invalid", "error", "timeout")
_RETURNED: msgspec.msgpack.Decoder[bytes | Evaluation] = msgspec.msgpack.Decoder(bytes | Evaluation)
_PACKAGES = {"cv2": "opencv-python", "PIL": "pillow", "skimage": "scikit-image"}
_PACKAGES |= {"shinka": "shinka-evolve", "sklearn": "scikit-learn", "yaml": "pyyaml"}
"""Names of packages in the index where they are other than those of their modules."""

_KNOWN = frozenset(
    {
        *("astropy", "autograd", "bottleneck", "cma", "cvxopt", "cvxpy", "cython", "dask"),
        *("datasets", "deap", "gurobipy", "highspy", "hypothesis", "jax", "joblib", "keras"),
        *("lightgbm", "llvmlite", "lxml", "matplotlib", "mpmath", "msgspec", "networkx", "nltk"),
        *("nlopt", "numba", "numexpr", "numpy", "openai", "openevolve", "optuna", "ortools"),
        *("pandas", "polars", "psutil", "pulp", "pyarrow", "pydantic", "pygad", "pymoo"),
        *("pyomo", "pyscipopt", "pytest", "regex", "requests", "scipy", "seaborn", "shapely"),
        *("sortedcontainers", "spacy", "statsmodels", "sympy", "tensorflow", "tiktoken"),
        *("torch", "torchvision", "tqdm", "transformers", "xarray", "xgboost", *_PACKAGES),
    }
)
"""Packages that programs and evaluators import; other names may be those of a user's own files."""

_HANDED_OVER = (
    "a module or file of your own is handed over with what uses it: import from it above the "
    "function, give it as a further file, initial_program={'main.py': ..., 'helper.py': ...}, or, "
    "for an evaluator, keep it in the task's folder"
)


@dataclass(frozen=True)
class Ended:
    """How a watched process ended."""

    sent: bytes  # to its channel
    status: int  # as from `os.waitpid`
    cpu_seconds: float  # that it used itself
    stopped: Evaluation | None  # what it was killed for
    printed: str  # beginning and end of its output, under headings


class Printed(io.TextIOBase):
    """A stream in place of an evaluator's standard output and errors; it keeps the end."""

    def __init__(self) -> None:
        self._end, self._total = "", 0

    def write(self, text: str) -> int:
        """Takes a text."""
        self._total += len(text)
        self._end = (self._end + text[-_MOST_PRINTED:])[-_MOST_PRINTED:]
        return len(text)

    def shown(self) -> str:
        """Returns what was printed under a heading; prompts leave out all from there on."""
        if not (text := self._end.strip()):
            return ""
        dropped = self._total - len(self._end)
        gap = f"... {dropped} characters dropped ...\n" if dropped else ""
        return f"\n--- stdout and stderr of the evaluator ---\n{gap}{text}"


def printable(text: str) -> str:
    """The same text fit for UTF-8: lone surrogates escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def short(text: str, most: int = 4000) -> str:
    """The same text fit for UTF-8, with its middle left out beyond so many characters."""
    if len(text) > most:
        text = f"{text[: most // 2]}\n...\n{text[-most // 2 :]}"
    return printable(text)


def failed(text: str, status: Literal["invalid", "error", "timeout"] = "error") -> Evaluation:
    """A failure in words."""
    return Evaluation(status=status, error=short(text))


def describe(error: BaseException, who: str = "the program") -> str:
    """Text of an exception without the sandbox's own frames; safe against hostile exceptions."""
    try:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_NOT_SHOWN):
            trace = trace.tb_next
        # Without a frame of the program, as for a syntax error, the message is complete.
        text = "".join(traceback.format_exception(type(error), error, trace)).strip()
        if isinstance(error, SystemExit):
            text = f"{who} called sys.exit\n{text}"
        if isinstance(error, MemoryError):
            text = f"{who} ran out of memory\n{text}"
        if isinstance(error, ModuleNotFoundError) and error.name:
            name = error.name.partition(".")[0]
            if name in ("evo", "replay"):
                text += f"\nthe package {name!r} cannot be imported inside the sandbox"
            elif name in _KNOWN:
                package = _PACKAGES.get(name, name)
                text += f"\nthe package {name!r} is not installed: pip install {package}"
            else:
                text += f"\nno package {name!r} is installed, and the sandbox sees none of your "
                text += f"files; {_HANDED_OVER}"
        if isinstance(error, FileNotFoundError) and _opens_a_file(error):
            text += f": the sandbox sees none of your files; {_HANDED_OVER}"
        return short(text)
    except BaseException:  # the wall: an exception may do anything when it is shown
        return _in_one_line(error)


def _opens_a_file(error: FileNotFoundError) -> bool:
    """Whether an error is about a file, rather than a command that is not there."""
    frames = traceback.extract_tb(error.__traceback__)
    command = bool(frames) and os.path.basename(frames[-1].filename) == "subprocess.py"
    return isinstance(error.filename, str) and not command


def _in_one_line(error: BaseException) -> str:
    """Describes an exception without its traceback, for which Python 3.13 needs other modules."""
    kind = type.__repr__(type(error))
    try:
        return short(f"an exception of type {kind}: {error}")
    except BaseException:
        return f"an exception of type {kind} that cannot be shown"


def read_returned(ended: Ended, limits: Limits, isolation: Isolation) -> bytes | Evaluation:
    """What a program sent before its end, or what its end means if it sent nothing whole.

    Where the evaluator runs apart, a program may return a value and has no say in its fitness.
    """
    if ended.stopped is not None:
        return ended.stopped
    if ended.sent:
        try:
            returned = _RETURNED.decode(ended.sent)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return failed(f"the program sent no well-formed value: {error}")
        if isinstance(returned, bytes):
            its_own = isolation != "shared"
        else:
            its_own = returned.status in (*_FAILED, *(("ok",) if isolation == "shared" else ()))
        if not its_own:
            return failed("the program sent what is not its to send")
        # A program that shares its evaluator's process could send a construction of any shape.
        return returned if isinstance(returned, bytes) else replace(returned, value=None)
    killer = os.WTERMSIG(ended.status) if os.WIFSIGNALED(ended.status) else 0
    if killer in (signal.SIGKILL, signal.SIGXCPU) and ended.cpu_seconds > limits.seconds:
        return failed(f"over {limits.seconds:g} s of processor time", "timeout")
    who = f"{EVALUATOR_FAILED}: it, or the program," if isolation == "shared" else "the program"
    return failed(f"{who} {ending(ended.status)} without returning")


def ending(status: int) -> str:
    """How a process ended, in words."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by signal {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def evaluation_of(
    scored: Evaluation, printed: str, seconds: float, *, instances: int = 0
) -> Evaluation:
    """The evaluation, of numbers and of a size that every log can keep, whoever made it up.

    Beside the metrics it may hold a score of each of the task's `instances`, named 0, 1, ...
    """
    if scored.fitness is not None and not math.isfinite(scored.fitness):
        scored = failed(f"combined_score is not finite: {scored.fitness!r}", "invalid")
    metrics = {name: value for name, value in scored.metrics.items() if math.isfinite(value)}
    scores = {str(place) for place in range(instances)}
    if sum(len(name) + 20 for name in metrics if name not in scores) > _MAX_METRICS:
        words = f"the names of the metrics are too many or too long: over {_MAX_METRICS} bytes"
        scored = failed(words, "invalid")
    error = short(scored.error or "", _MAX_ERROR)
    if scored.status != "ok":
        error = without_folders(error + printed)
    return Evaluation(
        status=scored.status,
        fitness=scored.fitness,
        metrics=metrics if scored.status == "ok" else {},
        error=error if error or scored.status != "ok" else None,
        value=scored.value,
        seconds=seconds,
        notes=fit_text(without_folders(scored.notes), MOST_NOTES) if scored.notes else "",
    )


def without_folders(text: str) -> str:
    """The same text on every machine: files of libraries and the program by their names alone."""

    def shortened(path: re.Match[str]) -> str:
        ends = [folder.end() for folder in _FOLDER.finditer(path[0])]
        return path[0][ends[-1] :] if ends else path[0]

    return _PATH.sub(shortened, text)
