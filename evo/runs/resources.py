"""What the runs of a session share: the model, the sandbox, slots, and the wish to stop."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from evo.logs.records import (
    NO_REPLY,
    AskedModel,
    Child,
    CriticCall,
    CriticRecord,
    Header,
    Model,
    Sampling,
)
from evo.logs.servers import hidden
from evo.logs.shared_requests import SharedRequests, Wish
from evo.models.cache import CachedClient
from evo.models.client import (
    Caller,
    EndpointDown,
    EndpointMissing,
    EndpointRefused,
    ModelClient,
)
from evo.models.critics import Known, Scorer
from evo.models.embeddings import EmbeddingClient
from evo.models.limits import Slots
from evo.models.open_files import fitting
from evo.parallel.interrupts import no_interrupt_lost
from evo.runs.delivery import PATIENCE, Delivery
from evo.runs.handle import LAST, Control
from evo.runs.progress import Tally, say
from evo.runs.settings import Event, Settings
from evo.runs.threads import Threads
from evo.warning import warn

if TYPE_CHECKING:
    from evo.runs import items
    from evo.runs.state import State
    from evo.sandbox import Evaluator
    from evo.sandbox.cluster import ClusterEvaluator


class ByHand(Protocol):
    """Stands in place of the model that children are asked of; see `evo.runs.searcher`."""

    @property
    def changed(self) -> threading.Condition:
        """Is held around all that follows, and notified of it."""
        ...

    def open(self, call: items.CallItem, state: State, take: Callable[..., None]) -> None:
        """Takes a call that is to be made, and what is to be called with its result."""
        ...

    def learn(self, children: Sequence[Child]) -> None:
        """Takes children that are done."""
        ...

    def cancel(self) -> None:
        """Ends all calls that wait."""
        ...


SCREENED = 4
"""Programs that filters look at, at a time."""


@dataclass(frozen=True)
class Resources:
    """What the runs of a session share.

    Attributes:
        settings: How the session works.
        slots: Limits the calls in flight.
        evaluator: The sandbox.
        control: Requests to stop.
        only: Answers the calls of all runs instead of their own models.
        hand: Is told the replies of children, where no model is called for them.
        isolated: Whether a refusal of one run leaves the others alone.
        active: The children under way, by log and number. Calls are ended only once these are
            logged.
        tally: Counts the calls.
        threads: Threads that generations borrow.
        screening: Limits the filters at work. They share Python's lock, and with many of them the
            thread that a user interrupts would seldom get it.
    """

    settings: Settings
    slots: Slots
    evaluator: Evaluator | ClusterEvaluator
    control: Control
    only: Caller | None = None
    isolated: bool = False
    hand: ByHand | None = None
    active: set[tuple[Path, int]] = field(default_factory=set)
    tally: Tally = field(default_factory=Tally)
    threads: Threads = field(default_factory=Threads)
    screening: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(SCREENED))
    _callers: dict[str, Caller] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _delivery: Delivery[Event] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_delivery", Delivery(self.settings.all_listeners))

    def caller(self, of: Header | CriticRecord | AskedModel) -> Caller:
        """Returns the client of a model and sampling, shared by all runs of these."""
        if self.only is not None:
            return self.only
        return self._client(ModelClient, of.model, of.sampling)

    def embedding_caller(self, model: Model) -> Caller:
        """Returns the client by which a model is asked for embeddings, shared likewise."""
        return self._client(EmbeddingClient, model, NO_REPLY)

    def _client(self, kind: type[ModelClient], model: Model, sampling: Sampling) -> Caller:
        """Returns a client, behind the cache if there is one; nothing is sent yet."""
        key, how = repr((kind.__name__, model, sampling)), self.settings
        with self._lock:
            if key not in self._callers:
                client = kind(
                    model, sampling,
                    slots=self.slots, timeout=how.call_timeout, retries=how.retries,
                )  # fmt: skip
                self._callers[key] = (
                    client if how.cache is None else CachedClient.at(how.cache, client)
                )
                self.control.heed(self.control.ended, self._callers[key].cancel)
            return self._callers[key]

    def tell(self, event: Event) -> None:
        """Delivers an event to the session's listener, if there is one."""
        self._delivery.put(event)

    def tell_once(self, words: str) -> None:
        """Shows a line to the user, once in a session, where progress is shown."""
        with self._lock:
            new = words not in self._said
            self._said.add(words)
        if new and self.settings.progress:
            say(words)

    def warn_once(self, kind: str, words: str) -> None:
        """Warns unless an earlier run of the session has given a warning of this kind."""
        with self._lock:
            new = kind not in self._said
            self._said.add(kind)
        if new:
            warn(words)

    def scorer(
        self, header: Header, on_call: Callable[[CriticCall], None], known: Known
    ) -> Scorer | None:
        """Returns what scores by a run's critic, if it has one; it tells of each call."""
        if header.critic is None:
            return None
        return Scorer(
            header.critic, self.caller(header.critic), on_call, known, self.control.stopping
        )

    def is_fatal(self, error: BaseException) -> bool:
        """Whether an error of one run ends the session."""
        own = isinstance(error, EndpointDown | EndpointRefused | ValueError)
        return not (self.isolated and own) or isinstance(error, EndpointMissing)

    def wind_down(self, path: Path, error: BaseException) -> None:
        """Waits until what a run has under way is logged, or ended because of a stop."""
        interrupted = isinstance(error, KeyboardInterrupt)
        if interrupted or (self.is_fatal(error) and not self.control.stopping.is_set()):
            self.control.stop()
        try:
            self._wait_for(path)
        except KeyboardInterrupt:  # a second one
            self.control.end()
            self._wait_for(path)  # for what is ended then to be logged
            raise

    def _wait_for(self, path: Path) -> None:
        """Waits until a run has nothing under way, or until that was ended and had a moment."""
        deadline = float("inf")
        while any(log == path for log, _ in list(self.active)) and time.monotonic() < deadline:
            if self.control.ended.wait(0.02):
                deadline = min(deadline, time.monotonic() + LAST)
                time.sleep(0.02)

    def close(self) -> None:
        """Lets go of connections and workers; what is still under way ends."""
        for caller in self._callers.values():
            caller.cancel()
            caller.close()
        self.threads.close()
        self.evaluator.close()
        self._delivery.close(0.0 if self.control.ended.is_set() else PATIENCE)


@contextlib.contextmanager
def open_resources(
    settings: Settings,
    control: Control | None = None,
    *,
    only: Caller | None = None,
    isolated: bool = False,
    hand: ByHand | None = None,
) -> Generator[Resources]:
    """Yields slots, sandbox and models, see `Resources`, and closes them all."""
    from evo.sandbox.cluster import open_evaluator

    workers = 1 if settings.max_concurrent == 1 else settings.workers
    slots = Slots(
        fitting(settings.max_concurrent, workers or os.cpu_count() or 1),
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
    )
    evaluator, control = open_evaluator(workers, settings.scheduler), control or Control()
    resources = Resources(settings, slots, evaluator, control, only, isolated, hand)
    control.heed(control.stopping, slots.cancel)
    control.heed(control.ended, evaluator.close)
    control.heed_hold(slots.hold)
    if hand is not None:
        control.heed(control.stopping, hand.cancel)
    with (
        no_interrupt_lost(),
        contextlib.closing(resources),
        listening(settings, control),
    ):
        yield resources


def listening(settings: Settings, control: Control) -> contextlib.AbstractContextManager[object]:
    """Returns what hears the requests that live in a Redis server, if the settings name one."""
    if settings.control is None:
        return contextlib.nullcontext()
    lift = f"`evo go-on --control {hidden(settings.control)}` goes on"

    def heed(wish: Wish) -> None:
        if wish == "stop":
            control.stop()
            return
        control.hold(wish == "pause")
        if settings.progress:
            say(f"paused: no further call begins; {lift}" if wish == "pause" else "going on")

    requests = SharedRequests(settings.control, lambda: list(control.paths), heed)
    control.heed_claim(requests.look)
    return requests
