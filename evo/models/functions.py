"""Functions as models: `model=f` in place of a name, wherever a model is taken.

    def ask(messages):                       # or async
        return client.generate(messages)     # a text, None, evo.Reply or a chat completion

    evo.run("cp", model=ask)

Where the function has parameters `seed`, `temperature`, `top_p` or `max_tokens` it is passed these.
An async one runs on the event loop and is cancelled at the deadline. A plain one is called in the
main thread where that makes the calls, as with `max_concurrent=1`: there Ctrl-C interrupts it, it
may use what is bound to that thread, and it can be debugged as usual; but the deadline is heard
only once it returns. Elsewhere a helper thread calls it, and at the deadline or when a run is
stopped the call is given up at once. The function then goes on by itself, what it returns is
dropped, and its slot is taken until it returns.
"""

from __future__ import annotations

import functools
import inspect
import sysconfig
import threading
import traceback
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from evo.capture.running import restate, short_hash, source_of
from evo.capture.sources import is_cell
from evo.logs.fitting import fit_usage
from evo.logs.keys import holds_key
from evo.logs.vectors import vectors_in
from evo.models.answer import Exchange, Failed, TryAgain, write_json
from evo.models.blocking import Blocking
from evo.plugins import MistakenType

if TYPE_CHECKING:
    from evo.logs.records import Model

SETTINGS = ("seed", "temperature", "top_p", "max_tokens")
"""What a function is passed if it has parameters of these names."""

_FRAMES, _LONGEST_LINE, _LONGEST_WORDS = 3, 60, 250
"""Of an error at most so many frames of the user's code are told, so many characters of each line,
and so many of the message; together they fit `evo.models.client.LONGEST_ERROR`."""

_RETRIED = frozenset({408, 409, 429})
_BROKEN = ("APIConnectionError", "TransportError")  # of openai, and of httpx in any version


@dataclass(frozen=True)
class Reply:
    """What a model's function may return: a text, and what is known beside it.

    Attributes:
        text: The reply; None or an empty text: there is none.
        usage: Token counts under their usual names (`prompt_tokens`, `completion_tokens`).
        reasoning: The text that the model thought.
        finish_reason: Why it ended, such as "stop" or "length".

    Example:
        >>> evo.Reply("a reply", usage={"prompt_tokens": 12, "completion_tokens": 3}).text
        'a reply'
    """

    text: str | None
    usage: Mapping[str, object] | None = None
    reasoning: str | None = None
    finish_reason: str | None = None


def model_of(function: Callable[..., object]) -> Model:
    """Returns the model that a function is: its name, and the hash of its captured source.

    What the function itself changes, such as a cache or a counter, is no part of that. One whose
    source cannot be had is like no other: its runs never go on by themselves.
    """
    from evo.logs.records import Model

    found = source_of(function)
    restate(found.earlier, found.text)
    version = short_hash(found.text) if found.text else f"unknown {uuid.uuid4().hex[:16]}"
    source = _without_key(found.text)
    return Model(_name_of(function), call=function, source=source, version=version)


def is_async(function: Callable[..., object]) -> bool:
    """Whether a call of a function, or of an object that can be called, is awaited."""
    called = getattr(function, "__call__", None)  # noqa: B004 - of an object it may be async
    return any(map(inspect.iscoroutinefunction, (function, called)))


def with_source(model: Model) -> Model:
    """Returns a model with the source of its function, which is no part of what identifies it."""
    if model.function is None or model.source:
        return model
    return model.but(source=_without_key(source_of(model.function).text))


def required(function: Callable[..., object]) -> frozenset[str]:
    """Returns the settings that a function has to be passed."""
    return frozenset(n for n, p in _settings_of(function).items() if p.default is p.empty)


class FunctionWire:
    """A function as the way to a model; see `evo.models.wire.Wire`."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._settings = tuple(_settings_of(function))
        self._waits = is_async(function)

    def post(self, body: dict[str, object]) -> Exchange | Awaitable[Exchange] | Blocking:
        """Calls the function with the messages of a request, or says how to call one that blocks.

        The main thread calls it itself: see above.
        """
        if self._waits or threading.current_thread() is threading.main_thread():
            return self._send(body)
        return Blocking(functools.partial(self._send, body), "the function")

    def _send(self, body: dict[str, object]) -> Exchange | Awaitable[Exchange]:
        given = {name: body[name] for name in self._settings if name in body}
        try:
            returned = self._function(self._asked(body), **given)
        except Exception as error:
            return _read_error(error)
        return self._awaited(returned) if inspect.isawaitable(returned) else self._read(returned)

    def _asked(self, body: dict[str, object]) -> list[Any]:
        """Returns what the function is called with."""
        messages: Any = body["messages"]
        return [dict(message) for message in messages]

    def _read(self, returned: object) -> Exchange:
        """Returns what the function returned as an endpoint would have answered."""
        return _read(returned)

    def close(self) -> None:
        """Closes nothing."""

    async def _awaited(self, answer: Awaitable[object]) -> Exchange:
        try:
            returned = await answer
        except Exception as error:
            return _read_error(error)
        return self._read(returned)


class EmbeddingFunctionWire(FunctionWire):
    """A function of texts that returns a vector for each; it costs no tokens."""

    def _asked(self, body: dict[str, object]) -> list[Any]:
        texts: Any = body["input"]
        return list(texts)

    def _read(self, returned: object) -> Exchange:
        try:
            (vector,) = vectors_in(returned, 1)
        except ValueError as error:
            raise Failed(str(error)) from None
        usage = {"prompt_tokens": 0, "completion_tokens": 0}
        return Exchange(200, {}, write_json({"data": [{"embedding": vector}], "usage": usage}))


def _read(returned: object) -> Exchange:
    """Returns what a function returned as an endpoint would have answered."""
    if returned is None or isinstance(returned, str):
        returned = Reply(returned)
    if isinstance(returned, Reply):
        message = {"content": returned.text, "reasoning": returned.reasoning}
        choice = {"message": message, "finish_reason": returned.finish_reason}
        try:
            body: object = {"choices": [choice], "usage": usage_of(returned.usage)}
        except MistakenType as error:
            raise Failed(f"the model's function returned a reply with {error}") from None
    else:
        body = _plain(returned)
        if not isinstance(body, Mapping) or "choices" not in body:
            raise Failed(
                "the model's function returned what is no reply: expected a str, None, evo.Reply "
                f"or a chat completion, got {returned!r:.80}"
            )
    try:
        return Exchange(200, {}, write_json(body))
    except TypeError as error:
        words = f"the model's function returned a reply that JSON cannot hold: {error}"
        raise Failed(f"{words}; return its text, or evo.Reply") from None


def usage_of(stated: object) -> dict[str, object] | None:
    """Returns the usage beside a reply as a log can hold it; MistakenType: it is no mapping."""
    usage = _plain(stated)
    if usage is not None and not isinstance(usage, Mapping):
        raise MistakenType(
            "usage: expected a dict such as {'prompt_tokens': 12, 'completion_tokens': 3}, or an "
            f"object that has model_dump(), got {stated!r:.80}"
        )
    return None if usage is None else fit_usage(dict(usage))


def _plain(value: object) -> object:
    """Returns an object of openai's or litellm's as a dict."""
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else value


def _read_error(error: Exception) -> Exchange:
    """Returns the answer that an error stands for; raises what is to be retried, or `Failed`."""
    if isinstance(error, TryAgain | TimeoutError | ConnectionError):
        raise error
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and (status in _RETRIED or 500 <= status < 600):
        headers = getattr(getattr(error, "response", None), "headers", None)
        kept = {str(name).lower(): str(value) for name, value in dict(headers or {}).items()}
        words = str(error) or HTTPStatus(status).phrase
        return Exchange(status, kept, write_json({"error": {"message": words}}))
    if any(each.__name__ in _BROKEN for each in type(error).__mro__):
        raise ConnectionError(str(error) or type(error).__name__) from error
    where = _where(error.__traceback__)
    words = f"{type(error).__name__}: {error}"
    if where and len(words) > _LONGEST_WORDS:
        words = f"{words[:_LONGEST_WORDS]} ..."
    raise Failed(f"{words} ({where})" if where else words) from error


def _where(trace: TracebackType | None) -> str:
    """Returns in words where an error arose: the last frames of the user's code, last first.

    A line that seems to hold a key is not shown.
    """
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    skipped = ("<frozen", *map(sysconfig.get_path, kinds))
    told = []
    for frame in reversed(traceback.extract_tb(trace)):
        if frame.filename == __file__ or frame.filename.startswith(skipped):
            continue
        file = "a cell" if is_cell(frame.filename) else Path(frame.filename).name
        line = " ".join((frame.line or "").split())
        shown = f": {line:.{_LONGEST_LINE}}" if line and not holds_key(line) else ""
        told.append(f"line {frame.lineno} of {file}, in {frame.name}{shown}")
    return "; called from ".join(told[:_FRAMES])


def _settings_of(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in function
        return {}
    return {name: parameters[name] for name in SETTINGS if name in parameters}


def _without_key(text: str) -> str:
    return "# Its source seems to hold a key.\n" if holds_key(text) else text


def _name_of(function: Callable[..., object]) -> str:
    name = getattr(function, "__name__", None) or type(function).__name__
    return "function" if name == "<lambda>" else str(name)
