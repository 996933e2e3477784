"""The driver of a sweep: proposes, runs, heeds wishes, and sums up."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.concurrency import find_preset
from evo.configuration import Settings
from evo.cost import Cost
from evo.handle import GRACE
from evo.llm.client import Caller, EndpointMissing, EndpointRefused
from evo.runs.resources import Resources, open_caller, open_resources
from evo.sweeping.admission import Admission, AdmittingSlots, RunCaller, amounts
from evo.sweeping.events import ENDS, Event, EventLog
from evo.sweeping.fields import Configuration, hash_of
from evo.sweeping.lanes import Lane, LaneWork, cost_of_log, logs_of, pending_lanes
from evo.sweeping.plan import Plan, claim, read_plan

if TYPE_CHECKING:
    from tqdm import tqdm

POLL = 0.1  # seconds between looks at what other processes wrote

Subscriber = Callable[[Event], None]


@dataclass(frozen=True)
class Summary:
    """How a sweep stands.

    Attributes:
        total: Runs in all; of trials not proposed yet, as many as there may be.
        completed: Runs that are over.
        failed: Runs that cannot be made; going on tries them again.
        cancelled: Runs left out because the sweep was stopped.
        pending: Runs still to be made.
        prompt_tokens: Of all calls in the logs; None: unknown, as the next.
        completion_tokens: Likewise.
        ended: Why the last session did: completed, stopped, paused, budget, interrupted (by an
            error); running: it goes on, or was killed.
        folder: Of the sweep.
    """

    total: int
    completed: int
    failed: int
    cancelled: int
    pending: int
    prompt_tokens: float | None
    completion_tokens: float | None
    ended: str
    folder: Path

    def __str__(self) -> str:
        """Render as one line."""
        tokens = [self.prompt_tokens, self.completion_tokens]
        shown = " + ".join("unknown" if each is None else f"{each:,.0f}" for each in tokens)
        return (
            f"{self.ended}: {self.completed} of {self.total} runs completed, {self.failed} failed, "
            f"{self.cancelled} cancelled, {self.pending} pending; {shown} tokens; {self.folder}"
        )


def summarise(folder: Path) -> Summary:
    """Returns how a sweep stands, from its files alone."""
    plan, events = read_plan(folder), EventLog(folder)
    events.refresh()
    state = events.state
    known = len(state.configurations)
    left = max(0, plan.build_strategy().planned - len(state.trials))
    total = (known + left) * len(plan.seeds)
    open_ = total - len(state.completed) - len(state.failed)
    stopped = state.ended == "stopped"
    cost = sum((cost_of_log(log) for log in logs_of(folder)), Cost())
    return Summary(
        total=total,
        completed=len(state.completed),
        failed=len(state.failed),
        cancelled=open_ if stopped else 0,
        pending=0 if stopped else open_,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        ended=state.ended or "running",
        folder=folder,
    )


class Driver:
    """One session: this process's work on a sweep, from beginning to end.

    Args:
        folder: Of the sweep; holds its plan.
        budget: Limits by unit; empty: none.
        settings: How the session works.
        on_event: Told of every event from now on, those of other processes included, in the order
            of the file.
    """

    def __init__(
        self,
        folder: Path,
        budget: dict[str, float],
        settings: Settings,
        on_event: Subscriber | None,
    ) -> None:
        self._folder, self._budget, self._settings = folder, budget, settings
        self._plan: Plan = read_plan(folder)
        self._strategy = self._plan.build_strategy()
        self._on_event = on_event
        self._events = EventLog(folder)
        self._known: dict[str, Configuration | str] = {}
        self._clients: dict[tuple[Any, Any], Caller] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._admission = Admission(budget)
        self._resources: Resources | None = None
        self._events.refresh()
        self._told = len(self._events.events)  # wishes count from here on

    def work(self) -> None:
        """Works until nothing is left, it is asked to pause or stop, or the budget is spent.

        Raises:
            EndpointDown: The endpoint does not answer; the sweep can go on later.
            LogBusyError: Another process works on it, and there is a budget.
            LogError: The events are damaged.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(claim(self._folder, alone=bool(self._budget)))
            self._events.refresh()
            self._admission.begin(self._spent())
            with self._events.writing() as write:
                again = any(event.event == "started" for event in self._events.events)
                write("resumed" if again else "started", data=self._budget)
            bar = stack.enter_context(contextlib.closing(self._progress()))
            watcher = threading.Thread(target=self._watch, args=(bar,), daemon=True)
            watcher.start()
            done = False
            try:
                done = self._work(stack)
            except BaseException as error:
                self._halt(error)
            finally:
                ended = "completed" if done else self._admission.halted or "completed"
                self._end(ended)
                self._over.set()
                watcher.join()
        if self._error is not None:
            raise self._error

    def kill(self) -> None:
        """Ends calls and evaluations under way."""
        with self._lock:
            clients = list(self._clients.values())
        for client in clients:
            client.cancel()
        if self._resources is not None:
            self._resources.evaluator.close()

    def halt(self, why: str) -> None:
        """Lets no further call begin."""
        self._admission.halt(why)

    def _work(self, stack: contextlib.ExitStack) -> bool:
        """Proposes and runs; returns whether nothing is left."""
        resources = stack.enter_context(open_resources(self._settings))
        slots: Any = AdmittingSlots(resources.slots, self._admission)
        self._resources = resources = dataclasses.replace(resources, slots=slots)
        stack.callback(self._close_clients)
        work = LaneWork(
            folder=self._folder,
            events=self._events,
            admission=self._admission,
            settings=self._settings,
            resources=resources,
        )
        while not self._admission.halted:
            self._events.refresh()
            lanes = self._lanes()
            if not lanes and not self._propose():
                return True
            if lanes:
                before = len(self._events.state.completed)
                self._run(lanes, work)
                if len(self._events.state.completed) == before:
                    self._over.wait(POLL)  # others are at what is left
        return not self._lanes() and len(self._events.state.trials) >= self._strategy.planned

    def _lanes(self) -> list[Lane]:
        """Returns what is left to run of what was proposed."""
        for values, hash_ in self._events.state.trials:
            if hash_ not in self._known:
                self._known[hash_] = self._configure(values, hash_)
        state = self._events.state
        failed = {
            (hash_, seed): why
            for hash_, why in self._known.items()
            if isinstance(why, str)
            for seed in self._plan.seeds
            if (hash_, seed) not in state.failed
        }
        for (hash_, seed), why in failed.items():
            self._events.append("run_failed", configuration=hash_, seed=seed, message=why)
        return pending_lanes(self._plan, state, self._known)

    def _configure(self, values: dict[str, Any], hash_: str) -> Configuration | str:
        try:
            configuration = self._plan.configure(values)
        except (ValueError, TypeError) as error:
            return str(error)
        if configuration.id != hash_:
            raise ValueError(
                f"{self._folder}: {values!r} was configuration {hash_} when it was proposed and is "
                f"{configuration.id} now: the model or this software has changed since"
            )
        return configuration

    def _propose(self) -> bool:
        """Writes down the next trials, unless another process just did; whether there are any."""
        with self._events.writing() as write:
            state = self._events.state
            known = len(self._known)
            if len(state.configurations) > known:
                return True
            first = len(state.trials)
            batch = self._strategy.propose(state.history(self._plan.seeds))
            for trial, values in enumerate(batch, start=first):
                try:
                    hash_ = self._plan.configure(values).id
                except (ValueError, TypeError):
                    hash_ = hash_of(values)
                write("proposed", trial=trial, configuration=hash_, values=values)
        return bool(batch)

    def _run(self, lanes: list[Lane], work: LaneWork) -> None:
        """Advances lanes, several at a time, so that slots and cores stay busy."""
        from joblib import Parallel, delayed

        def one(lane: Lane) -> None:
            if self._admission.halted:
                return
            try:
                client = self._client(lane, work.resources)
                work.advance(lane, RunCaller(client, self._admission, lane.header))
            except EndpointMissing as error:
                self._halt(error)
            except (EndpointRefused, ValueError) as error:
                work.fail(lane, error)
            except BaseException as error:
                self._halt(error)

        at_once = self._settings.max_concurrent
        if at_once > 1:
            at_once = max(3, 2 * at_once // min(lane.header.children for lane in lanes))
        preset = find_preset(self._settings.preset) if self._settings.preset else None
        if preset and self._settings.max_concurrent == preset.max_concurrent:
            at_once = min(at_once, preset.configurations_in_flight)
        if min(at_once, len(lanes)) == 1:
            for lane in lanes:
                one(lane)
            return
        parallel = Parallel(
            n_jobs=min(at_once, len(lanes)), backend="threading", batch_size=1, pre_dispatch="all"
        )
        parallel(delayed(one)(lane) for lane in lanes)

    def _client(self, lane: Lane, resources: Resources) -> Caller:
        """Returns the client of a lane's model, shared by all lanes of that model."""
        model, sampling = lane.header.model, lane.header.sampling
        key = (repr(model), sampling)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = open_caller(lane.header, self._settings, resources.slots)
            return self._clients[key]

    def _close_clients(self) -> None:
        for client in self._clients.values():
            client.close()

    def _halt(self, error: BaseException) -> None:
        """Ends the session because of an error; what is under way may finish."""
        if self._error is None and self._admission.halted != "stopped":
            self._error = error
        self._admission.halt("interrupted")

    def _spent(self) -> dict[str, float]:
        """Returns what earlier sessions spent, by unit; as far as the logs know."""
        if not self._budget:
            return {}
        total: dict[str, float] = {"seconds": self._events.state.seconds}
        for log in logs_of(self._folder):
            for unit, amount in amounts(cost_of_log(log), {}).items():
                total[unit] = total.get(unit, 0.0) + amount
        return total

    def _watch(self, bar: tqdm[Any]) -> None:
        """Heeds wishes and tells the subscriber, until the session is over."""
        try:
            while not self._over.wait(POLL):
                self._events.refresh()
                self._tell(bar)
                self._admission.wake()
            self._tell(bar)
        except Exception as error:
            self._halt(error)

    def _tell(self, bar: tqdm[Any]) -> None:
        new = self._events.events[self._told :]
        for event in new:
            self._told += 1
            if event.event == "pause_requested":
                self._admission.halt("paused")
            elif event.event == "stop_requested":
                self._admission.halt("stopped")
                threading.Thread(target=self._kill_soon, daemon=True).start()
            if self._on_event is not None:
                self._on_event(event)
        if new:
            state = self._events.state
            bar.update(len(state.completed) + len(state.failed) - bar.n)

    def _kill_soon(self) -> None:
        """After a stop, what is under way has a moment to finish."""
        if not self._over.wait(GRACE):
            self.kill()

    def _end(self, ended: str) -> None:
        kind = next(kind for kind, word in ENDS.items() if word == ended)
        message = str(self._error) if self._error is not None else None
        self._events.append(kind, message=message)

    def _progress(self) -> tqdm[Any]:
        from tqdm.auto import tqdm

        total = self._strategy.planned * len(self._plan.seeds)
        shown = self._settings.progress
        return tqdm(total=total, desc=f"sweep {self._folder.name}", unit="run", disable=not shown)


def standings(folder: Path) -> list[tuple[str, dict[str, Any], list[float]]]:
    """Returns each configuration's hash, values and fitnesses so far, the best mean first."""
    events = EventLog(folder)
    events.refresh()
    state = events.state
    made = []
    for hash_, values in state.configurations.items():
        found = [
            run.data.get("fitness") for (own, _), run in state.completed.items() if own == hash_
        ]
        made.append((hash_, values, [fitness for fitness in found if fitness is not None]))
    return sorted(made, key=lambda row: -(sum(row[2]) / len(row[2])) if row[2] else 1.0)
