"""Descent in one run: the tree of its programs, and where the lines of the best one came from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from evo.logs.log import Log, read_log
from replay.logs.descent import FOLDS
from replay.logs.descent import blame as blame_table
from replay.logs.descent import tree as tree_table
from replay.logs.given import check_loaded
from replay.plots import style
from replay.plots.chart import Chart
from replay.plots.colours import parsed, readable, shades
from replay.plots.lanes import lanes_of
from replay.plots.limits import ROOM, with_room
from replay.plots.marks import RAMP, Label, Mark, Points, Segments, Spans
from replay.plots.panel import Axis, ColorBar, Panel
from replay.plots.strips import strips_for
from replay.plots.style import THEMES, FloatArray, Theme
from replay.statistics.numbers import number as in_digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from replay.logs.lineage import Place

LANE, HEIGHT = 11.8, 320.0  # pixels between programs that stand over each other, and of a tree
MOST_MARKS = 1500  # programs and folds of a tree
MOST_LINES = 60
"""Lines of a program that a figure of its own shows; what is longer is folded."""

CLOSE, WIDE = 1.3, 1.6
"""Height of a line of a program at least and at most, as multiples of its letters' size."""

SPREAD = 0.7
"""Share of a generation's width over which its children are spread."""

MAP = "cividis"


def tree(log: Log) -> Chart:
    """Draws the tree of a run: every program beside its parent, coloured by fitness.

    Where every generation has one parent, as under greedy, heights are fitness: the picture shows
    how far children fall from their parent, and which of them took its place. What has no fitness
    stands in a strip below that axis.

    The thick line leads from the initial program to the best one. Dashed lines lead from the other
    parents of a crossover, crosses are children without a fitness, and islands have strips. What
    does not fit is folded into one mark with a number of programs. `replay.tree` returns the table.

    Args:
        log: The log.

    Example:
        >>> type(replay.plots.tree(log)).__name__
        'Axes'
    """
    check_loaded("tree", log, "evo.read_log")
    for fold in range(FOLDS + 1):
        table = tree_table(log, fold=fold)
        if len(table) > MOST_MARKS and fold < FOLDS:
            continue
        if _is_line(table):
            return _line(log, table)
        lanes, strips = lanes_of(table)
        if np.ptp(lanes) * LANE <= HEIGHT:
            break
    generation, bar = table["generation"].to_numpy(float), _bar_of(table)
    named = {island: ends for island, ends in strips.items() if island >= 0}
    every_other = [*named.values()][1::2]
    marks: list[Mark] = []
    if every_other:
        below, above = zip(*every_other, strict=True)
        marks.append(Spans(y0=below, y1=above, color="faint", opacity=0.2))
    marks += [*_links(table, generation, lanes), *_programs_of(table, generation, lanes, bar)]
    middles = [(sum(ends) / 2, f"island {island:.0f}") for island, ends in named.items()]
    end = float(table["last"].max())
    panel = Panel(
        title=f"Tree: {_name(log)}", about=_about_tree(table), marks=marks, height=HEIGHT, bar=bar,
        x=Axis(domain=(-0.5, end + 0.7), label="generation", whole=True, grid=False),
        y=Axis(domain=(lanes.min() - 1, lanes.max() + 1), ticks=middles),
    )  # fmt: skip
    return Chart(panels=[panel])


def _bar_of(table: pd.DataFrame) -> ColorBar:
    low, high = style.usual_range(table["fitness"])
    ends = (low, high) if high > low else with_room(low, high)
    return ColorBar(RAMP, *ends, "fitness")


def _is_line(table: pd.DataFrame) -> bool:
    """Whether each generation has one parent, and there is a fitness to stand at."""
    one = table["parents"].map(len).max() == 1 and table["island"].isna().all()
    children = table[table["parents"].map(len) > 0]
    parents = children["parents"].groupby(children["generation"]).nunique()
    return bool(one and (parents == 1).all() and table["fitness"].notna().any())


def _line(log: Log, table: pd.DataFrame) -> Chart:
    """The tree of a run in which each generation has one parent, by fitness."""
    bar = _bar_of(table)
    low, high = bar.least, bar.most
    known = table["fitness"].to_numpy(float)
    room, failed = ROOM * (high - low), np.isnan(known)
    foot = low - 3 * room
    heights = np.where(failed, foot, np.maximum(known, low))
    generation, index = (table[name].to_numpy(float) for name in ("generation", "index"))
    born = np.maximum(table.groupby("generation")["index"].transform("max").to_numpy(float), 1)
    across = generation + SPREAD * (index / born - 0.5) * (generation > 0)
    best = table["best_line"].to_numpy(bool)
    across = np.where(best, generation, across)  # the line of the best is straight
    about, below = _about_tree(table), known < low
    cut = int(below.sum())
    about += f"; triangles: fitness below {low:.3g} ({_programs(cut)})" if cut else ""
    marks = [*_links(table, across, heights), *_programs_of(table, across, heights, bar, below)]
    floor, ticks = low - room, None
    if failed.any():  # no value of the axis: a strip of its own
        floor, ticks = foot - room, [(foot, "none"), *strips_for(1, [[low, high]]).ticks()]
        marks.insert(0, Spans(y0=[floor], y1=[foot + room], color="faint", opacity=0.2))
    panel = Panel(
        title=f"Tree: {_name(log)}", about=about, marks=marks, height=HEIGHT,
        x=Axis(
            domain=(-0.5, float(table["last"].max()) + 0.7), label="generation", whole=True,
            grid=False,
        ),
        y=Axis(domain=(floor, high + room), label="fitness", ticks=ticks, grid=True),
    )  # fmt: skip
    return Chart(panels=[panel])


def _about_tree(table: pd.DataFrame) -> str:
    """Say what `tree` drew."""
    programs, failed = int(table["members"].sum()), int((table["members"] - table["ok"]).sum())
    parts = [f"{_programs(programs)} of one run"]
    known = table["parents"].map(len).any() or len(table) == 1
    parts += ["thick: from the initial program to the best" if known else "parents not recorded"]
    parts += [f"crosses: without a fitness ({_programs(failed)})"] if failed else []
    parts += ["dashed: other parents"] if table["parents"].map(len).max() > 1 else []
    if (table["members"] > 1).any():
        parts.append("a number is how many programs were folded, in the colour of the best of them")
    return "; ".join(parts)


def _programs(count: int) -> str:
    return f"{count:,} {'program' if count == 1 else 'programs'}"


def _links(table: pd.DataFrame, generation: FloatArray, lanes: FloatArray) -> Iterator[Mark]:
    """Lines from parents to their children, along the parent's lane and then aside."""
    places = zip(table["generation"], table["index"], strict=True)
    rows = {place: row for row, place in enumerate(places)}
    best = table["best_line"].to_numpy()
    kinds: dict[str, list[tuple[float, ...]]] = {"thin": [], "dashed": [], "thick": []}
    for row, parents in enumerate(table["parents"]):
        for number, parent in enumerate(parents):
            if (at := rows.get(parent)) is None:
                continue
            x0, x1 = generation[at], generation[row]
            turn = max(x0, x1 - 1) if number == 0 else x0
            kind = "dashed" if number else "thick" if best[row] and best[at] else "thin"
            kinds[kind].append((x0, lanes[at], x1, lanes[row], turn))
    looks = {
        "thin": ("faint", 1.0, ""),
        "dashed": (style.PALETTE[1], 1.2, "4 3"),
        "thick": ("ink", 3.0, ""),
    }
    for kind, (color, width, dash) in looks.items():
        if kinds[kind]:
            x0, y0, x1, y1, turn = np.array(kinds[kind]).T
            yield Segments(
                x0=x0, y0=y0, x1=x1, y1=y1, turn=turn, color=color, width=width, dash=dash
            )


def _programs_of(
    table: pd.DataFrame,
    generation: FloatArray,
    lanes: FloatArray,
    bar: ColorBar,
    below: NDArray[np.bool_] | None = None,
) -> Iterator[Mark]:
    """Programs by fitness, those without one as crosses, and the numbers of those in a fold.

    Those `below` the axis are triangles that point downwards.
    """
    failed = table["fitness"].isna().to_numpy()
    low = bar.least
    colors = np.array(shades(table["fitness"].fillna(low), RAMP, low, bar.most))
    texts, sizes = np.array(_texts(table), dtype=object), _sizes(table)
    keys = list(zip(table["generation"].tolist(), table["index"].tolist(), strict=True))
    yield Points(
        x=generation[failed], y=lanes[failed], color="faint", shape="cross", size=2.6,
        texts=texts[failed].tolist(), keys=[keys[k] for k in np.flatnonzero(failed)],
    )  # fmt: skip
    lower = np.zeros(len(table), dtype=bool) if below is None else below
    shapes: list[tuple[Literal["dot", "below"], NDArray[np.bool_]]] = [("dot", ~failed & ~lower)]
    shapes += [("below", lower)] if lower.any() else []
    for shape, these in shapes:
        yield Points(
            x=generation[these], y=lanes[these], color=colors[these].tolist(), edge="ink",
            size=sizes[these], texts=texts[these].tolist(), shape=shape,
            keys=[keys[k] for k in np.flatnonzero(these)],
        )  # fmt: skip
    members, ok = table["members"].to_numpy(int), table["ok"].to_numpy(int)
    for row in np.flatnonzero(members > 1).tolist():
        ink = readable(parsed(colors[row])) if ok[row] else "ink"
        yield Label(
            x=generation[row], y=lanes[row], text=str(members[row]), anchor="middle", bare=True,
            color={"black": "#000000", "white": "#ffffff"}.get(ink, ink), dy=4 if ok[row] else -5,
        )  # fmt: skip


def _sizes(table: pd.DataFrame) -> FloatArray:
    """Radii of the marks: a fold has room for its number, and the best program stands out."""
    sizes = np.where(table["members"] > 1, 8.5, np.where(table["best_line"], 4.6, 3.4))
    sizes[np.flatnonzero(table["best_line"])[-1]] = 7.0
    return sizes


def _texts(table: pd.DataFrame) -> list[str]:
    """What can be read at each mark."""
    columns = ("generation", "last", "index", "status", "fitness", "operator", "members")
    texts = []
    table = table.assign(status=table["status"].fillna("of unknown status"))
    rows = zip(*(table[name].tolist() for name in columns), strict=True)
    for generation, last, index, status, fitness, operator, members in rows:
        value = "" if math.isnan(fitness) else f", fitness {fitness:.4g}"
        if members > 1:
            until = f" to {last}" if last > generation else ""
            texts.append(
                f"{members} programs of generation {generation}{until}: best{value or ' unknown'}"
            )
        else:
            made = f"{operator or 'initial'} {status}{value}"
            texts.append(f"generation {generation}, child {index}: {made}")
    return texts


def blame(log: Log, *, ax: Axes | None = None, theme: Theme = "light") -> Axes:
    """Draws the best program with the generation that introduced each of its lines.

    Lines are grouped by the child that introduced them, and long groups are shortened to what fits,
    those of the initial program first. `replay.blame` returns the table.

    Args:
        log: A log with programs.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.

    Raises:
        ValueError: The log has no programs, or they are too long to compare.

    Example:
        >>> type(replay.plots.blame(log)).__name__
        'Axes'
    """
    check_loaded("blame", log, "evo.read_log")
    table = blame_table(log)
    if ax is None:
        ax = style.subplots(height=1.6 + 0.17 * min(len(table), MOST_LINES))[1][0]
    ax = style.prepare(ax, theme)
    _write_lines(ax, theme, table)
    made = int((table["generation"] > 0).sum())
    style.draw_heading(
        ax, theme, f"Blame: {_name(log)}",
        f"Lines of the best program of one run: {len(table)}; newer than the initial program: "
        f"{made}. Beside them: generation, child and fitness of the program that introduced them",
    )  # fmt: skip
    return ax


def _write_lines(ax: Axes, theme: Theme, table: pd.DataFrame) -> None:
    """Write lines, beside each group who introduced it and its colour, from old to new."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    ink, points = THEMES[theme], style.text_size(ax) - 1
    width, height = style.room_of(ax)
    rows = _fit(table, max(4, int(height / (CLOSE * points))))
    places = sorted(set(zip(table["generation"], table["index"], strict=True)))
    shades = np.linspace(0, 1, max(2, len(places)))
    fills = {place: colormaps[MAP](shades[k]) for k, place in enumerate(places)}
    gutter = min(0.45, 17.5 * points / width)
    letters = int(1.15 * width * (1 - gutter) / (0.602 * points))  # the layout widens the axes
    before: Place | None = None
    for at, (place, text) in enumerate(rows):
        ax.add_patch(Rectangle((gutter - 0.025, at), 0.018, 1, facecolor=fills[place], lw=0))
        if place != before:
            ax.text(
                gutter - 0.035, at + 0.5, _origin(table, place), ha="right", va="center",
                fontsize=points, color=ink.text, in_layout=False,
            )  # fmt: skip
            ax.axhline(at, color=ink.faint, lw=0.5, zorder=0)
        shown = text if len(text) <= letters else text[: letters - 1] + "…"
        ax.text(
            gutter + 0.01, at + 0.5, shown, ha="left", va="center", family="monospace",
            fontsize=points, color=ink.text, style="italic" if text[:1] == "…" else "normal",
            in_layout=False, clip_on=True,
        )  # fmt: skip
        before = place
    ax.set(xlim=(0, 1), ylim=(max(len(rows), height / (WIDE * points)), 0))
    ax.set_axis_off()


def _fit(table: pd.DataFrame, room: int) -> list[tuple[Place, str]]:
    """Lines with whose they are; where there is no room, without blanks and in folded groups."""
    if len(table) > room:
        table = table[table["text"].str.strip() != ""]
    groups: list[tuple[Place, list[str]]] = []
    rows = zip(table["generation"], table["index"], table["text"], strict=True)
    for generation, index, text in rows:
        if not groups or groups[-1][0] != (generation, index):
            groups.append(((generation, index), []))
        groups[-1][1].append(text.expandtabs(4))
    longest = max((len(lines) for _, lines in groups), default=1)
    caps = [(longest, cap) for cap in range(longest, 0, -1)]
    caps += [(cap, 1) for cap in range(longest, 0, -1)]
    for newer, initial in caps:
        shown = [
            (place, line)
            for place, lines in groups
            for line in _shortened(lines, newer if place[0] else initial)
        ]
        if len(shown) <= room:
            return shown
    rest = len(shown) - room + 1
    return [*shown[: room - 1], (shown[room - 1][0], f"… {rest} rows more")]


def _shortened(lines: list[str], most: int) -> list[str]:
    """The first lines of a group, and how many are left out; never one line for one."""
    if len(lines) <= most + 1:
        return lines
    return [*lines[: most - 1], f"… {len(lines) - most + 1} lines"]


def _origin(table: pd.DataFrame, place: Place) -> str:
    """Who introduced lines, for the margin."""
    if place == (0, 0):
        return "initial program"
    found = table[(table["generation"] == place[0]) & (table["index"] == place[1])]
    fitness = found["fitness"].iloc[0]
    value = "" if math.isnan(fitness) else f": {in_digits(fitness)}"
    return f"generation {place[0]} #{place[1]}{value}"


def _name(log: Log) -> str:
    """Task and model of a run, and its seed if that is known."""
    seed = f", seed {log.header.seed}" if log.header.seed >= 0 else ""
    return f"{log.header.task.name}, {log.header.model_name}{seed}"


def best_run(frame: pd.DataFrame) -> Log:
    """The log of the run with the highest fitness among rows of `replay.load`.

    Raises:
        ValueError: No run has a program that is ok, or the log cannot be read.
    """
    style.require(frame, "best_fitness", "source")
    known = frame[frame["best_fitness"].notna()]
    if known.empty:
        raise ValueError("no run has a program that is ok")
    return read_log(known["source"].iloc[int(known["best_fitness"].to_numpy().argmax())])


def tree_of_best(frame: pd.DataFrame) -> Chart:
    """Draws the tree of the best of a group of runs."""
    return tree(best_run(frame))


def blame_of_best(frame: pd.DataFrame, *, ax: Axes, theme: Theme = "light") -> Axes:
    """Draw the best program of a group of runs by the origin of its lines."""
    return blame(best_run(frame), ax=ax, theme=theme)
