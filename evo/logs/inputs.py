"""Frozen records of what a run is given: limits, a task, models, searches and filters."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Annotated, Any, Literal, SupportsIndex, TypeVar

import msgspec

from evo.logs import literals
from evo.logs.several import unpack
from evo.logs.types import JsonObject
from evo.plugins import MistakenType

T = TypeVar("T")

Isolation = literals.Isolation
Evolves = literals.Evolves

MOST_INT = 2**63 - 1
"""The largest whole number that a log holds."""

Int = Annotated[int, msgspec.Meta(ge=-MOST_INT - 1, le=MOST_INT)]  # one that arrays hold, too


def as_float(number: object) -> float:
    """Returns a number as a float, infinite where it is a whole number that no float can hold."""
    if not isinstance(number, Real):
        raise MistakenType(f"expected a number, got {number!r:.60}")
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else -float("inf")  # type: ignore[operator]


def as_number(name: str, value: object) -> float:
    """Returns a number as a float; raises MistakenType if it is none."""
    try:
        return as_float(value)
    except MistakenType as error:
        raise MistakenType(f"{name}: {error}") from None


def as_named(name: str, values: Mapping[str, T] | None) -> Mapping[str, T]:
    """Returns values by name, None being none; raises MistakenType for anything else."""
    found: object = {} if values is None else values
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        raise MistakenType(f"{name}: expected a dict of values by name, got {found!r:.80}")
    return found


def at_least(name: str, value: object, low: int, *, most: int = MOST_INT) -> int:
    """Returns a whole number, NumPy's included, as an int; raises if it is out of range.

    Without `most` it is at most what a log can hold.
    """
    number = None
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        with contextlib.suppress(TypeError):  # an array of NumPy is none, though it looks like one
            number = operator.index(value)
    if number is None:
        raise MistakenType(f"{name}: expected a whole number, got {value!r}")
    if number < low:
        raise ValueError(f"{name}: expected at least {low}, got {number}")
    if number > most:
        raise ValueError(f"{name}: expected at most {most:,}, got {number!r:.60}")
    return number


def switch(name: str, value: object) -> bool:
    """Returns True or False, NumPy's included, as a bool; None is False, a text is an error."""
    if value not in (True, False, None):
        words = "the text " if isinstance(value, str) else ""
        raise MistakenType(
            f"{name}: expected True or False (true or false in a command), got {words}{value!r:.60}"
        )
    return bool(value)


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Base of all records: immutable, compared by value, defaults left out of the log."""


class Limits(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of one evaluation; part of what its outcome depends on.

    Attributes:
        seconds: Wall time (and CPU time) of the program, seconds.
        memory_mb: Address space of each process of the program, MiB.
        processes: Processes and threads that may be alive at once.
        files_mb: Size of the working folder and of any one file in it, MiB.
        value_mb: Size of the returned value once encoded, MiB.
        output_kb: Captured stdout and stderr, KiB each; the rest is dropped.
        auto: Whether a run fixes its time limit itself, before its first child, at 50 times what
            its initial program took: at least 2 seconds, at most `seconds`. In task.toml and in
            a dict, `seconds = "auto"` says the same.

    Example:
        >>> evo.Limits(seconds=10, memory_mb=512).auto
        False
    """

    seconds: float = 60.0
    memory_mb: Int = 2048
    processes: Int = 64
    files_mb: Int = 64
    value_mb: Int = 8
    output_kb: Int = 16
    auto: bool = False

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name == "auto":
                if not isinstance(value, bool):
                    raise MistakenType(f"limit 'auto': expected True or False, got {value!r:.60}")
            elif name == "seconds" and value == AUTO:
                raise ValueError("limit 'seconds': expected a number; auto=True fixes it in a run")
            elif isinstance(value, bool) or not 0 < as_float(value) < float("inf"):
                raise ValueError(f"limit {name!r} must be positive and finite, got {value!r}")
            elif name != "seconds":
                number = at_least(f"limit {name!r}", value, 1)
                msgspec.structs.force_setattr(self, name, number)
            elif type(value) not in (int, float):  # such as a number of NumPy
                msgspec.structs.force_setattr(self, name, float(value))

    def fixed(self, seconds: float | None) -> Limits:
        """Returns these limits with the time limit that a run fixed; None: it fixed none."""
        if seconds is None or not self.auto:
            return self
        return msgspec.structs.replace(self, seconds=seconds, auto=False)


AUTO = "auto"


def spelled(limits: Mapping[str, object]) -> dict[str, object]:
    """Returns some limits by the names of fields, where `seconds` may be "auto".

    A number of seconds that stands alone is a limit that is not fixed by the run.
    """
    found = dict(limits)
    if found.get("seconds") == AUTO:
        del found["seconds"]
        return {**found, "auto": True}
    return {"auto": False, **found} if "seconds" in found else found


def limits_of(given: object, base: Limits) -> Limits:
    """Returns the limits that are given: whole ones, or a dict of those that differ from a base."""
    if isinstance(given, Limits):
        return given
    known = ", ".join(Limits.__struct_fields__)
    if not isinstance(given, Mapping):
        raise MistakenType(f"limits: expected evo.Limits or a dict, got {given!r:.60}")
    try:
        return msgspec.convert({**msgspec.structs.asdict(base), **spelled(given)}, Limits)
    except (msgspec.ValidationError, TypeError) as error:
        raise ValueError(f"limits: {error} (there are: {known})") from None


Bar = float | Literal["parent"]
"""What a stage's score must reach: a number, or to be better than the parent's in that stage."""


class StageRecord(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stage of an evaluation.

    `function` is its name in the evaluator, `threshold` what admits to the next stage, None of the
    last, and `limits` its own; None: those of the evaluation.
    """

    function: str
    threshold: Bar | None = None
    limits: Limits | None = None


class TaskRecord(Record, frozen=True, kw_only=True, dict=True, gc=True):
    """A task as a log embeds it, so that any machine can rerun and rescore the log.

    `hash` is the SHA-256 (hex) over all below but the file of notes, which changes no fitness;
    `files` are text by relative path, `encoded` others in base64, too large ones `omitted`; else as
    the keys of task.toml (`folder.TaskConfig`, where `column` is called `prompt`). An evaluator
    that runs in the caller's process, isolation `here`, goes along in memory (`function`).
    """

    name: str
    hash: str
    files: dict[str, str]
    program_file: str
    evaluator_file: str
    statement: str
    encoded: dict[str, str] = {}
    evolves: Evolves = "python"
    isolation: Isolation = "separate"
    entry: tuple[str, ...] = ()
    picture: str = ""
    omitted: tuple[str, ...] = ()
    instances_file: str = ""
    harness_file: str = ""
    private: tuple[str, ...] = ()
    score: Literal["evaluator", "critic"] = "evaluator"
    critic: str = ""
    rubric: str = ""
    notes_file: str = ""
    scores: Literal["unit", "any"] = "unit"
    missing: float | None = None
    column: str = ""
    given_text: bool = False  # whether an evaluator in this process is given what evolves
    stages: tuple[StageRecord, ...] = ()
    program_files: tuple[str, ...] = ()  # names and patterns, where a program is several files
    language: str = ""  # of the program, where it is not Python
    fitness_key: str = ""

    def given(self, program: str) -> str | dict[str, str]:
        """Returns what an evaluator of texts is given: a text, or of several files all by name."""
        return unpack(program) if self.program_files else program

    @property
    def functions(self) -> tuple[Callable[..., object], ...]:
        """What evaluates in this process, one function for each stage; empty: it is not here."""
        found: tuple[Callable[..., object], ...] = self.__dict__.get("functions", ())
        return found

    @property
    def function(self) -> Callable[..., object] | None:
        """The function that evaluates in this process; None: there is none, or it is not here."""
        return next(iter(self.functions), None)

    def evaluated_by(self, *functions: Callable[..., object]) -> TaskRecord:
        """Returns this task with what evaluates in this process."""
        found = msgspec.structs.replace(self)
        found.__dict__["functions"] = functions
        return found

    @property
    def wrapped(self) -> bool:
        """Whether programs are compiled and run by a program in Python, which is what is jailed."""
        return bool(self.language) and self.isolation != "shared"

    @property
    def judging(self) -> str:
        """The evaluator's function, where it is not called as usual: that of the last stage."""
        return self.stages[-1].function if self.stages else ""

    @property
    def judged(self) -> TaskRecord:
        """The task without its notes: what programs are and how they are judged."""
        if not self.notes_file:
            return self
        files = {name: text for name, text in self.files.items() if name != self.notes_file}
        return msgspec.structs.replace(self, files=files, notes_file="")

    @property
    def asks_model(self) -> bool:
        """Whether an evaluation asks the model: a text is tried on the instances of a data set."""
        return bool(self.instances_file) and self.evolves == "text" and not self.given_text

    @property
    def uses_sandbox(self) -> bool:
        """Whether an evaluation runs anything in the sandbox: a program, or the evaluator."""
        runs_program = self.evolves == "python" and not self.given_text
        return runs_program or (self.isolation != "here" and self.score != "critic")


class _Named(Record, frozen=True, kw_only=False, dict=True, gc=True):
    name: str


class Model(_Named, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True, gc=True):
    """A model: what is known of it, unknown stays None, and how it is reached.

        evo.Model("gpt-4o")                            # wherever OPENAI_BASE_URL points
        evo.Model("mine", call=ask, input_price=0.5)   # ask(messages) -> str, None or evo.Reply
        evo.Model("gpt-4o", client=openai.AsyncAzureOpenAI(...))

    Attributes:
        name: Its name here, which together with `version` identifies it.
        id: The name that the endpoint knows it by; None: the same.
        active_parameters: Parameters used per token, for FLOPs (a count, not billions).
        context: Context window, tokens.
        input_price: Dollars per million prompt tokens; `cached_price` None: the same.
        temperature: Default of the sampling settings, as are the next two.
        base_url: Endpoint; None: from the environment, as is the key without `key_variable`.
        extra_body: Further fields of the request, for instance to switch thinking on.
        way: How it is reached: at an endpoint, by a function, or by a client object of `openai`.
        source: Source of the function, as far as it can be had.
        filled: The data that filled in prices or context, and what they are of.
        call: A function that answers; it is never written to a log, like the client. Once given it
            is the property `function`.
        client: A client object of `openai`, sync or async. Calls of an async one go through a copy
            of it with connections and limits of ours.
        share: Whether an async client's own connections are used, as a sync one's are in any case.

    Example:
        >>> evo.Model("mine", call=lambda messages: "a reply", input_price=0.5).way
        'function'
    """

    id: str | None = None
    active_parameters: Int | None = None
    context: Int | None = None
    input_price: float | None = None
    cached_price: float | None = None
    output_price: float | None = None
    temperature: float = 0.6
    top_p: float = 0.95
    max_tokens: Int = 8192
    base_url: str | None = None
    key_variable: str | None = None
    extra_body: JsonObject = {}
    version: str | None = None
    is_llm: bool = True
    way: Literal["endpoint", "function", "client"] = "endpoint"
    source: str = ""
    filled: str = ""
    call: Any = None
    client: Any = None
    share: bool = False

    def __post_init__(self) -> None:
        self._check_fields()
        if self.call is None and self.client is None:
            return
        if self.call is not None and not callable(self.call):
            raise ValueError(f"call: expected a function, got {self.call!r:.80}")
        if self.client is not None and not callable(getattr(self.client, "with_options", None)):
            raise ValueError(f"client: expected a client object of openai, got {self.client!r:.80}")
        if self.call is not None and self.client is not None:
            raise ValueError("a model has a call or a client, got both")
        way = "function" if self.client is None else "client"
        self.__dict__.update(function=self.call, client_object=self.client, shares=self.share)
        for name, value in {"call": None, "client": None, "share": False, "way": way}.items():
            msgspec.structs.force_setattr(self, name, value)

    def _check_fields(self) -> None:
        """Raises if a log cannot hold a field; a float that is a whole number becomes an int."""
        for name in ("name", "id", "version", "base_url", "key_variable"):
            if not isinstance(value := getattr(self, name), str | None):
                raise MistakenType(f"{name}: expected a text, got {value!r:.60}")
        for name in ("active_parameters", "context", "max_tokens"):
            value = getattr(self, name)
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if value is not None:
                msgspec.structs.force_setattr(self, name, at_least(name, value, 0))
        for name in ("input_price", "cached_price", "output_price"):
            value = getattr(self, name)
            if value is not None and not 0 <= as_float(value) < float("inf"):
                raise ValueError(f"{name}: expected dollars of 0 or more, got {value!r:.60}")

    @property
    def function(self) -> Callable[..., object] | None:
        """The function that answers; None: there is none, or it is not here."""
        found: Callable[..., object] | None = self.__dict__.get("function")
        return found

    @property
    def client_object(self) -> Any:
        """The client of `openai` that answers; None: there is none, or it is not here."""
        return self.__dict__.get("client_object")

    @property
    def shares(self) -> bool:
        """Whether the client's own connections are used."""
        return bool(self.__dict__.get("shares"))

    @property
    def missing(self) -> str:
        """What to tell a user if the function or client is not here."""
        how = "client" if self.way == "client" else "call"
        given = f"evo.Model({self.name!r}, {how}=...)"
        if self.way == "function" and self.version is not None and self.name.isidentifier():
            given = self.name
        return (
            f"the model {self.name!r} was a {self.way} of the process that made the log, and a log "
            "does not hold it: name one of `evo models` (--model NAME), or give it again, "
            f"model={given}"
        )

    def but(self, **changes: object) -> Model:
        """Returns this model with other fields, and with its function or client."""
        other = msgspec.structs.replace(self, **changes)
        other.__dict__.update(self.__dict__)
        return other


class Sampling(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the model samples; part of a run's identity. None only where an import does not know."""

    temperature: float | None
    top_p: float | None
    max_tokens: Int | None


NO_REPLY = Sampling(temperature=None, top_p=None, max_tokens=1)
"""The sampling of a call that is answered by a vector: there are no tokens of a reply."""


class AskedModel(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of several models that the children of a run are asked of, and how it samples."""

    model: Model
    sampling: Sampling


class CriticRecord(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that scores triples by the mean over its rubrics; `version` is of the wording."""

    model: Model
    sampling: Sampling
    rubric: str
    version: Int = 1
    more_rubrics: tuple[str, ...] = ()


class ValueRecord(
    Record, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True, gc=True
):
    """A frozen value as a header keeps it; `source` is the hash (hex) of a user's own source."""

    name: str
    version: Int = 1
    fields: JsonObject = {}
    source: str = ""


class SearchRecord(ValueRecord, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search as a header keeps it."""


class FilterRecord(ValueRecord, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A filter as a header keeps it."""


def one_of(name: str, value: T | None, alias: str, other: T | None) -> T | None:
    """Returns the value of an option that has two names; raises ValueError where they differ."""
    if value is not None and other is not None and value != other:
        raise ValueError(
            f"{name}, {alias}: two names of one option, expected one of them or equal values, got "
            f"{name}={value!r:.60} and {alias}={other!r:.60}; give {name} alone"
        )
    return other if value is None else value
