"""Pick a file or folder of logs, anyone's, and explore it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from evo.logs.types import JsonObject
from replay.explorers.tabs import Tabs, explore
from replay.explorers.widgets import button, close_previous, close_tree, control, page_script, row
from replay.plots.scripts import spoken
from replay.plots.style import Theme
from replay.statistics.numbers import amount

if TYPE_CHECKING:
    import pandas as pd
    from traitlets.utils.bunch import Bunch

HERE, UP = ".", ".."
SHOWN = (".jsonl", ".jsonl.gz", ".json", ".sqlite", ".db", ".pkl")
"""Endings of files that may hold runs."""


RECENT: list[Path] = []
"""What was opened lately in this session, the latest first."""


class Picker:
    """A list of folders and files; what is opened is explored below it.

    Double-click or press Enter to go into a folder or to open a file; *Open* reads the runs in a
    file, or in a folder and those below it.

    Args:
        root: Folder to begin in.
        show: Makes of a frame what is shown below the list; it has a `widget` and `close`.

    Attributes:
        widget: The whole as one widget.
        path: What is open; None before.
        frame: Its rows, as of `replay.load`; None before.

    Example:
        >>> picker = replay.explorers.Picker(path.parent, replay.explore)
        >>> type(picker).__name__
        'Picker'
    """

    def __init__(self, root: str | os.PathLike[str], show: Callable[[pd.DataFrame], Tabs]) -> None:
        import ipywidgets

        close_previous(self)
        self.path: Path | None = None
        self.frame: pd.DataFrame | None = None
        self._show = show
        self._shown: Tabs | None = None
        self._where = Path(root).resolve()
        self._place, self._status = ipywidgets.HTML(), ipywidgets.HTML()
        self._recent = control("Dropdown", "Recent", options=["", *map(str, RECENT)])
        self._recent.observe(self._reopen, "value")
        self.entries = control("Select", "", tip="Folders and files", rows=10)
        self._recent.layout.display = None if RECENT else "none"
        self._recent.layout.max_width = self.entries.layout.max_width = "810px"
        self._asked = ipywidgets.Text(layout={"display": "none"})  # see page.js
        self._asked.observe(self._enter_asked, "value")
        self._below = ipywidgets.VBox()
        buttons = row(
            [
                button("Enter", "Go into the folder, or open the file", self.enter),
                button("Open", "Read the runs there and explore them", self.open),
            ]
        )
        self.widget = ipywidgets.VBox(
            [self._place, self._recent, self.entries, self._asked, buttons, self._status,
             self._below],
            layout={"max_width": "100%"},
        )  # fmt: skip
        self.widget.add_class("replay-picker").add_class("replay-explorer")
        self._list()

    def enter(self) -> None:
        """Go into the chosen folder, or open the chosen file."""
        chosen = self._where / str(self.entries.value)
        if not chosen.is_dir() or self.entries.value == HERE:
            self.open()
        else:
            self._where = chosen.resolve()
            self._list()

    def _enter_asked(self, change: Bunch) -> None:
        """Enter the entry with this label, and be ready for the next."""
        if (name := dict(self.entries.options).get(change["new"])) is not None:
            self._asked.value, self.entries.value = "", name
            self.enter()

    def _reopen(self, change: Bunch) -> None:
        if change["new"]:
            self.open(change["new"])

    def open(self, path: str | os.PathLike[str] | None = None) -> None:
        """Read the runs at a path, None: in the chosen entry, and explore them."""
        from evo.logs.journal import LogError
        from replay import importers

        chosen = Path(path) if path is not None else self._where / str(self.entries.value)
        try:
            name = importers.kind(chosen)
            self._status.value = spoken(f"reading {chosen} ...")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                frame = importers.load(chosen)
        except (LogError, OSError, ValueError) as error:
            self._status.value = spoken(str(error), role="alert")
            return
        shown = self._show(frame)
        old, self._shown = self._shown, shown
        self._below.children = (shown.widget,)
        if old is not None:
            old.close()
        self.path, self.frame = chosen, frame
        RECENT[:] = [chosen.resolve(), *(each for each in RECENT if each != chosen.resolve())][:8]
        if str(RECENT[0]) not in self._recent.options:  # else it stays as it is under the keys
            self._recent.options = ["", *map(str, RECENT)]
        self._recent.layout.display = None
        runs, tasks = frame["run"].nunique(), ", ".join(sorted(frame["task"].unique()))
        what = f"{chosen.name}: {amount(runs, 'run')} in the format of {name}, task {tasks}"
        self._status.value = spoken(" ".join([what, *(f"{each.message}." for each in caught)]))

    def close(self) -> None:
        """Free the widgets."""
        if self._shown is not None:
            self._shown.close()
        close_tree(self.widget)

    def _list(self) -> None:
        """Show what is in the folder: folders first, then files that may hold runs."""
        there = [each for each in sorted(self._where.iterdir()) if not each.name.startswith(".")]
        folders = [(f"{each.name}/", each.name) for each in there if each.is_dir()]
        files = [
            (each.name, each.name)
            for each in there
            if not each.is_dir() and each.name.endswith(SHOWN)
        ]
        up = [("../ (one up)", UP)] if self._where.parent != self._where else []
        self.entries.options = [("./ (this folder)", HERE), *up, *folders, *files]
        self._place.value = spoken(f"{self._where}: {len(folders)} folders, {len(files)} files")
        self._status.value = page_script()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> JsonObject:
        """The live widget; words where no kernel runs."""
        bundle = dict(self.widget._repr_mimebundle_(include=include, exclude=exclude))
        return bundle | {"text/plain": f"logs below {self._where}"}


def pick(root: str | os.PathLike[str] = ".", *, theme: Theme = "neutral") -> Picker:
    """Let one choose a file or folder of logs, and explore what it holds.

    Args:
        root: Folder to begin in.
        theme: Inks of the explorers.

    Returns:
        The picker; `.frame` is what was opened last.

    Example:
        >>> type(replay.explorers.pick(path.parent)).__name__
        'Picker'
    """
    return Picker(root, lambda frame: explore(frame, theme=theme))
