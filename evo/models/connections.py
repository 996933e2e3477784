"""The connections of a server, by aiohttp: what clients send, bounded, and what they get."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import socket
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from evo.models.responses import HttpRequest, Response, error_response

LARGEST_BODY = 64 << 20
REQUEST_SECONDS = 60.0  # for a request to arrive, and that a connection waits for the next one
SEND_SECONDS = 60.0  # that a client may take to read what is ready for it
MOST_CONNECTIONS = 4096
_AT_ONCE = 32 << 10  # bytes that are written without waiting: half of what asyncio buffers

_silent = logging.getLogger("evo.serving")  # of requests that are none
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


class _Handler(web.RequestHandler):
    """Reads one connection; what is no HTTP gets an error in the form of all others."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answers a request that cannot be read, and closes the connection."""
        words = " ".join((message or "").split()) or "it cannot be read"
        answer = _to_aiohttp(
            error_response(status, f"this is no HTTP request: {words:.500}", "http")
        )
        answer.force_close()
        return answer


class Connections:
    """The connections of a server, on the event loop.

    Args:
        respond: Answers a request; None closes its connection. Cancelled if the client leaves.
    """

    def __init__(self, respond: Callable[[HttpRequest], Awaitable[Response | None]]) -> None:
        self._respond = respond
        self._new: set[web.RequestHandler] = set()  # those that have sent no whole head yet
        self._under_way: set[asyncio.Task[Any]] = set()
        self._accepting: asyncio.Server | None = None

    async def accept(self, listening: socket.socket) -> None:
        """Begins to accept connections."""
        loop = asyncio.get_running_loop()
        self._web = web.Server(
            self._handle,
            handler_cancellation=True,
            request_factory=functools.partial(
                web.BaseRequest, loop=loop, client_max_size=LARGEST_BODY
            ),
        )
        self._accepting = await loop.create_server(self._connect, sock=listening)

    async def close(self) -> None:
        """Cuts off every client, and waits until what it asked for has ended."""
        if self._accepting is None:
            return
        # What was accepted, but is no connection yet when asyncio's server closes, is lost open.
        # So first nothing is accepted any more, and in two turns what was becomes a connection.
        for listening in self._accepting.sockets:
            asyncio.get_running_loop().remove_reader(listening)
        for _ in range(2):
            await asyncio.sleep(0)
        self._accepting.close()
        for connection in self._web.connections:
            if connection.transport is not None:
                connection.transport.abort()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._web.shutdown(0)

    def _connect(self) -> web.RequestHandler:
        """Returns what reads a new connection, which is cut off if nothing comes over it."""
        loop = asyncio.get_running_loop()
        connection = _Handler(
            self._web,
            loop=loop,
            keepalive_timeout=REQUEST_SECONDS,
            access_log=None,  # type: ignore[arg-type]
            logger=_silent,
        )
        self._new.add(connection)
        seconds = REQUEST_SECONDS if len(self._new) < MOST_CONNECTIONS else 0.0
        loop.call_later(seconds, self._cut_off, connection)
        return connection

    def _cut_off(self, connection: web.RequestHandler) -> None:
        if connection in self._new:
            self._new.discard(connection)
            if connection.transport is not None:
                connection.transport.abort()

    async def _handle(self, asked: web.BaseRequest) -> web.StreamResponse:
        """Answers a request, whatever it is."""
        self._new.discard(asked.protocol)
        self._under_way.add(asked.task)
        try:
            response = await self._answer(asked)
            if response is not None:
                return await _send(asked, response)
        except (TimeoutError, ConnectionError):  # the client does not read, or went away
            pass
        finally:
            self._under_way.discard(asked.task)
        return _hang_up(asked)

    async def _answer(self, asked: web.BaseRequest) -> Response | None:
        if asked.method not in ("GET", "POST", "HEAD"):
            return error_response(501, f"expected GET or POST, got {asked.method!r:.80}", "http")
        if asked.headers.get("expect", "").lower() == "100-continue":
            await asked.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            asked.writer.output_size = 0
        try:
            if (asked.content_length or 0) > LARGEST_BODY:
                raise web.HTTPRequestEntityTooLarge(LARGEST_BODY)
            if asked.content.is_eof():  # it came with the head, as most do
                body = await asked.read()
            else:
                async with asyncio.timeout(REQUEST_SECONDS):
                    body = await asked.read()
        except TimeoutError:
            words = f"the request was not whole after {REQUEST_SECONDS:g} s"
            return error_response(408, words, "http")
        except web.HTTPRequestEntityTooLarge:
            return error_response(413, f"the body may have {LARGEST_BODY} bytes", "http")
        request = HttpRequest(asked.method, asked.path, asked.headers, body)
        try:
            return await self._respond(request)
        except OSError:
            raise ConnectionResetError from None
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return error_response(500, "an error of this server, printed where it runs", "server")


async def _send(asked: web.BaseRequest, response: Response) -> web.StreamResponse:
    """Sends an answer, which a client has to read in time."""
    answer = _to_aiohttp(response)
    if response.stream is None:
        if _fits(asked, response):  # the usual case needs no timer
            await answer.prepare(asked)
            await answer.write_eof()
        else:
            async with asyncio.timeout(SEND_SECONDS):
                await answer.prepare(asked)
                await answer.write_eof()
        return answer
    async with contextlib.aclosing(response.stream) as stream:
        await answer.prepare(asked)
        async for piece in stream:
            async with asyncio.timeout(SEND_SECONDS):
                await answer.write(piece)
        await answer.write_eof()
    return answer


def _to_aiohttp(response: Response) -> web.StreamResponse:
    """Returns an answer as aiohttp sends it."""
    headers = response.all_headers()
    if response.stream is not None:
        return web.StreamResponse(status=response.status, headers=headers)
    answer = web.Response(body=response.content, status=response.status, headers=headers)
    if response.status in (408, 413):
        answer.force_close()
    return answer


def _fits(asked: web.BaseRequest, response: Response) -> bool:
    """Whether an answer goes into the buffer of its connection, so that nothing waits."""
    transport = asked.transport
    if transport is None:
        return True
    return transport.get_write_buffer_size() + len(response.content) <= _AT_ONCE


def _hang_up(asked: web.BaseRequest) -> web.StreamResponse:
    """Closes a connection without an answer, or in the middle of one."""
    if asked.transport is not None:
        asked.transport.abort()
    return web.Response()
