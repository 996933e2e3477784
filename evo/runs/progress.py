"""Figures that people watch: calls, tokens, retries, waits and costs of a session or a log."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from evo.logs.cost import Cost, cost_of_attempts
from evo.logs.records import AskedModel, Attempt, CriticRecord, Header, Outcome
from evo.models.limits import Load

if TYPE_CHECKING:
    from tqdm import tqdm


def say(words: str) -> None:
    """Shows a line to the user, above a progress bar if there is one."""
    from tqdm import tqdm

    if _is_shown():
        tqdm.write(words, file=sys.stderr)


def _is_shown() -> bool:
    """Whether there is a standard error, which a service or a notebook may have closed."""
    return sys.stderr is not None and not sys.stderr.closed


class Tally:
    """Adds up the attempts, tokens and costs of calls; it is thread-safe.

    `attempts` are HTTP requests, `cached` the calls that the cache answered; `failures` go by HTTP
    status, else `timeout` or `error`; `tokens` and `dollars` (None without prices) leave attempts
    without usage out. `tokens` is None where no answer stated its usage. `silent` counts imported
    calls without recorded requests, whose cost is unknown. `stand_ins` names the models among those
    asked that are no LLMs, which cost no dollars.
    """

    def __init__(self) -> None:
        self.calls = self.attempts = self.cached = self.silent = 0
        self.failures: Counter[str] = Counter()
        self.dollars: float | None = 0.0
        self.stand_ins: set[str] = set()
        self._tokens, self._unstated = 0.0, False
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def add(self, attempts: Sequence[Attempt], of: Header | CriticRecord | AskedModel) -> None:
        """Adds one call, of a run's model or of its critic."""
        cost = cost_of_attempts(attempts, of.model, of.sampling, rule="exclude")
        silent = not attempts and not getattr(of, "source", "evo").startswith("evo")
        if silent:
            cost = Cost(calls=1, prompt_tokens=None, completion_tokens=None, dollars=None)
        with self._lock:
            self.calls += cost.calls
            self.silent += silent
            self.cached += any(attempt.cached for attempt in attempts)
            self.attempts += sum(not attempt.cached for attempt in attempts)
            for attempt in attempts:
                if attempt.status != "ok":
                    self.failures[str(attempt.http_status or attempt.status)] += 1
            self._tokens += cost.tokens or 0.0
            self._unstated = self._unstated or cost.tokens is None
            if not of.model.is_llm:
                self.stand_ins.add(of.model.name)
            priced = of.model.is_llm and cost.dollars is not None  # the stand-in's are invented
            known = self.dollars is not None and priced
            self.dollars = (self.dollars or 0.0) + (cost.dollars or 0.0) if known else None

    @property
    def tokens(self) -> float | None:
        """Tokens of the answers that stated their usage; None: there are answers and none did."""
        return None if self._unstated and not self._tokens else self._tokens

    @property
    def retries(self) -> int:
        """Attempts beyond the first of each call."""
        return max(0, self.attempts + self.cached - self.calls)

    @property
    def seconds(self) -> float:
        """Wall time since the tally began."""
        return time.monotonic() - self._began

    def stats(self, load: Load) -> dict[str, float]:
        """Returns the figures by name, for a log's closing line; see `evo.logs.records.RunEnd`."""
        with self._lock:
            failures = {f"failed_{name}": float(n) for name, n in sorted(self.failures.items())}
            seconds, tokens = self.seconds, self.tokens
            figures: dict[str, float | None] = {
                "calls": self.calls,
                "attempts": self.attempts,
                "retries": self.retries,
                **failures,
                "cached": self.cached,
                "tokens": tokens,
                "dollars": self.dollars,
                "seconds": seconds,
                "calls_per_second": self.calls / seconds,
                "tokens_per_second": None if tokens is None else tokens / seconds,
                "utilisation": load.utilisation if load.open else None,
                "queued_seconds": load.queued,
                "limited_seconds": load.limited,
            }
        return {name: round(value, 6) for name, value in figures.items() if value is not None}


def short(number: float) -> str:
    """Returns a number in a few characters: 950, 4.1k, 1.2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:  # which three digits would round to a power of ten
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def duration(seconds: float) -> str:
    """Returns a time in seconds, minutes or hours; NaN is unknown."""
    if math.isnan(seconds):
        return "unknown"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def counted(count: int, noun: str) -> str:
    """Returns a count with its noun, such as "1 run" or "2 runs"."""
    return f"{count} {noun}{'s' * (count != 1)}"


def watch(tally: Tally, load: Load, *, done: int, left: int) -> str:
    """Returns the figures of a session in one short line; costs go on as they were, by child."""
    share = 1 + left / done if done else 1.0
    parts = [f"{short(tally.calls / tally.seconds)} calls/s"]
    if (tokens := tally.tokens) is not None:
        parts.append(f"{short(tokens / tally.seconds)} tokens/s")
    if load.open:
        parts.append(f"slots {load.utilisation:.0%}")
    if tally.retries:
        parts.append(f"{tally.retries} retries")
    if load.limited >= 1:
        parts.append(f"limited {load.limited:.0f} s")
    if tally.cached:
        parts.append(f"{tally.cached} cached")
    if tally.dollars:
        parts.append(f"${short(tally.dollars)} of about ${short(tally.dollars * share)}")
    elif tokens is not None:
        parts.append(f"{short(tokens)} of about {short(tokens * share)} tokens")
    return ", ".join(parts)


def progress_bar(*, total: int, unit: str, label: str, shown: bool) -> tqdm[NoReturn]:
    """Returns a progress bar, which shows nothing where the output is redirected to a file."""
    from tqdm.auto import tqdm

    shown = shown and _is_shown()
    return tqdm(total=total, unit=unit, desc=label, disable=None if shown else True)


class Progress:
    """The progress bar of one or several runs: generations, best fitness, and `watch`."""

    def __init__(
        self, label: str, total: int, tally: Tally, load: Callable[[], Load], *, shown: bool
    ) -> None:
        self._tally, self._load = tally, load
        self._bar = progress_bar(total=total, unit="child", label=label, shown=shown)
        self._lock = threading.Lock()
        self._done = self._failed = 0
        self._left = total
        self._best = -math.inf
        self._at = "T 0"

    def child(self, child: Outcome) -> None:
        """A child was logged."""
        with self._lock:
            self._done += 1
            self._failed += child.evaluation.status != "ok"
            self._left -= 1
            self._show()
            self._bar.update(1)

    def generation(self, number: int, goal: int, best: float | None) -> None:
        """A generation of a run is complete."""
        with self._lock:
            self._best = max(self._best, -math.inf if best is None else best)
            self._at = f"T {number}/{goal}"
            self._show()

    def skip(self, children: int) -> None:
        """Children need not be made."""
        with self._lock:
            self._left -= children
            self._bar.update(children)

    def __str__(self) -> str:
        best = "none" if self._best == -math.inf else f"{self._best:z.4f}"
        return f"{self._at}, best {best}, {self._failed} failed"

    def _show(self) -> None:
        figures = watch(self._tally, self._load(), done=self._done, left=self._left)
        self._bar.set_postfix_str(f"{self}, {figures}", refresh=False)

    def close(self) -> None:
        """Ends the bar."""
        self._bar.close()
