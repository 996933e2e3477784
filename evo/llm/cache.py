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
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from evo.llm.client import Call, CallCancelled, Messages, ModelClient
from evo.records import Attempt, Model, Sampling

MAX_BYTES = 1 << 30
"""Size of the file beyond which the replies that were not used for longest are dropped."""

SMALLEST_BYTES = 1 << 16
_BUSY_SECONDS = 30.0  # another process may be writing
_WAL_BYTES = 8 << 20
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_MAGIC = b"SQLite format 3\0"
_MARK = slice(68, 72)  # where SQLite keeps the application's number
_APPLICATION = 0x65766F52
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY, used REAL NOT NULL, content BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS replies_by_use ON replies (used);
"""

T = TypeVar("T")


class _Kept(msgspec.Struct, frozen=True):
    """What a row holds: the attempt that was answered, and the answer."""

    attempt: Attempt
    reply: str
    reasoning: str | None


_kept_decoder = msgspec.json.Decoder(_Kept)  # made here: many threads at once would crash


class ResponseCache:
    """Replies by request; see the module. All methods may be called from any thread.

        with contextlib.closing(ResponseCache.open(Path("cache.sqlite"))) as cache:
            CachedClient(client, cache).call(messages, seed=7)

    Whatever goes wrong with the file is a warning and a miss, never an error of the run: a damaged
    file is renamed and begun anew, a damaged row is asked for again.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None
        self._inode = 0
        self._warned = False

    @classmethod
    def open(cls, path: Path, *, max_bytes: int = MAX_BYTES) -> ResponseCache:
        """Opens a cache or makes one; ValueError if the file is something else, which stays."""
        if max_bytes < SMALLEST_BYTES:
            raise ValueError(f"max_bytes: expected at least {SMALLEST_BYTES}, got {max_bytes!r}")
        cache = cls(path, max_bytes)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            ours = _is_ours(path)
            cache._connect()
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise OSError(f"{path}: cannot be used as a response cache: {error}") from error
            if not ours:
                raise ValueError(
                    f"{path}: a damaged database ({error}), maybe of something else; it is left as "
                    "it is: name another file, or delete it"
                ) from None
            cache._begin_anew(error)
        return cache

    def find(self, key: bytes) -> Call | None:
        """Returns the kept call of a request key, marked as cached; None if there is none."""
        content = self.get(key)
        try:
            kept = None if content is None else _kept_decoder.decode(content)
        except msgspec.DecodeError:  # written by another version
            kept = None
        if kept is None:
            return None
        # The usage stays for the record; the latency of the past answer is no time of this run.
        attempt = msgspec.structs.replace(kept.attempt, cached=True, latency=0.0)
        return Call((attempt,), kept.reply, kept.reasoning, attempt.finish_reason)

    def keep(self, key: bytes, call: Call) -> None:
        """Keeps a call that was answered; any other is left out."""
        if call.reply is not None:
            kept = _Kept(call.attempts[-1], call.reply, call.reasoning)
            self.put(key, msgspec.json.encode(kept))

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
                if _is_damage(error):
                    self._begin_anew(error)
                elif not self._warned:
                    self._warned = True
                    warnings.warn(
                        f"the response cache {self._path} cannot be used ({error}); the run goes "
                        "on without what it cannot read or write",
                        stacklevel=2,
                    )
                return None

    def _connect(self) -> None:
        file = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            others = "SELECT count(*) FROM sqlite_master WHERE tbl_name != 'replies'"
            if file.execute(others).fetchone()[0]:
                raise ValueError(f"{self._path}: a database, but no response cache of evo")
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            file.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
            file.executescript(_SCHEMA)
            if file.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
                file.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._inode = self._path.stat().st_ino
        except BaseException:
            file.close()
            raise
        self._file = file

    def _begin_anew(self, error: sqlite3.Error) -> None:
        """Sets the file aside, unless another process has done so, and opens a new one."""
        if self._file is not None:
            self._file.close()
            self._file = None
        now = "it is opened again"
        with suppress(OSError):
            if self._inode in (0, self._path.stat().st_ino):
                aside = f"{self._path}.damaged-{time.time_ns()}"
                for ending in ("", "-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        Path(f"{self._path}{ending}").rename(f"{aside}{ending}")
                now = f"it is set aside as {aside}, and a new one is begun"
        warnings.warn(f"the response cache {self._path} is damaged ({error}); {now}", stacklevel=2)
        with suppress(sqlite3.Error, OSError):
            self._connect()

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


def _is_ours(path: Path) -> bool:
    """Whether a file is a cache by its first bytes, or none yet; ValueError if something else."""
    if not path.exists():
        return True
    if not path.is_file():
        raise OSError(f"{path}: cannot be used as a response cache: it is no file")
    with path.open("rb") as file:
        begins = file.read(_MARK.stop)
    if begins and begins[: len(_MAGIC)] != _MAGIC:
        raise ValueError(
            f"{path}: expected a response cache of evo, got {begins[:20]!r}; it is left as it is: "
            "name another file"
        )
    return not begins or begins[_MARK] == _APPLICATION.to_bytes(4, "big")


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is wrong, rather than busy, full or out of reach."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


class CachedClient:
    """A client whose answered calls are kept in a cache and not made again; a `Caller`.

    A hit asks for no slot. Of equal calls at the same time one is made and the others wait for it.
    """

    def __init__(self, client: ModelClient, cache: ResponseCache) -> None:
        self._client, self._cache = client, cache
        self._under_way: dict[bytes, threading.Event] = {}
        self._lock = threading.Lock()
        self._cancelled = False

    @property
    def model(self) -> Model:
        """The model."""
        return self._client.model

    @property
    def sampling(self) -> Sampling:
        """How it samples."""
        return self._client.sampling

    def call(self, messages: Messages, *, seed: int, generation: int = 0, index: int = 0) -> Call:
        """Asks for one reply, of the cache first; see `ModelClient.call`."""
        key = self._client.request_key(messages, seed)
        done = self._begin(key)
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
            with self._lock:
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

    def _begin(self, key: bytes) -> threading.Event:
        """Waits until no equal call is under way, and notes that this one is."""
        done = threading.Event()
        while True:
            with self._lock:
                other = self._under_way.setdefault(key, done)
            if other is done:
                return done
            other.wait()
