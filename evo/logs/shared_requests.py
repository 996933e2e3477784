"""Requests to pause, to stop and to go on that live in a Redis server.

Sessions on several machines listen to one server. A request is for a log, for the folder of a
study, or for any other folder: everything in it heeds it, and "/" is everything there is. Paths are
absolute and mean the same on every machine.

A pause stands until somebody asks to go on: whoever begins meanwhile waits as well. A stop is for
the sessions of that moment. Each session keeps a note of its logs in the server and renews
it, so that whoever makes a request learns how many sessions will act on it.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import uuid
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from evo.logs.journal import LogError
from evo.logs.servers import connect, hidden
from evo.warning import warn

if TYPE_CHECKING:
    import redis

POLL = 0.2  # seconds between two looks for a request
Wish = Literal["pause", "stop", "go on"]

ASKED = "evo:control:"
LISTENING = "evo:listening:"
EVERYTHING = Path("/")
_RENEWED = 10  # polls after which a session renews its note
_FORGOTTEN = 10  # seconds after which a note that is not renewed is gone
_KEPT = 86_400  # seconds that a request to stop is kept
_PURPOSE = "a place of requests"


class SharedRequests(AbstractContextManager["SharedRequests", None]):
    """Listens to a server, in a thread of its own, for requests to this session.

    A server that goes away is a warning; the session goes on as it was, and what is asked meanwhile
    is heard once the server is back.

    Args:
        address: Such as redis://host:6379/0.
        paths: Returns the logs and folders that the session works on by now.
        act: Called with a wish: "stop" once at most, "pause" and "go on" whenever that changes.

    Raises:
        ValueError: The address is not one, or the package `redis` is missing.
        OSError: The server does not answer, or refuses.
    """

    def __init__(
        self, address: str, paths: Callable[[], Iterable[Path]], act: Callable[[Wish], object]
    ) -> None:
        self._client, self._name = connect(address, _PURPOSE), hidden(address)
        self._began = _time_of(self._client)
        self._paths, self._act = paths, act
        self._own = f"{LISTENING}{uuid.uuid4().hex}"
        self._paused = self._stopped = False
        self._away = False
        self._noted: list[Path] = []
        self._polls = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self.look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        import redis

        self._over.set()
        self._thread.join()
        with contextlib.suppress(redis.RedisError, OSError):  # else the note is forgotten by itself
            self._client.delete(self._own)
        self._client.close()

    def look(self) -> None:
        """Looks for requests at once, as before the first call for what was just claimed."""
        import redis

        with self._lock:
            elsewhere = threading.current_thread() is not self._thread
            if self._over.is_set() or (self._away and elsewhere):
                return
            try:
                self._listen()
                if self._polls % _RENEWED == 0 or [*self._paths()] != self._noted:
                    self._renew()
                self._away = False
            except (redis.RedisError, OSError) as error:
                if not self._away:
                    self._warn(error)
                self._away = True

    def _work(self) -> None:
        while not self._over.wait(POLL):
            self._polls += 1
            self.look()

    def _renew(self) -> None:
        """Notes on what this session works."""
        self._noted = [*self._paths()]
        lines = [f"{platform.node()} {os.getpid()}", *map(str, self._noted)]
        self._client.set(self._own, "\n".join(lines), ex=_FORGOTTEN)

    def _listen(self) -> None:
        """Looks for requests, and acts on what is new."""
        names = {EVERYTHING, *(each for path in self._paths() for each in (path, *path.parents))}
        found = self._client.mget([f"{ASKED}{name}" for name in names])
        said = [each.decode(errors="replace").split() for each in found if each]
        if self._stopped:
            return
        if any(_is_later(words, self._began) for words in said):
            self._stopped = True
            self._act("stop")
        elif (paused := any(words[0] == "pause" for words in said)) != self._paused:
            self._paused = paused
            self._act("pause" if paused else "go on")

    def _warn(self, error: Exception) -> None:
        state = "paused" if self._paused else "going on"
        warn(
            f"the requests at {self._name} cannot be read ({error}); the session stays as it is, "
            f"{state}, and hears them once the server answers again",
        )


def ask(address: str, wish: Wish, path: Path | None = None) -> list[str]:
    """Asks the sessions that listen to a server to pause, to stop or to go on.

    Args:
        address: Such as redis://host:6379/0.
        wish: What is asked.
        path: A log or a folder, for all in it (default: whatever listens).

    Returns:
        The host and process of each session that is to hear it.

    Raises:
        LogError: To stop is asked of nobody; or to go on, where a wider pause stands.
        ValueError: The address is not one, or the package `redis` is missing.
        OSError: The server does not answer, or refuses.
    """
    with contextlib.closing(connect(address, _PURPOSE)) as client:
        place = EVERYTHING if path is None else Path(os.path.abspath(path))
        hearing, others = _sessions(client, place)
        name, key = hidden(address), f"{ASKED}{place}"
        if wish == "stop":
            if not hearing:
                known = f"; sessions there work on {', '.join(others)}" if others else ""
                raise LogError(f"{place}: no session that listens to {name} works on it{known}")
            client.set(key, "stop {} {}".format(*_time_of(client)), ex=_KEPT)
        elif wish == "pause":
            client.set(key, "pause")
        else:
            _lift(client, place, name)
        return hearing


def _lift(client: redis.Redis, place: Path, name: str) -> None:
    """Removes the pauses of a folder and of all in it."""
    paused = {
        Path(key.decode(errors="replace").removeprefix(ASKED)): key
        for key in client.scan_iter(f"{ASKED}*")
        if (client.get(key) or b"").startswith(b"pause")
    }
    wider = [each for each in paused if each != place and place.is_relative_to(each)]
    if wider:
        raise LogError(f"{place}: still paused at {name} with {min(wider)}, which is to go on")
    within = [key for each, key in paused.items() if each.is_relative_to(place)]
    if within:
        client.delete(*within)


def _sessions(client: redis.Redis, place: Path) -> tuple[list[str], list[str]]:
    """Returns the sessions that hear a request for a place, and the paths of the others."""
    hearing: list[str] = []
    others: list[str] = []
    for key in client.scan_iter(f"{LISTENING}*"):
        who, *paths = (client.get(key) or b"").decode(errors="replace").split("\n")
        if place == EVERYTHING or any(Path(each).is_relative_to(place) for each in paths):
            hearing.append(who)
        else:
            others += paths[:1]
    return sorted(hearing), sorted(others)


def _time_of(client: redis.Redis) -> tuple[int, int]:
    """Returns the server's time, seconds and microseconds, which all its sessions share."""
    seconds, micros = client.time()
    return int(seconds), int(micros)


def _is_later(words: list[str], began: tuple[int, int]) -> bool:
    """Whether a request is one to stop that was made after a session began."""
    if len(words) != 3 or words[0] != "stop" or not all(map(str.isdecimal, words[1:])):
        return False
    return (int(words[1]), int(words[2])) > began
