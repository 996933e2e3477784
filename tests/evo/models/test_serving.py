"""A server of ours: where it listens, what it opens and closes, and work beside its event loop."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import threading
from pathlib import Path

import pytest
from endpoints import connected

from evo.models import background
from evo.models.responses import HttpRequest, Response
from evo.models.serving import HttpServer
from evo.plugins import MistakenType


class Witness(HttpServer):
    """Tells on which thread it answers and works, and notes what it opens and closes."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__(host, port)
        self.notes = list[str]()

    def begin(self, opened: contextlib.ExitStack) -> None:
        self.notes.append("opened")
        opened.callback(self.notes.append, "closed")

    async def respond(self, request: HttpRequest) -> Response | None:
        assert "closed" not in self.notes
        self.notes.append(request.path)
        if request.path == "/none":
            return None

        def work(first: int, *, second: int) -> list[object]:
            if request.path == "/fails":
                raise KeyError("in the thread")
            return [threading.current_thread().name, first - second]

        try:
            worked = await self.in_thread(work, 5, second=3)
        except KeyError as error:
            worked = [str(error)]
        content = json.dumps([threading.current_thread().name, *worked])
        return Response(200, content.encode())


def fetch(server: HttpServer, path: str) -> list[object]:
    with connected(server.url) as connection:
        connection.request("GET", path)
        found: list[object] = json.loads(connection.getresponse().read())
        return found


@pytest.mark.parametrize("port", [-1, 65536])
def test_what_is_no_port_is_said_before_anything_is_opened(port: int) -> None:
    with pytest.raises(
        ValueError, match=rf"port must be from 0 \(any free one\) to 65535, got {port}"
    ):
        Witness(port=port)
    for wrong in ("8000", 3.5, None, True):
        with pytest.raises(MistakenType, match=rf"port: expected a whole number, got {wrong!r}"):
            Witness(port=wrong)  # type: ignore[arg-type]
    with pytest.raises(
        MistakenType, match=r"host: expected the name of a host or its address, got 5"
    ):
        Witness(5)  # type: ignore[arg-type]
    for least_and_most in (0, 65535):
        Witness(port=least_and_most)


def test_work_is_done_beside_the_event_loop_with_all_its_arguments() -> None:
    with Witness() as server:
        here, there, result = fetch(server, "/")
        assert here == "evo-event-loop"
        assert str(there).startswith("evo-serving")
        assert result == 2
        assert fetch(server, "/fails") == ["evo-event-loop", "'in the thread'"]
        with connected(server.url) as connection:
            connection.request("GET", "/none")
            with pytest.raises(ConnectionError):  # closed without an answer
                connection.getresponse()


def test_what_answers_need_is_open_from_the_first_to_the_last_of_them() -> None:
    server = Witness()
    for _ in range(2):
        with server:
            fetch(server, "/")
            fetch(server, "/")
        assert server.notes == ["opened", "/", "/", "closed"]
        server.notes.clear()


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("::1", "[::1]")]
)
def test_the_address_is_one_that_a_client_can_use(host: str, shown: str) -> None:
    if host == "::1":
        try:
            socket.create_server((host, 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("this machine has no IPv6")
    with Witness(host) as server:
        assert server.address.startswith(f"http://{shown}:")
        assert server.url == f"{server.address}/v1"
        assert fetch(server, "/")[2] == 2


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd" if Path("/proc/self/fd").is_dir() else "/dev/fd"))


def test_a_port_that_is_taken_is_said_and_leaves_nothing_open() -> None:
    background.event_loop()  # which stays
    gc.collect()
    threads, files = threading.active_count(), descriptors()
    with Witness() as server:
        port = int(server.address.rpartition(":")[2])
        other = Witness(port=port)
        words = rf"cannot listen on 127\.0\.0\.1:{port}: Address already in use.* 0 picks one"
        with pytest.raises(OSError, match=words), other:
            pass
        assert other.notes == ["opened", "closed"]
        fetch(server, "/")  # the first one still answers
    assert threading.active_count() <= threads
    assert descriptors() <= files
