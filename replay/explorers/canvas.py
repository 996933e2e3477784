"""Fast pictures: what moves is drawn over a kept background, and the pixels become a PNG.

Drawing axes, ticks and titles takes some ten times as long as drawing the few lines that a slider
moves. So a picture marks those as animated, and they alone are drawn again until something else
changes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from replay.plots import style
from replay.plots.hits import Hits, forget, hits_of, pack

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator
    from numpy.typing import NDArray

    from replay.plots.style import Theme

DPI = 90
"""Pixels per inch of pictures on the screen: at 144 the PNG alone takes four times as long."""

Seen_contra = TypeVar("Seen_contra", contravariant=True)
Shown = TypeVar("Shown")


class Worded(Protocol):
    """What can be put in words."""

    @property
    def words(self) -> str:
        """What it shows, in sentences."""


class Picture(Protocol[Seen_contra]):
    """A figure that can show one view after another."""

    figure: Figure  # the figure, its canvas anything
    seldom: Sequence[Artist]  # animated artists that hardly ever change, below the moving ones
    moving: Sequence[Artist]  # its other animated artists, in drawing order

    def fresh(self, view: Seen_contra) -> bool:
        """Whether a view changes more than the animated artists."""

    def show(self, view: Seen_contra) -> bool:
        """Change the artists to a view; returns whether it was a fresh one."""

    def hits(self, view: Seen_contra) -> Hits:
        """What can be pointed at in the view that is shown; keys are (setting, value) pairs."""


class Canvas:
    """Draws a picture into PNG bytes."""

    def __init__(
        self, picture: Picture[Any], *, width: float = 9.0 * DPI, ratio: float = 1.0
    ) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self.picture = picture
        picture.figure.set_dpi(DPI * ratio)
        picture.figure.set_figwidth(width / DPI)
        self._canvas: Any = FigureCanvasAgg(picture.figure)
        self._layout = picture.figure.get_layout_engine()
        self._background: object = None
        self._under: object = None  # the same with what seldom moves
        self._whole: dict[Axes, tuple[tuple[float, float], Locator]] = {}

    def forget(self) -> None:
        """Draw everything anew next time."""
        self._background = None

    def draw(self, view: object, *, notes: Mapping[str, str]) -> bytes:
        """Show a view."""
        if self.picture.show(view):
            self._arrange()
        canvas, picture = self._canvas, self.picture
        if self._background is None:
            canvas.draw()
            self._background, self._under = canvas.copy_from_bbox(picture.figure.bbox), None
        renderer = canvas.get_renderer()
        if self._under is None or any(artist.stale for artist in picture.seldom):
            canvas.restore_region(self._background)
            for artist in picture.seldom:
                artist.draw(renderer)
            self._under = canvas.copy_from_bbox(picture.figure.bbox)
        else:
            canvas.restore_region(self._under)
        for artist in picture.moving:
            artist.draw(renderer)
        return encode(np.asarray(self._canvas.buffer_rgba()), notes)

    def hits(self, view: object, serial: int) -> tuple[Hits, bytes]:
        """What can be pointed at in the view that was drawn, and the same for the browser."""
        found = self.picture.hits(view)
        return found, pack(self.picture.figure, found, serial=serial, dpi=DPI)

    def zoom(self, number: int, limits: Sequence[float]) -> None:
        """Show a part of axes, by their number among those that are drawn."""
        from matplotlib.ticker import MaxNLocator

        ax = [each for each in self.picture.figure.axes if each.axison][number]
        self._whole.setdefault(ax, (ax.get_xlim(), ax.xaxis.get_major_locator()))
        ax.set_xlim(*limits)
        if ax.get_xscale() == "log" and limits[1] < 10 * limits[0]:
            ax.xaxis.set_major_locator(MaxNLocator(5))
        self.forget()

    def unzoom(self) -> None:
        """Show all axes in full."""
        for ax, (limits, locator) in self._whole.items():
            ax.set_xlim(limits)
            ax.xaxis.set_major_locator(locator)
        self._whole.clear()
        self.forget()

    def _arrange(self) -> None:
        """Find room for what is not moving; the moving artists do not move the axes."""
        figure = self.picture.figure
        figure.set_layout_engine(self._layout)
        style.arrange(figure)
        figure.set_layout_engine("none")
        self._background = None
        self._whole.clear()


def encode(pixels: NDArray[np.uint8], notes: Mapping[str, str]) -> bytes:
    """PNG of pixels (height, width, 4).

    Rows are not filtered: for line drawings that is a third of the time that the usual encoders
    take, at the same size.
    """
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 4 * width), dtype=np.uint8)  # each begins with its filter, none
    rows[:, 1:] = pixels.reshape(height, -1)
    parts = [_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))]
    for keyword, text in notes.items():
        parts.append(_chunk(b"iTXt", keyword.encode("latin-1") + bytes(5) + text.encode("utf-8")))
    parts += [_chunk(b"IDAT", zlib.compress(rows.tobytes(), level=1)), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


class WholePicture(Generic[Shown]):
    """A picture on one pair of axes that is drawn as a whole for each view."""

    def __init__(
        self, draw: Callable[[Shown, Axes], object], height: Callable[[Shown], float], theme: Theme
    ) -> None:
        self.figure = style.blank()
        self.seldom: Sequence[Artist] = ()
        self.moving: Sequence[Artist] = ()
        self._draw, self._height, self._theme = draw, height, theme
        self._shown: object = None

    def fresh(self, view: Shown) -> bool:
        """Whether it is not the one that is shown."""
        return view is not self._shown

    def show(self, view: Shown) -> bool:
        """Draw a view, unless it is the one that is shown."""
        if not self.fresh(view):
            return False
        self._shown = view
        self.figure.clear()
        forget(self.figure)
        self.figure.set_size_inches(self.figure.get_figwidth(), self._height(view))
        try:
            self._draw(view, self.figure.add_subplot())
        except ValueError as error:
            self.figure.clear()
            forget(self.figure)
            style.sentence(self.figure.add_subplot(), self._theme, fill(str(error), 80))
        return True

    def hits(self, view: Shown) -> Hits:
        """What the drawing has registered."""
        return hits_of(self.figure)


def sentence_picture(theme: Theme) -> WholePicture[Worded]:
    """A picture that shows the words of its view."""
    return WholePicture(
        lambda view, ax: style.sentence(ax, theme, fill(view.words, 80)), lambda view: 1.6, theme
    )
