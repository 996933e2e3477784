"""The client of an OpenAI-compatible endpoint: messages in, one reply and every attempt out.

Every HTTP request is one recorded attempt. Real endpoints are reached through the official
`openai` library on the event loop of `background`, the offline model in this process; see `wire`.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import json
import os
import random
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from evo.logs.cost import is_turned_away, longest_reply, usage_tokens
from evo.logs.inputs import as_float
from evo.logs.records import Attempt, Model, Sampling
from evo.models.answer import CHAT, Answer, read_answer, read_failure
from evo.models.flights import Flights
from evo.models.hiding import without_key
from evo.models.limits import Lease, SlotCancelled, Slots
from evo.models.offline import OFFLINE_MODELS, OFFLINE_URL
from evo.models.wire import Wire, open_wire
from evo.warning import warn

Messages = Sequence[Mapping[str, object]]
"""Messages of a chat completion, each with `role` and `content`."""

OPENAI_URL = "https://api.openai.com/v1"
LONGEST_ERROR = 500  # characters of an endpoint's words that are kept
LONGEST_BACK_OFF = 30.0
LONGEST_RETRY_AFTER = 120.0
TOKENS_PER_CHARACTER = 0.35  # of a prompt; code and English have fewer
_ADVICE = {
    401: "check the key",
    402: "check the account",
    403: "check the rights of the key",
    404: "does it serve a model named {!r}, and is the base URL right (it usually ends in /v1)?",
    429: "check the account",
}


def prompt_hash(messages: Messages) -> str:
    """Returns SHA-256 (hex) of messages as canonical JSON: sorted keys, no spaces, ASCII."""
    text = json.dumps(messages, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class EndpointError(Exception):
    """The endpoint cannot serve this run; the run can go on once that is mended.

    Attributes:
        attempts: The requests of the call that failed, which may have cost something.
    """

    def __init__(self, words: str, attempts: Sequence[Attempt] = ()) -> None:
        super().__init__(words)
        self.attempts = tuple(attempts)


class EndpointDown(EndpointError):  # noqa: N818
    """The endpoint does not answer."""


class EndpointRefused(EndpointError):  # noqa: N818
    """The endpoint refuses the key, the model or the account: trying again changes nothing."""


class EndpointMissing(EndpointError, ValueError):  # noqa: N818
    """No endpoint, or no key for it, is configured."""


class CallCancelled(Exception):  # noqa: N818
    """The call was aborted by `cancel`.

    Attributes:
        attempts: The requests that it had made, which may have cost something.
    """

    def __init__(self, words: str, attempts: Sequence[Attempt] = ()) -> None:
        super().__init__(words)
        self.attempts = tuple(attempts)


def was_sent(error: EndpointError | CallCancelled) -> bool:
    """Whether a call that ended so may have been paid for, and belongs in the log."""
    return any(attempt.sent for attempt in error.attempts)


@dataclass(frozen=True)
class Call:
    """Outcome of a request to the model for one child, or for one of its drafts.

    The reply is None where there is none; `rejected` gives the reason if a retry cannot help.
    """

    attempts: tuple[Attempt, ...]
    reply: str | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    rejected: str | None = None
    draft: int = 0


class Caller(Protocol):
    """Answers calls: an endpoint, or a log that plays the endpoint."""

    model: Model
    sampling: Sampling

    def call(self, messages: Messages, *, seed: int, generation: int, index: int) -> Call:
        """Asks for one reply; `generation` and `index` say for which child."""

    def cancel(self) -> None:
        """Aborts all calls, those under way and later ones, which raise `CallCancelled`."""

    def close(self) -> None:
        """Lets go of connections."""


@dataclass(frozen=True)
class Endpoint:
    """Address of a model and its key, which no repr shows."""

    base_url: str
    key: str = field(repr=False)

    def hide(self, words: bytes) -> bytes:
        """Returns an endpoint's words without the key, which some quote."""
        return without_key(words, self.key)

    def without_key(self, attempt: Attempt) -> Attempt:
        """Returns an attempt as a record may hold it: an error on one line, not endless."""
        if attempt.error is None:
            return attempt
        line = " ".join(self.hide(attempt.error.encode("utf-8", "replace")).decode().split())
        line = line if len(line) <= LONGEST_ERROR else f"{line[:LONGEST_ERROR]} ..."
        return msgspec.structs.replace(attempt, error=line)


def find_endpoint(model: Model) -> Endpoint:
    """Returns where a model is, from the model itself and the environment.

    A base URL and a key of the environment belong together, so that a key is never sent to a host
    that it is not meant for: `OPENAI_BASE_URL` with `OPENAI_API_KEY`, else `LLM_API_BASE` with
    `LLM_API_KEY`, else `OPENAI_API_KEY` alone with OpenAI itself. Local hosts need no key.
    EndpointMissing: there is no base URL, or no key for a host that is not local.
    """
    if model.way != "endpoint":
        return _own_way(model)
    base_url, variables = model.base_url, ["OPENAI_API_KEY", "LLM_API_KEY"]
    if model.name in OFFLINE_MODELS and base_url is None:
        return Endpoint(OFFLINE_URL, "none")
    if base_url is None:
        named = (("OPENAI_BASE_URL", "OPENAI_API_KEY"), ("LLM_API_BASE", "LLM_API_KEY"))
        if known := [(os.environ[url], key) for url, key in named if os.environ.get(url)]:
            base_url, variables = known[0][0], [known[0][1]]
        elif os.environ.get("OPENAI_API_KEY"):
            base_url = OPENAI_URL
    if model.key_variable is not None:
        variables = [model.key_variable]
    if not base_url:
        raise EndpointMissing(
            f"no endpoint is known for the model {model.name!r}: set OPENAI_BASE_URL and "
            "OPENAI_API_KEY, or LLM_API_BASE and LLM_API_KEY, or give the model a base_url; "
            "the model 'offline' needs none of these"
        )
    if not (host := _host(base_url)):
        raise EndpointMissing(
            f"the base URL of an endpoint looks like https://host/v1, got {base_url!r}"
        )
    for name in filter(os.environ.get, variables):
        key = os.environ[name].strip()
        if not (key.isascii() and key.isprintable()):
            raise EndpointMissing(f"{name}: expected a key on one line of plain characters")
        return Endpoint(base_url, key or "none")
    if not _is_local(host):
        raise EndpointMissing(
            f"no key for the model {model.name!r} at {base_url}: set {' or '.join(variables)}"
        )
    if model.key_variable is not None:
        warn(
            f"{model.key_variable} is not set: calls of the model {model.name!r} to {base_url} go "
            "without a key",
        )
    return Endpoint(base_url, "none")


def _own_way(model: Model) -> Endpoint:
    """Returns where a function or a client object is, which have to be here."""
    if model.function is not None:
        return Endpoint(f"function:{model.name}", "none")
    if (client := model.client_object) is not None:
        key = getattr(client, "api_key", None)
        return Endpoint(str(client.base_url), key if isinstance(key, str) and key else "none")
    raise EndpointMissing(model.missing)


def _host(base_url: str) -> str:
    """Returns the host of an address; empty if it is none."""
    with contextlib.suppress(ValueError):  # such as a port above 65535
        parts = urlsplit(base_url)
        plain = base_url.isprintable() and " " not in base_url.strip()
        if parts.scheme in ("http", "https") and parts.port != 0 and plain:
            return parts.hostname or ""
    return ""


def _is_local(host: str) -> bool:
    """Whether a host is on this machine or in a private network."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".internal"))


class ModelClient:
    """Calls one model at its endpoint; many threads may share it, each waiting for its call.

        client = ModelClient(find_model("offline"), sampling, slots=Slots(20))
        client.call([{"role": "user", "content": "..."}], seed=7).reply

    Nothing is opened before the first call. The slots are asked before each attempt, and given back
    while a call backs off; `timeout` is for the whole of one attempt, `back_off` the upper bound of
    the first pause, seconds, which doubles with every attempt; a `wire` replaces the endpoint.

    A sync client, and outside of the main thread a plain function, is called by a helper thread. By
    `cancel` and at the deadline such a call is given up at once, and recorded as sent. It goes on
    by itself and holds its slot until it returns, so that never more run than there are slots.
    """

    _service = CHAT

    def __init__(
        self,
        model: Model,
        sampling: Sampling,
        *,
        slots: Slots,
        timeout: float = 600.0,
        retries: int = 5,
        back_off: float = 1.0,
        wire: Wire | None = None,
    ) -> None:
        if not 0 < as_float(timeout) < float("inf"):
            raise ValueError(f"timeout must be positive and finite, got {timeout!r} seconds")
        if retries < 0:
            raise ValueError(f"retries must be at least 0, got {retries!r}")
        self.model, self.sampling = model, sampling
        self._endpoint = find_endpoint(model)
        self._slots = slots
        self._timeout, self._retries, self._back_off = timeout, retries, back_off
        self._cancelled, self._lock = threading.Event(), threading.Lock()
        self._wire = wire
        self._flights = Flights(timeout, model.name if model.way == "function" else "")
        self._density = TOKENS_PER_CHARACTER
        self._longest = longest_reply(model, sampling.max_tokens)
        self._warned = self._alive = (
            False  # the latter: whether this endpoint ever gave a proper answer
        )

    def call(self, messages: Messages, *, seed: int, generation: int = 0, index: int = 0) -> Call:
        """Asks for one reply, over as many attempts as it takes; older generations come first.

        `EndpointDown`: no attempt got through, or none of this client ever got an answer;
        `EndpointRefused`: the key, the model or the account; `CallCancelled`: see `cancel`. It is
        also the cause of a KeyboardInterrupt that ends the call.
        """
        attempts: list[Attempt] = []
        try:
            return self._call(messages, seed, (generation, index), attempts)
        except KeyboardInterrupt as interrupt:
            raise interrupt from CallCancelled("the call was cancelled", attempts)

    def _call(
        self, messages: Messages, seed: int, place: tuple[int, int], attempts: list[Attempt]
    ) -> Call:
        """Makes a call, and adds its attempts to a list."""
        body = self._body(messages, seed)
        characters = sum(len(str(message.get("content"))) for message in messages)
        for number in range(self._retries + 1):
            try:
                with self._slots.slot(
                    place,
                    owner=self,
                    endpoint=self._endpoint.base_url,
                    tokens=int(characters * self._density) + (self._longest or 0),
                ) as lease:
                    answer = self._attempt(body, lease, attempts)
                    self._settle(lease, answer, characters)
            except SlotCancelled as error:
                raise CallCancelled(str(error), attempts) from None
            attempt = answer.attempt
            if answer.verdict == "answered":
                self._alive = True
                reply = answer.reply or (None if self.model.way == "function" else "")
                return Call(tuple(attempts), reply, answer.reasoning, attempt.finish_reason)
            if answer.verdict == "refused":
                advice = _ADVICE.get(attempt.http_status or 0, "check the base URL")
                advice = advice.format(self.model.id or self.model.name)
                words = f"the endpoint {self._endpoint.base_url} refuses: {attempt.error}; {advice}"
                raise EndpointRefused(words, attempts)
            if answer.verdict == "rejected":
                return Call(tuple(attempts), rejected=attempt.error)
            if number < self._retries:
                self._warn_if_dead(attempt)
                self._pause(seed, number, attempts, answer.retry_after)
        if self._is_down(attempts):
            raise EndpointDown(self._down(attempts), attempts)
        return Call(tuple(attempts))

    def request_key(self, messages: Messages, seed: int) -> bytes:
        """Returns SHA-256 of what a reply depends on: address, model and the whole request."""
        where = self._endpoint.base_url.rstrip("/")
        request = (where, self.model.version, self._body(messages, seed))
        return hashlib.sha256(msgspec.json.encode(request, order="sorted")).digest()

    def cancel(self) -> None:
        """Aborts all calls, those under way and later ones, which raise `CallCancelled`."""
        self._cancelled.set()
        self._slots.cancel(self)
        self._flights.cancel()

    def close(self) -> None:
        """Closes connections."""
        self._flights.close()
        with self._lock:
            wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _attempt(self, body: dict[str, object], lease: Lease, attempts: list[Attempt]) -> Answer:
        """Makes one HTTP request; whatever goes wrong in it becomes part of the record."""
        started = time.monotonic()
        try:
            wire = self._open()
            started = time.monotonic()  # without the loading of libraries by the first call
            exchange = self._flights.answer(wire.post(body), started, lease)
            answer = read_answer(exchange, time.monotonic() - started, self._service)
        except CancelledError as error:
            attempts.append(read_failure(error, time.monotonic() - started).attempt)
            raise CallCancelled("the call was cancelled", attempts) from None
        except KeyboardInterrupt as interrupt:
            cause = interrupt.__cause__
            cancelled = cause if isinstance(cause, CancelledError) else CancelledError()
            attempts.append(read_failure(cancelled, time.monotonic() - started).attempt)
            raise
        except Exception as error:  # the one endpoint attempt: whatever it was is recorded
            answer = read_failure(error, time.monotonic() - started)
        attempt = self._endpoint.without_key(answer.attempt)
        if self.model.way == "function" and attempt.status == "ok":  # no HTTP has been spoken
            attempt = msgspec.structs.replace(attempt, http_status=None)
        attempts.append(attempt)
        return replace(answer, attempt=attempt)

    def _open(self) -> Wire:
        """Returns the way to the endpoint, which the first call opens."""
        with self._lock:
            if self._wire is None:
                where = self._endpoint
                self._wire = open_wire(
                    self.model, where.base_url, where.key, self._timeout, self._service
                )
            return self._wire

    def _body(self, messages: Messages, seed: int) -> dict[str, object]:
        """Returns the request. A field of `extra_body` replaces ours; None leaves it out."""
        # OpenAI takes `max_tokens` for its older models only, most other endpoints take it alone.
        to_openai = self._endpoint.base_url.startswith(OPENAI_URL)
        body = {
            "model": self.model.id or self.model.name,
            "messages": messages,
            "seed": seed,
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
            "max_completion_tokens" if to_openai else "max_tokens": self.sampling.max_tokens,
        } | self.model.extra_body
        return {name: value for name, value in body.items() if value is not None}

    def _settle(self, lease: Lease, answer: Answer, characters: int) -> None:
        """Passes the endpoint's answer to the slots, and learns how long its tokens are."""
        tokens = usage_tokens(answer.attempt.usage)
        used = tokens.prompt + tokens.completion if tokens else None
        if tokens and characters:
            self._density = max(self._density, tokens.prompt / characters)
        lease.settle(
            0 if used is None and is_turned_away(answer.attempt) else used,
            answered=answer.verdict == "answered",
            turned_away=answer.attempt.http_status == 429,
            pause=min(answer.retry_after or 0.0, LONGEST_RETRY_AFTER),
        )

    def _pause(
        self, seed: int, number: int, attempts: Sequence[Attempt], asked: float | None
    ) -> None:
        """Backs off before the next attempt, with jitter keyed by (seed, number).

        It waits as long as the endpoint asks if that is longer, and a little more, so that not all
        calls come back at once.
        """
        jitter = random.Random(f"{seed}/{number}").random()
        seconds = jitter * min(LONGEST_BACK_OFF, self._back_off * 2**number)
        if asked is not None:
            seconds = max(seconds, min(asked, LONGEST_RETRY_AFTER) * (1 + 0.1 * jitter))
        if self._cancelled.wait(seconds):
            raise CallCancelled("the call was cancelled", attempts)

    def _down(self, attempts: Sequence[Attempt]) -> str:
        count = f"{len(attempts)} attempts, the last" if attempts[1:] else "1 attempt, which"
        ended = f"{count} ended in {attempts[-1].error!r}"
        if self.model.way == "function":
            return f"the function of the model {self.model.name!r} does not answer: {ended}"
        if (status := attempts[-1].http_status) is not None:
            model = self.model.id or self.model.name
            return (
                f"the endpoint {self._endpoint.base_url} gives no reply: {ended}; it answers with "
                f"status {status}, so see what it logs, and whether it serves "
                f"{self._service.what}s of a model named {model!r}"
            )
        return (
            f"the endpoint {self._endpoint.base_url} does not answer: {ended}; is it running, and "
            "is the base URL right (it usually ends in /v1)?"
        )

    def _warn_if_dead(self, attempt: Attempt) -> None:
        """Says once that the endpoint cannot be reached, before the retries take their time."""
        if not (attempt.sent or self._alive or self._warned):
            self._warned, url = True, self._endpoint.base_url
            words = f"the endpoint {url} cannot be reached ({attempt.error}); is it running, and"
            often = "once" if self._retries == 1 else f"{self._retries} times"
            warn(f"{words} the URL right? Trying again {often}")

    def _is_down(self, attempts: Sequence[Attempt]) -> bool:
        """Whether no other call would do better; an endpoint that is slow or busy is not down."""
        if any(a.status == "timeout" or a.http_status in (408, 429) for a in attempts):
            return False
        return not self._alive or all(a.http_status is None for a in attempts)
