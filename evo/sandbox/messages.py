"""What driver, fork server and scorer say to each other: typed, length-framed."""

from __future__ import annotations

import socket
import struct

import msgspec

from evo.logs.records import Limits, TaskRecord

_LENGTH = struct.Struct("<Q")


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Driver to server, once."""

    packages: tuple[str, ...]  # folders of installed ones
    without: tuple[str, ...]  # layers to leave out
    memory_mb: int  # what a program's processes may have together, or one alone if that is more


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """Server to driver, once."""

    protections: tuple[str, ...]  # names of the active layers
    missing: dict[str, str]  # why others are not active
    folder: str  # a temporary one that the driver must remove at the end, or an empty text


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Driver to server, answered by an evaluation; the task is left out if it is that of before."""

    task: TaskRecord | None
    program: str
    limits: Limits
    keep_value: bool
    key: bytes


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """Server to scorer, answered by an evaluation: score a value, all randomness keyed by `key`."""

    value: bytes
    key: bytes
    keep_value: bool


class ClosedError(ConnectionError):
    """The other end of a channel is gone."""


def send(channel: socket.socket, message: msgspec.Struct) -> None:
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
        except ConnectionResetError:
            got = 0
        if not got:
            raise ClosedError("the other end closed the channel")
        view = view[got:]
    return data
