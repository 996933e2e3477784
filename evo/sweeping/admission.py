"""Admission: which calls of a sweep may begin.

Every call asks twice. Before it queues for a slot it waits until the budget has room: what was
spent, what the admitted calls are expected to spend and what this one is expected to spend must
fit. While no call is admitted one may go as long as anything is left. So what is spent exceeds a
budget by no more than what was in flight when it ran out, and a budget in calls is kept to the
call. Once it has its slot it asks again, and is refused if the sweep was paused or stopped since.

A call is expected to spend as much as the largest of its model so far; of the first twenty each its
whole `max_tokens` and a prompt of one token per three bytes.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from evo.cost import Cost, cost_of_attempts, price_of_tokens
from evo.llm.client import Call, CallCancelled, Caller, Messages
from evo.llm.limits import SlotCancelled, Slots
from evo.records import Child, Header, Model, Sampling

BYTES_PER_TOKEN = 3
KNOWN = 20  # calls of a model after which the largest of them tells what to expect

Amounts = dict[str, float]
"""By unit of a budget."""


class Admission:
    """What all calls of a sweep ask before they begin; thread-safe.

    Args:
        limits: The budget by unit: calls, tokens, dollars, seconds; empty: no limit.

    Attributes:
        halted: Why no further call may begin: paused, stopped, budget or interrupted; None: it may.
    """

    def __init__(self, limits: Mapping[str, float]) -> None:
        self.halted: str | None = None
        self._limits = dict(limits)
        self._spent = dict.fromkeys(limits, 0.0)
        self._reserved = dict.fromkeys(limits, 0.0)
        self._admitted = 0
        self._known: dict[str, tuple[int, Amounts]] = {}  # by model: calls, the largest by unit
        self._changed = threading.Condition()
        self._asking = threading.local()
        self._deadline = math.inf

    def begin(self, spent: Mapping[str, float]) -> None:
        """Begins a session, and its seconds, after what earlier ones spent."""
        with self._changed:
            self._spent = {unit: spent.get(unit, 0.0) for unit in self._limits}
            left = self._limits.get("seconds", math.inf) - spent.get("seconds", 0.0)
            self._deadline = time.monotonic() + left

    @property
    def spent(self) -> Amounts:
        """What calls that are over have spent, by unit of the budget; seconds up to now."""
        with self._changed:
            spent = dict(self._spent)
            if "seconds" in spent:
                spent["seconds"] = self._limits["seconds"] + time.monotonic() - self._deadline
            return spent

    def halt(self, why: str) -> None:
        """Lets no further call begin; those under way go on. The first reason counts."""
        with self._changed:
            self.halted = self.halted or why
            self._changed.notify_all()

    @contextmanager
    def asking(self, caller: RunCaller, expected: Amounts) -> Iterator[Ticket]:
        """Makes this thread's next slot ask for this call, and settles once it is over."""
        ticket = Ticket(caller, expected)
        self._asking.ticket = ticket
        try:
            yield ticket
        finally:
            self._asking.ticket = None
            if ticket.reserved is not None:
                self._settle(ticket, ticket.reserved)

    def reserve(self) -> None:
        """Called before a call queues for a slot: waits until the budget has room for it.

        Raises:
            SlotCancelled: The call may not begin.
        """
        ticket: Ticket | None = getattr(self._asking, "ticket", None)
        if ticket is None or ticket.reserved is not None:
            return
        with self._changed:
            while True:
                if self._exhausted():
                    self.halt("budget")
                self._refuse(ticket)
                count, largest = self._known.get(ticket.caller.model.name, (0, {}))
                expected = largest if count >= KNOWN else ticket.expected
                if self._admitted == 0 or self._fits(expected):
                    break
                self._changed.wait()
            ticket.reserved = expected
            self._admitted += 1
            for unit in self._reserved:
                self._reserved[unit] += expected.get(unit, 0.0)

    def enter(self) -> None:
        """Called with a slot, before a request is sent.

        Raises:
            SlotCancelled: The call may not begin. One that has begun may be tried again.
        """
        ticket: Ticket | None = getattr(self._asking, "ticket", None)
        if ticket is None or ticket.begun:
            return
        with self._changed:
            self._refuse(ticket)
            ticket.begun = True
            ticket.caller.began(ticket)

    def _refuse(self, ticket: Ticket) -> None:
        if self.halted or ticket.caller.cancelled:
            raise SlotCancelled(f"the sweep is {self.halted or 'over for this run'}")

    def wake(self) -> None:
        """Makes calls that wait look again at what changed."""
        with self._changed:
            self._changed.notify_all()

    def _exhausted(self) -> bool:
        return time.monotonic() >= self._deadline or any(
            self._spent[unit] >= limit for unit, limit in self._limits.items() if unit != "seconds"
        )

    def _fits(self, expected: Amounts) -> bool:
        return all(
            self._spent[unit] + self._reserved[unit] + expected.get(unit, 0.0) <= limit
            for unit, limit in self._limits.items()
            if unit != "seconds"
        )

    def _settle(self, ticket: Ticket, reserved: Amounts) -> None:
        """Replaces what a call was expected to spend by what it did."""
        with self._changed:
            self._admitted -= 1
            used = ticket.used
            for unit in self._reserved:
                self._reserved[unit] -= reserved.get(unit, 0.0)
                self._spent[unit] += used.get(unit, 0.0)
            if used:
                name = ticket.caller.model.name
                count, before = self._known.get(name, (0, {}))
                largest = {unit: max(used[unit], before.get(unit, 0.0)) for unit in used}
                self._known[name] = (count + 1, largest)
            self._changed.notify_all()


class Ticket:
    """One call: what it is expected to spend, and what it did."""

    def __init__(self, caller: RunCaller, expected: Amounts) -> None:
        self.caller, self.expected = caller, expected
        self.begun = False
        self.reserved: Amounts | None = None
        self.used: Amounts = {}


class RunCaller:
    """The model as one run of a sweep sees it; see `evo.llm.client.Caller`.

    A run ends by an exception out of the first call that is refused. That call waits until what
    the run has in flight is evaluated and logged, so that a pause loses nothing.
    """

    def __init__(self, client: Caller, admission: Admission, header: Header) -> None:
        self._client, self._admission = client, admission
        self._through_log = not header.task.asks_model  # else children wait for calls themselves
        self._open: set[object] = set()  # calls in flight, and children to be logged
        self._changed = threading.Condition()
        self.cancelled = False

    @property
    def model(self) -> Model:
        """The model."""
        return self._client.model

    @property
    def sampling(self) -> Sampling:
        """How it samples."""
        return self._client.sampling

    def call(self, messages: Messages, *, seed: int, generation: int, index: int) -> Call:
        """Asks for one reply, if the sweep admits it."""
        key = (generation, index)
        expected = expected_amounts(messages, self.model, self.sampling)
        call: Call | None = None
        ticket: Ticket | None = None
        try:
            with self._admission.asking(self, expected) as ticket:
                if self.cancelled:
                    raise CallCancelled("the run is over")
                call = self._client.call(messages, seed=seed, generation=generation, index=index)
                ticket.used = used_amounts(call, self.model, self.sampling, ticket.reserved or {})
                if call.reply is not None and self._through_log:
                    with self._changed:
                        self._open.add(key)
        except CallCancelled:
            if ticket is not None and not ticket.begun:
                self._wait_for_others()
            raise
        finally:
            if ticket is not None:
                self._close(ticket)
        return call

    def began(self, ticket: Ticket) -> None:
        """A call of this run is in flight."""
        with self._changed:
            self._open.add(ticket)

    def logged(self, child: Child) -> None:
        """A child of this run is in the log."""
        self._close((child.generation, child.index))

    def cancel(self) -> None:
        """Lets no further call of this run begin; those under way are the sweep's to end."""
        with self._changed:
            self.cancelled = True
            self._changed.notify_all()
        self._admission.wake()

    def close(self) -> None:
        """The client is the sweep's to close."""

    def _close(self, key: object) -> None:
        with self._changed:
            self._open.discard(key)
            self._changed.notify_all()

    def _wait_for_others(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.cancelled or not self._open)


class AdmittingSlots:
    """Slots that ask the admission before they let a request go; all else is the slots' own."""

    def __init__(self, slots: Slots, admission: Admission) -> None:
        self._slots, self._admission = slots, admission

    @contextmanager
    def slot(self, *arguments: Any, **keywords: Any) -> Iterator[Any]:
        """Waits for the budget and for a slot; arguments as for `Slots.slot`."""
        self._admission.reserve()  # first, so that who waits for the budget holds no slot
        with self._slots.slot(*arguments, **keywords) as lease:
            self._admission.enter()
            yield lease

    def __getattr__(self, name: str) -> Any:
        return getattr(self._slots, name)


def expected_amounts(messages: Messages, model: Model, sampling: Sampling) -> Amounts:
    """Returns what a call may spend at worst, by unit; without a price no dollars."""
    prompt = len(msgspec.json.encode(messages)) / BYTES_PER_TOKEN
    completion = float(sampling.max_tokens or 0)
    dollars = price_of_tokens(prompt, 0.0, completion, model=model)
    known = {"calls": 1.0, "tokens": prompt + completion, "dollars": dollars}
    return {unit: amount for unit, amount in known.items() if not math.isnan(amount)}


def used_amounts(call: Call, model: Model, sampling: Sampling, reserved: Amounts) -> Amounts:
    """Returns what a call spent, by unit; where that is unknown, what was reserved for it."""
    return amounts(cost_of_attempts(call.attempts, model, sampling), reserved)


def amounts(cost: Cost, unknown: Amounts) -> Amounts:
    """Returns a cost by unit of a budget."""
    known = {"calls": float(cost.calls), "tokens": cost.tokens, "dollars": cost.dollars}
    return {unit: unknown.get(unit, 0.0) if v is None else v for unit, v in known.items()}
