"""What is known of a function that runs in this process, as models and some evaluators do."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from types import BuiltinFunctionType

from evo.capture.constants import NoText, expression_of
from evo.capture.module import capture
from evo.capture.sources import NotCaptured, is_installed, own_source, raw_function
from evo.capture.state import changed_attributes
from evo.logs.keys import holds_key

_LONGEST = 2000  # characters of an attribute that a log keeps
_DIGITS = 16  # of a hash, as many as the version of a model has
_restated: dict[str, str] = {}


@dataclass(frozen=True)
class FunctionSource:
    """The source of a function.

    Attributes:
        text: Its captured source, in which the state that it changes is named alone; where it uses
            what has no text, its own source; of an object that is called the source of its class,
            and those attributes that this does not change. Empty: none can be had.
        earlier: What earlier versions of this project took for its source, with the state.
    """

    text: str
    earlier: str


def source_of(function: object) -> FunctionSource:
    """Returns the source of a function, or of an object that can be called."""
    if _is_object(function):
        return FunctionSource(_of_object(function), "")
    return FunctionSource(*(_text_of(function, state=state) for state in (False, True)))


def short_hash(text: str) -> str:
    """Returns the first digits of the hash of a source, by which logs know a function."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def restate(earlier: str, text: str) -> None:
    """Notes that logs of earlier versions hold another text of what is the same source."""
    if earlier and earlier != text:
        _restated[short_hash(earlier)] = text


def restated(digest: str | None) -> str | None:
    """Returns the source that is meant by the hash of another text of it; None: by no other."""
    return _restated.get(digest or "")


def _is_object(value: object) -> bool:
    plain = isinstance(value, type | BuiltinFunctionType) or hasattr(value, "func")
    return not plain and raw_function(value) is None and hasattr(value, "__dict__")


def _text_of(function: object, *, state: bool) -> str:
    try:
        return capture(function, state=state).text
    except NotCaptured:
        return _own(function)


def _own(function: object) -> str:
    try:
        return own_source(function)
    except NotCaptured:
        return ""


def _of_object(value: object) -> str:
    """Returns the source of an object's class, and the attributes that identify the object."""
    kind = type(value)
    try:
        text = capture(kind, state=False).text
    except NotCaptured:
        text = _own(kind)
    if not text or is_installed(kind.__module__):
        return text
    changed = changed_attributes(kind)
    lines = [_line(name, each) for name, each in vars(value).items() if name not in changed]
    head = ["", "", "# The attributes of the object that is called:"] if lines else []
    return text + "\n".join([*head, *sorted(lines), ""] if lines else [])


def _line(name: str, value: object) -> str:
    """Returns a line that states an attribute; of what has no text, what it is."""
    try:
        words = expression_of(value, lambda each: getattr(each, "__qualname__", None))
    except NoText:
        words = f"...  # a {type(value).__name__}"
    line = f"self.{name} = {words}"
    if holds_key(line):
        return f"self.{name} = ...  # it seems to hold a key"
    if len(words) > _LONGEST:  # it tells objects apart, and nobody reads it
        return f"self.{name} = ...[{short_hash(words)!r}]"
    return line
