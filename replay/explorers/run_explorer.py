"""The part that explorers of one run share: the browser draws it, and goes from child to child."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from evo.logs.types import Fields, JsonObject
from replay.explorers.explorer_spec import Sentence, SettingView
from replay.explorers.kernel_explorer import KernelExplorer
from replay.explorers.run_arrays import drawing_arrays, run_arrays
from replay.explorers.run_data import RunData, RunView
from replay.explorers.scripts import run_page, screen_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipywidgets import Widget


@functools.cache
def _screen() -> Any:
    """Returns the class of the widget; None where anywidget is not installed."""
    from traitlets import Dict, Int, List

    at = List(Int(), allow_none=True)
    return screen_class("run_view", run=Dict(), at=at, drawing=Dict(), heard=Int(0))


class RunExplorer(KernelExplorer):
    """An explorer whose view is a program of a run, which the browser draws from arrays.

    The browser moves by itself and tells where it went; the kernel then sends the construction of
    that program, and draws a picture only for files, paper and saved notebooks. Without anywidget
    the picture is an image.
    """

    _packed_run: RunData | None = None
    _stale = False

    def _make_screen(self) -> Widget:
        made = _screen()
        if made is None:
            return super()._make_screen()
        screen = made()
        screen.on_msg(lambda widget, content, buffers: self._on_message(content))
        return screen

    @property
    def png(self) -> bytes:
        """The picture as a PNG, drawn once it is asked for."""
        with self._lock:
            if self._stale and self._view is not None:
                self._png = self._image(self._view)
                self._stale = False
            return self._png

    def went(self, generation: int, index: int, *, by: str = "click") -> None:
        """Somebody went to a program of the picture, by "click" or by "key"."""
        raise NotImplementedError

    def _on_message(self, message: Fields) -> None:
        with self._lock:
            if message.get("kind") == "at" and self._is_open:
                place = int(message["generation"]), int(message["index"])
                self.went(*place, by=str(message["how"]))
                self._screen.heard = int(message["move"])  # until then the browser stays there

    def _at_rest(self, still: Callable[[], bool]) -> None:
        """Nothing is drawn ahead."""

    def _draw(self, *, coarse: bool) -> None:
        """Send what the browser lacks."""
        view = self._view
        if not hasattr(self._screen, "run"):
            super()._draw(coarse=coarse)
        elif view is not None:
            self._stale, self._coarse = True, False
            run, at, drawing = self._arrays(view)
            with self._screen.hold_sync():
                if run is not None:
                    self._screen.run = run
                self._screen.at, self._screen.drawing = at, drawing
            self._say(view.words, code=True)

    def _arrays(self, view: SettingView) -> tuple[JsonObject | None, list[int] | None, JsonObject]:
        """What the browser draws of a view: the run, if it lacks it, and the program."""
        if not isinstance(view, RunView):
            self._packed_run = None
            words = view.words if isinstance(view, Sentence) else ""
            return {"message": words, "theme": self._spec.theme}, None, {}
        run = None
        if view.data is not self._packed_run:
            self._packed_run, log = view.data, view.data.log
            run = run_arrays(log, log.path.name.removesuffix(".gz").removesuffix(".jsonl"))
            run["theme"] = self._spec.theme
        return run, list(view.place), {"at": list(view.place), **drawing_arrays(view.drawing)}

    def _still(self) -> str:
        if self._view is None or not hasattr(self._screen, "run"):
            return super()._still()
        screen = self._screen
        state = {"at": screen.at, "drawing": screen.drawing}
        return run_page(self.png, self.words, screen.run, state)
