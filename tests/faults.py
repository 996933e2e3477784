"""An endpoint on raw sockets that answers wrongly, each reply holding the text that was asked."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

OK = b"HTTP/1.1 200 OK\r\n"
LATER = 0.3  # seconds


def completion(text: str) -> bytes:
    """The body of a reply."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    choice["finish_reason"] = "stop"
    return json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}).encode()


def whole(text: str, *headers: bytes) -> bytes:
    """A correct answer."""
    body = completion(text)
    lines = [b"Content-Length: %d" % len(body), *headers]
    return OK + b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(text: str, trailers: bytes = b"", size: str = "{:x}") -> bytes:
    body = completion(text)
    sized = size.format(len(body)).encode()
    return (
        OK + b"Transfer-Encoding: chunked\r\n\r\n"
        + sized + b"\r\n" + body + b"\r\n0\r\n" + trailers + b"\r\n"
    )  # fmt: skip


def with_head(text: str, *lines: bytes) -> bytes:
    return OK + b"\r\n".join(lines) + b"\r\n\r\n" + completion(text)


def size_of(text: str) -> int:
    return len(completion(text))


Send = Callable[[bytes], None]
Fault = Callable[[str, Send], None]
"""Answers one request, whose text is given; the connection is closed if it raises OSError."""


def at_once(answer: Callable[[str], bytes]) -> Fault:
    return lambda text, send: send(answer(text))


def later(first: bytes) -> Fault:
    def answer(text: str, send: Send) -> None:
        send(first)
        time.sleep(LATER)
        send(whole(text))

    return answer


def second_late(text: str, send: Send) -> None:
    send(whole(text))
    time.sleep(0.05)
    send(whole("nobody asked"))


def cut(text: str, send: Send) -> None:
    send(whole(text)[:-9])
    raise OSError


def until_the_end(text: str, send: Send) -> None:
    send(with_head(text, b"Connection: close"))
    raise OSError


def drip(data: Callable[[str], bytes]) -> Fault:
    def answer(text: str, send: Send) -> None:
        for byte in data(text):
            send(bytes([byte]))
            time.sleep(0.5)

    return answer


def drip_of_body(text: str, send: Send) -> None:
    send(whole(text)[:-20])
    drip(lambda t: b" " * 20)(text, send)


def silent(text: str, send: Send) -> None:
    time.sleep(60)


RIGHT: dict[str, Fault] = {
    "100 before": at_once(lambda t: b"HTTP/1.1 100 Continue\r\n\r\n" + whole(t)),
    "two 100 before": at_once(lambda t: 2 * b"HTTP/1.1 100 Continue\r\n\r\n" + whole(t)),
    "102 before": at_once(lambda t: b"HTTP/1.1 102 Processing\r\n\r\n" + whole(t)),
    "103 before": at_once(lambda t: b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + whole(t)),
    "100 long before": later(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "102 long before": later(b"HTTP/1.1 102 Processing\r\n\r\n"),
    "103 long before": later(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "102 and 103 long before": later(
        b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"
    ),
    "trailers": at_once(lambda t: chunked(t, b"X: y\r\nZ: w\r\n")),
    "extensions of a chunk": at_once(lambda t: chunked(t, size="{:x};a=b")),
    "until the connection ends": until_the_end,
}
"""Answers that are right, however odd."""

WRONG: dict[str, Fault] = {
    "101 unasked": at_once(lambda t: b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
    "101 unasked, the answer later": later(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
    "length too short": at_once(lambda t: with_head(t, b"Content-Length: %d" % (size_of(t) - 9))),
    "two lengths": at_once(
        lambda t: with_head(t, b"Content-Length: %d" % size_of(t), b"Content-Length: 9")
    ),
    "two lengths in one line": at_once(
        lambda t: with_head(t, b"Content-Length: %d, 9" % size_of(t))
    ),
    "a length and chunks": at_once(
        lambda t: chunked(t).replace(b"\r\n\r\n", b"\r\nContent-Length: 9\r\n\r\n", 1)
    ),
    "a length with a sign": at_once(lambda t: with_head(t, b"Content-Length: +%d" % size_of(t))),
    "a length below 0": at_once(lambda t: with_head(t, b"Content-Length: -1")),
    "a chunk's size with 0x": at_once(lambda t: chunked(t, size="0x{:x}")),
    "a header without a colon": at_once(
        lambda t: with_head(t, b"Content-Length: %d" % size_of(t), b"what")
    ),
    "closed midway": cut,
    "1 MB of headers": at_once(lambda t: OK + b"X: " + b"y" * (1 << 20) + b"\r\n\r\n"),
    "20,000 headers": at_once(lambda t: OK + 20_000 * b"X: y\r\n" + b"\r\n"),
    "no HTTP": at_once(lambda t: b"what?\r\n\r\n"),
}
"""Answers that are none."""

ENDLESS: dict[str, Fault] = {
    "silence": silent,
    "a drip of the head": drip(whole),
    "a drip of the body": drip_of_body,
}
"""Answers that do not end within a deadline of a few seconds."""


@dataclass
class RawServer:
    """Answers the first request of each text in `faulty` by a fault, all others rightly."""

    fault: Fault
    faulty: set[str]
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def serve(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            file = connection.makefile("rb")
            while True:
                length = 0
                while line := file.readline().strip().lower():
                    if line.startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                if not length:
                    return
                text = json.loads(file.read(length))["messages"][-1]["content"]
                self.asked.append(text)
                if text in self.faulty:
                    self.faulty.remove(text)
                    self.fault(text, connection.sendall)
                else:
                    connection.sendall(whole(text))


@contextlib.contextmanager
def faulty(fault: Fault, *texts: str) -> Iterator[RawServer]:
    """A server that answers some texts wrongly the first time."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        server = RawServer(fault, set(texts), url=url)
        threading.Thread(target=server.serve, args=(listening,), daemon=True).start()
        yield server
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def deaf() -> Iterator[str]:
    """The address of a port whose queue of connections is full."""
    with contextlib.ExitStack() as opened:
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@contextlib.contextmanager
def talking(*pieces: bytes, reads: bool = True) -> Iterator[str]:
    """The address of a server that says these things to everybody, every .5 s."""

    def talk(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.5)
            if reads:
                connection.recv(1 << 16)
            time.sleep(60)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        if not reads:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


PHASES = (
    *("looking up", "connecting", "TLS", "a silent proxy", "a dripping proxy", "sending"),
    *ENDLESS,
)
"""Phases of a request in which an endpoint can be slow for ever."""


def text_of(phase: str) -> str:
    """What to ask an endpoint that is stuck in a phase: of sending, more than is buffered."""
    return "x" * (3 << 20) if phase == "sending" else "child 0"


@contextlib.contextmanager
def stuck_in(phase: str) -> Iterator[str]:
    """The address of an endpoint that is slow for ever in some phase of a request."""
    with contextlib.ExitStack() as opened:
        opened.enter_context(mock.patch.dict(os.environ, {"OPENAI_API_KEY": "k"}))
        if phase in ENDLESS:
            yield opened.enter_context(faulty(ENDLESS[phase], "child 0")).url
        elif phase == "looking up":
            lookup = socket.getaddrinfo

            def slow(host: Any, *more: Any, **named: Any) -> Any:
                if host == "slow.internal":
                    time.sleep(3.0)
                return lookup("127.0.0.1", *more, **named)

            opened.enter_context(mock.patch.object(socket, "getaddrinfo", slow))
            yield "http://slow.internal:9/v1"
        elif phase == "connecting":
            yield f"http://{opened.enter_context(deaf())}/v1"
        elif phase == "sending":
            yield f"http://{opened.enter_context(talking(reads=False))}/v1"
        elif phase == "TLS":
            yield f"https://{opened.enter_context(talking())}/v1"
        else:
            drip = [bytes([byte]) for byte in b"HTTP/1.1 200 Connected"]
            proxy = opened.enter_context(talking(*(drip if "dripping" in phase else ())))
            opened.enter_context(mock.patch.dict(os.environ, {"HTTPS_PROXY": f"http://{proxy}"}))
            yield "https://far.internal/v1"
