"""A response cache: the same request, seed included, is paid for once.

One SQLite file serves any number of runs, threads and processes of one machine (its write-ahead
log does not work over a network's file system). It holds replies and usage, by a hash of the
request; no prompt, no address and no key.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec

from evo.llm.client import Call, CallCancelled, Messages, ModelClient

MAX_BYTES = 1 << 30
"""Size of the file beyond which the replies that were not used for longest are dropped."""

_BUSY_SECONDS = 30.0  # another process may be writing
_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA journal_size_limit = 8388608;
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY, used REAL NOT NULL, content BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS replies_by_use ON replies (used);
"""

T = TypeVar("T")


_decoder = msgspec.json.Decoder(Call)  # made here: many threads at once would crash


class ResponseCache:
    """Replies by request; see the module. All methods may be called from any thread.

        with contextlib.closing(ResponseCache.open(Path("cache.sqlite"))) as cache:
            CachedClient(client, cache).call(messages, seed=7)

    Whatever goes wrong with an open file is a warning and a miss, never an error of the run; what
    a damaged row holds is never believed.
    """

    def __init__(self, path: Path, file: sqlite3.Connection, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = file
        self._warned = False

    @classmethod
    def open(cls, path: Path, *, max_bytes: int = MAX_BYTES) -> ResponseCache:
        """Opens a cache or makes one; ValueError if the file is something else, which stays."""
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise OSError(f"{path}: cannot be used as a response cache: {error}") from error
        try:
            names = {row[0] for row in file.execute("SELECT tbl_name FROM sqlite_master")}
            if names <= {"replies"}:
                file.executescript(_SCHEMA)
                return cls(path, file, max_bytes)
            reason = "a database of something else"
        except sqlite3.Error as error:
            reason = f"damaged, or a file of another kind ({error})"
        file.close()
        raise ValueError(
            f"{path}: no response cache of evo, but {reason}; it is left as it is: name another "
            "file, or delete it"
        )

    def find(self, key: bytes) -> Call | None:
        """Returns the kept call of a request key, marked as cached; None if there is none."""
        content = self.get(key)
        try:
            kept = None if content is None else _decoder.decode(content)
        except msgspec.DecodeError:  # written by another version
            return None
        if kept is None:
            return None
        # The usage stays for the record; the latency of the past answer is no time of this run.
        attempt = msgspec.structs.replace(kept.attempts[-1], cached=True, latency=0.0)
        return replace(kept, attempts=(attempt,))

    def keep(self, key: bytes, call: Call) -> None:
        """Keeps a call that was answered; any other is left out."""
        if call.reply is not None:
            self.put(key, msgspec.json.encode(replace(call, attempts=call.attempts[-1:])))

    def get(self, key: bytes) -> bytes | None:
        """Returns what is kept under a key; None for nothing, or a damaged row."""

        def look(file: sqlite3.Connection) -> bytes | None:
            rows = file.execute("SELECT content, checksum FROM replies WHERE key = ?", (key,))
            content, checksum = rows.fetchone() or (None, None)
            if not isinstance(content, bytes) or zlib.crc32(key + content) != checksum:
                return None
            file.execute("UPDATE replies SET used = ? WHERE key = ?", (time.time(), key))
            return content

        return self._work(look)

    def put(self, key: bytes, content: bytes) -> None:
        """Keeps something under a key."""
        row = (key, time.time(), content, zlib.crc32(key + content))

        def write(file: sqlite3.Connection) -> None:
            file.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", row)
            self._evict(file)

        self._work(write)

    def close(self) -> None:
        """Closes the file; from now on nothing is found or kept."""
        with self._lock:
            file, self._file = self._file, None
            if file is not None:
                file.close()

    def _work(self, use: Callable[[sqlite3.Connection], T]) -> T | None:
        """Has one thread use the file; None if that fails, which is no matter of the run."""
        with self._lock:
            if self._file is None:
                return None
            try:
                return use(self._file)
            except sqlite3.Error as error:
                if not self._warned:
                    self._warned = True
                    warnings.warn(
                        f"the response cache {self._path} cannot be used ({error}); the run goes "
                        "on without what it cannot read or write",
                        stacklevel=2,
                    )
                return None

    def _evict(self, file: sqlite3.Connection) -> None:
        """Drops a tenth of the replies, those used longest ago, until the rest fits."""

        def number(question: str) -> int:
            return int(file.execute(question).fetchone()[0])

        def used() -> int:
            pages = number("PRAGMA page_count") - number("PRAGMA freelist_count")
            return pages * number("PRAGMA page_size")

        while used() > self._max_bytes and (count := number("SELECT count(*) FROM replies")):
            oldest = "SELECT key FROM replies ORDER BY used LIMIT ?"
            file.execute(f"DELETE FROM replies WHERE key IN ({oldest})", (-(-count // 10),))


class CachedClient:
    """A client whose answered calls are kept in a cache and not made again; a `Caller`.

    A hit asks for no slot. Of equal calls at the same time one is made and the others wait for it.
    """

    def __init__(self, client: ModelClient, cache: ResponseCache) -> None:
        self.model, self.sampling = client.model, client.sampling
        self._client, self._cache = client, cache
        self._under_way: dict[bytes, threading.Event] = {}
        self._cancelled = False

    def call(self, messages: Messages, *, seed: int, generation: int = 0, index: int = 0) -> Call:
        """Asks for one reply, of the cache first; see `ModelClient.call`."""
        key = self._client.request_key(messages, seed)
        done = threading.Event()
        while (other := self._under_way.setdefault(key, done)) is not done:
            other.wait()
        try:
            if self._cancelled:
                raise CallCancelled("the call was cancelled")
            known = self._cache.find(key)
            if known is not None:
                return known
            call = self._client.call(messages, seed=seed, generation=generation, index=index)
            self._cache.keep(key, call)
            return call
        finally:
            del self._under_way[key]
            done.set()

    def cancel(self) -> None:
        """Aborts all calls, those under way and later ones, which raise `CallCancelled`."""
        self._cancelled = True
        self._client.cancel()

    def close(self) -> None:
        """Closes idle connections and the cache."""
        self._client.close()
        self._cache.close()
