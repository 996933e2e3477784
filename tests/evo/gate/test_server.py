"""The offline model over HTTP: connections, faults, limits, its log and its end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from endpoints import connected
from faulty_server import Fault, FaultyServer
from offline_requests import PARENTS, ask, showing

from evo.gate.server import Latency, OfflineServer
from evo.models import background
from evo.models.offline.endpoint import respond

MESSAGES = showing(PARENTS["mmd"])


def body(seed: int = 1, **fields: Any) -> bytes:
    return msgspec.json.encode(
        {"model": "offline", "messages": MESSAGES, "seed": seed} | fields
    )  # fmt: skip


def post(connection: http.client.HTTPConnection, content: bytes) -> tuple[int, bytes, Any]:
    connection.request("POST", "/v1/chat/completions", content)
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def wait_for_lines(path: Path, count: int) -> list[dict[str, Any]]:
    """The lines of a request log once there are so many."""
    deadline = time.monotonic() + 60
    while len(lines(path)) < count:
        assert time.monotonic() < deadline, f"only {lines(path)}"
        time.sleep(0.01)
    return lines(path)


# --- connections


def test_one_connection_serves_many_requests() -> None:
    ports = set()
    with OfflineServer() as server, connected(server.url) as connection:
        for seed in range(5):
            status, content, headers = post(connection, body(seed))
            assert status == 200
            assert headers["Connection"] != "close"
            text = json.loads(content)["choices"][0]["message"]["content"]
            assert text == ask(MESSAGES, seed=seed).text
            ports.add(connection.sock.getsockname())
        assert post(connection, b"no json")[0] == 400
        connection.request("GET", "/v1/models", b"a body that nobody needs")
        assert connection.getresponse().read().startswith(b'{"object":"list"')
        ports.add(connection.sock.getsockname())
    assert len(ports) == 1


@pytest.mark.parametrize(
    "head",
    [
        b"what?\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n{}",
        b"POST /v1/chat/completions HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
        b"GET /v1/models HTTP/9.9.9\r\n\r\n",
    ],
    ids=["no HTTP", "two lengths", "below 0", "no colon", "long", "many", "version"],
)
def test_a_head_that_is_none_is_answered_as_every_other_error(head: bytes) -> None:
    with OfflineServer() as server:
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as client:
            client.sendall(head)
            answer = http.client.HTTPResponse(client)
            answer.begin()
            assert answer.status == 400
            assert answer.headers["Content-Type"] == "application/json"
            error = json.loads(answer.read())["error"]
            assert error["code"] == "http"
            assert error["message"].startswith("this is no HTTP request: ")
            with contextlib.suppress(ConnectionResetError):  # some of the head was not read
                assert client.recv(1) == b""


def test_in_process_and_over_http_the_bytes_are_equal() -> None:
    fields: list[dict[str, Any]] = [{}, {"stream": True}, {"max_tokens": 30}, {"temperature": 9}]
    bodies = [
        *(body(**each) for each in fields),
        body(model="another"),
        b"",
        "{é}".encode("latin-1"),
    ]
    requests = [("POST", "/v1/chat/completions", content) for content in bodies]
    requests += [("GET", "/v1/models", b""), ("GET", "/other", b""), ("POST", "/other", b"{}")]
    with OfflineServer() as server, connected(server.url) as connection:
        for method, path, content in requests:
            near = respond(method, path, content)
            connection.request(method, path, content)
            far = connection.getresponse()
            assert (near.status, near.content) == (far.status, far.read())
            assert near.kind == far.headers["content-type"]


LONG = b"a" * 70_000


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /v1/models HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /v1/models HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n1", 400),
        (b"POST /v1/models HTTP/1.1\r\nHost: x\r\nContent-Length: \xb2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n", 413),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
            400,
        ),
        (b"PATCH /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 501),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /" + LONG + b" HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + LONG + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20_000 + b"\r\n", 400),
    ],
)
def test_what_is_no_proper_request_is_refused_and_others_are_served(
    request_: bytes, status: int
) -> None:
    with (
        OfflineServer() as server,
        connected(server.url) as connection,
        connected(server.url) as other,
    ):
        connection.connect()
        connection.sock.sendall(request_)
        head = connection.sock.makefile("rb").readline()
        assert head.split()[1] == str(status).encode()
        assert post(other, body())[0] == 200


def test_a_body_that_breaks_off_is_no_request(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    with OfflineServer(request_log=log) as server, connected(server.url) as connection:
        connection.connect()
        connection.sock.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"
        )
        connection.sock.shutdown(socket.SHUT_WR)
        assert connection.sock.recv(100) == b""
    assert not lines(log)


# --- faults


def outcomes(server: OfflineServer, requests: int) -> list[object]:
    """HTTP status of each request, or `drop`."""
    found: list[object] = []
    with connected(server.url) as connection:
        for seed in range(requests):
            try:
                found.append(post(connection, body(seed, max_tokens=1))[0])
            except http.client.RemoteDisconnected:
                connection.close()  # and the next request opens it again
                found.append("drop")
    return found


def test_faults_come_at_their_rates_and_are_seeded_and_a_repeat_draws_anew() -> None:
    faults: dict[Fault, float] = {"rate_limit": 0.2, "server_error": 0.1, "drop": 0.1}
    with FaultyServer(faults) as server:
        first, again = outcomes(server, 250), outcomes(server, 250)
    with FaultyServer(faults) as server:
        assert outcomes(server, 250) == first != again
    count = Counter(first)
    assert count.keys() == {200, 429, 500, "drop"}
    for outcome, rate in ((200, 0.6), (429, 0.2), (500, 0.1), ("drop", 0.1)):
        assert abs(count[outcome] / 250 - rate) < 4 * (rate * (1 - rate) / 250) ** 0.5
    spared = sum(one == 200 for one, before in zip(again, first, strict=True) if before != 200)
    assert spared > 0.3 * (250 - count[200])  # so that a retry can succeed


def test_a_hang_ends_when_the_client_leaves(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    background.event_loop()
    before = threading.active_count()
    with FaultyServer({"hang": 1.0}, log) as server:
        with connected(server.url) as connection:
            connection.timeout = 0.2
            with pytest.raises(TimeoutError):
                post(connection, body(7))
        (line,) = wait_for_lines(log, 1)
        assert (line["status"], line["seed"], line["usage"]) == (0, None, None)
        assert threading.active_count() == before


def test_latency_is_lognormal_and_seeded_by_the_request() -> None:
    latency = Latency(median=2.0, sigma=0.5)
    seconds = np.log([latency.seconds(b"%d" % k) for k in range(2000)])
    assert latency.seconds(b"7") == pytest.approx(np.exp(seconds[7]))
    assert seconds.mean() == pytest.approx(np.log(2.0), abs=0.05)
    assert seconds.std() == pytest.approx(0.5, abs=0.05)


# --- the request log


def test_the_log_holds_a_line_per_post(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    log.write_text('{"earlier": true}\n')
    with OfflineServer(request_log=log) as server, connected(server.url) as connection:
        for content in (body(5), body(6, temperature=7), b"no json", b"[" * 100_000):
            post(connection, content)
            assert "earlier" in lines(log)[0]
        connection.request("GET", "/v1/models")
        connection.getresponse().read()
        found = lines(log)[1:]  # there before the answer is
    assert [line["status"] for line in found] == [200, 400, 400, 400]
    assert [line["seed"] for line in found] == [5, None, None, None]
    assert found[0]["usage"] == ask(MESSAGES, seed=5).usage
    assert found[0]["prompt_hash"] == found[1]["prompt_hash"] != found[2]["prompt_hash"]
    assert found[2]["prompt_hash"] is None
    assert all(0 <= line["received"] <= line["answered"] for line in found)
    assert {line["in_flight"] for line in found} == {1}


# --- start and end


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd" if Path("/proc/self/fd").is_dir() else "/dev/fd"))


def left(threads: int, files: int) -> bool:
    """Whether more threads or files are open than there were."""
    return threading.active_count() > threads or descriptors() > files


def test_the_end_leaves_no_thread_and_no_socket(tmp_path: Path) -> None:
    background.event_loop()  # which stays
    threads, files = threading.active_count(), descriptors()
    with ThreadPoolExecutor(2) as pool:
        server = FaultyServer({"hang": 0.5}, tmp_path / "requests.jsonl")
        with server, connected(server.url) as idle, connected(server.url) as silent:
            idle.request("GET", "/v1/models")
            idle.getresponse().read()
            silent.connect()
            hanging = [pool.submit(outcomes, server, 8)]
            time.sleep(0.3)
            address = server.url
            server.__exit__(None, None, None)  # with a hang of an hour under way
            assert idle.sock.recv(1) == silent.sock.recv(1) == b""
            server.__enter__()  # what is over can begin again, elsewhere
            assert server.url != address
        assert isinstance(hanging[0].exception(timeout=60), OSError)
    assert not left(threads, files)


def test_a_log_that_cannot_be_had_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    background.event_loop()  # which stays
    threads, files = threading.active_count(), descriptors()
    with (
        pytest.raises(FileNotFoundError, match="nowhere"),
        OfflineServer(request_log=tmp_path / "nowhere" / "requests.jsonl"),
    ):
        pass
    assert not left(threads, files)
