"""The selection explorer: a race among configurations over logged samples, round by round."""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evo.studies.selection import SELECTORS
from replay import plots
from replay.explorers.chart import Axis, Bars, Chart, Line, Mark, Panel, Points
from replay.explorers.chart_explorer import ChartExplorer, notice
from replay.explorers.paper import on_axes
from replay.explorers.shell import Explorer
from replay.explorers.subject import Settings, Subject, call
from replay.explorers.widgets import choice, counter, entry, name_of
from replay.planning.sweeps import select
from replay.plots.hits import ranged
from replay.plots.policies import (
    ENDS,
    MOST_ROUNDS,
    distinct,
    head_of_race,
    order_of_race,
    wrapped,
)
from replay.plots.style import PALETTE, Theme

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    from matplotlib.figure import Figure

    from evo.studies.selection.race import Selection

HELP = (
    "A selector samples the configurations until it knows the best of them. Focus the slider of "
    "rounds: the arrow keys play the race."
)
SHUFFLES, PAIRS = 100, 500_000
"""Other orders of the samples, and pairs of configurations over orders, that are raced at most."""

NAMED, KEPT = 16, 16
"""Configurations that are drawn at most, and races that are kept in memory."""

HEIGHT = 42
"""Height of a configuration's row in pixels."""

USUAL: Settings = {
    "selector": "arm_elimination", "interval": "anytime", "delta": 0.05, "batch": 1,
    "threshold": None,
}  # fmt: skip
DELTAS = (0.01, 0.05, 0.1, 0.2)
BATCHES = (1, 2, 5, 10, 20)


@dataclass(frozen=True, kw_only=True, eq=False)
class SelectionView:
    """The view for one setting of the controls."""

    selection: Selection  # the race
    rounds: int  # how many of its rounds are shown
    notes: tuple[str, ...] = ()  # what is to be known of the samples

    @property
    def words(self) -> str:
        """How the race stands after the rounds, and what other orders of the samples give."""
        found = self.selection
        then = found.rounds[self.rounds - 1]
        most = found.samples.size * found.terms.size
        text = [
            f"After round {self.rounds} of {len(found.rounds)}: {then.alive.sum()} of "
            f"{len(found.labels)} configurations left, {then.count.sum()} of {most} samples taken."
        ]
        if self.rounds == len(found.rounds):
            text.append(_outcome(found))
        if found.shuffled.size:
            low, middle, high = np.quantile(found.shuffled, [0.1, 0.5, 0.9])
            same = float(np.mean(found.shuffled_winner == found.winner))
            text.append(
                f"In {len(found.shuffled)} other orders of the samples it takes {middle:.0f} "
                f"[{low:.0f} to {high:.0f} in four of five], and {100 * same:.0f} % end with the "
                "same winner."
            )
        if found.terms.interval == "compat":
            text.append("The intervals of compat do not hold at each look; do not rely on them.")
        return " ".join([*text, *self.notes])

    def table(self) -> pd.DataFrame:
        """One row per round and configuration."""
        import pandas as pd

        parts = []
        for number, each in enumerate(self.selection.rounds[: self.rounds], start=1):
            columns = {
                name: getattr(each, name)[0]
                for name in ("count", "mean", "lower", "upper", "alive")
            }
            names = {"round": number, "configuration": self.selection.labels}
            parts.append(pd.DataFrame({**names, **columns}))
        return pd.concat(parts, ignore_index=True)


def _outcome(found: Selection) -> str:
    """The winner, in words."""
    k, delta = found.winner, found.terms.delta
    if k is None:
        return "No configuration is left."
    mean = (
        f"{found.labels[k]}, mean {found.mean[k]:.4f} [{found.lower[k]:.4f}, {found.upper[k]:.4f}]"
    )
    if found.end == "certain":
        return f"Winner: {mean}, certain at delta {delta:g}."
    return f"Not certain, as {ENDS[found.end]}. Ahead: {mean}."


class Race:
    """A selection over samples for any choice of selector."""

    def __init__(self, data: pd.DataFrame | npt.ArrayLike, given: Settings) -> None:
        self._data, self._given = data, given
        self._select = functools.lru_cache(maxsize=KEPT)(self._run)
        whole, _ = self._select(0, **{**USUAL, "selector": "brute_force"})
        if len(whole.labels) == 1:
            raise ValueError(
                "expected two configurations or more, got one: "
                f"{whole.labels[0]} wins without a sample, so there is no race to play"
            )
        self.middle = float(whole.mean.mean())
        self._shuffles = min(SHUFFLES, PAIRS // len(whole.labels) ** 2)

    def view(
        self, *, rounds: int | None = None, shuffled: bool = False, **chosen: Any
    ) -> SelectionView:
        """The race after some rounds; None: all."""
        chosen = {**USUAL, **chosen}
        if chosen["selector"] != "threshold":
            chosen["threshold"] = None
        found, notes = self._select(self._shuffles if shuffled else 0, **chosen)
        shown = len(found.rounds) if rounds is None else rounds
        if not 1 <= shown <= len(found.rounds):
            raise ValueError(f"rounds: expected from 1 to {len(found.rounds)}, got {rounds!r}")
        return SelectionView(selection=found, rounds=shown, notes=notes)

    def _run(
        self, shuffles: int, *, selector: str, threshold: float | None, **rest: Any
    ) -> tuple[Selection, tuple[str, ...]]:
        parameters = {}
        if selector == "threshold":
            parameters["threshold"] = self.middle if threshold is None else threshold
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = select(
                self._data, selector=selector, parameters=parameters, shuffles=shuffles,
                **rest, **self._given,
            )  # fmt: skip
        return found, tuple(f"Note: {each.message}." for each in caught)


def explore_selection(
    data: pd.DataFrame | npt.ArrayLike,
    *,
    theme: Theme = "neutral",
    begins: Settings | None = None,
    **given: Any,
) -> Explorer:
    """Plays selectors over logged samples: which configuration is best, and how soon one knows.

    Args:
        data: (configurations, samples), or a frame such as `replay.load` and `replay.load_sweep`
            make; see `replay.select`.
        theme: Inks; `neutral` suits light and dark pages alike.
        begins: Where its controls begin: selector, interval (anytime or compat), delta, batch,
            threshold (of the selector of that name; otherwise the mean of all samples) and rounds
            (otherwise all).
        **given: Further arguments of `replay.select`, such as `fields` and `bounds`.

    Raises:
        ValueError: A setting out of range.
    """
    try:
        race = Race(data, given)
    except ValueError as error:
        return notice("selection", error, theme)

    def last(settings: Settings) -> int:
        return len(race.view(**{**settings, "rounds": None}).selection.rounds)

    def adjust(moved: str, settings: Settings) -> Settings:
        """Another race is shown to its end."""
        end = last(settings)
        return {**settings, "rounds": min(settings["rounds"], end) if moved == "rounds" else end}

    subject = Subject(
        name="selection",
        figure=_figure,
        chart=race_chart,
        theme=theme,
        view=lambda settings, coarse: race.view(**settings, shuffled=not coarse),
        code=lambda now: call("explore_selection", name_of(data, "data"), {**given, "begins": now}),
        adjust=adjust,
        fit=lambda controls, settings: setattr(controls["rounds"], "max", last(settings)),
        scrubs={"rounds": lambda now: range(1, 1 + last(now))},
        hidden=lambda now: set() if now["selector"] == "threshold" else {"threshold"},
    )
    start = {**USUAL, "threshold": round(race.middle, 3), **(begins or {})}
    if start["selector"] not in SELECTORS:
        raise ValueError(f"expected a selector out of {[*SELECTORS]}, got {start['selector']!r}")
    start.setdefault("rounds", last(start))
    controls = {
        "selector": choice("Selector", list(SELECTORS), tip="Who selects"),
        "interval": choice(
            "Intervals", ["anytime", "compat"],
            tip="anytime: right at each look; compat: mean ± SE, which is not",
        ),
        "delta": choice("delta", DELTAS, tip="How often the winner may be wrong"),
        "batch": choice("Batch", BATCHES, tip="Samples of each in a round, at least"),
        "threshold": entry(
            "threshold", start["threshold"], (-1e6, 1e6), 0.01, tip="Reward to reach"
        ),
        "rounds": counter("rounds", 1, 1, tip="Arrow keys play the race"),
    }  # fmt: skip
    return ChartExplorer(subject, controls, help=HELP, begins=start)


def race_chart(view: SelectionView) -> Chart:
    """The chart of a race: a row per configuration, in which rounds go downwards."""
    found, shown = view.selection, view.rounds
    alive, mean, lower, upper, count = (
        np.array([getattr(each, name)[0] for each in found.rounds])
        for name in ("alive", "mean", "lower", "upper", "count")
    )
    order = order_of_race(found, NAMED)
    labels, fields = distinct(found.labels)
    deep = 0.8 / len(found.rounds)
    stride = math.ceil(len(found.rounds) / MOST_ROUNDS)  # draws at most MOST_ROUNDS
    marks: list[Mark] = []
    for row, k in enumerate(order):
        retired = not alive[shown - 1, k]
        until = min(shown, int(alive[:, k].sum()) + 1)
        color = "faint" if retired else PALETTE[2 if k == found.winner else 0]
        numbers = np.arange(until, 0, -stride)[::-1]
        at = numbers - 1
        texts = [
            f"{found.labels[k]}\nround {number}: {ranged(*band)}, n = {n}"
            for number, n, *band in zip(
                numbers, count[at, k], mean[at, k], lower[at, k], upper[at, k], strict=True
            )
        ]
        ends = row - 0.4 + deep * np.column_stack([np.maximum(numbers - stride, 0), numbers])
        marks += [
            Bars(
                x0=lower[at, k], x1=upper[at, k], y=row - 0.4 + deep * (numbers - stride / 2),
                color=color, thickness=deep * stride, opacity=0.35, texts=texts,
                keys=[(("rounds", int(number)),) for number in numbers],
            ),
            Line(x=np.repeat(mean[at, k], 2), y=ends.ravel(), color=color, hover=False),
        ]  # fmt: skip
        if retired:
            last = (mean[until - 1, k], ends[-1, 1])
            marks.append(Points(x=[last[0]], y=[last[1]], shape="cross", size=4))
    title, about, axis = head_of_race(found, shown, len(order), fields)
    margin = 0.03 * (found.terms.high - found.terms.low)
    names = [f"{wrapped(labels[k])} (n = {count[shown - 1, k]})" for k in order]
    panel = Panel(
        title=title,
        about=about,
        x=Axis(domain=(found.terms.low - margin, found.terms.high + margin), label=axis),
        y=Axis(domain=(len(order) - 0.4, -0.6), ticks=[*enumerate(names)]),
        marks=marks,
        height=float(HEIGHT * len(order)),
        zoom=True,
    )
    return Chart(panels=[panel])


def _figure(view: SelectionView, theme: Theme) -> Figure:
    race, height = view.selection, 1.6 + 0.42 * min(NAMED, len(view.selection.labels))
    return on_axes(
        lambda ax: plots.race(race, rounds=view.rounds, named=NAMED, ax=ax, theme=theme),
        height,
        theme,
    )
