"""How figures leave the library: as files, and as what a notebook shows in light and dark."""

from __future__ import annotations

import base64
import contextlib
import functools
import html
import io
import reprlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evo.logs.types import as_path, writable
from evo.plugins import MistakenType
from replay.plots.arranging import arrange
from replay.plots.medium import LIGHTER
from replay.plots.style import THEMES, figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


SUFFIXES = (".png", ".svg", ".pdf")
"""How the names of pictures end."""


def save(figure: Figure | Axes, path: str | Path, *, dpi: int = 144) -> Path:
    """Writes a figure to a file.

    The same figure gives the same bytes. A PDF embeds its fonts, and its text can be searched.

    Args:
        figure: A figure, or axes of one.
        path: The file; its suffix decides the format: .png, .svg or .pdf. Its folder is made.
        dpi: Resolution of a .png, in dots per inch.

    Returns:
        The path.

    Example:
        >>> file = replay.plots.save(replay.plots.slices(grid), new(".pdf"))
        >>> file.suffix
        '.pdf'
    """
    import matplotlib as mpl

    suffix = as_path("path", path).suffix.lower()
    dates: dict[str, dict[str, object]] = {
        ".png": {},
        ".svg": {"Date": None},
        ".pdf": {"CreationDate": None},
    }
    if suffix not in SUFFIXES:
        raise ValueError(
            f"expected a file name that ends in {', '.join(SUFFIXES)}, got {str(path)!r}"
        )
    figure, file = _figure("save", figure), writable(Path(path))
    same_bytes = mpl.rc_context({"svg.hashsalt": "replay", "pdf.fonttype": 42})
    with _laid_out(figure, dpi), same_bytes:
        figure.savefig(file, dpi=dpi, metadata=dates[suffix])
    return file


def _figure(verb: str, given: object) -> Figure:
    """The figure that is meant; raises MistakenType for anything else, such as a path."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if isinstance(given, Figure):
        return given
    first = given if isinstance(given, Axes) else next(iter(np.asarray(given).flat), None)
    if not isinstance(first, Axes):
        raise MistakenType(
            f"{verb}: expected a figure of matplotlib or its axes, got {reprlib.repr(given)}"
        )
    return figure_of(first)


_FOLLOW = (
    "(i=>{if(i.dataset.on)return;i.dataset.on=1;const l=i.src,f=()=>{"
    "i.src=document.body.dataset.jpThemeLight==='false'?i.dataset.dark:l};f();"
    "new MutationObserver(f).observe(document.body,"
    "{attributes:true,attributeFilter:['data-jp-theme-light']})})(this)"
)
"""Shows the picture that suits JupyterLab's theme, now and whenever that changes."""


@dataclass(frozen=True)
class ShownFigure:
    """A figure as a notebook shows it: a PNG, and its titles as text.

    Attributes:
        png: The picture.
        dark: The same for a dark page, which a live notebook shows there; None: there is no other.
        width: On the screen, pixels.
        text: Titles of the axes, which screen readers and text consoles get; all that is written in
            a figure without any.
    """

    png: bytes
    dark: bytes | None
    width: int
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return self.png, {"width": self.width}

    def _repr_html_(self) -> str | None:
        """Both pictures; where scripts are not run, the one for light pages is seen."""
        if self.dark is None:
            return None
        light, dark = (
            f"data:image/png;base64,{base64.b64encode(each).decode('ascii')}"
            for each in (self.png, self.dark)
        )
        return (
            f'<img src="{light}" data-dark="{dark}" width="{self.width}" '
            f'alt="{html.escape(self.text, quote=True)}" onload="{_FOLLOW}">'
        )


def show(figure: Figure | Axes | Sequence[Axes], *, dpi: int = 144) -> ShownFigure:
    """Return a figure as a value that notebooks display, whatever backend matplotlib uses.

    Args:
        figure: A figure, its axes, or one of them.
        dpi: Of the picture, which is shown at its size in inches times 100 pixels.

    Example:
        >>> shown = replay.show(replay.plots.trajectories(frame))
        >>> shown.png[1:4]
        b'PNG'
    """
    from matplotlib.colors import to_rgb

    figure = _figure("show", figure)
    light, dark = io.BytesIO(), io.BytesIO()
    with _laid_out(figure, dpi):
        figure.savefig(light, format="png", dpi=dpi)
        if to_rgb(figure.get_facecolor()) == to_rgb(THEMES["light"].ground):
            with in_dark(figure):
                figure.savefig(dark, format="png", dpi=dpi)
    titles = [ax.get_title(loc="left").replace("\n", " ") for ax in figure.axes]
    titles.insert(0, figure.get_suptitle())
    text = "; ".join(title for title in titles if title) or _words_in(figure)
    width = round(100 * figure.get_figwidth())
    return ShownFigure(light.getvalue(), dark.getvalue() or None, width, text)


@contextlib.contextmanager
def _laid_out(figure: Figure, dpi: int) -> Iterator[None]:
    """Lays a figure out once for several pictures; each would take as long again for it."""
    import matplotlib as mpl

    engine, before = figure.get_layout_engine(), figure.dpi
    figure.dpi = dpi
    arrange(figure)
    with mpl.rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)  # otherwise each picture begins with a draw for the engine
    try:
        yield
    finally:
        figure.set_layout_engine(engine)
        figure.dpi = before


def small_png(pixels: NDArray[np.uint8]) -> bytes:
    """Pixels (height, width, 3 or 4) as a PNG of at most 256 colours.

    Like colours become the most frequent of them, so that grounds and lines keep theirs. A cell of
    the octree holds no colours of different hues, as a cut at the median does where one is rare.
    """
    import numpy as np
    from PIL import Image

    picture = Image.fromarray(pixels).convert("RGB")
    small = picture.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    cells = np.asarray(small).astype(np.uint32)
    red, green, blue = np.moveaxis(np.asarray(picture).astype(np.uint32), -1, 0)
    found, count = np.unique(
        cells << 24 | red << 16 | green << 8 | blue, return_counts=True
    )  # sorted by cell
    found = found[np.lexsort((-count, found >> 24))]
    places, first = np.unique(found >> 24, return_index=True)
    palette = np.zeros((256, 3), np.uint8)
    palette[places] = (found[first, None] >> np.array([16, 8, 0], np.uint32)) & 255
    small.putpalette(palette.tobytes())
    stream = io.BytesIO()
    small.save(stream, format="PNG", optimize=True)
    return stream.getvalue()


def _words_in(figure: Figure) -> str:
    """All that is written in a figure without titles, such as a table of verdicts."""
    from matplotlib.text import Text

    words = (str(each.get_text()).replace("\n", " ") for each in figure.findobj(Text))
    return "; ".join(dict.fromkeys(filter(None, words))) or "figure"


@contextlib.contextmanager
def in_dark(figure: Figure) -> Iterator[None]:
    """Has a figure of the light theme wear inks and palette of the dark one; other colours stay."""
    from matplotlib.colors import to_rgba, to_rgba_array
    from matplotlib.legend import Legend
    from matplotlib.patheffects import withStroke

    light, dark = THEMES["light"], THEMES["dark"]
    inks = {light.text: dark.text, light.faint: dark.faint, **LIGHTER}
    pairs = [(to_rgba_array(old)[0, :3], to_rgba_array(new)[0, :3]) for old, new in inks.items()]
    undo: list[Callable[[], object]] = [functools.partial(figure.set_facecolor, light.ground)]
    figure.set_facecolor(dark.ground)
    every = figure.findobj()
    arrows = (getattr(each, "arrow_patch", None) for each in every)  # they are nobody's children
    for artist in (*every, *filter(None, arrows)):
        if effects := artist.get_path_effects():  # letters keep the ground around them
            undo.append(functools.partial(artist.set_path_effects, effects))
            artist.set_path_effects([withStroke(linewidth=3, foreground=dark.ground)])
        if isinstance(artist, Legend):  # its frame is a ground that covers what lies below
            frame = artist.get_frame()
            undo.append(functools.partial(frame.set_facecolor, frame.get_facecolor()))
            frame.set_facecolor(to_rgba(dark.ground, to_rgba(frame.get_facecolor())[3]))
        for part in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            get, put = (getattr(artist, f"{verb}_{part}", None) for verb in ("get", "set"))
            if get is None or put is None or len(before := to_rgba_array(get())) == 0:
                continue
            after = before.copy()
            for old, new in pairs:
                after[(before[:, :3] == old).all(axis=1), :3] = new
            if (after != before).any():
                undo.append(functools.partial(put, get()))
                put(after if len(after) > 1 else tuple(after[0]))
    try:
        yield
    finally:
        for restore in reversed(undo):
            restore()
