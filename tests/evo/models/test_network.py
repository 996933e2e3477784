"""The way to an endpoint over the network: TLS, proxies, and what of a request was sent."""

from __future__ import annotations

import base64
import contextlib
import gzip
import socket
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from endpoints import Answer, Endpoint

from evo.models import background
from evo.models.answer import Exchange, NotSent, TooMuch
from evo.models.network import NetworkSession

BODY = {"Content-Type": "application/json", "Accept-Encoding": "identity"}


@contextlib.asynccontextmanager
async def session(url: str) -> AsyncIterator[NetworkSession]:
    made = NetworkSession(url)
    try:
        yield made
    finally:
        await made.close()


def ask(url: str, times: int = 1) -> list[Exchange]:
    """The answers to a request, sent one after the other."""

    async def all_of_them() -> list[Exchange]:
        async with session(url) as way:
            where = f"{url}/x?y=1"
            return [await way.exchange("POST", where, BODY, b"{}") for _ in range(times)]

    return background.wait(all_of_them())


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


def test_tls_goes_through_the_tunnel_of_a_proxy(
    tls_endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls_endpoint.script = lambda number: Answer(body={"number": number})
    with tunnel(tls_endpoint.url) as (proxy, heads):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:pass%20word@{proxy}")
        contents = [answer.content for answer in ask(tls_endpoint.url, 2)]
        assert contents == [b'{"number": 0}', b'{"number": 1}']
        assert len(heads) == 1
        assert heads[0].startswith(b"CONNECT 127.0.0.1:")
        assert all("proxy-authorization" not in each for each in tls_endpoint.headers)
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy}")
        with pytest.raises(NotSent, match="407"):
            ask(tls_endpoint.url)


def test_a_certificate_that_nobody_vouches_for_is_refused(
    tls_endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(NotSent, match="CERTI"):
        ask(tls_endpoint.url)
    assert not tls_endpoint.requests


def test_a_plain_proxy_gets_its_login_and_other_kinds_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Endpoint() as proxy:
        proxy.script = lambda _: Answer(body={})
        address = proxy.url.removeprefix("http://").removesuffix("/v1")
        monkeypatch.setenv("HTTP_PROXY", f"me:secret@{address}")
        (answer,) = ask("http://far.internal:81/v1")
    assert answer.status == 200
    login = f"Basic {base64.b64encode(b'me:secret').decode()}"
    assert proxy.headers[0]["proxy-authorization"] == login
    assert proxy.headers[0]["host"] == "far.internal:81"
    monkeypatch.setenv("HTTP_PROXY", "socks5://localhost:1080")
    with pytest.raises(NotSent, match=r"expected an http:// proxy .* got socks5://"):
        ask("http://far.internal/v1")


def test_a_connection_that_cannot_be_had_is_no_request_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    for each in (url, "http://nowhere.invalid/v1", "http://" + "a" * 70 + ".example/v1"):
        with pytest.raises(NotSent):
            ask(each)


@pytest.mark.parametrize("packed", [False, True])
def test_no_more_is_read_than_the_cap(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVO_MAX_REPLY_MB", "1")
    headers = {"Content-Encoding": "gzip"} if packed else {}
    fits, flood = b"x" * (1 << 20), b"x" * (40 << 20)
    with Endpoint() as endpoint:
        for content in (fits, flood):
            body = gzip.compress(content) if packed else content
            endpoint.script = lambda _, body=body: Answer(body=body, headers=headers)
            if content is flood:
                with pytest.raises(TooMuch, match="EVO_MAX_REPLY_MB"):
                    ask(endpoint.url)
            else:
                assert ask(endpoint.url)[0].content == fits
