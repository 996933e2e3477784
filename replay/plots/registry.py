"""The figures that reports, sites and notebooks show of a group of runs, by name."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from evo.plugins import Registry, guarded, plugged_in, with_refusals
from replay.logs.given import check_loaded
from replay.plots import style
from replay.plots.chart import Chart
from replay.plots.descent import blame_of_best, tree_of_best
from replay.plots.policies import gains
from replay.plots.runs import trajectories
from replay.plots.style import Theme

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 4.6  # inches of a row of figures

GroupFigure = Callable[..., Any]
"""Makes the chart of runs of one task and model, rows of `replay.load`.

Its first argument is the frame. If it has an argument `ax`, it is called with that, and with
`theme` if it has that, too, and draws on the axes; it is shown as a still picture, under its name
if it sets no title. A ValueError stands in the place of the figure, as a sentence under its name. A
chart with an argument `reach` is given the least and the greatest fitness of the groups that it
stands beside, or None.
"""


def best_so_far(frame: pd.DataFrame, *, reach: tuple[float, float] | None = None) -> Chart:
    """Draws the best fitness so far against generations, or against calls if runs differ in N.

    Args:
        frame: Rows of `replay.load`, of one task and model.
        reach: As of `trajectories`.

    Example:
        >>> ax = replay.plots.best_so_far(frame)
    """
    check_loaded("best_so_far", frame, "replay.load")
    frame = frame.sort_values("children", kind="stable")
    by_generation = frame["children"].nunique() == 1
    return trajectories(frame, x="generation" if by_generation else "calls", reach=reach)


def exploring(frame: pd.DataFrame) -> Chart:
    """What looking at several arms gains, see `replay.diagnose`, at the N with most runs."""
    from replay.planning.diagnosis import diagnose

    counts = frame.groupby("children")["run"].nunique()
    found = diagnose(frame[frame["children"] == counts.idxmax()])
    return gains(found.ways, of=f"N = {found.children}, n = {found.runs}")


FIGURES: Registry[GroupFigure] = Registry(
    "figure",
    {
        "best so far": best_so_far,
        "what exploring gains": exploring,
        "tree of the best run": tree_of_best,
        "blame of the best program": blame_of_best,
    },
    kind="function",
    group="replay.figures",
)
"""Name -> figure of a group of runs. One that is added here joins `replay report`, `replay site`,
the page of a protocol, and `overview` in a notebook."""


_OURS = frozenset(FIGURES.built_in.values())


def figures() -> dict[str, GroupFigure]:
    """Returns every figure by name: those of `FIGURES`, and of packages that add some.

    What a figure of others does to its frame stays its own, and its failure is a ValueError, which
    is the reason why it is not drawn.
    """
    known = with_refusals(plugged_in("replay.figures", FIGURES))
    return {
        name: each if each in _OURS else guarded_figure("figure", name, each)
        for name, each in known.items()
    }


def guarded_figure(what: str, name: str, figure: GroupFigure) -> GroupFigure:
    """A figure or a panel that somebody added: its frame is a copy, and it fails as `guarded`."""
    call = guarded(what, name, figure)

    @functools.wraps(figure)
    def made_of(frame: pd.DataFrame, **how: Any) -> Any:
        made = call(frame.copy(), **how)
        if "ax" not in how and not isinstance(made, Chart):
            raise ValueError(
                f"expected the function of the {what} {name!r} to return a replay.plots.Chart, or "
                f"to have arguments `ax` and `theme` and draw, got {type(made).__name__}"
            )
        return made

    return made_of


def draws(figure: GroupFigure) -> bool:
    """Whether a figure draws on axes in place of making a chart."""
    return "ax" in inspect.signature(figure).parameters


def drawn_on(figure: Callable[..., Any], ax: Axes, theme: Theme) -> dict[str, Any]:
    """The arguments by which a figure draws on axes: its theme only where it takes one."""
    known = inspect.signature(figure).parameters
    any_name = any(each.kind is each.VAR_KEYWORD for each in known.values())
    return {"ax": ax, "theme": theme} if "theme" in known or any_name else {"ax": ax}


def draw(name: str, figure: GroupFigure, frame: pd.DataFrame, ax: Axes, theme: Theme) -> None:
    """Draws a figure on axes, or its name and the reason why it cannot be drawn."""
    try:
        _put(name, figure, frame, ax, theme)
    except ValueError as error:
        ax.clear()
        style.sentence(ax, theme, textwrap.fill(str(error)[:300], 50, break_long_words=False))
        style.draw_heading(ax, theme, f"{name[:1].upper()}{name[1:]}", "not drawn")


def title_of(ax: Axes) -> str:
    """The title of axes, at whichever side it stands; empty if there is none."""
    titles = [ax.get_title(loc=side) for side in ("left", "center", "right")]
    return next(filter(None, titles), "")


def _put(
    name: str, figure: GroupFigure | Chart, frame: pd.DataFrame, ax: Axes, theme: Theme
) -> None:
    """Draws a figure or its chart on axes; one that sets no title stands under its name."""
    if not isinstance(figure, Chart) and draws(figure):
        with _wearing(ax, theme):
            figure(frame, **drawn_on(figure, ax, theme))
        if not title_of(ax):
            style.draw_heading(ax, theme, f"{name[:1].upper()}{name[1:]}", "")
    else:
        (figure if isinstance(figure, Chart) else figure(frame)).draw(ax, theme)


@contextmanager
def _wearing(ax: Axes, theme: Theme) -> Iterator[None]:
    """Has what is drawn on empty axes without naming a colour wear the inks of a theme."""
    import matplotlib as mpl

    ink = style.THEMES[theme].text
    with mpl.rc_context(style.defaults(theme)):
        ax.clear()  # titles and labels take their ink anew
        ax.set_facecolor("none")
        ax.tick_params(which="both", colors=ink)
        ax.spines[:].set_color(ink)
        yield


def drawn_alone(name: str, figure: GroupFigure, frame: pd.DataFrame) -> Figure:
    """A figure of a group as a figure of its own.

    Raises:
        ValueError: It cannot be drawn.
    """
    made, [ax] = style.subplots(height=HEIGHT)
    _put(name, figure, frame, ax, "light")
    return made


def overview(frame: pd.DataFrame, *, theme: Theme = "light", width: float = 12.0) -> Figure:
    """Draws every figure of `replay.plots.FIGURES` for the same runs, at most two in a row.

    What cannot be drawn of these runs is a line of text below.

    Args:
        frame: Rows of `replay.load`, of one task and model.
        theme: "light" or "dark".
        width: Width of the figure in inches.

    Returns:
        The figure.

    Example:
        >>> figure = replay.plots.overview(frame[frame["children"] == 4])
        >>> [ax.get_title(loc="left").partition(":")[0] for ax in figure.axes][:1]
        ['Best so far']
    """
    check_loaded("overview", frame, "replay.load")
    made: dict[str, Callable[[Axes], object]] = {}
    refused: list[str] = []
    for name, each in figures().items():
        with _refusals(name, refused):
            shown = each if draws(each) else each(frame)
            made[name] = partial(_put, name, shown, frame, theme=theme)
    while True:  # again without what could not be drawn
        across = min(2, len(made)) or 1
        figure, axes = style.subplots(
            -(-len(made) // across) or 1, across, width=width, height=HEIGHT
        )
        before = len(refused)
        for name, ax in zip([*made], axes, strict=False):
            with _refusals(name, refused):
                put = made.pop(name)
                put(ax)
                made[name] = put
        if len(refused) == before:
            break
    for ax in axes[len(made) :]:
        ax.remove()
    if refused:
        words = "\n".join(style.broken(". ".join(refused), int(10 * width)))
        ink, size = style.THEMES[theme].text, style.LARGER
        figure.supxlabel(words, x=0.01, ha="left", color=ink, fontsize=size)
    return figure


@contextmanager
def _refusals(name: str, refused: list[str]) -> Iterator[None]:
    """Notes why a figure is not drawn."""
    try:
        yield
    except ValueError as error:
        refused.append(f"{name[:1].upper()}{name[1:]}: not drawn ({str(error)[:300]})")
