"""Interprets one HTTP exchange: the record of the attempt, and whether to try again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from evo.logs.caps import cap
from evo.logs.fitting import fit_text, fit_usage
from evo.logs.records import Attempt
from evo.logs.vectors import encode_vector

_LONGEST_REASON = 100  # characters of a finish reason
_LONGEST_WAIT = 1e9  # seconds; a larger wish is as good as any
_RETRIED = frozenset({408, 409, 425, 429})
_PHRASES = {each.value: each.phrase for each in HTTPStatus}
_REFUSED = frozenset({401, 402, 403, 404, 405, 410})


class NotSent(Exception):  # noqa: N818
    """There is no connection to the endpoint, so the request was not sent."""


class TooMuch(Exception):  # noqa: N818
    """The answer is larger than its cap."""


class TryAgain(Exception):  # noqa: N818
    """A model's function cannot answer now; the call is made again, as one to an endpoint.

    Args:
        seconds: How long to wait at least; None: as usual.

    Example:
        >>> def ask(messages):
        ...     raise evo.TryAgain(seconds=2)
        >>> evo.Model("busy", call=ask).name
        'busy'
    """

    def __init__(self, seconds: float | None = None) -> None:
        super().__init__("it asks to try again")
        self.seconds = seconds


class AnsweredLate(TimeoutError):  # noqa: N818
    """What nobody can interrupt did not return, or returned after the time limit of a call."""


class Failed(Exception):  # noqa: N818
    """A model's function raised an error that trying again does not mend."""


class Exchange(NamedTuple):
    """An endpoint's answer to one request: HTTP status, headers and the whole body."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True)
class Answer:
    """One attempt and what follows from it: what to do next, and the reply if there is one.

    `retry`: another attempt may do better. `rejected`: never for this request. `refused`: never for
    any request of this run (key, model, account).
    """

    attempt: Attempt
    verdict: Literal["answered", "retry", "rejected", "refused"]
    reply: str | None = None
    reasoning: str | None = None
    retry_after: float | None = None


class Content(NamedTuple):
    """What the body of an answer holds."""

    reply: str
    reasoning: str | None = None
    finish_reason: str | None = None


@dataclass(frozen=True)
class Service:
    """What an endpoint is asked for.

    Attributes:
        path: Where, below its address.
        what: What messages call an answer.
        read: Returns what the body of an answer holds, or raises an error that a lookup, a
            conversion or a check may raise.
        implied: Token counts that an answer need not state.
    """

    path: str
    what: str
    read: Callable[[Any], Content]
    implied: Mapping[str, int] = field(default_factory=dict)


def _read_completion(body: Any) -> Content:
    """Returns the first reply of a chat completion."""
    choice = body["choices"][0]
    message = choice["message"]
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return Content(
        fit_reply(message.get("content")) or "",
        fit_reply(reasoning) or None,
        fit_reason(choice.get("finish_reason")),
    )


def _read_embedding(body: Any) -> Content:
    """Returns the only vector of an answer, as a log holds it."""
    (found,) = body["data"]
    return Content(encode_vector(found["embedding"]))


CHAT = Service("/chat/completions", "chat completion", _read_completion)
EMBEDDINGS = Service("/embeddings", "embedding", _read_embedding, implied={"completion_tokens": 0})


def read_answer(exchange: Exchange, latency: float, service: Service = CHAT) -> Answer:
    """Reads a whole answer, which holds what was asked for or the reason why it does not."""
    status, content = exchange.status, exchange.content
    if status < 200:
        words = f"HTTP {status}: it switches protocols, which was not asked for"
        return Answer(
            Attempt(status="error", latency=latency, http_status=status, error=words), "retry"
        )
    if status >= 300:
        return _read_refusal(exchange, latency)
    body = _body_of(content)
    usage = _usage_in(body)
    if usage is not None:
        usage = {**service.implied, **usage}
    try:
        reading = service.read(body)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        why = f" ({error})" if type(error) is ValueError else ""
        words = f"the answer is no {service.what}{why}: {content.decode('utf-8', 'replace')}"
        wrong = Attempt(
            status="error", latency=latency, usage=usage, http_status=status, error=words
        )
        return Answer(wrong, "retry")
    attempt = Attempt(
        status="ok",
        latency=latency,
        usage=usage,
        finish_reason=reading.finish_reason,
        http_status=status,
    )
    return Answer(attempt, "answered", reading.reply, reading.reasoning)


def _body_of(content: bytes) -> Any:
    """Returns the JSON of an answer; None: it is none."""
    try:
        return read_json(content)
    except (ValueError, RecursionError):
        return None


def _usage_in(body: object) -> dict[str, object] | None:
    """Returns the usage that an answer states, also one without a reply, which was paid for."""
    return fit_usage(body.get("usage")) if isinstance(body, dict) else None


def read_json(content: bytes) -> Any:
    """Reads JSON as leniently as endpoints write it; ValueError or RecursionError: it is none.

    NaN and infinities pass, and an integer of any length is no reason to lose a reply.
    """
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError):  # half a surrogate pair, NaN, another encoding
        return json.loads(content, parse_int=_integer)


def write_json(value: object) -> bytes:
    """Returns JSON of what `read_json` read."""
    try:
        return msgspec.json.encode(value)
    except (OverflowError, UnicodeEncodeError):
        return json.dumps(value).encode()


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 20 else float(digits)


def fit_reason(reason: object) -> str | None:
    """Returns why a reply ended, as a log holds it; None unless it is a text."""
    return fit_text(reason, _LONGEST_REASON) if isinstance(reason, str) else None


def _read_refusal(exchange: Exchange, latency: float) -> Answer:
    status, headers, content = exchange
    body = _body_of(content)
    code, words = _error_in(body, content.decode("utf-8", "replace"))
    message = f"HTTP {status}: {words.strip() or _phrase(status)}"
    if 300 <= status < 400:
        where = headers.get("location", "elsewhere")
        message = f"it redirects to {where}, which is not followed; give that as its base URL"
    attempt = Attempt(
        status="error",
        latency=latency,
        usage=_usage_in(body),
        http_status=status,
        error=message,
    )
    quota = status == 429 and code == "insufficient_quota"
    if status in _REFUSED or 300 <= status < 400 or quota:
        return Answer(attempt, "refused")
    if status in _RETRIED or status >= 500:
        return Answer(attempt, "retry", retry_after=retry_after(headers))
    return Answer(attempt, "rejected")


def _phrase(status: int) -> str:
    return _PHRASES.get(status, "no reason given")


def read_failure(error: BaseException, latency: float) -> Answer:
    """Reads an attempt that ended without a whole HTTP answer, in an error."""
    words = str(error).strip() or type(error).__name__
    if isinstance(error, TooMuch | Failed):
        return Answer(Attempt(status="error", latency=latency, error=words), "rejected")
    attempt = Attempt(status="error", latency=latency, error=f"{type(error).__name__}: {words}")
    if isinstance(error, NotSent):
        attempt = replace(attempt, sent=False, error=f"no connection: {words}")
    elif isinstance(error, CancelledError):
        more = f"; {error}" if str(error) else ""
        attempt = replace(attempt, error=f"the call was cancelled{more}")
    elif isinstance(error, AnsweredLate):
        attempt = replace(attempt, status="timeout", error=words)
    elif isinstance(error, TimeoutError):
        attempt = replace(attempt, status="timeout", error=f"no answer within {latency:.1f} s")
    elif isinstance(error, ConnectionError) or type(error).__module__.startswith("aiohttp."):
        attempt = replace(attempt, error=f"the connection broke: {words}")
    seconds = error.seconds if isinstance(error, TryAgain) else None
    return Answer(attempt, "retry", retry_after=seconds)


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Returns the seconds that an endpoint asks to wait; None if it does not say.

    A date is compared with the answer's own `Date`, since the two clocks may differ; an answer
    without one with `now`, by default this machine's clock.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            if 0 <= (value := float(headers.get(name, "nan"))) < math.inf:
                return min(value / unit, _LONGEST_WAIT)
        except ValueError:  # a date
            continue
    if (until := _date(headers.get("retry-after", ""))) is None:
        return None
    answered = _date(headers.get("date", "")) or now or datetime.now(UTC)
    return min(max(0.0, (until - answered).total_seconds()), _LONGEST_WAIT)


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError):  # no date, or one of no calendar
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _error_in(body: object, text: str) -> tuple[str | None, str]:
    """Returns the code and the words of an endpoint's error, else the whole text of its answer."""
    if isinstance(body, list) and body:  # some endpoints wrap the error in a list
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return None, error if isinstance(error, str) else text
    message = error.get("message", error.get("detail"))
    return fit_reply(error.get("code")), message if isinstance(message, str) else text


def fit_reply(value: object) -> str | None:
    """Returns a text that a line of a log can hold beside two others like it, or None."""
    if not isinstance(value, str):
        return None
    most = (cap("EVO_MAX_LINE_MB") << 20) // 4
    whole = fit_text(value, len(value))
    if 6 * len(whole) <= most or len(msgspec.json.encode(whole)) <= most:
        return whole
    return fit_text(whole, most // 6)  # JSON needs up to six bytes for a character
