"""Connections of a server, opened and cut off."""

from __future__ import annotations

import contextlib
import gc
import socket

from evo.models.responses import HttpRequest, Response
from evo.models.serving import HttpServer


class Greeting(HttpServer):
    async def respond(self, request: HttpRequest) -> Response:
        return Response(200, b"hello", kind="text/plain")


def test_who_connects_while_a_server_closes_leaves_nothing_open() -> None:
    """A connection that was accepted and not made yet would be lost open, which is a warning."""
    gc.freeze()  # so that a collection looks at what is made here alone
    for _ in range(15):
        with contextlib.ExitStack() as opened, Greeting("127.0.0.1", 0) as server:
            place = server._listening.getsockname()
            for _ in range(20):
                client = opened.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex(place)
        gc.collect()
    gc.unfreeze()
