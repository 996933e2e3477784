"""The gate: what other tools call instead of an endpoint, under a budget and with a log.

One request in is at most one request to the endpoint, which counts from the moment it is sent,
whatever comes back. Nothing is retried. The endpoint's key stays here.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import math
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evo.gate.account import Account, Refused
from evo.gate.events import Events
from evo.gate.log import Sent
from evo.gate.turnstile import Turnstile
from evo.gate.upstream import Incoming, Upstream, open_upstream
from evo.keyed import KeyedStream
from evo.logs.cost import bound_of, cost_of_tokens
from evo.logs.inputs import as_float
from evo.logs.records import Attempt, Model
from evo.logs.types import JsonObject
from evo.models.answer import (
    Exchange,
    read_answer,
    read_failure,
    read_json,
    write_json,
)
from evo.models.client import find_endpoint
from evo.models.registry import find_model
from evo.models.responses import EVENTS, JSON, HttpRequest, Response, error_response, list_models
from evo.models.serving import HttpServer
from evo.runs.budget import check_budget

if TYPE_CHECKING:
    from evo.models.cache import ResponseCache
    from evo.models.shared_cache import SharedCache

LONGEST_NAME = 32  # characters of a key that may be a client's name
_EXTRA = 64  # tokens that an endpoint's template may add, and as many for each message
_LEFT = Attempt(status="error", latency=None, error="the client left")


@dataclass(frozen=True)
class Passage:
    """A request that passed a gate and was settled.

    Attributes:
        number: Its number at this gate, from 0.
        body: The request as the client sent it.
        attempt: What became of it.
        reply: Text of the reply; None where there is none.
        seed: The seed that the gate gave it; None if it has the client's, if any.
    """

    number: int
    body: JsonObject
    attempt: Attempt
    reply: str | None
    seed: int | None = None


@dataclass(frozen=True)
class Supervision:
    """What controls the requests of a gate from outside, such as the arm of an engine.

    Attributes:
        turnstile: Where requests wait until they are granted; None: they do not wait.
        on_passage: Called with each request once it is settled, before its client has the whole
            answer.
    """

    turnstile: Turnstile | None = None
    on_passage: Callable[[Passage], None] | None = None


UNSUPERVISED = Supervision()


class Gate(HttpServer):
    """One model's endpoint for other tools, at `gate.url` while the context lasts.

        with Gate("offline", budget={"calls": 64}) as gate:
            openai.OpenAI(base_url=gate.url, api_key="my-tool")

    Chat completions, streaming or not, and a list of models. A request is forwarded if its worst
    case fits into what the budget leaves; else it is refused with 429.

    Args:
        model: Name in the registry, or a Model; whatever model clients name, this one is asked.
        budget: Limits by unit: calls, tokens, dollars or flops.
        requests_per_minute: Limit beyond which a request gets a 429 with the time to retry.
        tokens_per_minute: Likewise, each request counted at its worst until it is answered.
        log: File of every call; one that exists goes on, with what was spent. None: a new one below
            logs/local, if there is a budget or it is to be `logged`.
        cache: File of answers; the same body is answered from it, the k-th time that a client
            sends it with the k-th answer. A log that goes on counts on, a new one begins anew.
        timeout: Seconds for the whole of a forwarded request.
        seed: With it, every forwarded request gets a seed of its own, derived from this one and
            the request's number, in place of the client's. Many tools send the same seed with every
            request, and a model that heeds it answers equal requests alike. None: the client's
            seed is forwarded.
        logged: Begin a log below logs/local even without a budget.
        supervision: What grants requests and listens to their outcomes (default: nothing).

    ValueError: an argument is out of range, the model unknown, or its endpoint or key missing. On
    entering, LogError: the log cannot be had, or is that of another model.
    """

    def __init__(
        self,
        model: str | Model = "offline",
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        budget: Mapping[str, float] | None = None,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        log: Path | None = None,
        cache: Path | str | None = None,
        timeout: float = 600.0,
        seed: int | None = None,
        logged: bool = False,
        supervision: Supervision = UNSUPERVISED,
    ) -> None:
        super().__init__(host, port)
        if not 0 < as_float(timeout) < math.inf:
            raise ValueError(f"timeout: expected seconds above 0, got {timeout!r}")
        self.model = find_model(model)
        if self.model.way != "endpoint":
            raise ValueError(f"a gate stands before an endpoint, {model!r:.60} is none")
        self._name = self.model.id or self.model.name
        limits = check_budget(budget, [self])
        self.account = Account(self.model, limits, requests_per_minute, tokens_per_minute)
        self.log = log
        self._counted = bool(limits) or logged
        self._endpoint = find_endpoint(self.model)
        self._cache_path = cache
        self._cache: ResponseCache | SharedCache | None = None
        self._timeout = timeout
        self._seed = seed
        self._turnstile, self._on_passage = supervision.turnstile, supervision.on_passage
        self._client_name = functools.lru_cache(1024)(client_name)

    def begin(self, opened: contextlib.ExitStack) -> None:
        """Opens log, cache and the way to the endpoint."""
        if self.log is not None:
            self.account.open_log(self.log, opened)
        elif self._counted:
            self.log = self.account.begin_log(opened)
        if self._cache_path is not None:
            from evo.models.cache import open_cache

            cache = open_cache(self._cache_path)
            self._cache = opened.enter_context(contextlib.closing(cache))
        self._upstream: Upstream = opened.enter_context(
            contextlib.closing(open_upstream(self._endpoint))
        )

    async def respond(self, request: HttpRequest) -> Response | None:
        """Answers a request; all but chat completions cost nothing."""
        place = "/" + request.path.strip("/")
        if "origin" in request.headers:  # a page in a browser would spend the owner's money
            return error_response(403, "this gate takes no requests of web pages", "origin")
        if request.method == "GET" and place.endswith("/models"):
            return list_models(dict.fromkeys((self.model.name, self._name)), "gate")
        if request.method != "POST" or not place.endswith("/chat/completions"):
            words = "here are POST .../chat/completions and GET .../models alone"
            return error_response(404, f"no {request.method} {place}: {words}", "route")
        try:
            asked = read_body(request.body)
            content, worst = self._checked(asked)
        except (ValueError, RecursionError) as error:
            return error_response(400, f"the body is no request: {error}", "invalid_request")
        client = self._client_name(
            request.headers.get("authorization", "").partition(" ")[2].strip()
        )
        digest = hashlib.sha256(request.body).hexdigest()
        key = None
        if self._cache is not None:
            turn = self.account.repeat(client, digest)
            identity = (self._endpoint.base_url, self.model.version, client, digest)
            key = hashlib.sha256(repr((identity, turn)).encode()).digest()
        try:
            if key is not None and (known := self._known(key)) is not None:
                self.account.keep(client, digest)
                return known
            sent = await self._admit(client, digest, worst)
        except BaseException as no:
            if key is not None:
                self.account.repeat(client, digest, -1)  # it went nowhere
            if isinstance(no, Refused | OSError):
                return _refusal(no)
            raise
        if self._seed is not None:
            content = write_json(self._as_sent(asked, sent.number))
        return await self._forward(content, asked, sent, key)

    def _checked(self, asked: JsonObject) -> tuple[bytes, dict[str, float]]:
        """Returns a request as it is sent on, and what it costs at most; ValueError: it is not."""
        body = self._as_sent(asked)
        check_body(body)  # what the model adds may not be asked for, either
        content = write_json(body)
        worst = worst_case(body, len(content), self.model)
        if self.account.bounded and not math.isfinite(worst["tokens"]):
            self.account.count_refused()
            raise ValueError(
                "'max_tokens' must be given: this gate holds a limit of tokens, and nothing "
                "else bounds this request; a client that gives none can be given one by "
                "extra_body = {max_tokens = 4096} of the model in a models.toml"
            )
        return content, worst

    async def _admit(self, client: str, digest: str, worst: Mapping[str, float]) -> Sent:
        """Counts a request that is forwarded next, once the turnstile lets it pass."""
        turnstile = self._turnstile
        if turnstile is None:
            return self.account.admit(client, digest, worst)
        if not await turnstile.enter():
            words = "too many requests wait" if turnstile.flooded else "no more calls are granted"
            raise Refused(f"{words} at this gate")
        try:
            return self.account.admit(client, digest, worst)
        except BaseException:
            turnstile.give_back()
            raise

    def _as_sent(self, asked: JsonObject, number: int = 0) -> JsonObject:
        """Returns the request as the endpoint gets it: its own name of the model, usage asked for.

        A gate with a seed derives that of the request from its number. Fields of the model's
        `extra_body` replace the others; None leaves one out.
        """
        body = {**asked, "model": self._name}
        if body.get("stream"):
            body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
        if (seed := self._seed_of(number)) is not None:
            body["seed"] = seed
        body |= self.model.extra_body
        return {name: value for name, value in body.items() if value is not None}

    def _seed_of(self, number: int) -> int | None:
        if self._seed is None:
            return None
        return KeyedStream("driver", self._seed, number).integer(0, 2**31 - 1)

    def _known(self, key: bytes) -> Response | None:
        """Returns the answer that is kept under a key."""
        kept = self._cache.get(key) if self._cache is not None else None
        if kept is None:
            return None
        kind, _, content = kept.partition(b"\n")
        return Response(200, content, _kind(kind.decode("utf-8", "replace")))

    async def _forward(
        self, content: bytes, asked: JsonObject, sent: Sent, key: bytes | None
    ) -> Response:
        """Makes the one request to the endpoint; whatever comes of it is settled."""
        started, deadline = time.monotonic(), asyncio.get_running_loop().time() + self._timeout
        try:
            async with asyncio.timeout_at(deadline):
                answer = await self._upstream.ask(content)
                kind, status = _kind(answer.headers.get("content-type", JSON)), answer.status
                streams = status == 200 and kind == EVENTS
                if not streams:
                    try:
                        got = self._endpoint.hide(b"".join([p async for p in answer.pieces]))
                    finally:
                        answer.close()
            if streams:
                shows_usage = (asked.get("stream_options") or {}).get("include_usage")
                keeps_text = self._on_passage is not None
                reader = Events(shows_usage is True, started, self._endpoint.hide, keeps_text)
                settle = functools.partial(self._settle, sent, asked)
                most = sent.worst.get("tokens", math.inf)
                left = functools.partial(reader.left, len(content), most)
                stream = self._pass(answer, reader, settle, left, deadline, key)
                await anext(stream)  # so that closing it settles
                return Response(200, b"", kind, stream=stream)
            read = read_answer(Exchange(status, answer.headers, got), time.monotonic() - started)
            response = Response(status, got, kind, retry_after=read.retry_after)
        except asyncio.CancelledError:
            self._settle(sent, asked, _LEFT, None)
            raise
        except Exception as error:  # whatever it was, it is settled
            read = read_failure(error, time.monotonic() - started)
            status, response = 504 if read.attempt.status == "timeout" else 502, None
        attempt = self._endpoint.without_key(read.attempt)
        self._settle(sent, asked, attempt, read.reply)
        if response is None or status < 200 or 300 <= status < 400:
            code = 502 if response else status
            return error_response(code, f"the endpoint: {attempt.error}", "upstream")
        if status == 200 and attempt.status == "ok":
            self._remember(key, kind, got)
        return response

    def _settle(self, sent: Sent, asked: JsonObject, attempt: Attempt, reply: str | None) -> None:
        """Counts the outcome of a request and notifies the listener."""
        self.account.settle(sent, attempt)
        if self._on_passage is not None:
            seed = self._seed_of(sent.number)
            self._on_passage(Passage(sent.number, asked, attempt, reply, seed))

    async def _pass(
        self,
        answer: Incoming,
        reader: Events,
        settle: Callable[[Attempt, str | None], None],
        left: Callable[[], Attempt],
        deadline: float,
        key: bytes | None,
    ) -> AsyncGenerator[bytes]:
        """Yields a reply event by event; it settles when it ends, however it does."""
        passed, settled = bytearray(), False
        attempt: Attempt | None = None  # closed half-way
        try:
            with contextlib.closing(answer):
                yield b""
                async for out in reader.read(_by(deadline, answer.pieces)):
                    if reader.whole and not settled:  # the client may go once it has this
                        settle(reader.attempt, reader.text)
                        settled = True
                    passed += out if key is not None else b""
                    yield out
                attempt = reader.attempt
        except Exception as error:
            read = read_failure(error, time.monotonic() - reader.started)
            attempt = self._endpoint.without_key(read.attempt)
            raise ConnectionResetError("the endpoint broke off") from error
        finally:
            if not settled:
                settle(attempt or left(), reader.text)
        if reader.finish is not None:
            self._remember(key, EVENTS, bytes(passed))

    def _remember(self, key: bytes | None, kind: str, content: bytes) -> None:
        if key is not None and self._cache is not None:
            self._cache.put(key, kind.encode() + b"\n" + content)


async def _by(deadline: float, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yields what comes until a time of the event loop; TimeoutError: it is over."""
    while True:
        async with asyncio.timeout_at(deadline):
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                return
        yield piece


def _kind(stated: str) -> str:
    """Returns the content type of an answer: one of a few, whatever the endpoint states."""
    essence = stated.partition(";")[0].strip().lower()
    return essence if essence in (JSON, EVENTS) else "text/plain"


def _refusal(why: Refused | OSError) -> Response:
    """Returns what a client gets whose request is not forwarded."""
    if isinstance(why, OSError):
        return error_response(507, f"the gate cannot log, so it does not forward: {why}", "log")
    final = why.wait is None
    code = "insufficient_quota" if final else "rate_limit_exceeded"
    return error_response(429, str(why), code, retry_after=why.wait, final=final)


def read_body(content: bytes) -> JsonObject:
    """Reads a request as far as the gate has to understand it; ValueError: it does not."""
    body = read_json(content)
    if not isinstance(body, dict):
        raise ValueError(f"expected an object, got {type(body).__name__}")
    check_body(body)
    return body


def check_body(body: JsonObject) -> None:
    """Raises ValueError unless a request asks for one reply, in a way that the gate knows."""
    for name in ("n", "best_of"):
        if body.get(name) not in (None, 1):
            raise ValueError(f"{name!r} must be 1, a reply for each call, got {body[name]!r:.80}")
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise ValueError(f"expected 'stream_options' to be an object, got {options!r:.80}")


def client_name(key: str) -> str:
    """Returns the key that a client sends as its name where that can be no secret, else a hash."""
    plain = len(key) <= LONGEST_NAME and key.isascii() and key.isprintable()
    secret = key.startswith("sk-") or key in filter(None, os.environ.values())
    if plain and not secret:
        return key
    return f"sha256:{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:16]}"


def worst_case(body: JsonObject, size: int, model: Model) -> dict[str, float]:
    """Returns what a request of so many bytes may cost, by unit; infinite where nothing bounds it.

    A token is at least one byte of text, and neither prompt nor reply exceeds the context window.
    """
    whole = math.inf if model.context is None else float(model.context)
    messages = body.get("messages")
    messages = messages if isinstance(messages, list) else []
    plain = all(isinstance(m, dict) and _is_text(m.get("content")) for m in messages)
    prompt = min(whole, size + _EXTRA * (1 + len(messages))) if plain else whole
    longest = bound_of(body)
    return cost_of_tokens((prompt, 0.0, min(whole, longest or whole)), model)


def _is_text(content: object) -> bool:
    """Whether a message is nothing but text, so that its bytes bound its tokens."""
    if isinstance(content, list):
        return all(isinstance(part, dict) and part.get("type") == "text" for part in content)
    return content is None or isinstance(content, str)
