"""A response cache: a request that was answered, seed included, is not paid for again.

One SQLite file serves any number of runs, threads and processes of one machine, and a Redis server
those of several (`evo.models.shared_cache`). Where two processes make the same request at the same
moment, both pay. The file holds replies and usage, by a hash of the request; no prompt, no address
and no key. Its journal is never mapped into memory, where a damaged one would end the process.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import zlib
from pathlib import Path

import msgspec

from evo.logs.fitting import fit_usage
from evo.logs.records import Attempt
from evo.logs.servers import is_shared
from evo.models.answer import fit_reason, fit_reply
from evo.models.client import Call, CallCancelled, Messages, ModelClient
from evo.models.shared_cache import SharedCache
from evo.warning import warn

MAX_BYTES = 1 << 30  # of the file; beyond it the replies not used for longest are dropped
_BUSY_SECONDS = 30.0  # another process may be writing
_DAMAGE = (sqlite3.Error, UnicodeDecodeError)  # the latter: a message that quotes bytes of the file
_SCHEMA = """
PRAGMA journal_mode = TRUNCATE;
PRAGMA mmap_size = 0;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY, used REAL NOT NULL, content BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS replies_by_use ON replies (used);
"""
_TOO_LARGE = """
SELECT 1 FROM pragma_page_count, pragma_freelist_count, pragma_page_size
WHERE (page_count - freelist_count) * page_size > ? AND EXISTS (SELECT 1 FROM replies)
"""
_DROP_A_TENTH = """
DELETE FROM replies WHERE key IN (SELECT key FROM replies ORDER BY used
    LIMIT (SELECT (count(*) + 9) / 10 FROM replies))
"""

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
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                names = {row[0] for row in file.execute("SELECT tbl_name FROM sqlite_master")}
                if names <= {"replies"}:
                    file.executescript(_SCHEMA)
                    return cls(path, file, max_bytes)
                reason = "a database of something else"
            except _DAMAGE as error:
                if _is_busy(error) and time.monotonic() < deadline:
                    time.sleep(0.01)  # SQLite's own timeout does not cover all of this
                    continue
                reason = f"damaged, or a file of another kind ({error})"
            break
        file.close()
        raise ValueError(
            f"{path}: no response cache of evo, but {reason}; it is left as it is: name another "
            "file, or delete it"
        )

    def get(self, key: bytes) -> bytes | None:
        """Returns what is kept under a key; None for nothing, or a damaged row."""
        rows = self._run("SELECT content, checksum FROM replies WHERE key = ?", key)
        content, checksum = rows[0] if rows else (None, None)
        if not isinstance(content, bytes) or zlib.crc32(key + content) != checksum:
            return None
        self._run("UPDATE replies SET used = ? WHERE key = ?", time.time(), key)
        return content

    def put(self, key: bytes, content: bytes) -> None:
        """Keeps something under a key, and drops what was used longest ago until the rest fits."""
        row = (key, time.time(), content, zlib.crc32(key + content))
        self._run("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", *row)
        while self._run(_TOO_LARGE, self._max_bytes) and self._run(_DROP_A_TENTH) is not None:
            pass

    def close(self) -> None:
        """Closes the file; from now on nothing is found or kept."""
        with self._lock:
            file, self._file = self._file, None
            if file is not None:
                file.close()

    def _run(self, statement: str, *values: object) -> list[tuple[object, ...]] | None:
        """Has one thread use the file; None if that fails, which is no matter of the run."""
        with self._lock:
            try:
                return self._file.execute(statement, values).fetchall() if self._file else None
            except _DAMAGE as error:
                if not self._warned:
                    self._warned = True
                    warn(
                        f"the response cache {self._path} cannot be used ({error}); the run goes "
                        "on without what it cannot read or write",
                    )
                return None


def open_cache(place: Path | str) -> ResponseCache | SharedCache:
    """Opens the cache at a place: a file, or the address of a Redis server."""
    return SharedCache.open(str(place)) if is_shared(place) else ResponseCache.open(Path(place))


def _is_busy(error: Exception) -> bool:
    """Whether an error of SQLite means that another connection has locked the file."""
    code = getattr(error, "sqlite_errorcode", None)  # the lowest byte is the primary code
    return code is not None and code & 0xFF == sqlite3.SQLITE_BUSY


def _call_in(row: bytes | None) -> Call | None:
    """Returns the call in a row, within the caps of an endpoint's answer; None: there is none.

    A row may be of another version, or of somebody else with a sound checksum.
    """
    try:
        kept = _decoder.decode(row or b"")
        last = kept.attempts[-1]
    except (msgspec.MsgspecError, ValueError, IndexError, RecursionError):
        return None
    reply = fit_reply(kept.reply)
    if reply is None or last.status != "ok":
        return None
    attempt = Attempt(  # no time and no failure of this run
        status="ok",
        latency=0.0,
        usage=fit_usage(last.usage),
        finish_reason=fit_reason(last.finish_reason),
        http_status=last.http_status,
        cached=True,
    )
    return Call((attempt,), reply, fit_reply(kept.reasoning), attempt.finish_reason)


class CachedClient:
    """A client whose answered calls are kept in a cache and not made again; a `Caller`.

    A hit asks for no slot. Of equal calls at the same time one is made and the others wait for it.
    """

    def __init__(self, client: ModelClient, cache: ResponseCache | SharedCache) -> None:
        self.model, self.sampling = client.model, client.sampling
        self._client, self._cache = client, cache
        self._under_way: dict[bytes, threading.Event] = {}
        self._cancelled = False

    @classmethod
    def at(cls, place: Path | str, client: ModelClient) -> CachedClient:
        """Returns a client whose replies are kept at a place, which is opened now."""
        return cls(client, open_cache(place))

    def call(self, messages: Messages, *, seed: int, generation: int = 0, index: int = 0) -> Call:
        """Asks for one reply, of the cache first; see `ModelClient.call`."""
        key = self._client.request_key(messages, seed)
        done = threading.Event()
        while (other := self._under_way.setdefault(key, done)) is not done:
            other.wait()
        try:
            if self._cancelled:
                raise CallCancelled("the call was cancelled")
            if (kept := _call_in(self._cache.get(key))) is not None:
                return kept
            call = self._client.call(messages, seed=seed, generation=generation, index=index)
            if call.reply is not None:
                self._cache.put(key, msgspec.json.encode(call))
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
