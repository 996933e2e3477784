"""A small HTTP/1.1 server, by aiohttp: the offline model, the gate, judges and live pages.

    class Clock(Server):
        async def respond(self, request: HttpRequest) -> Response:
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
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Self, TypeVar

from evo.models import background
from evo.models.responses import HttpRequest, Response
from evo.plugins import MistakenType

P = ParamSpec("P")
T = TypeVar("T")

MOST_THREADS = 64  # of one server, for what must not run on the event loop


class HttpServer(contextlib.AbstractContextManager["HttpServer"], ABC):
    """Answers requests at `address` while the context lasts, then cuts clients off.

    Args:
        host: Address to listen at; all but this machine's own are open to the network.
        port: TCP port; 0 picks one that is free.

    Raises:
        ValueError: The port is none.
        OSError: On entering: it cannot listen there.
    """

    def __init__(self, host: str, port: int) -> None:
        if not isinstance(host, str):
            raise MistakenType(f"host: expected the name of a host or its address, got {host!r}")
        if isinstance(port, bool) or not isinstance(port, int):
            raise MistakenType(f"port: expected a whole number, got {port!r}")
        if not 0 <= port <= 65535:
            raise ValueError(f"port must be from 0 (any free one) to 65535, got {port!r}")
        self._where = (host, port)

    @abstractmethod
    async def respond(self, request: HttpRequest) -> Response | None:
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
            from evo.models.connections import Connections

            connections = Connections(self.respond)
            opened.callback(lambda: background.wait(connections.close()))
            background.wait(connections.accept(self._listening))
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()
