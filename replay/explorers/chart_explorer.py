"""An explorer whose charts the browser draws: the kernel sends numbers and draws only for paper.

Controls and settings stay in Python, as in every explorer; a move computes a view and packs its
chart. Where anywidget is not installed, the picture is an image.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from evo.logs.types import Fields
from replay.explorers.carried import book_of
from replay.explorers.explorer_spec import ExplorerSpec, Sentence
from replay.explorers.kernel_explorer import KernelExplorer
from replay.explorers.scripts import screen_class
from replay.explorers.stored import stored
from replay.plots.chart import pack
from replay.plots.marks import Keys
from replay.plots.scripts import book_page, chart_page
from replay.plots.style import Theme

if TYPE_CHECKING:
    from ipywidgets import Widget

    from evo.logs.types import JsonObject
    from replay.explorers.explorer_spec import SettingView

REMEMBERED = 8
"""Number of charts, the latest ones, whose clicks are understood."""


@functools.cache
def _screen() -> Any:
    """Returns the class of the widget; None where anywidget is not installed."""
    from traitlets import Bool, Bytes, Int, List, Unicode

    return screen_class(
        "chart",
        chart=Bytes(),
        label=Unicode(),
        source=Unicode(),
        theme=Unicode(),
        serial=Int(),
        coarse=Bool(),
        pages=List(Bytes()),
        texts=List(Unicode()),
        at=Int(),
    )


class ChartExplorer(KernelExplorer):
    """An explorer whose spec has a `chart`, which the browser draws."""

    _chart_words = ""  # the words on the chart

    def _make_screen(self) -> Widget:
        self._serial = 0
        self._clicks: OrderedDict[int, dict[tuple[int, int], Keys]] = OrderedDict()
        made = _screen()
        if made is None:
            return super()._make_screen()
        screen = made(theme=self._spec.theme)
        screen.on_msg(lambda widget, content, buffers: self._on_message(content))
        return screen

    @property
    def _in_browser(self) -> bool:
        """Whether the browser draws the chart; if not, the picture is an image."""
        return hasattr(self._screen, "chart")

    @property
    def png(self) -> bytes:
        """The picture for paper as a PNG, drawn once it is asked for."""
        if not self._in_browser:
            return super().png
        with self._lock:
            return b"" if self._view is None else self._image(self._view)

    def _on_message(self, message: Fields) -> None:
        with self._lock:
            if not self._is_open:
                return
            match message:
                case {"kind": "mounted"} if self._coarse:
                    self._debounce.soon()
                case {"kind": "click", "serial": serial, "panel": p, "mark": m, "place": k}:
                    keys = self._clicks.get(serial, {}).get((p, m), ())
                    if 0 <= k < len(keys) and keys[k] is not None:
                        self._clicked(keys[k])

    def _draw(self, *, coarse: bool) -> None:
        """Send the chart of the view."""
        if not self._in_browser:
            super()._draw(coarse=coarse)
        elif self._view is not None:
            chart = self._spec.chart_of(self._view)
            self._coarse, self._chart_words = coarse, chart.words
            if chart.picture:
                self._offer(True, numbers=False)
            self._serial += 1
            self._clicks[self._serial] = chart.keys()
            if len(self._clicks) > REMEMBERED:
                self._clicks.popitem(last=False)
            words, screen = self._view.words, self._screen
            with screen.hold_sync():
                screen.chart, screen.label, screen.source = pack(chart), words, self.code
                screen.serial, screen.coarse = self._serial, coarse
            self._say(words, code=not coarse)

    def _draws(self, words: str) -> bool:
        return words == self._chart_words

    def _frame(self, view: SettingView) -> bytes:
        return pack(self._spec.chart_of(view)) if self._in_browser else super()._frame(view)

    def _make_book(self, pages: list[bytes], texts: list[str], at: int) -> Widget:
        if not self._in_browser:
            return super()._make_book(pages, texts, at)
        return _screen()(theme=self._spec.theme, pages=pages, texts=texts, at=at)

    def _still(self) -> str:
        if not self._in_browser or self._view is None:
            return super()._still()
        book, theme = book_of(self._spec, self.controls, self._settings), self._spec.theme
        if book is not None:
            return book_page(self._small(), self.words, book, theme)
        screen = self._screen
        state = {name: getattr(screen, name) for name in ("label", "source", "serial")}
        state["theme"] = theme
        words = self.words
        return chart_page(self._small(), words, screen.chart, state, drawn=self._draws(words))

    def _stored(self) -> JsonObject:
        self.settle()
        if not self._in_browser or self._view is None:
            return super()._stored()
        words = self.words
        return stored(self._stored_as, self._small(), words, drawn=self._draws(words))


def notice(name: str, text: object, theme: Theme) -> KernelExplorer:
    """A widget that shows a sentence in place of an explorer."""
    words = Sentence(str(text))
    spec = ExplorerSpec(name=name, theme=theme, view=lambda settings, coarse: words)
    return ChartExplorer(spec, {}, help="")
