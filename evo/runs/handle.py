"""One handle for work in the background, whichever verb began it, and the wishes it heeds."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import dataclasses
import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

from evo.logs.journal import open_regular
from evo.logs.log import Log, Logs, read_log
from evo.logs.records import Header, RunEnd
from evo.logs.stopping import Wish
from evo.logs.types import absolute_paths, as_given
from evo.parallel.interrupts import interrupt_heard
from evo.plugins import MistakenType
from evo.runs.holders import Holder, hold, holder_of, let_go, take_over
from evo.runs.progress import say
from evo.runs.tracebacks import Short
from evo.tasks.task import Task
from evo.warning import and_more, note_caller

GRACE = 5.0  # seconds that calls under way have to finish once a stop is asked for
LAST = 0.5  # seconds that what was ended then has to be logged
LOOK = 0.1  # seconds between two looks for a stop

_begun_here: weakref.WeakSet[Handle[Any]] = weakref.WeakSet()

P = ParamSpec("P")
Result = TypeVar("Result")
Returned = TypeVar("Returned")


class Control(contextlib.AbstractContextManager["Control", None]):
    """Requests to pause, stop or end work under way, and the work's report of progress.

    It is thread-safe. Used as a context manager around one piece of work, it ends what is still
    under way when an error leaves the block.

    Attributes:
        stopping: Set once no further call may begin.
        ended: Set once what was under way has been ended.
        free: Set unless calls are held, which then begin once it is set again.
        wish: The latest request of the user, pause or stop; None: there was none.
        paths: What the work has claimed: the logs and markers that a request may name.
        note: What is happening, in a few words.
    """

    def __init__(self) -> None:
        self.stopping, self.ended, self.free = (threading.Event() for _ in range(3))
        self.free.set()
        self.note = ""
        self.wish: Wish | None = None
        self.paths: dict[Path, None] = {}
        self._holding: list[Callable[[bool], None]] = []
        self._claiming: list[Callable[[], None]] = []
        self._heeding: dict[threading.Event, list[Callable[[], None]]]
        self._heeding = {self.stopping: [], self.ended: []}
        self._alarm: threading.Timer | None = None
        self._lock = threading.Lock()

    def heed(self, wish: threading.Event, act: Callable[[], None]) -> None:
        """Calls `act` once the event, `stopping` or `ended`, is set; at once if it is already."""
        with self._lock:
            self._heeding[wish].append(act)
        if wish.is_set():
            act()

    def claim(self, path: Path) -> None:
        """Notes that the work has claimed a log, or the marker of a study."""
        self.paths[path.absolute()] = None
        for act in list(self._claiming):
            act()

    def heed_claim(self, act: Callable[[], None]) -> None:
        """Calls `act` whenever the work has claimed something."""
        self._claiming.append(act)

    def hold(self, held: bool) -> None:
        """Holds all calls that have not begun, or lets them begin again; nothing ends."""
        with self._lock:
            acts = list(self._holding)
            (self.free.clear if held else self.free.set)()
        for act in acts:
            act(held)

    def heed_hold(self, act: Callable[[bool], None]) -> None:
        """Calls `act` with whether calls are held, whenever that changes, and at once if so."""
        with self._lock:
            self._holding.append(act)
        if not self.free.is_set():
            act(True)

    def wait_until_free(self) -> None:
        """Waits while calls are held, unless a stop is asked for."""
        while not self.stopping.is_set() and not self.free.wait(LOOK):
            pass

    @property
    def paused(self) -> str:
        """What the last line of a log says of a request to pause; empty: there was none."""
        return "paused" if self.wish == "pause" else ""

    @property
    def interruption(self) -> RunEnd:
        """The last line of a log whose session was asked to pause or to stop."""
        return RunEnd(reason="interrupted", message=self.paused or None)

    def pause(self) -> None:
        """Lets no further call begin; what is under way may finish, however long it takes."""
        self.wish = "pause"
        self._set(self.stopping)

    def stop(self) -> None:
        """Lets no further call begin, and ends calls that do not finish within seconds."""
        interrupt_heard()
        self.wish = "stop"
        self._set(self.stopping)
        with self._lock:
            if self._alarm is None:
                self._alarm = threading.Timer(GRACE, self.end)
                self._alarm.daemon = True
                self._alarm.start()

    def end(self) -> None:
        """Ends what is under way at once."""
        self._set(self.stopping)
        self._set(self.ended)

    def _set(self, wish: threading.Event) -> None:
        with self._lock:
            acts = [] if wish.is_set() else list(self._heeding[wish])
            wish.set()
        for act in acts:
            act()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.end()
        with self._lock:
            if self._alarm is not None:
                self._alarm.cancel()


@dataclass(frozen=True)
class Prepared(Generic[Result]):
    """Work whose arguments were checked, and that has not begun.

    Attributes:
        paths: The logs that it writes.
        work: Makes the runs until they are complete or the control asks to stop, and returns what
            the verb returns.
        many: Whether the verb is about several logs, even if there is only one.
        runs: The header and T of each run that it makes, as far as these are known beforehand.
    """

    paths: list[Path]
    work: Callable[[Control], Result]
    many: bool = False
    runs: Sequence[tuple[Header, int]] = ()

    def do(self) -> Result:
        """Does the work in this thread; after Ctrl-C, calls under way may finish briefly."""
        take_over(self.paths)
        try:
            with Control() as control:
                return self.work(control)
        except KeyboardInterrupt as error:
            error.args = error.args or (self._interrupted(),)
            raise

    def _interrupted(self) -> str:
        """Returns what became of the work after Ctrl-C, in words."""
        begun = [as_given(path) for path in self.paths if path.exists()]
        if not begun:
            return "interrupted before anything was begun"
        where = and_more(begun)
        return f"interrupted; what was made is in {where}, and the same call goes on there"


class Handle(Generic[Result]):
    """Work that runs in the background, such as that of `evo.start`.

    `handle.wait()`, or `await handle`, returns what the function would have returned in the
    foreground. If the work was stopped or paused, it returns what exists by then; calling the
    function again with the same arguments continues it. Cancelling what awaits the handle, as
    `asyncio.wait_for` does, stops the work in the same way.

    Args:
        prepared: The work, checked and not yet begun.

    Example:
        >>> handle = evo.start("mmd", generations=1, children=2, log=new())
        >>> len(handle.wait().generations)
        1
    """

    def __init__(self, prepared: Prepared[Result]) -> None:
        self._prepared, self._control = prepared, Control()
        self._outcome: Result | None = None
        self._error: BaseException | None = None
        self._taken_over = False
        self._done = threading.Event()  # Ctrl-C while joining a thread would lose track of it

    @property
    def paths(self) -> list[Path]:
        """Where the logs are, or will be."""
        return list(self._prepared.paths)

    @property
    def log(self) -> Log | list[Log]:
        """The log as it stands now; of several runs, the list of those that have begun."""
        if self._prepared.many:
            return [log for path in self._prepared.paths if (log := read_begun(path)) is not None]
        while (log := read_begun(self._prepared.paths[0])) is None and self.running:
            self._done.wait(0.02)
        if log is None:
            raise RuntimeError(f"stopped before the log {self._prepared.paths[0]} was begun")
        return log

    @property
    def running(self) -> bool:
        """Whether the work is still going on."""
        return not self._done.is_set()

    @property
    def taken_over(self) -> bool:
        """Whether other work of this process took its logs over before it was done."""
        return self._taken_over

    def pause(self) -> None:
        """Lets no further call begin; calls under way finish and are logged."""
        if self.running:
            self._control.pause()

    def stop(self) -> None:
        """Lets no further call begin; calls under way have five seconds to finish."""
        if self.running:
            self._control.stop()

    def wait(self, timeout: float | None = None) -> Result:
        """Waits for the end and returns what the verb returns, unfinished if it was stopped.

        Raises:
            TimeoutError: Not done within `timeout` seconds.
            BaseException: Whatever the work raised.
        """
        try:
            done = self._done.wait(timeout)
        except KeyboardInterrupt as error:
            error.args = error.args or (
                "interrupted; the work goes on in the background: handle.stop() ends it, "
                "handle.wait() waits for it again",
            )
            raise
        if not done:
            raise TimeoutError(f"still running after {timeout} s")
        if self._error is not None:
            raise self._error
        return self._outcome  # type: ignore[return-value]  # set before it is done

    def __await__(self) -> Generator[object, None, Result]:
        return self._awaited().__await__()

    async def _awaited(self) -> Result:
        try:
            return await asyncio.to_thread(self.wait)
        except asyncio.CancelledError:  # such as by `asyncio.wait_for`
            self.stop()
            raise

    def __repr__(self) -> str:
        words = {"pause": ("pausing", "paused"), "stop": ("stopping", "stopped")}
        running = "running" if self._control.free.is_set() else "held"
        asked, ended = words.get(self._control.wish or "", (running, "done"))
        state = asked if self.running else f"failed: {self._error!r}" if self._error else ended
        note = f", {self._control.note}" if self._control.note else ""
        return f"<Handle {state}{note}: {and_more(self._prepared.paths or [Path()])}>"

    def _run(self, carried: Callable[[], contextlib.AbstractContextManager[object]]) -> None:
        paths = self._prepared.paths
        try:
            with self._control, carried():
                self._outcome = self._prepared.work(self._control)
        except BaseException as error:
            self._error = error  # `wait` raises it
        finally:
            let_go(paths)
            self._done.set()

    def _hold(self) -> None:
        for path, (header, _) in zip(self._prepared.paths, self._prepared.runs, strict=False):
            hold(path, Holder(header, self, self._release))

    def _release(self) -> None:
        """Lets what is under way finish and its logs be closed, so that they can go on."""
        self._taken_over = True
        self.pause()
        self._done.wait()


def _running(paths: Sequence[Path]) -> Handle[Any] | None:
    """Returns the handle that writes these logs already."""
    owners = {id(each.owner): each.owner for p in paths if (each := holder_of(p)) is not None}
    for owner in owners.values():
        if isinstance(owner, Handle) and owner.running and owner.paths == list(paths):
            return owner
    return None


def begin(prepared: Prepared[Result], *, alone: bool = True) -> Handle[Result]:
    """Begins work in the background; its progress stays under the cell that began it.

    A handle that runs on the very same logs is returned in place of a new one. If the process ends
    before work that goes on `alone`, a message says so; a searcher only waits for replies.
    """
    from evo.sandbox.cluster import carry_backend

    running = _running(prepared.paths)
    if running is not None:
        return running
    take_over(prepared.paths)
    note_caller()
    handle = Handle(prepared)
    if alone:
        _begun_here.add(handle)
    handle._hold()
    context = contextvars.copy_context()  # which names the cell
    work = threading.Thread(target=context.run, args=(handle._run, carry_backend()), daemon=True)
    work.start()
    return handle


def _warn_of_running() -> None:
    """Says at the end of the process which work in the background ends with it."""
    running = [each for each in _begun_here if each.running]
    for handle in running:
        places = and_more([*map(as_given, handle.paths or [Path()])])
        say(
            f"{places}: the process ends while this work is running in the background, and "
            "ends it; the same call goes on with it, and handle.wait() waits for its end"
        )


atexit.register(_warn_of_running)


def in_background(prepare: Callable[[], Prepared[Result]]) -> Handle[Result]:
    """Prepares work and begins it in the background, whatever folder the caller changes to."""
    with absolute_paths():
        return begin(prepare())


def in_foreground(prepare: Callable[[], Prepared[Result]]) -> Result:
    """Prepares work and does it in this thread, whatever folder a model or a listener changes to.

    The paths of the result are as they were given, unless the process works in another folder now.
    """
    before = _working_folder()
    note_caller()
    with Short(), absolute_paths():
        found = prepare().do()
        return _as_given(found) if _working_folder() == before else found


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _as_given(found: Any) -> Any:
    """Returns a result with its absolute paths as they were given."""
    if isinstance(found, Path):
        return as_given(found)
    if isinstance(found, Log):
        found.path = as_given(found.path)
    elif isinstance(found, list):
        found[:] = map(_as_given, found)
        if isinstance(found, Logs):
            found.not_begun = tuple(map(as_given, found.not_begun))
    elif dataclasses.is_dataclass(found) and not isinstance(found, type):
        held = {each.name: getattr(found, each.name) for each in dataclasses.fields(found)}
        paths = {k: _as_given(v) for k, v in held.items() if isinstance(v, Path | Log | list)}
        return dataclasses.replace(found, **paths)
    return found


def read_begun(path: Path) -> Log | None:
    """Reads a log; None while it has no whole header, as a killed process may leave it."""
    try:
        with open_regular(path) as file:
            if not file.readline().endswith(b"\n") and path.suffix != ".gz":
                return None
    except FileNotFoundError:
        return None
    return read_log(path)


def verb(
    name: str,
    prepare: Callable[P, Prepared[Result]],
    act: Callable[[Callable[[], Prepared[Result]]], Returned],
    returns: object,
) -> Callable[P, Returned]:
    """Returns a function that prepares work and acts on it at once.

    Args:
        name: Name of the function.
        prepare: Prepares the work; the function has its arguments and its docstring. A mistake in
            them is raised before anything begins.
        act: `in_foreground`, or `in_background`.
        returns: The type that the function returns, for its signature.
    """
    signature = inspect.signature(prepare).replace(return_annotation=returns)
    parameters = signature.parameters.values()
    placed = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    others = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]

    @functools.wraps(prepare)
    def called(*arguments: P.args, **options: P.kwargs) -> Returned:
        if "task" in others and any(isinstance(each, Task) for each in arguments):
            raise MistakenType(
                f"{name}: a task is given by name; write {name}({', '.join(placed)}, task=...)"
            )
        if others and len(arguments) > len(placed):
            raise MistakenType(
                f"{name}: expected {', '.join(placed)} and all else by name, such as "
                f"{name}({', '.join(placed)}, {others[0]}=...), but value "
                f"{len(placed) + 1}, {arguments[len(placed)]!r:.60}, has no name"
            )
        try:
            known = {each: options[each] for each in signature.parameters if each in options}
            signature.bind(*arguments, **known)  # a misspelt name is answered with what is like it
        except TypeError as error:
            raise MistakenType(f"{name}: {error}; write {name}({', '.join(placed)}, ...)") from None
        return act(functools.partial(prepare, *arguments, **options))

    called.__name__ = called.__qualname__ = name
    called.__signature__ = signature  # type: ignore[attr-defined]
    called.__annotations__ = {**prepare.__annotations__, "return": returns}
    return called
