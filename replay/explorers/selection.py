"""The selection explorer: a race among configurations over logged samples, round by round."""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evo.studies.selection import SELECTORS
from replay.explorers.chart_explorer import ChartExplorer, notice
from replay.explorers.explorer import Explorer
from replay.explorers.explorer_spec import ExplorerSpec, Settings, call
from replay.explorers.widgets import choice, counter, entry, name_of
from replay.logs.given import check_loaded
from replay.planning.sweeps import select
from replay.plots.policies import ENDS, race, rounds_shown
from replay.plots.style import Theme
from replay.statistics.numbers import with_limits

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from evo.studies.selection.race import Selection

HELP = (
    "A selector samples the configurations until it knows the best of them. Focus the slider of "
    "rounds: the arrow keys play the race."
)
SHUFFLES, PAIRS = 100, 500_000
"""Other orders of the samples, and pairs of configurations over orders, that are raced at most."""

RETIRED = 3
"""Configurations retired in one round that are named with their losses, at most."""

NAMED, KEPT = 16, 16
"""Configurations that are drawn at most, and races that are kept in memory."""

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
            f"{len(found.labels)} configurations left, {then.count.sum()} of {most} samples taken.",
            *self._retired(),
        ]
        if self.rounds == len(found.rounds):
            text.append(_outcome(found))
        if found.shuffled.size:
            low, middle, high = np.quantile(found.shuffled, [0.1, 0.5, 0.9])
            same = float(np.mean(found.shuffled_winner == found.winner))
            text.append(
                f"In {len(found.shuffled)} other orders of the samples the race takes {middle:.0f} "
                f"[{low:.0f} to {high:.0f} in four of five], and {100 * same:.0f} % end with the "
                f"same winner{_uncertain(found)}."
            )
        if found.terms.interval == "compat":
            text.append("The intervals of compat do not hold at each look; do not rely on them.")
        return " ".join([*text, *self.notes])

    def _retired(self) -> list[str]:
        """Which configurations the last of these rounds retired, and by which comparison."""
        found, alive = self.selection, [each.alive[0] for each in self.selection.rounds]
        before = alive[self.rounds - 2] if self.rounds > 1 else np.ones_like(alive[0])
        lost = np.flatnonzero(before & ~alive[self.rounds - 1]).tolist()
        named = [f"{found.labels[k]} {found.loss(k)}" for k in lost[:RETIRED] if found.loss(k)]
        more = f"; and {len(lost) - RETIRED} more" if len(lost) > RETIRED else ""
        return [f"In this round {'; '.join(named)}{more}."] if named else []

    def table(self) -> pd.DataFrame:
        """One row per round and configuration, with what retired it, from then on."""
        import pandas as pd

        parts, whole = [], self.selection.frame().sort_index()
        losses = whole[["lost_to", "shared", "p"]].assign(
            loss=[self.selection.loss(k) for k in whole.index]
        )
        nothing: dict[str, Any] = {"lost_to": "", "shared": 0, "p": math.nan, "loss": ""}
        for number, each in enumerate(self.selection.rounds[: self.rounds], start=1):
            columns = {
                name: getattr(each, name)[0]
                for name in ("count", "mean", "lower", "upper", "alive")
            }
            names = {"round": number, "configuration": self.selection.labels}
            lost = {
                name: losses[name].mask(columns["alive"], none) for name, none in nothing.items()
            }
            parts.append(pd.DataFrame({**names, **columns, **lost}))
        return pd.concat(parts, ignore_index=True)


def _uncertain(found: Selection) -> str:
    """In how many of the other orders the samples did not suffice; a clause, or empty."""
    never = int((~found.shuffled_certain).sum())
    if not never:
        return ""
    return f"; in {never} of {len(found.shuffled)} orders the winner was never certain"


def _outcome(found: Selection) -> str:
    """The winner, in words."""
    k, delta = found.winner, found.terms.delta
    if k is None:
        return "No configuration is left."
    limits = with_limits(found.mean[k], found.lower[k], found.upper[k], "{:z.4f}".format)
    mean = f"{found.labels[k]}, mean {limits}"
    if found.end == "certain":
        return f"Winner: {mean}, certain at delta {delta:g}."
    return f"Not certain, as {ENDS[found.end]}. Ahead: {mean}."


class SelectionReplay:
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
        return SelectionView(selection=found, rounds=rounds_shown(found, rounds), notes=notes)

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

    Example:
        >>> samples = np.array([[1.0] * 50, [0.0] * 50])
        >>> type(replay.explorers.explore_selection(samples)).__name__
        'ChartExplorer'
    """
    check_loaded("explore_selection", data, "replay.load_sweep", numbers=True)
    try:
        played = SelectionReplay(data, given)
    except ValueError as error:
        return notice("selection", error, theme)

    def last(settings: Settings) -> int:
        return len(played.view(**{**settings, "rounds": None}).selection.rounds)

    def adjust(moved: str, settings: Settings) -> Settings:
        """Another race is shown to its end."""
        end = last(settings)
        return {**settings, "rounds": min(settings["rounds"], end) if moved == "rounds" else end}

    spec = ExplorerSpec(
        name="selection",
        chart=lambda view: race(view.selection, rounds=view.rounds, named=NAMED),
        theme=theme,
        view=lambda settings, coarse: played.view(**settings, shuffled=not coarse),
        code=lambda now: call("explore_selection", name_of(data, "data"), {**given, "begins": now}),
        adjust=adjust,
        fit=lambda controls, settings: setattr(controls["rounds"], "max", last(settings)),
        scrubs={"rounds": lambda now: range(1, 1 + last(now))},
        hidden=lambda now: set() if now["selector"] == "threshold" else {"threshold"},
        carried=("selector", "delta", "interval", "batch"),
    )
    start = {**USUAL, "threshold": round(played.middle, 3), **(begins or {})}
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
            "threshold", start["threshold"], 0.01, tip="Reward to reach"
        ),
        "rounds": counter("rounds", 1, 1, tip="Arrow keys play the race"),
    }  # fmt: skip
    return ChartExplorer(spec, controls, help=HELP, begins=start)
