"""A small HTTP/1.1 server, by aiohttp: the offline model, the gate, judges and live pages.

    class Clock(Server):
        async def respond(self, request: Request) -> Response:
            return Response(200, time.ctime().encode(), kind="text/plain")

    with Clock("127.0.0.1", 0) as clock:
        print(clock.address)                      # such as http://127.0.0.1:40123

`respond` runs on the one event loop (`evo.models.background`), together with all calls to
endpoints: it must not block. What takes long goes to threads, `await self.in_thread(work, ...)`;
what keeps coming (server-sent events) is `Response(200, b"", kind=EVENTS, stream=...)` with an
asynchronous generator. When a client leaves, its `respond` or its stream is cancelled.

Whatever clients do is bounded: head and body of a request, the time that they take to send it and
to read the answer, and how many connections there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import msgspec

from evo.models import background

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.web_protocol import RequestHandler

P = ParamSpec("P")
T = TypeVar("T")

LARGEST_BODY = 64 << 20
REQUEST_SECONDS = 60.0  # for a request to arrive, and that a connection waits for the next one
SEND_SECONDS = 60.0  # that a client may take to read what is ready for it
_AT_ONCE = 32 << 10  # bytes that are written without waiting: half of what asyncio buffers
MOST_CONNECTIONS = 4096
MOST_THREADS = 64  # of one server, for what must not run on the event loop
JSON = "application/json"
EVENTS = "text/event-stream"

_silent = logging.getLogger("evo.serving")  # of requests that are none
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


@dataclass(frozen=True)
class Request:
    """A client's request, which has arrived as a whole."""

    method: str
    path: str  # without the query, percent-decoded
    headers: Mapping[str, str]  # names in any case
    body: bytes
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """An HTTP answer."""

    status: int
    content: bytes
    kind: str = JSON
    usage: dict[str, object] | None = None  # of a completion, like the next
    seed: int | None = None
    retry_after: float | None = None  # seconds after which the client may try again
    final: bool = False  # trying again is of no use
    stream: AsyncGenerator[bytes] | None = None  # what follows; closed once nobody reads it
    headers: Mapping[str, str] = field(default_factory=dict)  # further ones

    def all_headers(self) -> dict[str, str]:
        """Returns all headers but those of the connection."""
        headers = {"Content-Type": self.kind, "Server": "evo", **self.headers}
        if self.retry_after is not None:
            headers["Retry-After"] = str(math.ceil(self.retry_after))
            headers["retry-after-ms"] = str(math.ceil(1000 * self.retry_after))
        if self.final:
            headers["x-should-retry"] = "false"
        return headers


def error_response(
    status: int, message: str, code: str, *, retry_after: float | None = None, final: bool = False
) -> Response:
    """Returns an error as OpenAI's endpoints send it."""
    error = {"message": message, "type": code, "param": None, "code": code}
    content = msgspec.json.encode({"error": error})
    return Response(status, content, retry_after=retry_after, final=final)


def list_models(names: Iterable[str], owner: str) -> Response:
    """Returns a list of models as OpenAI's endpoints send it."""
    data = [{"id": n, "object": "model", "created": 0, "owned_by": owner} for n in names]
    return Response(200, msgspec.json.encode({"object": "list", "data": data}))


class Server(contextlib.AbstractContextManager["Server"], ABC):
    """Answers requests at `address` while the context lasts, then cuts clients off.

    Args:
        host: Address to listen at; all but this machine's own are open to the network.
        port: TCP port; 0 picks one that is free.

    Raises:
        ValueError: The port is none.
        OSError: On entering: it cannot listen there.
    """

    def __init__(self, host: str, port: int) -> None:
        if not 0 <= port <= 65535:
            raise ValueError(f"port must be from 0 (any free one) to 65535, got {port!r}")
        self._where = (host, port)

    @abstractmethod
    async def respond(self, request: Request) -> Response | None:
        """Answers a request; None closes the connection. It is cancelled if the client leaves."""

    def begin(self, opened: contextlib.ExitStack) -> None:
        """Opens what answers need, before anybody can ask; it is closed after the last answer."""

    @property
    def address(self) -> str:
        """`http://HOST:PORT`, once the server is entered."""
        host, port = self._listening.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def url(self) -> str:
        """Base URL for an openai client, once the server is entered."""
        return f"{self.address}/v1"

    async def in_thread(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Returns what a function returns that would hold up the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*arguments, **named))

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            self.begin(opened)
            self._threads = opened.enter_context(ThreadPoolExecutor(MOST_THREADS, "evo-serving"))
            host, port = self._where
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                self._listening = socket.create_server((host, port), family=family, backlog=1024)
            except OSError as error:
                raise OSError(
                    f"cannot listen on {host}:{port}: {error.strerror or error}; another port may "
                    "be free, 0 picks one that is"
                ) from error
            opened.callback(self._listening.close)
            connections = _Connections(self.respond)
            opened.callback(lambda: background.wait(connections.close()))
            background.wait(connections.accept(self._listening))
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


class _Connections:
    """The connections of a server, on the event loop."""

    def __init__(self, respond: Callable[[Request], Awaitable[Response | None]]) -> None:
        self._respond = respond
        self._new: set[RequestHandler] = set()  # those that have sent no whole head yet
        self._under_way: set[asyncio.Task[Any]] = set()
        self._accepting: asyncio.Server | None = None

    async def accept(self, listening: socket.socket) -> None:
        from aiohttp import web

        self._web = web.Server(
            self._handle,
            handler_cancellation=True,
            keepalive_timeout=REQUEST_SECONDS,
            access_log=None,
            logger=_silent,
        )
        loop = asyncio.get_running_loop()
        self._accepting = await loop.create_server(self._connect, sock=listening)

    async def close(self) -> None:
        """Cuts off every client, and waits until what it asked for has ended."""
        if self._accepting is None:
            return
        self._accepting.close()
        for connection in self._web.connections:
            if connection.transport is not None:
                connection.transport.abort()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._web.shutdown(0)

    def _connect(self) -> RequestHandler:
        """Returns what reads a new connection, which is cut off if nothing comes over it."""
        connection = self._web()
        self._new.add(connection)
        seconds = REQUEST_SECONDS if len(self._new) < MOST_CONNECTIONS else 0.0
        asyncio.get_running_loop().call_later(seconds, self._cut_off, connection)
        return connection

    def _cut_off(self, connection: RequestHandler) -> None:
        if connection in self._new:
            self._new.discard(connection)
            if connection.transport is not None:
                connection.transport.abort()

    async def _handle(self, asked: web.BaseRequest) -> web.StreamResponse:
        """Answers a request, whatever it is."""
        task = asyncio.current_task()
        assert task is not None
        self._new.discard(asked.protocol)
        self._under_way.add(task)
        try:
            response = await self._answer(asked)
            if response is not None:
                return await self._send(asked, response)
        except TimeoutError:  # the client does not read
            pass
        except ConnectionError:  # it went away, or the answer broke off
            pass
        finally:
            self._under_way.discard(task)
        return _hang_up(asked)

    async def _answer(self, asked: web.BaseRequest) -> Response | None:
        if asked.method not in ("GET", "POST", "HEAD"):
            return error_response(501, f"expected GET or POST, got {asked.method!r:.80}", "http")
        if asked.headers.get("expect", "").lower() == "100-continue":
            await asked.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            asked.writer.output_size = 0
        try:
            async with asyncio.timeout(None if asked.content.is_eof() else REQUEST_SECONDS):
                body = await _body(asked)
        except TimeoutError:
            words = f"the request was not whole after {REQUEST_SECONDS:g} s"
            return error_response(408, words, "http")
        if body is None:
            words = f"the body may have {LARGEST_BODY} bytes"
            return error_response(413, words, "http")
        request = Request(asked.method, asked.path, asked.headers, body, asked.query)
        try:
            return await self._respond(request)
        except (OSError, TimeoutError):
            raise ConnectionResetError from None
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return error_response(500, "an error of this server, printed where it runs", "server")

    async def _send(self, asked: web.BaseRequest, response: Response) -> web.StreamResponse:
        from aiohttp import web

        headers, stream = response.all_headers(), response.stream
        if stream is None:
            answer = web.Response(body=response.content, status=response.status, headers=headers)
            if response.status in (408, 413):
                answer.force_close()
            async with asyncio.timeout(SEND_SECONDS if _may_wait(asked, response) else None):
                await answer.prepare(asked)
                await answer.write_eof()
            return answer
        async with contextlib.aclosing(stream):
            open_answer = web.StreamResponse(status=response.status, headers=headers)
            await open_answer.prepare(asked)
            async for piece in stream:
                async with asyncio.timeout(SEND_SECONDS):
                    await open_answer.write(piece)
            await open_answer.write_eof()
        return open_answer


async def _body(asked: web.BaseRequest) -> bytes | None:
    """Returns the body of a request; None if it is too large."""
    if (asked.content_length or 0) > LARGEST_BODY:
        return None
    left, pieces = LARGEST_BODY, []
    while piece := await asked.content.readany():
        left -= len(piece)
        if left < 0:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _may_wait(asked: web.BaseRequest, response: Response) -> bool:
    """Whether an answer may have to wait for its client to read, so that it needs a timer."""
    if asked.transport is None:
        return False
    return asked.transport.get_write_buffer_size() + len(response.content) > _AT_ONCE


def _hang_up(asked: web.BaseRequest) -> web.StreamResponse:
    """Closes a connection without an answer, or in the middle of one."""
    from aiohttp import web

    if asked.transport is not None:
        asked.transport.abort()
    return web.Response()
