"""One request under way, which another thread may cancel and a deadline ends."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Self


class Flight:
    """One request under way, for so many seconds; a context of the thread that makes it."""

    def __init__(self, seconds: float) -> None:
        self.cancelled = False
        self._deadline = time.monotonic() + seconds
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        _thread.flight = self
        return self

    def __exit__(self, *_: object) -> None:
        _thread.flight = None
        self._socket = None

    @property
    def left(self) -> float:
        """Seconds left, 0 once it is over."""
        return 0.0 if self.cancelled else max(0.0, self._deadline - time.monotonic())

    def board(self, used: socket.socket) -> float:
        """Notes the socket that is about to block; returns the seconds left, 0 once it is over."""
        # The socket is noted before `cancelled` is read, and `cancel` goes in the reverse order,
        # so one of the two sees the other.
        self._socket = used
        return self.left

    def cancel(self) -> None:
        """Ends the request as soon as possible."""
        self.cancelled = True
        used = self._socket
        if used is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(used, socket.SHUT_RDWR)  # past the TLS layer, if any


def flight_of_thread() -> Flight | None:
    """Returns the request that the calling thread is making."""
    return _thread.flight


class _Thread(threading.local):
    flight: Flight | None = None


_thread = _Thread()
