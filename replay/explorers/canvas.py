"""Fast pictures: what moves is drawn over a kept background, and the pixels become a PNG.

Drawing axes, ticks and titles takes some ten times as long as drawing the few lines that a slider
moves. So a picture marks those as animated, and they alone are drawn again until something else
changes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from replay.style import Theme

DPI = 90
"""Of pictures on the screen: at 144 the PNG alone takes four times as long."""


class Picture(Protocol):
    """A figure that can show one view after another.

    Attributes:
        figure: The figure, its canvas anything.
        moving: Its animated artists, in drawing order.
    """

    figure: Figure
    moving: Sequence[Artist]

    def show(self, view: Any) -> bool:
        """Change the artists to a view; returns whether anything but the moving ones changed."""


class Canvas:
    """Draws a picture into PNG bytes.

    Args:
        picture: What to draw. From the first drawing on, its layout stays as it is.
        dpi: Pixels per inch.
    """

    def __init__(self, picture: Picture, *, dpi: int = DPI) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self.picture = picture
        picture.figure.set_dpi(dpi)
        self._canvas: Any = FigureCanvasAgg(picture.figure)
        self._layout = picture.figure.get_layout_engine()
        self._background: Any = None

    def forget(self) -> None:
        """Draw everything anew next time."""
        self._background = None

    def draw(self, view: Any, *, notes: Mapping[str, str]) -> bytes:
        """Show a view.

        Args:
            view: What the picture's `show` takes.
            notes: Texts by keyword that the PNG carries, such as `Description`.
        """
        if self.picture.show(view):
            self._arrange()
        if self._background is None:
            self._canvas.draw()
            self._background = self._canvas.copy_from_bbox(self.picture.figure.bbox)
        self._canvas.restore_region(self._background)
        renderer = self._canvas.get_renderer()
        for artist in self.picture.moving:
            artist.draw(renderer)
        return encode(np.asarray(self._canvas.buffer_rgba()), notes)

    def _arrange(self) -> None:
        """Find room for what is not moving; the moving artists do not move the axes."""
        figure = self.picture.figure
        figure.set_layout_engine(self._layout)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        self._background = None


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


class WholePicture:
    """A picture on one pair of axes that is drawn as a whole for each view.

    Args:
        draw: Draws a view; where it raises ValueError, that sentence is shown.
        height: Of the figure, inches, by view.
        theme: Inks, see `replay.style`.
    """

    def __init__(
        self, draw: Callable[[Any, Axes], object], height: Callable[[Any], float], theme: Theme
    ) -> None:
        from replay.style import subplots

        self.figure, _ = subplots()
        self.moving: Sequence[Artist] = ()
        self._draw, self._height, self._theme = draw, height, theme
        self._shown: object = None

    def show(self, view: object) -> bool:
        """Draw a view, unless it is the one that is shown."""
        from textwrap import fill

        from replay.style import sentence

        if view is self._shown:
            return False
        self._shown = view
        self.figure.clear()
        self.figure.set_size_inches(self.figure.get_figwidth(), self._height(view))
        try:
            self._draw(view, self.figure.add_subplot())
        except ValueError as error:
            self.figure.clear()
            sentence(self.figure.add_subplot(), self._theme, fill(str(error), 90))
        return True


def sentence_picture(theme: Theme) -> WholePicture:
    """A picture that shows the words of its view."""
    from textwrap import fill

    from replay.style import sentence

    return WholePicture(
        lambda view, ax: sentence(ax, theme, fill(view.words, 90)), lambda view: 1.6, theme
    )
