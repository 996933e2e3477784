"""The way to an endpoint over the network, against servers that send the bytes they are given."""

from __future__ import annotations

import base64
import contextlib
import gzip
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx2
import pytest
from endpoints import Answer, Endpoint

from evo.models.flight import Flight
from evo.models.network import NetworkTransport, Transport, open_transport

OK = b"HTTP/1.1 200 OK\r\n"
KEEP = OK + b"keep: 1\r\n"  # after which the server below waits for another request
SIZED = b"Content-Length: 5\r\n\r\nhello"
HELLO = KEEP + SIZED
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
PACKED = gzip.compress(b"hello", mtime=0)


@dataclass
class Scripted:
    """Answers each request with the next of its texts; an empty one closes the connection."""

    texts: list[bytes]
    connections: int = 0
    heads: list[bytes] = field(default_factory=list)
    url: str = ""

    def serve(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                self.connections += 1
                with connection:
                    self.answer(connection)

    def answer(self, connection: socket.socket) -> None:
        while self.texts and (got := connection.recv(1 << 16)):
            self.heads.append(got)
            text = self.texts.pop(0)
            connection.sendall(text)
            if b"keep: 1" not in text:
                return


@contextlib.contextmanager
def scripted(*texts: bytes) -> Iterator[Scripted]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Scripted(list(texts), url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1")
        thread = threading.Thread(target=server.serve, args=(listening,), daemon=True)
        thread.start()
        yield server
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(30)


def ask(way: Transport) -> tuple[int, bytes]:
    """Status and body of the answer to a request."""
    headers = [("host", "x"), ("content-length", "2")]
    with Flight(30), contextlib.closing(way.send("POST", "/v1/x?y=1", headers, b"{}")) as answer:
        return answer.status, answer.read()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (HELLO, True),
        (KEEP + CHUNKED + b"2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nT: 1\r\n\r\n", True),
        (KEEP + b"Content-Encoding: gzip\r\nContent-Length: 25\r\n\r\n" + PACKED, True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + HELLO, True),
        (OK + b"\r\nhello", False),
        (OK + b"Connection: close\r\n" + SIZED, False),
        (b"HTTP/1.0 200 OK\r\nkeep: 1\r\n" + SIZED, False),
    ],
)
def test_bodies_of_every_framing_are_read_and_connections_kept(text: bytes, kept: bool) -> None:
    with scripted(text, HELLO) as server, open_transport(server.url) as way:
        assert [ask(way), ask(way)] == [(200, b"hello")] * 2
        assert server.connections == (1 if kept else 2)
    assert server.heads[0].startswith(b"POST /v1/x?y=1 HTTP/1.1\r\nhost: x\r\n")
    assert server.heads[0].endswith(b"\r\n\r\n{}")  # in one piece with its head


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"what?\r\n\r\n",
        b"HTTP/1.1 2",
        OK + b"Content-Length: 9\r\n\r\nhello",
        OK + CHUNKED + b"5\r\nhel",
        OK + CHUNKED + b"zz\r\nhello",
        OK + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
        OK + b"X: y\r\n" * 200 + b"\r\n",
    ],
)
def test_what_is_no_whole_answer_is_an_error_and_its_connection_is_not_used_again(
    text: bytes,
) -> None:
    with scripted(text, HELLO) as server, NetworkTransport(server.url) as way:
        with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
            ask(way)
        assert ask(way) == (200, b"hello")
        assert server.connections == 2


def test_headers_of_any_bytes_reach_an_http_client() -> None:
    strange = KEEP + b"Retry-After: \x85\xff\r\nX: \xc3\xa9\r\n" + SIZED
    with scripted(strange, HELLO) as server, open_transport(server.url) as way:
        answer = way.handle_request(httpx2.Request("POST", f"{server.url}/x", content=b"{}"))
        with contextlib.closing(answer):
            assert answer.read() == b"hello"
        assert {(b"retry-after", b"\x85\xff"), (b"x", b"\xc3\xa9")} <= {*answer.headers.raw}


@pytest.mark.parametrize("seconds", [1e-9, 1e300])
def test_any_time_may_be_given(seconds: float) -> None:
    with scripted(HELLO) as server, NetworkTransport(server.url) as way, Flight(seconds):
        if seconds < 1:
            with pytest.raises(httpx2.TimeoutException):
                way.send("POST", "/", [], b"")
        else:
            with contextlib.closing(way.send("POST", "/", [], b"")) as answer:
                assert answer.read() == b"hello"


def test_a_connection_that_the_server_closed_meanwhile_is_not_used() -> None:
    with scripted(OK + SIZED, HELLO) as server, NetworkTransport(server.url) as way:
        ask(way)
        (idle,) = way._idle
        while idle.socket is not None and idle.socket.quiet:
            time.sleep(0.01)
        assert ask(way) == (200, b"hello")
        assert server.connections == 2


def test_a_header_that_cannot_be_one_is_not_sent() -> None:
    with (
        scripted(HELLO) as server,
        NetworkTransport(server.url) as way,
        Flight(5),
        pytest.raises(httpx2.RemoteProtocolError, match="Invalid header"),
    ):
        way.send("POST", "/", [("authorization", "bad\r\nX: y")], b"")
    assert not server.heads


def test_a_connection_that_cannot_be_had_is_no_request_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    for each in (url, "http://nowhere.invalid/v1", "http://" + "a" * 70 + ".example/v1"):
        with NetworkTransport(each) as way, pytest.raises(httpx2.ConnectError):
            ask(way)


def test_a_request_that_takes_long_to_send_ends_in_time() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as deaf,
        NetworkTransport(f"http://127.0.0.1:{deaf.getsockname()[1]}/v1") as way,
        Flight(0.3),
        pytest.raises(httpx2.ReadTimeout),
    ):
        way.send("POST", "/", [("content-length", str(64 << 20))], bytes(64 << 20))


@contextlib.contextmanager
def tunnel(to: str) -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that lets those through to an address who have the right login."""
    heads: list[bytes] = []
    host, port = to.split("//")[1].removesuffix("/v1").split(":")

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def serve(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                heads.append(client.recv(1 << 16))
                with client:
                    if base64.b64encode(b"me:pass word") not in heads[-1]:
                        client.sendall(b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n")
                        continue
                    client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                    with socket.create_connection((host, int(port))) as server:
                        back = threading.Thread(target=pass_on, args=(server, client), daemon=True)
                        back.start()
                        pass_on(client, server)
                        back.join(30)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", heads
        listening.shutdown(socket.SHUT_RDWR)


def test_tls_goes_through_the_tunnel_of_a_proxy(tls_endpoint: Endpoint, monkeypatch) -> None:
    tls_endpoint.script = lambda number: Answer(body={"number": number})
    with tunnel(tls_endpoint.url) as (proxy, heads):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:pass%20word@{proxy}")
        with NetworkTransport(tls_endpoint.url) as way:
            assert [ask(way)[1] for _ in range(2)] == [b'{"number": 0}', b'{"number": 1}']
        assert len(heads) == 1
        assert heads[0].startswith(b"CONNECT 127.0.0.1:")
        assert all("proxy-authorization" not in each for each in tls_endpoint.headers)
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy}")
        with (
            NetworkTransport(tls_endpoint.url) as way,
            pytest.raises(httpx2.ConnectError, match="407"),
        ):
            ask(way)


def test_a_certificate_that_nobody_vouches_for_is_refused(
    tls_endpoint: Endpoint, monkeypatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with (
        NetworkTransport(tls_endpoint.url) as way,
        pytest.raises(httpx2.ConnectError, match="CERTI"),
    ):
        ask(way)
    assert not tls_endpoint.requests


def test_a_plain_proxy_gets_its_login_and_other_kinds_are_refused(monkeypatch) -> None:
    with scripted(HELLO) as server:
        proxy = server.url.removeprefix("http://").removesuffix("/v1")
        monkeypatch.setenv("HTTP_PROXY", f"me:secret@{proxy}")
        with NetworkTransport("http://far.internal:81/v1") as way:
            ask(way)
    assert server.heads[0].startswith(b"POST http://far.internal:81/v1/x?y=1 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"me:secret") in server.heads[0]
    monkeypatch.setenv("HTTP_PROXY", "socks5://localhost:1080")
    with (
        NetworkTransport("http://far.internal/v1") as way,
        pytest.raises(httpx2.ProxyError, match=r"expected an http:// proxy .* got socks5://"),
    ):
        ask(way)
