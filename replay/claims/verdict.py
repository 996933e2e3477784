"""What a comparison found, in words, numbers and a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from replay.claims.decision import BETTER, POWER, Outcome
from replay.claims.further import (
    further_runs,
    further_tasks,
    nearer_none,
    new_runs,
    sentence,
)
from replay.markup import card
from replay.statistics.intervals import FloatArray, Interval, rare_jumps
from replay.statistics.numbers import amount, brackets, number
from replay.statistics.strata import Further

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

EXAGGERATED = 1.2
"""Expected exaggeration from which on a verdict states it."""

PAIRS_EXCHANGED = "the runs of each pair exchanged"

NO_SPREAD = "no run of a side differs from another: no spread"
"""Why there is no interval."""

SKEWED_PAIRS = (
    "It takes the differences of pairs to lie evenly about their mean: with skewed ones "
    "(lognormal, Beta) it calls a difference that is none in up to 18 % of samples at a stated "
    "5 %; `replay.compare(a, b, paired=True)` leaves room for that."
)
"""What flipping signs takes for granted; see `tests/benchmarks/judge_errors.py`."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Result of `judge`; `replay.advise` says what to do after it.

    Printed, and as the last line of a cell, it is `summary` and then `paragraph`.

    Attributes:
        verdict: `greater`, `less`, `within margin` or `undetermined`; see `replay.claims.decision`.
        a: The one side, in words.
        b: The other.
        effect: Mean of a less that of b, in fitness.
        interval: The effect with its interval over runs; a confidence sequence if `sequential`.
        margin: Largest difference that counts as none, as it was given; 0 where there is none.
        null: The null that p and e-value refer to.
        p: Two-sided probability, under the null, of an effect at least as large, of this one
            comparison: where several are made, `replay.advise` and `replay.compare` correct it for
            them. NaN where there are too few runs.
        p_greater: One-sided probability of an effect at least as high.
        p_less: One-sided probability of an effect at most as high.
        p_within: Two-sided probability, under an effect as large as the margin, of one that lies as
            clearly within it; NaN without a margin, and of policies.
        e_value: Evidence against no effect that holds however often one looks; NaN unless
            `sequential`.
        e_within: The same against an effect as large as the margin.
        detectable: Effect that as many runs find in four of five repetitions.
        power: Probability of `greater` or `less` if the true effect is the one that was seen,
            shrunk by its error (`replay.claims.decision.shrunk`).
        exaggeration: How many times the true effect, taken to be the shrunk one, those are on
            average that get a verdict; NaN without a verdict.
        runs_needed: Single runs, of both sides together, that are still needed for a power of four
            in five if the true effect is the one that was seen; infinite if it is none, or, of a
            sequence, if not even twice `replay.statistics.sequential.LONGEST` would settle it.
        power_then: Range of the probability of a verdict with these runs, over the effects and
            spreads that the runs so far leave open, see `power_band`; NaN where it is not known.
        cost: What these would cost, by unit, where it is known.
        n: What the interval rests on: pairs where every run has its partner, else runs.
        points: What is compared, of a and of b: by run, or by replicate of the policies.
        setting: On what, in words.
        unit: What n counts: `pairs` or `runs`.
        sequential: Whether verdict and interval hold however often one looks.
        bounded: Interval that covers rare jumps, too, where the range of scores was given.
        unlike: How far the two groups differ in spread or shape, where that may mislead; else
            empty.
        taken_for_granted: What the p takes for granted of the runs, in a sentence; empty: nothing.
        null_p: Of policies the probability of at least this effect of a over b in worlds in which
            the increments of the runs are exchanged, so that nothing can be chosen: that choosing
            helped rests on it. NaN of groups.
        held_back: Why there is no verdict although the interval of an effect of policies excludes
            0 or lies within the margin; else empty.
        scale: Unit of the effect: `fitness`, or `standard deviations within tasks` where several
            tasks are judged together. The verdict is then of these tasks.
        further: What several tasks say of further ones, whose effects may differ: their mean effect
            with its interval over tasks (NaN below three tasks), and the spread between tasks.
        effects: The effect on each of several tasks: task, effect, error, and pooled, the effect
            drawn towards the mean over tasks as far as its error asks.
    """

    verdict: Outcome
    a: str
    b: str
    effect: float
    interval: Interval
    margin: float
    null: str
    p: float
    p_greater: float
    p_less: float
    e_value: float
    detectable: float
    power: float
    runs_needed: float
    cost: dict[str, float]
    n: int
    points: tuple[FloatArray, FloatArray]
    setting: str
    p_within: float = math.nan
    e_within: float = math.nan
    unit: str = "runs"
    power_then: tuple[float, float] = (math.nan, math.nan)
    sequential: bool = False
    bounded: Interval | None = None
    unlike: str = ""
    taken_for_granted: str = ""
    exaggeration: float = math.nan
    null_p: float = math.nan
    held_back: str = ""
    scale: str = "fitness"
    further: Further | None = None
    effects: pd.DataFrame | None = None

    @property
    def summary(self) -> tuple[str, str]:
        """The verdict in a sentence; then n, p and what would change it."""
        found = self.interval
        between = found.note if math.isnan(found.low) else self._limits
        margin = f"; a margin of {self.margin:.3g}" if self.margin else ""
        first = (
            f"{self.verdict.capitalize()}: {self._meaning}. {self.a} less {self.b} is "
            f"{self.effect:+.4g} in {self.scale} ({between}{margin})."
        )
        p = "" if math.isnan(self.p) else f", p = {self.p:.3g} for this comparison alone"
        if self.sequential:
            p = f", e-value {self.e_value:.3g}, valid at every look"
        return first, f"{self.counted}{p}. {self._change}"

    @property
    def counted(self) -> str:
        """Its n in words, such as "n = 24 pairs"."""
        return f"n = {amount(self.n, self.unit.removesuffix('s'))}"

    @property
    def runs(self) -> int:
        """Single runs that the interval rests on."""
        return self.n * (2 if self.unit == "pairs" else 1)

    @property
    def nearer_none(self) -> bool:
        """Whether further runs would find the effect within the margin sooner than beyond 0."""
        return nearer_none(self.effect, self.margin)

    @property
    def _change(self) -> str:
        """What would change the verdict, in a sentence or two."""
        if self.held_back:
            return self.held_back
        if self.verdict == "within margin":
            return "What would change that: a smaller margin."
        if self.verdict == "undetermined":
            return sentence(self._further_runs())
        return new_runs(math.nan if self.sequential else self.power)

    @property
    def paragraph(self) -> str:
        """A paragraph for a methods section."""
        sentences = [
            f"We compared {self.a} with {self.b} on {self.setting} ({self.counted}).",
            f"The mean difference in {self.scale} was {self.effect:.4g} ({self._limits}).",
            *([f"A difference of up to {self.margin:.4g} counts as none."] if self.margin else []),
            f"The verdict{' for these tasks' if self.further else ''} is: {self.verdict}, that is, "
            f"{self._meaning}.",
            self.held_back,
            self._further,
            self._evidence,
            self._choosing,
            self._design,
            self._covered,
        ]
        return " ".join(filter(None, sentences))

    @property
    def _meaning(self) -> str:
        """What the verdict's word says of the two sides."""
        equal = {
            "within margin": "they differ by less than the margin",
            "undetermined": "neither is shown to be better",
        }
        return (BETTER | equal)[self.verdict].format(a=self.a, b=self.b)

    @property
    def _limits(self) -> str:
        found = self.interval
        if math.isnan(found.low):
            return found.note
        what = f"confidence sequence at {100 * found.level:g} %" if self.sequential else found.label
        return f"{what} {brackets(found.low, found.high)}"

    @property
    def _evidence(self) -> str:
        if self.sequential:
            settled = 1 / (1 - self.interval.level)
            return (
                f"The e-value against no effect is {self.e_value:.3g} (null: {self.null}). It may "
                f"be looked at after every pair; {settled:.3g} settles the question. The price is "
                "power: at half a standard deviation and 100 pairs .72, where a test of all 100 "
                "at once has .94."
            )
        if math.isnan(self.p):
            return ""
        text = (
            f"Under the null ({self.null}) the two-sided p is {self.p:.3g}, for this comparison "
            "alone."
        )
        if self.taken_for_granted:
            text += f" {self.taken_for_granted}"
        if self.unlike:
            text += (
                f" The groups look too unlike for a comparison of means alone: {self.unlike}. With "
                "equal means and such shapes, a difference is called in up to 18 % of samples at a "
                "stated 5 %; compare medians, too, or a share of successes."
            )
        return text

    @property
    def _further(self) -> str:
        """What several tasks say of further ones."""
        found = self.further
        if found is None:
            return ""
        return sentence(further_tasks(found.value, found.low, found.high, self.margin))

    @property
    def _choosing(self) -> str:
        """Whether it takes a choice to have this effect."""
        if math.isnan(self.null_p):
            return ""
        return (
            "Where nothing can be chosen, the increments of the runs being exchanged, at least "
            f"this effect has probability {self.null_p:.3g}."
        )

    @property
    def _design(self) -> str:
        known = ", ".join(f"{number(value)} {unit}" for unit, value in self.cost.items())
        text = ""
        if math.isfinite(self.detectable):
            text = (
                f"As many runs detect an effect of {self.detectable:.4g} with a power of "
                f"{POWER:.0%}, and the effect that was seen, shrunk by its error, with one of "
                f"{self.power:.0%}."
            )
        if self.exaggeration > EXAGGERATED:
            text += (
                " At that power effects that get a verdict are on average "
                f"{self.exaggeration:.2g} times the true one, so this one is likely exaggerated."
                if math.isfinite(self.exaggeration)
                else " So small an effect gets a verdict by chance alone, and is exaggerated."
            )
        if 0 < self.runs_needed < math.inf:
            sides = f", {self.runs_needed / 2:,.0f} on each side" if self.unit == "pairs" else ""
            more = self._further_runs(of=sides, cost=known, band=self.power_then)
            text += f" {sentence(more)}"
        return text.strip()

    def _further_runs(self, **said: Any) -> str:
        """How many more runs would decide what is open, see `further_runs`."""
        return further_runs(
            self.runs_needed, had=self.runs, within=self.nearer_none, sequential=self.sequential,
            **said,
        )  # fmt: skip

    @property
    def _covered(self) -> str:
        """What no interval from runs alone can cover."""
        text = rare_jumps(self.n)
        if self.bounded is None:
            return text
        low, high = self.bounded.low, self.bounded.high
        return f"{text} For scores in the given range, betting covers it: {brackets(low, high)}."

    def __str__(self) -> str:
        """Render the summary, then the paragraph."""
        return f"{self!r}\n\n{self.paragraph}"

    def __repr__(self) -> str:
        return "\n".join(self.summary)

    def _repr_html_(self) -> str:
        return card(*self.summary, self.paragraph)

    def plot(self, ax: Axes | None = None, theme: Literal["light", "dark"] = "light") -> Axes:
        """Draws the effect with its interval, no effect, and the margin.

        `replay.plots.charts.verdict` is the same as a chart that answers to the mouse.

        Args:
            ax: Where to draw; None: a new figure.
            theme: "light" or "dark".
        """
        import replay  # figures stand in a row above

        return replay.plots.verdict(self, ax=ax, theme=theme)
