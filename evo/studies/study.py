"""What every study shares while a session works on it: journal, pause and stop, ledger, models.

A study is an allocation, a sweep or a selection: many runs in one folder, under one budget.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar

import msgspec

from evo.logs.journal import Writer, go_on
from evo.logs.stopping import StopRequests
from evo.runs.budget import Ledger
from evo.runs.handle import Control
from evo.runs.progress import progress_bar
from evo.runs.resources import Resources, open_resources
from evo.runs.settings import Settings

if TYPE_CHECKING:
    from tqdm import tqdm

R = TypeVar("R", bound=msgspec.Struct)
Entered = TypeVar("Entered")


class Study(contextlib.AbstractContextManager["Study", None]):
    """A session's work on a study, as a context that closes what was opened, the last first.

        with Study(folder / ALLOCATION, settings, control, budget) as study:
            writer, records = study.open_journal(decoder, what="journal", first=header)
            resources = study.enter(study.resources())
            while study.ledger.open().all() and not study.control.stopping.is_set():
                ...

    Args:
        marker: The file by which the folder is recognised, see `evo.studies.folders`.
        settings: How to work.
        control: Set when no further call may begin.
        budget: Limits by unit, or the ledger of the larger study that this one is part of.

    Attributes:
        folder: Folder of the study.
        ledger: What is spent, against the limits.
        settings: As given.
        control: As given.
    """

    def __init__(
        self,
        marker: Path,
        settings: Settings,
        control: Control,
        budget: Mapping[str, float] | Ledger,
    ) -> None:
        self.folder, self.settings, self.control = marker.parent, settings, control
        self.ledger = budget if isinstance(budget, Ledger) else Ledger(budget)
        self._marker = marker
        self._stack = contextlib.ExitStack()
        self._requests = StopRequests(control.stop), StopRequests(control.pause, "pause")

    def __enter__(self) -> Self:
        for requests in self._requests:
            self.enter(requests)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def enter(self, context: contextlib.AbstractContextManager[Entered]) -> Entered:
        """Enters a context, which ends with the study."""
        return self._stack.enter_context(context)

    def at_end(self, act: Callable[[], object]) -> None:
        """Calls this when the study ends."""
        self._stack.callback(act)

    def claim(self, claimed: contextlib.AbstractContextManager[Entered]) -> Entered:
        """Enters what claims the marker, and from then on heeds requests beside it.

        Raises:
            LogBusyError: Another session works on the study.
        """
        made = self.enter(claimed)
        self.heed(self._marker)
        return made

    def open_journal(
        self, decoder: msgspec.json.Decoder[R], *, what: str, first: R
    ) -> tuple[Writer, list[R]]:
        """Claims the study by its marker, a journal; returns its writer and its records so far.

        Args:
            decoder: Of the journal's lines.
            what: The name of such a journal in messages.
            first: The line with which a new journal begins.
        """
        opened = go_on(self._marker, decoder, self._stack, what=what, begin=first)
        self.heed(self._marker)
        return opened

    def open_lines(
        self, name: str, decoder: msgspec.json.Decoder[R], *, what: str
    ) -> tuple[Writer, list[R]]:
        """Opens a further journal in the folder, which has no first line of its own.

        Args:
            name: Of the file, which is made if need be.
            decoder: Of the journal's lines.
            what: The name of such a journal in messages.
        """
        return go_on(self.folder / name, decoder, self._stack, what=what, wait=True)

    def heed(self, path: Path) -> None:
        """Stops or pauses once that is requested at a file that this session has claimed."""
        self.control.claim(path)
        for requests in self._requests:
            requests.watch(path)

    def resources(
        self, *, isolated: bool = False, quiet: bool = False
    ) -> contextlib.AbstractContextManager[Resources]:
        """Returns what opens models, sandbox and slots, see `Resources`.

        Args:
            isolated: Whether a failure of one run leaves the others alone.
            quiet: Whether runs have no progress bars of their own.
        """
        settings = dataclasses.replace(self.settings, progress=False) if quiet else self.settings
        return open_resources(settings, self.control, isolated=isolated)

    def progress(self, total: int, unit: str, label: str) -> tqdm[NoReturn]:
        """Shows a progress bar of the whole study."""
        shown = self.settings.progress
        return self.enter(progress_bar(total=total, unit=unit, label=label, shown=shown))
