"""What passes a gate: counted when it is sent, against a budget and rates, in a log.

An intent is logged before its request is forwarded, its outcome once known; so after a kill intents
without an outcome count at their worst case.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from evo.gate.log import GateClosed, Kept, Opened, Sent, Settled, Watched, line_decoder, passed_of
from evo.logs.cost import UNITS, cost_of_tokens, is_turned_away, usage_tokens
from evo.logs.journal import LogError, Writer, file_name, go_on, unused
from evo.logs.records import Attempt, Model
from evo.models.limits import MINUTE, Lease, Rates
from evo.runs.budget import BudgetError, Ledger

MOMENT = 1.0  # seconds after which a request may be tried again that waits for those under way


class Refused(Exception):  # noqa: N818
    """A request is not forwarded: for good, or for some seconds of waiting."""

    def __init__(self, words: str, wait: float | None = None) -> None:
        super().__init__(words)
        self.wait = wait


class Account:
    """The requests of one gate, to a model at its prices; thread-safe.

    `bounded` tells whether a request has to have a bound of tokens, `repeats` how often each client
    sent each body.
    """

    def __init__(
        self, model: Model, limits: Mapping[str, float], rpm: int | None, tpm: int | None
    ) -> None:
        self._units = tuple(unit for unit in UNITS if unit != "seconds")
        for unit in limits.keys() - set(self._units):
            raise BudgetError(f"budget: a gate counts in {', '.join(self._units)}, got {unit!r}")
        self._model, self._ledger = model, Ledger(limits)
        self._rates = Rates(sys.maxsize, rpm=rpm, tpm=tpm)
        self.bounded = bool(limits.keys() - {"calls"}) or tpm is not None
        self._under_way: dict[int, tuple[Sent, Lease]] = {}
        self._settled = dict.fromkeys(self._units, 0.0)
        self._reserved = dict.fromkeys(self._units, 0.0)  # of those under way, as a running sum
        self._next = 0
        self._lacking: str | None = None  # the unit that a request was refused for
        self._refused = 0  # requests, for good, for the budget
        self._writer: Writer | None = None
        self._lock = threading.Lock()
        self.repeats: Counter[tuple[str, str]] = Counter()

    @property
    def spent(self) -> dict[str, float]:
        """By unit, requests under way at their worst; NaN where unknown."""
        with self._lock:
            return {unit: sum(self._amounts(unit)) for unit in self._units}

    @property
    def used_up(self) -> str | None:
        """The unit of the budget that does not suffice any more; None while all do."""
        most = self._ledger.limits.get("calls", math.inf)
        return "calls" if self.spent["calls"] + 1 > most else self._lacking

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return len(self._under_way)

    def open_log(self, path: Path, opened: contextlib.ExitStack) -> None:
        """Opens a new log, or continues one of the same model and counts its requests."""
        begin = self._header()
        writer, records = go_on(path, line_decoder, opened, what="log of a gate", begin=begin)
        for record in records:
            if isinstance(record, Opened) and record.model.name != self._model.name:
                raise LogError(
                    f"{path}: holds the calls of model {record.model.name!r}, not of "
                    f"{self._model.name!r}; name another log"
                )
            if isinstance(record, Sent | Kept):
                self.repeats[record.client, record.body] += 1
        wall, now = time.time(), time.monotonic()
        for sent, attempt, at in sorted(passed_of(records), key=lambda each: each.at or wall):
            cost, age = self._cost(sent, attempt), max(0.0, wall - (at or wall))
            self._count(cost)
            self._next = max(self._next, sent.number + 1)
            if age < MINUTE and (attempt is None or attempt.sent):
                lease = Lease(_whole(cost["tokens"]))
                self._rates.admit(lease, now=now - age)
                self._rates.release(lease, now=now - age)
        self._keep_log(writer, opened)

    def begin_log(self, opened: contextlib.ExitStack) -> Path:
        """Begins a log below logs/local under a name that nothing has; returns its path."""
        folder, stem = Path("logs/local"), f"gate-{file_name(self._model.name)}"
        while True:
            path = unused(folder, stem, ".jsonl")
            try:
                writer = opened.enter_context(Writer.create(path, self._header()))
            except LogError:
                if not path.exists():  # else another gate was quicker
                    raise
            else:
                self._keep_log(writer, opened)
                return path

    def _keep_log(self, writer: Writer, opened: contextlib.ExitStack) -> None:
        """Writes to a log from now on, and at the end what came of the budget."""
        self._writer = writer
        if self._ledger.limits:
            opened.callback(self._close_log)

    def _close_log(self) -> None:
        closed = GateClosed(at=time.time(), budget=dict(self._ledger.limits), refused=self._refused)
        with self._lock, contextlib.suppress(OSError):  # what it holds stays true without
            self._log(closed)

    def _header(self) -> Opened:
        return Opened(model=self._model, began=time.time())

    def admit(self, client: str, body: str, worst: Mapping[str, float]) -> Sent:
        """Counts and logs a request that is forwarded next.

        `Refused`: there is no room for its worst case; `OSError`: what cannot be logged, also where
        another file has taken the log's place, from which a later session would count anew.
        """
        with self._lock:
            self._check_budget(worst)
            now = time.monotonic()
            known = {unit: amount for unit, amount in worst.items() if math.isfinite(amount)}
            lease = Lease(_whole(known.get("tokens", 0.0)))
            if wait := self._rates.wait(lease.tokens, now=now):
                wait = wait if math.isfinite(wait) else MOMENT
                raise Refused(f"over this gate's limit a minute; retry in {wait:.2f} s", wait)
            sent = Sent(number=self._next, at=time.time(), client=client, body=body, worst=known)
            self._log(sent)
            self._next += 1
            self._under_way[sent.number] = (sent, lease)
            for unit, amount in known.items():
                self._reserved[unit] += amount
            self._rates.admit(lease, now=now)
        return sent

    def settle(self, sent: Sent, attempt: Attempt) -> None:
        """Counts what became of a request; what cannot be logged a later session takes at worst."""
        with self._lock:
            _, lease = self._under_way.pop(sent.number)
            for unit, amount in sent.worst.items():
                self._reserved[unit] = self._reserved[unit] - amount if self._under_way else 0.0
            cost = self._cost(sent, attempt)
            lease.settle(_whole(cost["tokens"]))
            self._rates.release(lease, now=time.monotonic())
            self._count(cost)
            if self._writer is not None:
                with contextlib.suppress(OSError):
                    self._writer.append(
                        Settled(number=sent.number, at=time.time(), attempt=attempt)
                    )

    def keep(self, client: str, body: str) -> None:
        """Logs a request that was answered from the cache."""
        self._log(Kept(at=time.time(), client=client, body=body))

    def watch(self, folders: Sequence[Path]) -> None:
        """Logs that a program starts whose files are looked for in some folders."""
        self._log(Watched(at=time.time(), folders=tuple(map(str, folders))))

    def _log(self, record: Sent | Kept | Watched | GateClosed) -> None:
        if self._writer is not None:
            try:
                self._writer.check_in_place()
            except LogError as error:
                raise OSError(str(error)) from None
            self._writer.append(record)

    def repeat(self, client: str, body: str, by: int = 1) -> int:
        """Returns how often a client sent a body before, and counts this time, or takes it back."""
        with self._lock:
            self.repeats[client, body] += by
            return self.repeats[client, body] - by

    def count_refused(self) -> None:
        """Counts a request that is refused because nothing bounds its cost."""
        with self._lock:
            self._refused += 1

    def _check_budget(self, worst: Mapping[str, float]) -> None:
        """Raises Refused unless even the worst case stays within every limit; the lock is held."""
        for unit, limit in self._ledger.limits.items():
            if self._has_ample(unit, worst[unit], limit):
                continue
            settled, reserved = self._amounts(unit)
            if unit == "calls":  # those under way are spent already
                settled, reserved = settled + reserved, 0.0
            if settled + worst[unit] > limit:
                self._lacking = unit if unit != "calls" else self._lacking
                self._refused += 1
                raise Refused(
                    f"the budget of this gate is used up: {settled:.10g} of {limit:.10g} {unit} "
                    f"are spent, and this request may take {worst[unit]:.10g}",
                )
            if settled + reserved + worst[unit] > limit:
                words = f"requests under way may take the {unit} that are left; retry in a moment"
                raise Refused(words, MOMENT)

    def _has_ample(self, unit: str, worst: float, limit: float) -> bool:
        """Whether there is room whatever rounding did to the running sum; the lock is held."""
        return (self._settled[unit] + self._reserved[unit] + worst) * (1 + 1e-9) <= limit

    def _amounts(self, unit: str) -> tuple[float, float]:
        """Returns what is settled, and what requests under way may cost; the lock is held."""
        reserved = (sent.worst.get(unit, math.nan) for sent, _ in self._under_way.values())
        return self._settled[unit], math.fsum(reserved)

    def _count(self, cost: Mapping[str, float]) -> None:
        self._ledger.check(cost)
        for unit, amount in cost.items():
            self._settled[unit] += amount

    def _cost(self, sent: Sent, attempt: Attempt | None) -> dict[str, float]:
        """What a request cost by unit, at its worst where the endpoint did not say."""
        used = usage_tokens(attempt.usage) if attempt is not None else None
        if used is not None:  # an error, too, may state what it took
            return cost_of_tokens(used, self._model)
        if attempt is not None and (not attempt.sent or is_turned_away(attempt)):
            return dict.fromkeys(self._units, 0.0) | {"calls": float(attempt.sent)}
        return {unit: sent.worst.get(unit, math.nan) for unit in self._units}


def _whole(tokens: float) -> int:
    return math.ceil(tokens) if math.isfinite(tokens) else 0
