"""Replies kept in a Redis server, which runs on several machines share.

What the server may hold, and what it drops then, is its own setting: `maxmemory` and
`maxmemory-policy allkeys-lru`. Nothing here expires. Keys are hashes of requests, values replies
and usage with a checksum; no prompt, no address and no key of an endpoint is sent to it.
"""

from __future__ import annotations

import threading
import time
import zlib
from typing import TYPE_CHECKING

from evo.logs.servers import connect, hidden
from evo.warning import warn

if TYPE_CHECKING:
    import redis

PREFIX = b"evo:reply:"
MAX_BYTES = 64 << 20  # of one value; a reply is far smaller
_PAUSE = 30.0  # seconds without the server after it failed


class SharedCache:
    """Replies by request in a Redis server; all methods may be called from any thread.

    A server that fails is a warning and a miss, and is not asked for a while; it is never an error
    of the run. What is damaged is not believed.
    """

    def __init__(self, client: redis.Redis, name: str) -> None:
        self._client, self._name = client, name
        self._lock = threading.Lock()
        self._warned = False
        self._again = 0.0  # when the server is asked again

    @classmethod
    def open(cls, address: str) -> SharedCache:
        """Connects to a server.

        Raises:
            ValueError: The address is not one, or the package `redis` is missing.
            OSError: The server does not answer, or refuses.
        """
        return cls(connect(address, "a response cache"), hidden(address))

    def get(self, key: bytes) -> bytes | None:
        """Returns what is kept under a key; None for nothing, or a damaged value."""
        kept = self._run("get", key)
        if not isinstance(kept, bytes) or len(kept) < 4:
            return None
        checksum, content = kept[:4], kept[4:]
        return content if _checksum(key, content) == checksum else None

    def put(self, key: bytes, content: bytes) -> None:
        """Keeps something under a key."""
        if len(content) <= MAX_BYTES:
            self._run("set", key, _checksum(key, content) + content)

    def close(self) -> None:
        """Closes the connections; from now on nothing is found or kept."""
        self._again = float("inf")
        self._client.close()

    def _run(self, verb: str, key: bytes, *values: bytes) -> object:
        import redis

        if time.monotonic() < self._again:
            return None
        try:
            return self._client.execute_command(verb, PREFIX + key, *values)
        except (redis.RedisError, OSError) as error:
            with self._lock:
                self._again = max(self._again, time.monotonic() + _PAUSE)
                warned, self._warned = self._warned, True
            if not warned:
                warn(
                    f"the response cache {self._name} cannot be used ({error}); the run goes on "
                    f"without it and tries again after {_PAUSE:g} s",
                )
            return None


def _checksum(key: bytes, content: bytes) -> bytes:
    return zlib.crc32(key + content).to_bytes(4, "big")
