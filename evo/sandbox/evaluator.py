"""The driver's side: a pool of fork servers that threads share."""

from __future__ import annotations

import importlib.util
import os
import queue
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from evo.logs.caps import held, maxima
from evo.logs.records import Evaluation, Limits, TaskRecord
from evo.sandbox.jail import LAYERS, SWITCHED_OFF, remove_tree
from evo.sandbox.messages import (
    ProgramAnswer,
    ProgramRequest,
    Ready,
    ScoringRequest,
    Setup,
    receive,
    send,
)
from evo.sandbox.purity import key_of
from evo.warning import warn

_PARENT = str(Path(__file__).resolve().parents[2])
_MAIN = (  # only the package itself is imported from its folder, which may hold NumPy, too
    "import sys; sys.path.insert(0, sys.argv[1]); import evo; sys.path.append(sys.path.pop(0)); "
    "from evo.sandbox.server import main; main()"
)
_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_PATIENCE_SECONDS = 30.0  # beyond an evaluation's own limits, before a server counts as stuck
_ONE_THREAD = ("BLIS_NUM", "MKL_NUM", "NUMEXPR_NUM", "OMP_NUM", "OPENBLAS_NUM", "VECLIB_MAXIMUM")
_READY = msgspec.msgpack.Decoder(Ready)
_ANSWER = msgspec.msgpack.Decoder(ProgramAnswer)
_EVALUATION = msgspec.msgpack.Decoder(Evaluation)
_BROKEN = (OSError, msgspec.DecodeError)  # a worker's end of a channel is gone, late or confused


class EvaluatorClosed(RuntimeError):  # noqa: N818 - a state that callers wait for
    """The evaluator was closed, before or while it evaluated."""


class SandboxError(RuntimeError):
    """The sandbox itself does not work, so nothing can be evaluated."""


class SandboxWarning(RuntimeWarning):
    """Layers of protection are missing on this platform."""


class Evaluator:
    """Evaluates programs in jailed processes, several at a time.

    Nothing is started before the first use. All methods may be called from any thread.

    Args:
        workers: How many evaluations run at once; None: as many as there are processors.
        without: Layers of `evo.sandbox.LAYERS` to leave out where one misbehaves.
    """

    def __init__(self, workers: int | None = None, *, without: Collection[str] = ()) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1 or None, got {workers!r}")
        if unknown := set(without) - set(LAYERS):
            raise ValueError(f"unknown layers {sorted(unknown)}; there are {list(LAYERS)}")
        size = workers or os.cpu_count() or 1
        setup = Setup(
            packages=_packages(),
            without=tuple(without),
            memory_mb=int(maxima()["memory_mb"] * 3 // 4 // size),
        )
        self._pool = _Pool(size, setup)
        self._finalizer = weakref.finalize(self, self._pool.close)

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def protections(self) -> tuple[str, ...]:
        """Names of the active layers; starts a worker if none has started yet."""
        if self._pool.ready is None:
            with self._pool.worker():
                pass
        return self._pool.ready.protections if self._pool.ready else ()

    def evaluate(
        self,
        task: TaskRecord,
        program: str,
        limits: Limits,
        *,
        keep_value: bool = False,
        draw: int = 0,
        seed: int = 0,
    ) -> Evaluation:
        """Evaluate one program, or a text that evolves; waits for a free worker.

        Whatever the program does becomes a status. A worker that dies is replaced and the
        evaluation repeated once; what fails then is the sandbox, not the program (`SandboxError`).
        `EvaluatorClosed`: `close` was called, possibly meanwhile.

        Args:
            task: What is evaluated, and how.
            program: Source text.
            limits: Limits of the evaluation, held to the local maxima.
            keep_value: Keep the returned construction, unless it is large, as nested lists
                (isolation `separate`); of a task that states how it is drawn it is always kept.
            draw: Which draw of its randomness; 0 is keyed by the program's text.
            seed: Of the run, which keys the other draws.
        """
        try:
            program.encode()
        except UnicodeEncodeError as error:
            return Evaluation(status="error", error=f"the program is not valid Unicode: {error}")
        request = ProgramRequest(
            task=task,
            program=program,
            limits=held(limits, task.name),
            key=key_of(program, task.hash, draw=draw, seed=seed),
        )
        reason, deaths = "", 0
        for _ in range(2):
            worker = None
            try:
                with self._pool.worker(shared=task.isolation == "shared") as worker:
                    return worker.ask(task, request, keep_value=keep_value or bool(task.picture))
            except _BROKEN as error:
                if worker is None:
                    raise
                self._pool.check_open()
                reason = f"{error}{worker.last_words()}"
                deaths += worker.process.returncode != 1  # which is an error of their own
        if deaths == 2 and "pid" not in self.protections:  # then programs can signal the server
            return Evaluation(status="error", error="the program ended its own sandbox, twice")
        raise SandboxError(f"the sandbox failed twice over one evaluation: {reason}")

    def close(self) -> None:
        """Kill everything; evaluations under way raise `EvaluatorClosed`."""
        self._finalizer()


class _Pool:
    """So many places for workers; threads wait for a free one."""

    def __init__(self, size: int, setup: Setup) -> None:
        self.ready: Ready | None = None
        self._setup = setup
        self._owner = os.getpid()
        self._lock = threading.Lock()
        # A place has one worker at a time busy; those of shared isolation serve no other.
        self._free: queue.LifoQueue[dict[bool, _Worker]] = queue.LifoQueue()
        for _ in range(size):
            self._free.put({})  # not started yet
        self._alive: set[_Worker] = set()
        self._closed = False

    @contextmanager
    def worker(self, *, shared: bool = False) -> Iterator[_Worker]:
        """A worker for the calling thread alone, started if need be; an error is its end."""
        self.check_open()  # in a forked copy the queue may be locked for good
        place = self._free.get()
        worker = place.pop(shared, None)
        try:
            self.check_open()
            if worker is None:
                worker = _Worker.start(shared=shared)
                self._greet(worker)
            yield worker
            place[shared] = worker
        finally:
            if worker is not None and shared not in place:
                with self._lock:
                    self._alive.discard(worker)
                worker.stop()
            self._free.put(place)

    def check_open(self) -> None:
        """Raise `EvaluatorClosed` if it is closed."""
        if self._closed or os.getpid() != self._owner:
            raise EvaluatorClosed("the evaluator is closed, or belongs to another process")

    def close(self) -> None:
        """Kill all workers and turn away all waiting threads; a forked copy does nothing."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            workers = tuple(self._alive)
            self._alive.clear()
        for worker in workers:
            worker.hang_up()
        for worker in workers:
            worker.stop()

    def _greet(self, worker: _Worker) -> None:
        with self._lock:
            self.check_open()
            self._alive.add(worker)
        try:
            self.ready = worker.greet(self._setup)
        except _BROKEN as error:
            worker.stop()
            self.check_open()
            raise SandboxError(
                f"a sandbox process could not be started: {error}{worker.last_words()}"
            ) from error
        _warn_once(self.ready)


class _Worker:
    """Fork servers, freshly executed: they have nothing of this process's memory.

    Two are for programs; the third is for evaluators, unless those share the programs' processes.
    """

    def __init__(self, process: subprocess.Popen[bytes], channels: Sequence[socket.socket]) -> None:
        self.process, self._channels = process, channels
        # The task that each server received last, and its notes, which the hash leaves out.
        self._known: dict[socket.socket, tuple[str, str | None]] = {}
        self._setup: Setup | None = None
        self._ready: dict[socket.socket, Ready] = {}
        self._words: str | None = None
        self._stopping = threading.Lock()

    @classmethod
    def start(cls, *, shared: bool) -> _Worker:
        """Execute the servers; `greet` them next."""
        pairs = [socket.socketpair() for _ in range(2 if shared else 3)]
        theirs = tuple(other.fileno() for _, other in pairs)
        with ExitStack() as stack:
            for _, other in pairs:
                stack.enter_context(other)
            process = subprocess.Popen(
                [sys.executable, "-P", "-s", "-c", _MAIN, _PARENT, *map(str, theirs)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=theirs,
                env=_environment(),
                cwd="/",
                start_new_session=True,  # Ctrl-C is the driver's business
            )
        return cls(process, [own for own, _ in pairs])

    def greet(self, setup: Setup) -> Ready:
        """Tell the servers where packages are and learn how they are protected."""
        self._setup = setup
        return self._get_ready(self._channels[0])

    def _get_ready(self, channel: socket.socket) -> Ready:
        """Have a server enter its namespaces, unless it has; the first one must be the first."""
        if channel not in self._ready:
            if self._setup is None:
                raise RuntimeError("greet the worker before it is asked for anything")
            channel.settimeout(_START_SECONDS)
            send(channel, self._setup)
            self._ready[channel] = _READY.decode(receive(channel))
        return self._ready[channel]

    def ask(self, task: TaskRecord, request: ProgramRequest, *, keep_value: bool) -> Evaluation:
        """Have one program evaluated."""
        shared = task.isolation == "shared"
        texts = task.files.values() if shared else ()
        channel = self._channels[any("scipy" in text for text in (request.program, *texts))]
        needed = self._unless_known(channel, task) if shared else _how_to_run(task)
        patience = 2 * request.limits.seconds + _PATIENCE_SECONDS
        self._get_ready(channel)
        channel.settimeout(patience)
        send(channel, msgspec.structs.replace(request, task=needed))
        answer = _ANSWER.decode(receive(channel))
        if answer.evaluation is not None:
            return answer.evaluation
        channel = self._channels[2]
        self._get_ready(channel)
        channel.settimeout(patience)
        scoring = ScoringRequest(
            task=self._unless_known(channel, task),
            limits=request.limits,
            keep_value=keep_value,
            key=request.key,
            returned=answer,
        )
        send(channel, scoring)
        return _EVALUATION.decode(receive(channel))

    def _unless_known(self, channel: socket.socket, task: TaskRecord) -> TaskRecord | None:
        known = (task.hash, task.files.get(task.notes_file))
        if self._known.get(channel) == known:
            return None
        self._known[channel] = known
        return task

    def hang_up(self) -> None:
        """Make the servers kill what runs and end; wakes a thread that waits for an answer."""
        for channel in self._channels:
            with suppress(OSError):
                channel.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """End the servers and wait for that; may be called twice, and by two threads at once."""
        self.hang_up()
        with self._stopping:
            if self._words is not None:
                return
            try:
                _, words = self.process.communicate(timeout=_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                _, words = self.process.communicate()
            for channel in self._channels:
                channel.close()
            for ready in self._ready.values():
                if ready.folder:
                    remove_tree(ready.folder)
            self._words = words[-2000:].decode("utf-8", "replace").strip()

    def last_words(self) -> str:
        """What servers that were stopped had to say, to be added to an error's text."""
        words = f"\n{self._words}" if self._words else ""
        return f"; exit code {self.process.returncode}{words}"


def _how_to_run(task: TaskRecord) -> TaskRecord:
    """What a programs' server may know of a task whose evaluator runs elsewhere."""
    return TaskRecord(
        name="",
        hash="",
        files={},
        program_file="",
        evaluator_file="",
        statement="",
        evolves=task.evolves,
        isolation=task.isolation,
        entry=task.entry,
        program_files=task.program_files,
        language=task.language,
    )


def _environment() -> dict[str, str]:
    """The whole environment of servers and programs: nothing of the user's but library paths."""
    own = {
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "PATH": os.pathsep.join((os.path.dirname(sys.executable), "/usr/bin", "/bin")),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "TMPDIR": "/tmp",
        "TZ": "UTC",
    }
    own |= {f"{library}_THREADS": "1" for library in _ONE_THREAD}
    if "LD_LIBRARY_PATH" in os.environ:
        own["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    return own


def _packages() -> tuple[str, ...]:
    """Folders of installed packages, wherever this process found them."""
    folders = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    for name in ("numpy", "scipy", "msgspec"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            folders.append(str(Path(spec.origin).parents[1]))
    return tuple(dict.fromkeys(os.path.abspath(folder) for folder in folders))


def _warn_once(ready: Ready) -> None:
    missing = {name: why for name, why in ready.missing.items() if why != SWITCHED_OFF}
    if not missing or _warned.is_set():
        return
    _warned.set()
    lines = [f"- {name} ({why}): {LAYERS[name]}" for name, why in missing.items()]
    warn(
        "the sandbox lacks protections on this platform:\n" + "\n".join(lines),
        SandboxWarning,
    )


_warned = threading.Event()
_shared_lock = threading.Lock()
_shared: dict[int, Evaluator] = {}


def evaluate(
    task: TaskRecord,
    program: str,
    limits: Limits,
    *,
    keep_value: bool = False,
    draw: int = 0,
    seed: int = 0,
) -> Evaluation:
    """`Evaluator.evaluate` of this process's own sandbox, as a function that can be sent about."""
    evaluator = shared_evaluator()
    return evaluator.evaluate(task, program, limits, keep_value=keep_value, draw=draw, seed=seed)


def shared_evaluator() -> Evaluator:
    """The evaluator of this process, made at the first call."""
    with _shared_lock:
        evaluator = _shared.get(os.getpid())
        if evaluator is None:
            _shared.clear()
            evaluator = _shared[os.getpid()] = Evaluator()
        return evaluator
