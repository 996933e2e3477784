"""The gate: what other tools call instead of an endpoint, under a budget and with a log.

One request in is at most one request to the endpoint, which counts from the moment it is sent,
whatever comes back. Nothing is retried. The endpoint's key stays here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evo.gate.account import Account, Refused, Sent, cost_of_tokens
from evo.logs.journal import file_name, unused
from evo.logs.records import Attempt, Model
from evo.models.answer import read_answer, read_failure
from evo.models.client import find_endpoint
from evo.models.listening import (
    JSON,
    Listener,
    Request,
    Response,
    error_response,
    has_left,
    list_models,
)
from evo.models.registry import find_model
from evo.runs.budget import check_budget

if TYPE_CHECKING:
    import httpx2

    from evo.models.cache import ResponseCache
    from evo.models.network import Flight

LONGEST_NAME = 32  # characters of a key that may be a client's name
LOOK = 0.1  # seconds between looks at whether clients are still there
_EXTRA = 64  # tokens that an endpoint's template may add, and as many for each message
_LEFT = Attempt(status="error", latency=None, error="the client left")


class Gate(Listener):
    """One model's endpoint for other tools, at `gate.url` while the context lasts.

        with Gate("offline", budget={"calls": 64}) as gate:
            openai.OpenAI(base_url=gate.url, api_key="my-tool")

    Chat completions, streaming or not, and a list of models. A request is forwarded if its worst
    case fits into what the budget leaves; else it is refused with 429.

    Args:
        model: Name in the registry, or a Model; whatever model clients name, this one is asked.
        budget: Limits by unit: calls, tokens, dollars or flops.
        requests_per_minute: Beyond which a 429 says when to come back.
        tokens_per_minute: Likewise, each request counted at its worst until it is answered.
        log: File of every call; one that exists goes on, with what was spent. None: without a
            budget none, else a new one below logs/local.
        cache: File of answers; the same body is answered from it, the k-th time that a client
            sends it with the k-th answer.
        timeout: Seconds for the whole of a forwarded request.

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
        cache: Path | None = None,
        timeout: float = 600.0,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        super().__init__(host, port)
        if not 0 < timeout < math.inf:
            raise ValueError(f"timeout: expected seconds above 0, got {timeout!r}")
        self.model = find_model(model)
        self._name = self.model.id or self.model.name
        limits = check_budget(budget, [self])
        self.account = Account(self.model, limits, requests_per_minute, tokens_per_minute)
        self.log = log
        if log is None and limits:
            self.log = unused(Path("logs/local"), f"gate-{file_name(self.model.name)}", ".jsonl")
        self._endpoint = find_endpoint(self.model)
        self._cache_path = cache
        self._cache: ResponseCache | None = None
        self._timeout = timeout
        self._transport = transport
        self._watched: dict[Flight, Any] = {}
        self._over = threading.Event()

    def begin(self, opened: contextlib.ExitStack) -> None:
        """Opens log, cache and the way to the endpoint."""
        from evo.models.network import http_client

        if self.log is not None:
            self.account.open_log(self.log, opened)
        if self._cache_path is not None:
            from evo.models.cache import ResponseCache

            cache = ResponseCache.open(self._cache_path)
            self._cache = opened.enter_context(contextlib.closing(cache))
        url = self._endpoint.base_url
        client = http_client(url, seconds=self._timeout, transport=self._transport)
        self._upstream = opened.enter_context(client)
        self._over.clear()
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        opened.callback(watch.join)
        opened.callback(self._over.set)

    def respond(self, request: Request) -> Response | None:
        """Answers a request; all but chat completions cost nothing."""
        place = "/" + request.path.partition("?")[0].strip("/")
        if "origin" in request.headers:  # a page in a browser would spend the owner's money
            return error_response(403, "this gate takes no requests of web pages", "origin")
        if request.method == "GET" and place.endswith("/models"):
            return list_models(dict.fromkeys((self.model.name, self._name)), "gate")
        if request.method != "POST" or not place.endswith("/chat/completions"):
            words = "here are POST .../chat/completions and GET .../models alone"
            return error_response(404, f"no {request.method} {place}: {words}", "route")
        try:
            body = read_body(request.body)
            worst = worst_case(body, len(request.body), self.model)
            if self.account.bounded and not math.isfinite(worst["tokens"]):
                raise ValueError(
                    "'max_tokens' must be given: this gate holds a limit of tokens, and nothing "
                    "else bounds this request"
                )
        except (ValueError, RecursionError) as error:
            return error_response(400, f"the body is no request: {error}", "invalid_request")
        client = client_name(request.headers.get("authorization", "").partition(" ")[2].strip())
        digest = hashlib.sha256(request.body).hexdigest()
        key = None
        if self._cache is not None:
            asked = (self._endpoint.base_url, self.model.version, client, digest)
            asking = (asked, self.account.repeat(client, digest))
            key = hashlib.sha256(repr(asking).encode()).digest()
            if known := self._cache.get(key):
                self.account.keep(client, digest)
                kind, _, content = known.partition(b"\n")
                return Response(200, content, kind.decode())
        try:
            sent = self.account.admit(client, digest, worst)
        except Refused as no:
            if key is not None:
                self.account.repeat(client, digest, -1)  # it went nowhere
            final = no.wait is None
            code = "insufficient_quota" if final else "rate_limit_exceeded"
            return error_response(429, str(no), code, retry_after=no.wait, final=final)
        except OSError as error:
            words = f"the gate cannot log, so it does not forward: {error}"
            return error_response(507, words, "log")
        return self._forward(request, body, sent, key)

    def _forward(
        self, request: Request, body: dict[str, Any], sent: Sent, key: bytes | None
    ) -> Response | None:
        """Makes the one request to the endpoint; whatever comes of it is settled."""
        from evo.models.network import Flight

        flight, started = Flight(self._timeout), time.monotonic()
        with contextlib.ExitStack() as held:
            held.callback(self._watched.pop, flight, None)
            self._watched[flight] = request.connection
            try:
                held.enter_context(flight)
                answer = held.enter_context(self._ask(body))
                kind = answer.headers.get("content-type", JSON)
                if answer.status_code == 200 and kind.startswith("text/event-stream"):
                    asked = (body.get("stream_options") or {}).get("include_usage") is True
                    reader = _Events(asked, started, self._endpoint.hide)
                    stream = self._pass(answer, reader, sent, flight, key, held.pop_all())
                    next(stream)  # so that closing it settles
                    return Response(200, b"", kind, stream=stream)
                content, status = self._endpoint.hide(answer.read()), answer.status_code
                read = read_answer(answer, time.monotonic() - started)
                response = Response(status, content, kind, retry_after=read.retry_after)
            except Exception as error:  # whatever it was, it is settled
                read = read_failure(error, time.monotonic() - started)
                status, response = 504 if read.attempt.status == "timeout" else 502, None
        attempt = self._endpoint.without_key(read.attempt)
        self.account.settle(sent, _LEFT if flight.cancelled else attempt)
        if flight.cancelled:
            return None
        if response is None or 300 <= status < 400:
            code = 502 if response else status
            return error_response(code, f"the endpoint: {attempt.error}", "upstream")
        if status == 200 and attempt.status == "ok":
            self._remember(key, kind, content)
        return response

    def _ask(self, body: dict[str, Any]) -> contextlib.AbstractContextManager[httpx2.Response]:
        """Sends a body under the endpoint's own name of the model, with usage asked for."""
        body = {**body, "model": self._name}
        if body.get("stream"):
            body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
        body |= self.model.extra_body
        kept = {name: value for name, value in body.items() if value is not None}
        return self._upstream.stream(
            "POST",
            f"{self._endpoint.base_url.rstrip('/')}/chat/completions",
            content=json.dumps(kept).encode(),
            headers={"authorization": f"Bearer {self._endpoint.key}", "content-type": JSON},
        )

    def _pass(
        self,
        answer: httpx2.Response,
        reader: _Events,
        sent: Sent,
        flight: Flight,
        key: bytes | None,
        held: contextlib.ExitStack,
    ) -> Generator[bytes]:
        """Yields a reply event by event; it settles when it ends, however it does."""
        import httpx2

        passed, settled = bytearray(), False
        attempt = _LEFT  # closed half-way
        try:
            yield b""
            for out in reader.read(answer):
                if reader.whole and not settled:  # the client may go once it has this
                    self.account.settle(sent, reader.attempt)
                    settled = True
                passed += out if key is not None else b""
                yield out
            attempt = reader.attempt
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            if not flight.cancelled:
                read = read_failure(error, time.monotonic() - reader.started)
                attempt = self._endpoint.without_key(read.attempt)
            raise ConnectionResetError("the endpoint broke off") from error
        finally:
            held.close()
            if not settled:
                self.account.settle(sent, attempt)
        if reader.finish is not None:
            self._remember(key, answer.headers["content-type"], bytes(passed))

    def _remember(self, key: bytes | None, kind: str, content: bytes) -> None:
        if key is not None and self._cache is not None:
            self._cache.put(key, kind.encode() + b"\n" + content)

    def _watch(self) -> None:
        """Ends requests whose client has left."""
        while not self._over.wait(LOOK):
            for flight, connection in list(self._watched.items()):
                if has_left(connection):
                    flight.cancel()


class _Events:
    """Server-sent events on their way through: what they say of tokens, and who is to see that."""

    def __init__(self, asks_usage: bool, started: float, hide: Callable[[bytes], bytes]) -> None:
        self.started, self.whole, self.finish = started, False, None
        self._asks_usage, self._hide = asks_usage, hide
        self._usage: dict[str, Any] | None = None

    def read(self, answer: httpx2.Response) -> Iterator[bytes]:
        """Yields what the client gets."""
        rest = b""
        for piece in answer.iter_bytes():
            *lines, rest = (rest + piece).split(b"\n")
            if out := b"".join(self._line(line + b"\n") for line in lines):
                yield out
        if out := self._line(rest):
            yield out

    @property
    def attempt(self) -> Attempt:
        """The record of a whole reply."""
        said: dict[str, Any] = {"usage": self._usage, "finish_reason": self.finish}
        return Attempt(
            status="ok", latency=time.monotonic() - self.started, http_status=200, **said
        )

    def _line(self, line: bytes) -> bytes:
        line = self._hide(line)
        self.whole |= line.startswith(b"data:") and line[5:].strip() == b"[DONE]"
        if not line.startswith(b"data:") or not (b'"usage"' in line or b'"finish_reason"' in line):
            return line
        try:
            event = msgspec.json.decode(line[5:])
            choices = event.get("choices")
            self.finish = next((c["finish_reason"] for c in choices), None) or self.finish
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return line
        usage = event.get("usage")
        if isinstance(usage, dict):
            self._usage = usage
        if self._asks_usage or "usage" not in event:
            return line
        del event["usage"]
        return b"data: " + msgspec.json.encode(event) + b"\n" if choices else b""


def read_body(content: bytes) -> dict[str, Any]:
    """Reads a request as far as the gate has to understand it; ValueError: it does not."""
    body = json.loads(content)
    if not isinstance(body, dict):
        raise ValueError(f"expected an object, got {type(body).__name__}")
    if body.get("n") not in (None, 1):
        raise ValueError(f"'n' must be 1, a reply for each call, got {body['n']!r}")
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise ValueError(f"expected 'stream_options' to be an object, got {options!r}")
    return body


def client_name(key: str) -> str:
    """Returns the key that a client sends as its name where that can be no secret, else a hash."""
    plain = len(key) <= LONGEST_NAME and key.isascii() and key.isprintable()
    if plain and not key.startswith("sk-") and key not in os.environ.values():
        return key
    return f"sha256:{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:16]}"


def worst_case(body: Mapping[str, Any], size: int, model: Model) -> dict[str, float]:
    """Returns what a request of so many bytes may cost, by unit; infinite where nothing bounds it.

    A token is at least one byte of text, and neither prompt nor reply exceeds the context window.
    """
    whole = math.inf if model.context is None else float(model.context)
    messages = body.get("messages")
    messages = messages if isinstance(messages, list) else []
    plain = all(isinstance(m, dict) and _is_text(m.get("content")) for m in messages)
    prompt = min(whole, size + _EXTRA * (1 + len(messages))) if plain else whole
    stated = body.get("max_completion_tokens") or body.get("max_tokens")
    if not isinstance(stated, int) or isinstance(stated, bool) or stated <= 0:
        stated = whole
    return cost_of_tokens((prompt, 0.0, min(whole, stated)), model)


def _is_text(content: object) -> bool:
    """Whether a message is nothing but text, so that its bytes bound its tokens."""
    if isinstance(content, list):
        return all(isinstance(part, dict) and part.get("type") == "text" for part in content)
    return content is None or isinstance(content, str)
