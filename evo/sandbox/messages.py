"""What driver, fork server and scorer say to each other: typed, length-framed."""

from __future__ import annotations

import socket
import struct

import msgspec

from evo.logs.records import Evaluation, Limits, TaskRecord

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


class ProgramRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Driver to a programs' server, answered by `ProgramAnswer`.

    Of a task whose evaluator runs elsewhere the record says only how its programs are run.
    """

    task: TaskRecord | None  # left out if it is that of before
    program: str
    limits: Limits
    key: bytes


class ProgramAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Programs' server to driver: an evaluation, or the value that is still to be scored."""

    evaluation: Evaluation | None = None
    value: bytes = b""
    printed: str = ""
    seconds: float = 0.0


class ScoringRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Driver to the evaluators' server, answered by an evaluation."""

    task: TaskRecord | None  # left out if it is that of before
    limits: Limits
    keep_value: bool
    key: bytes
    returned: ProgramAnswer


class ScorerRequest(msgspec.Struct, frozen=True, kw_only=True):
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
