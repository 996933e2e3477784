"""Evaluations on the workers of a Dask cluster; calls, keys and logs stay in the driver.

Each worker process keeps a sandbox of its own (`evo.sandbox.evaluate`): started at its first
evaluation, gone with the process. A worker that dies costs its evaluations again, no more.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import TYPE_CHECKING, cast

from evo.logs.records import Evaluation, Limits, TaskRecord
from evo.sandbox.evaluator import (
    Evaluator,
    EvaluatorClosed,
    SandboxError,
    evaluate,
    shared_evaluator,
)

if TYPE_CHECKING:
    import distributed

_CONNECT_SECONDS = 15
_WORKER_SECONDS = 30  # that a scheduler without workers is given
_GONE = (OSError, RuntimeError, CancelledError)  # what a lost scheduler raises
_TRIES = 3  # each ends only after Dask itself saw several workers die over one evaluation


class ClusterEvaluator:
    """Evaluates programs on the workers of a Dask cluster; used like an `Evaluator`.

    At most `workers` at a time; None: only the cluster limits them. An `owned` client is closed
    with the evaluator.
    """

    def __init__(
        self, client: distributed.Client, *, workers: int | None = None, owned: bool = False
    ) -> None:
        self._client, self._owned = client, owned
        self._places: AbstractContextManager[object] = (
            contextlib.nullcontext() if workers is None else threading.Semaphore(workers)
        )
        self._under_way: set[distributed.Future] = set()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def protections(self) -> tuple[str, ...]:
        """Names of the layers active on every worker; `SandboxError` if none can evaluate."""
        import distributed

        where, own = self._client.scheduler_info()["address"], version("evo-replay")
        try:
            self._client.wait_for_workers(1, timeout=_WORKER_SECONDS)
            found = self._client.run(_describe)
        except distributed.TimeoutError:
            words = f"has no workers: start one with `dask worker {where}`"
            raise SandboxError(f"the Dask scheduler {where} {words}") from None
        except (ImportError, AttributeError) as error:
            words = f"a Dask worker of {where} lacks evo-replay {own}: {error}"
            raise SandboxError(words) from None
        for worker, (installed, _) in found.items():
            if installed != own:
                words = f"has evo-replay {installed}, expected {own} as here"
                raise SandboxError(f"the Dask worker {worker} {words}")
        every = [layers for _, layers in found.values()]
        return tuple(name for name in every[0] if all(name in layers for layers in every))

    def evaluate(
        self, task: TaskRecord, program: str, limits: Limits, *, draw: int = 0, seed: int = 0
    ) -> Evaluation:
        """`Evaluator.evaluate` on some worker; `SandboxError` also where the scheduler is gone."""
        import distributed

        reason: BaseException | None = None
        with self._places:
            for _ in range(_TRIES):
                with self._lock:
                    if self._closed:
                        raise EvaluatorClosed("the evaluator was closed")
                    if self._client.status not in ("running", "connecting"):
                        raise SandboxError("the connection to the Dask scheduler is lost")
                    future = self._client.submit(
                        evaluate, task, program, limits, draw=draw, seed=seed, pure=False
                    )
                    self._under_way.add(future)
                try:
                    return cast(Evaluation, future.result())
                except (distributed.KilledWorker, CancelledError, EvaluatorClosed) as error:
                    reason = error  # a worker that is being stopped closes its evaluator
                finally:
                    with self._lock:
                        self._under_way.discard(future)
                    future.release()
        raise SandboxError(f"the Dask cluster lost an evaluation {_TRIES} times: {reason}")

    def close(self) -> None:
        """Gives up evaluations under way, which raise `EvaluatorClosed`."""
        with self._lock:
            already, self._closed = self._closed, True
            under_way = list(self._under_way)
        if already:
            return
        with contextlib.suppress(*_GONE):
            self._client.cancel(under_way, force=True)
            if self._owned:
                self._client.close()


def _describe() -> tuple[str, tuple[str, ...]]:
    """Version of this package and layers of protection of a worker; starts its sandbox."""
    return version("evo-replay"), shared_evaluator().protections


def open_evaluator(workers: int | None, scheduler: str | None) -> Evaluator | ClusterEvaluator:
    """Where programs are evaluated, so many at a time; None: one per core, all of a cluster.

    The cluster of a Dask scheduler (`tcp://host:8786`) if one is given, or of the calling thread's
    `joblib.parallel_config(backend="dask")`; else this machine.
    """
    if scheduler is not None:
        return ClusterEvaluator(_connect(scheduler), workers=workers, owned=True)
    backend = active_backend()
    if backend is None:
        return Evaluator(workers)
    if not hasattr(backend, "client"):
        raise ValueError(
            f"joblib's backend {type(backend).__name__}: evaluations run on this machine or on "
            "Dask workers, which other clusters can start as their jobs"
        )
    return ClusterEvaluator(backend.client, workers=workers)


def active_backend() -> object:
    """Joblib's backend of the calling thread if it reaches beyond this machine, or None."""
    if "joblib" not in sys.modules:
        return None
    from joblib.parallel import get_active_backend

    backend = get_active_backend()[0]
    own = type(backend).__module__ in ("joblib.parallel", "joblib._parallel_backends")
    return None if own else backend


def carry_backend() -> Callable[[], AbstractContextManager[object]]:
    """A context that gives a thread started later the calling thread's cluster."""
    backend = active_backend()
    if backend is None:
        return contextlib.nullcontext
    from joblib import parallel_config

    return lambda: parallel_config(backend=backend)


def _connect(scheduler: str) -> distributed.Client:
    try:
        import distributed
    except ImportError:
        raise ValueError(
            "evaluations on a Dask cluster need Dask: pip install 'evo-replay[dask]'"
        ) from None
    try:
        return distributed.Client(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OSError(f"no Dask scheduler answers at {scheduler!r}: {error}") from None
