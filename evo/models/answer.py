"""What one HTTP exchange with a model says: the record of the attempt, and whether to go on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from evo.logs.records import Attempt

_MOST_NESTED = 100  # objects and lists in usage; what is deeper no log can hold
_RETRIED = frozenset({408, 409, 425, 429})
_REFUSED = frozenset({401, 402, 403, 404, 405, 410})


class Response(Protocol):
    """An HTTP answer, as far as it is read here: that of `httpx2`, or one made in this process."""

    @property
    def status_code(self) -> int:
        """Of HTTP, such as 200."""

    @property
    def content(self) -> bytes:
        """The whole body."""

    @property
    def headers(self) -> Mapping[str, str]:
        """By name, whatever the case of its letters."""

    @property
    def reason_phrase(self) -> str:
        """What HTTP/1.1 adds to the status, such as `OK`."""


@dataclass(frozen=True)
class LocalResponse:
    """An HTTP answer that was made in this process."""

    status_code: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    reason_phrase: str = ""


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


def read_answer(response: Response, latency: float) -> Answer:
    """Reads a whole answer, which holds a chat completion or says why not."""
    if not 200 <= response.status_code < 300:
        return _read_refusal(response, latency)
    status, content = response.status_code, response.content
    try:
        body = json.loads(content)
        stated = json.dumps(body.get("usage"), ensure_ascii=False).encode("utf-8", "replace")
        choice = body["choices"][0]
        message = choice["message"]
        reply, finish_reason = message.get("content"), choice.get("finish_reason")
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        nested = stated.count(b"{") + stated.count(b"[")
        usage = json.loads(stated) if nested < _MOST_NESTED else None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        words = f"the answer is no chat completion: {content.decode('utf-8', 'replace')}"
        wrong = Attempt(status="error", latency=latency, http_status=status, error=words)
        return Answer(wrong, "retry")
    attempt = Attempt(
        status="ok",
        latency=latency,
        usage=usage if isinstance(usage, dict) else None,
        finish_reason=_text(finish_reason),
        http_status=status,
    )
    return Answer(attempt, "answered", _text(reply) or "", _text(reasoning) or None)


def _read_refusal(response: Response, latency: float) -> Answer:
    status = response.status_code
    code, words = _error_of(response.content.decode("utf-8", "replace"))
    said = f"HTTP {status}: {words.strip() or response.reason_phrase}"
    if 300 <= status < 400:
        where = response.headers.get("location", "elsewhere")
        said = f"it redirects to {where}, which is not followed; give that as its base URL"
    attempt = Attempt(status="error", latency=latency, http_status=status, error=said)
    quota = status == 429 and code == "insufficient_quota"
    if status in _REFUSED or 300 <= status < 400 or quota:
        return Answer(attempt, "refused")
    if status in _RETRIED or status >= 500:
        return Answer(attempt, "retry", retry_after=retry_after(response.headers))
    return Answer(attempt, "rejected")


def read_failure(error: BaseException, latency: float) -> Answer:
    """Reads an attempt that ended without an HTTP answer, in an error of `httpx2` or another."""
    import httpx2

    from evo.models.network import TooMuch

    words = str(error).strip() or type(error).__name__
    if isinstance(error, TooMuch):
        return Answer(Attempt(status="error", latency=latency, error=words), "rejected")
    attempt = Attempt(status="error", latency=latency, error=f"{type(error).__name__}: {words}")
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
        attempt = replace(attempt, sent=False, error=f"no connection: {words}")
    elif isinstance(error, httpx2.TimeoutException):
        attempt = replace(attempt, status="timeout", error=f"no answer within {latency:.1f} s")
    elif isinstance(error, httpx2.HTTPError):
        attempt = replace(attempt, error=f"the connection broke: {words}")
    return Answer(attempt, "retry")


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Returns the seconds that an endpoint asks to wait; None if it does not say."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            if 0 <= (value := float(headers.get(name, "nan"))) < math.inf:
                return value / unit
        except ValueError:  # a date
            continue
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


def _error_of(text: str) -> tuple[str | None, str]:
    """Returns the code and the words of an endpoint's error, as far as it has the usual form."""
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None, text
    if isinstance(body, list) and body:  # some endpoints wrap the error in a list
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return None, error if isinstance(error, str) else text
    message = error.get("message", error.get("detail"))
    return _text(error.get("code")), message if isinstance(message, str) else text


def _text(value: object) -> str | None:
    """Returns text that UTF-8 can hold (JSON may escape half a surrogate pair), or None."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None
