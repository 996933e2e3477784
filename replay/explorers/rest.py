"""Between two moves an explorer waits for rest, draws ahead, and keeps the pictures it has made."""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from replay.explorers.background import POLL, exiting, start_thread

if TYPE_CHECKING:
    from ipywidgets import Widget

    from replay.explorers.subject import Settings, View

REST = 0.3
"""Seconds without a change after which a view is drawn in full."""

AHEAD = 4
"""Steps on each side of a slider that are drawn at rest."""

MOST = 60
"""Pictures that an explorer keeps, some 100 kB each beside what its numbers share."""


class Rest:
    """Works on a thread once nothing has moved for a while; `soon` and `cancel` are called locked.

    Args:
        lock: The explorer's.
        work: Receives a function that returns whether nothing has moved since.
    """

    def __init__(
        self, lock: AbstractContextManager[object], work: Callable[[Callable[[], bool]], None]
    ) -> None:
        self._lock, self._work = lock, work
        self._moves = 0
        self._due: float | None = None
        self.thread: threading.Thread | None = None

    def soon(self) -> None:
        """Something moved: work once nothing has for a while."""
        self._moves += 1
        self._due = time.monotonic() + REST
        if self.thread is None:
            self.thread = start_thread(self._run)

    def cancel(self) -> None:
        """No work, and no more of that which has begun."""
        self._moves += 1
        self._due = None

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._due is None or exiting():
                    self.thread = None
                    return
                moves, left = self._moves, self._due - time.monotonic()
                if left <= 0:
                    self._due = None
            if left > 0:
                time.sleep(min(left, POLL))
            else:
                self._work(lambda moves=moves: moves == self._moves and not exiting())  # type: ignore[misc]


class Kept:
    """Pictures with their views by settings, drawn over one ground; the oldest go first."""

    def __init__(self, most: int = MOST) -> None:
        self._found: OrderedDict[str, tuple[bytes, View]] = OrderedDict()
        self._ground: object = None
        self.most = most

    def get(self, settings: Settings) -> tuple[bytes, View] | None:
        """The picture of settings, if it is kept."""
        return self._found.get(repr(settings))

    def stand_on(self, ground: object) -> None:
        """Drop pictures over any other ground."""
        if ground != self._ground:
            self.clear()
            self._ground = ground

    def put(self, settings: Settings, png: bytes, view: View) -> None:
        """Keep a picture."""
        self._found[repr(settings)] = png, view
        self._found.move_to_end(repr(settings))
        while len(self._found) > self.most:
            self._found.popitem(last=False)

    def clear(self) -> None:
        """Drop all."""
        self._found.clear()


def next_steps(
    controls: Mapping[str, Widget], hidden: set[str], last: str
) -> Iterator[tuple[str, Widget]]:
    """Where sliders would go next, the one that was moved last first, then the nearest values.

    Args:
        controls: By name.
        hidden: Those that do not matter now.
        last: Name of the one that was moved last.

    Yields:
        Name and value.
    """
    import ipywidgets

    sliders = {
        name: [each[1] if isinstance(each, tuple) else each for each in control.options]
        for name, control in controls.items()
        if name not in hidden and isinstance(control, ipywidgets.SelectionSlider)
    }
    sizes = range(1, 1 + AHEAD)
    for name, size in sorted(itertools.product(sliders, sizes), key=lambda s: (s[0] != last, s[1])):
        for place in (controls[name].index - size, controls[name].index + size):
            if 0 <= place < len(sliders[name]):
                yield name, sliders[name][place]
