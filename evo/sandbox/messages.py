"""What driver, fork server, programs and scorer say to each other: typed, length-capped frames."""

from __future__ import annotations

import socket
import struct
from typing import Any, Literal

import msgspec

from evo.records import Evaluation, Limits, TaskRecord

_LENGTH = struct.Struct("<Q")


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all messages."""


class Setup(Message, frozen=True, kw_only=True):
    """Driver to server, once.

    Attributes:
        packages: Folders of installed packages.
        without: Layers to leave out.
        memory_mb: What the processes of a program may have together, or one alone if that is more.
    """

    packages: tuple[str, ...]
    without: tuple[str, ...]
    memory_mb: int


class Ready(Message, frozen=True, kw_only=True):
    """Server to driver, once.

    Attributes:
        protections: Names of the active layers.
        missing: Why other layers are not active.
        folder: A temporary folder that the driver must remove at the end, or an empty text.
    """

    protections: tuple[str, ...]
    missing: dict[str, str]
    folder: str


class Request(Message, frozen=True, kw_only=True):
    """Driver to server: evaluate a program; the task is left out if it is that of before."""

    task: TaskRecord | None
    program: str
    limits: Limits
    keep_value: bool
    key: bytes


class Reply(Message, frozen=True, kw_only=True):
    """Server to driver: the evaluation, or what went wrong in the server itself."""

    evaluation: Evaluation | None = None
    fault: str = ""


class Returned(Message, frozen=True, kw_only=True):
    """Program to server, and so possibly forged: how the program ended, in its own words.

    Attributes:
        kind: `value` has a `value`, `metrics` has `metrics`, all others have a `text`.
        value: A returned value, encoded by `evo.sandbox.values`.
        metrics: Numbers that an evaluator returned that ran together with the program.
        text: Why there is nothing better, or a warning that goes with the metrics.
    """

    kind: Literal["value", "metrics", "invalid", "error", "timeout"]
    value: bytes = b""
    metrics: dict[str, float] = {}
    text: str = ""


class Score(Message, frozen=True, kw_only=True):
    """Server to scorer: score a value, with all randomness keyed by `key`."""

    value: bytes
    key: bytes
    keep_value: bool


class Scored(Message, frozen=True, kw_only=True):
    """Scorer to server."""

    status: Literal["ok", "invalid", "error"]
    fitness: float | None = None
    metrics: dict[str, float] = {}
    error: str | None = None
    value: Any = None


class ClosedError(ConnectionError):
    """The other end of a channel is gone."""


def send(channel: socket.socket, message: Message) -> None:
    """Write one message."""
    data = msgspec.msgpack.encode(message)
    try:
        channel.sendall(_LENGTH.pack(len(data)) + data)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise ClosedError(str(error)) from error


def receive(channel: socket.socket) -> bytes:
    """Read the bytes of one message; `ClosedError` where the other end is gone."""
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    return bytes(_exactly(channel, length))


def _exactly(channel: socket.socket, count: int) -> bytearray:
    data = bytearray(count)
    view = memoryview(data)
    while view:
        try:
            got = channel.recv_into(view)
        except ConnectionResetError as error:
            raise ClosedError(str(error)) from error
        if not got:
            raise ClosedError("the other end closed the channel")
        view = view[got:]
    return data


def short(text: str, most: int = 4000) -> str:
    """The same text fit for UTF-8, with its middle left out beyond so many characters."""
    if len(text) > most:
        text = f"{text[: most // 2]}\n...\n{text[-most // 2 :]}"
    return printable(text)


def printable(text: str) -> str:
    """The same text fit for UTF-8: lone surrogates escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
