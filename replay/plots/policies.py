"""Policies on one pool of runs: curves, pulls, threshold times, effects; and races."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from evo.studies.selection.losses import RULES
from replay.claims.questions import REPLIES, question
from replay.logs.given import check_result
from replay.markup import middle_cut
from replay.plots import style
from replay.plots.chart import Chart
from replay.plots.marks import Bars, End, Label, Line, Mark, Points, Rule, Spans
from replay.plots.panel import Axis, Panel
from replay.plots.shapes import estimates, lines
from replay.plots.style import FITNESS, PALETTE, counted, intervals, ranged

if TYPE_CHECKING:
    import pandas as pd

    from evo.studies.selection.race import Selection

EFFECTS = {
    "policy": "policy less single run",
    "pool": "pool: random less single run",
    "allocation": "allocation: policy less random",
}
VERDICTS = {
    "greater": "#0B7A53",
    "less": "#B3430A",
    "within margin": "#1F5FA8",
    "undetermined": "#5B6470",
}
"""Grounds of verdicts, on which white can be read; others have none."""

MOST_ROUNDS = 60
"""Of a race with more rounds, only the last one can be pointed at."""

LABEL, IN_TITLE = 32, 40  # characters of a configuration's name


def policy_curves(curves: pd.DataFrame, *, statistic: str = "mean", of: str = "") -> Chart:
    """Draws the best fitness over the arms against the number of pulls, a line per policy.

    Args:
        curves: One row per policy and round: policy, round (from 1), value, low, high and n, the
            number of logged runs (not of replicates).
        statistic: What `value` is: "mean" or "median".
        of: Task and model of the runs, for the title.

    Example:
        >>> runs = frame[frame["children"] == 4]
        >>> contest = replay.compete(runs, ["ucb1"], arms=3, replicates=200)
        >>> replay.plots.policy_curves(contest.curves).get_xlabel()
        'pulls'
    """
    style.require(curves, "policy", "round", "value", "low", "high", "n")
    if curves["value"].isna().all():
        return Chart(message="No policy has a fitness to show.")
    return lines(
        curves,
        title=_titled("Best fitness over the arms", of),
        about=f"{intervals(curves, statistic.capitalize())}; {counted(curves['n'])}",
        by="policy", at="round", x="pulls", y=FITNESS, scale="whole",
    )  # fmt: skip


def pulls_per_arm(pulls: pd.DataFrame, *, of: str = "") -> Chart:
    """Draws which arms each policy pulls, by the arm's rank in final fitness.

    Args:
        pulls: One row per policy and rank: policy, rank (1 is the arm with the best final fitness),
            value (its share of the pulls, in [0, 1]), low, high and n, the number of logged runs.
        of: Task and model of the runs, for the title.

    Example:
        >>> runs = frame[frame["children"] == 4]
        >>> contest = replay.compete(runs, ["ucb1"], arms=3, replicates=200)
        >>> replay.plots.pulls_per_arm(contest.pulls).get_xlabel()
        'arm, by rank of its final fitness (1 = best)'
    """
    style.require(pulls, "policy", "rank", "value", "low", "high", "n")
    if pulls.empty:
        return Chart(message="No pulls to show.")
    arms = int(pulls["rank"].max())
    [panel] = lines(
        pulls.assign(**{name: 100 * pulls[name] for name in ("value", "low", "high")}),
        title=_titled("Pulls per arm", of),
        about=f"{intervals(pulls, 'Mean')}; grey: equal shares; {counted(pulls['n'])}",
        x="arm, by rank of its final fitness (1 = best)", y="share of pulls (%)", by="policy",
        at="rank", limits="bars", apart=0.3 / pulls["policy"].nunique(),
    ).panels  # fmt: skip
    highest = 105 * float(np.nanmax(pulls[["value", "high"]].to_numpy(np.float64)))
    ticks = [(float(rank), str(rank)) for rank in range(1, arms + 1)]
    x = replace(panel.x, domain=(0.7, arms + 0.3), ticks=ticks, grid=True)
    equal = Rule(y=100 / arms, color="faint")
    y = replace(panel.y, domain=(0.0, highest))
    return Chart(panels=[replace(panel, x=x, y=y, marks=[equal, *panel.marks])])


def threshold_times(times: pd.DataFrame, *, of: str = "") -> Chart:
    """Draws after how many pulls each policy reaches a fitness.

    Args:
        times: One row per policy and threshold, with the columns policy, tau, time, low and high
            (infinite if not reached), share, share_reached and n.
        of: Name of the runs, for the title.

    Example:
        >>> runs = frame[frame["children"] == 4]
        >>> contest = replay.compete(runs, ["ucb1"], arms=3, replicates=200)
        >>> replay.plots.threshold_times(contest.times).get_xlabel()
        'pulls'
    """
    style.require(times, "policy", "tau", "time", "low", "high", "share", "share_reached", "n")
    if times.empty:
        return Chart(message="No threshold to show.")
    few = times["tau"].nunique() == 1
    what = f"Pulls until {100 * times['share'].iloc[0]:.3g} % of the samples reach it"
    never = "; ".join(_short_of(times[np.isinf(times["time"])], few))
    about = f"{intervals(times, what)}; {counted(times['n'])}"
    about += f". Fitness {times['tau'].iloc[0]:g}" if few else ""
    return estimates(
        times.rename(columns={"time": "value"}).assign(of=times["tau"].map("fitness {:g}".format)),
        title=_titled("Time to threshold", of),
        about=about + (f"; {never}" if never else ""),
        x="pulls", rows="policy", groups=None if few else "of",
    )  # fmt: skip


def _short_of(times: pd.DataFrame, few: bool) -> Iterator[str]:
    """How many replicates of policies reach a fitness that too few reach, equal shares together."""
    shares = times["share_reached"].map(lambda share: f"only {100 * share:.3g} % of")
    reached = "it" if few else times["tau"].map("{:g}".format)
    for (share, fitness), part in times.assign(share=shares, fitness=reached).groupby(
        ["share", "fitness"], sort=False
    ):
        yield f"{share} {', '.join(part['policy'])} reach {fitness}"


def pool_vs_allocation(effects: pd.DataFrame, *, of: str = "") -> Chart:
    """Draws the gain of a policy over one run, of a pool of arms, and of choosing among them.

    Args:
        effects: One row per policy and effect: policy, effect ("policy", "pool" or "allocation"),
            value (a difference of best fitness), low, high and n, the number of logged runs.
        of: Task and model of the runs, for the title.

    Example:
        >>> runs = frame[frame["children"] == 4]
        >>> contest = replay.compete(runs, ["ucb1"], arms=3, replicates=200)
        >>> replay.plots.pool_vs_allocation(contest.effects).get_xlabel()
        'gain in best fitness'
    """
    style.require(effects, "policy", "effect", "value", "low", "high", "n")
    if unknown := set(effects["effect"]) - set(EFFECTS):
        raise ValueError(f"expected effects {' and '.join(EFFECTS)}, got {sorted(unknown)!r}")
    if effects.empty:
        return Chart(message="No effect to show.")
    return estimates(
        effects.assign(of=effects["effect"].map(EFFECTS)),
        title=_titled("Effects over one run", of),
        about=f"{intervals(effects, 'Mean difference')}; {counted(effects['n'])}",
        x="gain in best fitness", rows="policy", groups="of", bound=0,
    )  # fmt: skip


def gains(ways: pd.DataFrame, *, of: str = "") -> Chart:
    """Draws the gain of trying several arms before one run gets the rest of the budget.

    Args:
        ways: The table `ways` of `replay.diagnose`: one row per number of arms and of pulls of each
            before the choice, with the columns arms, explored, gain, low and high.
        of: Task and model of the runs, for the title.

    Example:
        >>> runs = frame[frame["children"] == 1]
        >>> replay.plots.gains(replay.diagnose(runs).ways).get_xlabel()
        'pulls of each arm before the choice'
    """
    style.require(ways, "arms", "explored", "gain", "low", "high")
    table = ways.assign(value=ways["gain"], by=[f"K = {K}" for K in ways["arms"]])
    [panel] = lines(
        table, title=_titled("Start several runs, keep the best: the gain over one run", of),
        about="Mean and nominal 95 % interval over runs, its coverage not measured; "
        "above 0: looking pays",
        x="pulls of each arm before the choice", y="gain in best fitness", by="by",
        at="explored", limits="bars", apart=0.1, scale="whole",
    ).panels  # fmt: skip
    level = Rule(y=0.0, color="faint")
    low, high = float(ways["explored"].min()), float(ways["explored"].max())
    room = 0.4 + 0.05 * (ways["arms"].nunique() + high - low)
    x = replace(panel.x, domain=(low - room, high + room))  # the whole numbers of all points
    # Lines end at different places, where their names would be in an order of their own.
    marks = [level, *(each for each in panel.marks if not isinstance(each, End))]
    return Chart(panels=[replace(panel, x=x, marks=marks, legend=True)])


def race(selection: Selection, *, rounds: int | None = None, named: int = 12) -> Chart:
    """Draws a selection: a row per configuration, whose interval narrows from round to round.

    A race without rounds, such as that of a single configuration, is shown as a sentence.

    Args:
        selection: The selection, from `evo.select_best` or `replay.select`.
        rounds: Number of rounds to draw (default: all); axes and rows stay those of the whole race.
        named: Number of configurations to draw: those that stay longest, best mean first.

    Raises:
        ValueError: The race has fewer rounds.

    Example:
        >>> chosen = replay.select(np.array([[1.0] * 200, [0.0] * 200]))
        >>> replay.plots.race(chosen).get_xlabel()
        'mean reward (within [0, 1])'
    """
    check_result("race", selection, "Selection", "evo.select_best or replay.select")
    if rounds is None and not selection.rounds:
        text = f"No sample was taken: {outcome(selection, IN_TITLE)}."
        return Chart(message=text)
    shown = rounds_shown(selection, rounds)
    alive, mean, lower, upper, count = (
        np.array([getattr(each, name)[0] for each in selection.rounds])
        for name in ("alive", "mean", "lower", "upper", "count")
    )
    order = order_of_race(selection, named)
    labels, fields = distinct(selection.labels)
    deep = 0.8 / len(selection.rounds)
    stride = math.ceil(len(selection.rounds) / MOST_ROUNDS)  # draws at most MOST_ROUNDS
    marks: list[Mark] = []
    for row, k in enumerate(order):
        retired = not alive[shown - 1, k]
        until = min(shown, int(alive[:, k].sum()) + 1)
        color = "faint" if retired else PALETTE[2 if k == selection.winner else 0]
        numbers = np.arange(until, 0, -stride)[::-1]
        at = numbers - 1
        texts = [
            f"{selection.labels[k]}\nround {number}: {ranged(*band)}, n = {n}"
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
            why = [f"{selection.labels[k]}\n{selection.loss(k)}"]
            marks.append(Points(x=[last[0]], y=[last[1]], shape="cross", size=4, texts=why))
    title, about, axis = head_of_race(selection, shown, len(order), fields)
    margin = 0.03 * (selection.terms.high - selection.terms.low)
    names = [f"{wrapped(labels[k])} (n = {count[shown - 1, k]})" for k in order]
    panel = Panel(
        title=title, about=about, marks=marks, height=42.0 * len(order), zoom=True,
        x=Axis(
            domain=(selection.terms.low - margin, selection.terms.high + margin), label=axis
        ),
        y=Axis(
            domain=(len(order) - 0.4, -0.6),
            ticks=[(float(row), name) for row, name in enumerate(names)],
        ),
    )  # fmt: skip
    return Chart(panels=[panel])


def rounds_shown(selection: Selection, rounds: int | None) -> int:
    """Number of rounds of a race that are shown; None: all. ValueError: there are fewer."""
    shown = len(selection.rounds) if rounds is None else rounds
    if not 1 <= shown <= len(selection.rounds):
        raise ValueError(f"rounds: expected from 1 to {len(selection.rounds)}, got {rounds!r}")
    return shown


def order_of_race(selection: Selection, named: int) -> list[int]:
    """Indices of the configurations that stay longest, and among those by their mean."""
    alive = np.array([each.alive[0] for each in selection.rounds]).sum(axis=0)
    mean = np.nan_to_num(selection.rounds[-1].mean[0], nan=-np.inf)
    found: list[int] = np.lexsort((-mean, -alive))[:named].tolist()
    return found


def wrapped(label: str) -> str:
    """A configuration's name in two lines, cut where it is longer."""
    return "\n".join(wrap(label, LABEL, max_lines=2, placeholder=" …"))


def distinct(labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names of configurations that stay apart where they are cut, and the fields they list.

    Where full names (`children=4, temperature=0.6`) would look alike, they are the values alone,
    without fields that all share, and a dash for a field that a configuration does not have.
    """
    apart = len({wrapped(label) for label in labels}) == len(labels)
    parts = [[part.partition("=") for part in label.split(", ")] for label in labels]
    if apart or not all(equals for each in parts for _, equals, _ in each):
        return [*labels], []
    values = [{name: value for name, _, value in each} for each in parts]
    known = dict.fromkeys(name for each in values for name in each)
    fields = [name for name in known if len({each.get(name) for each in values}) > 1]
    return [", ".join(each.get(name, "-") for name in fields) for each in values], fields


def head_of_race(
    selection: Selection, shown: int, drawn: int, fields: Sequence[str]
) -> tuple[str, str, str]:
    """The title of a race, the line below it, and the label of its axis."""
    terms, total = selection.terms, len(selection.labels)
    left = int(selection.rounds[shown - 1].alive.sum())
    kind = (
        f"intervals together at {1 - terms.delta:.3g} at any time"
        if terms.interval == "anytime"
        else f"mean ± {terms.c:g} SE, which do not hold at each look"
    )
    state = f"round {shown} of {len(selection.rounds)}"
    if shown == len(selection.rounds):
        state = outcome(selection, IN_TITLE)
    failed, clipped = selection.failures.sum(), selection.clipped.sum()
    notes = [
        f"within [{terms.low:g}, {terms.high:g}]",
        *([f"{total - drawn} more configurations not drawn"] if total > drawn else []),
        *([f"failed samples: {failed}"] if failed else []),
        *([f"clipped samples: {clipped}"] if clipped else []),
    ]
    named = f"; named by {', '.join(fields)}" if fields else ""
    text = f"{left} of {total} left, x: {_retired(selection)}; rounds go downwards; {kind}{named}"
    return f"Race by {selection.selector}: {state}", text, f"mean reward ({', '.join(notes)})"


def _retired(selection: Selection) -> str:
    """By which comparisons configurations were retired."""
    known = {
        "bets": f"retired by paired bets on shared samples, p ≤ {selection.decisive:.2g}",
        "intervals": "retired as their intervals lie below the leader's",
        "mean": "retired by a lower mean alone",
        "threshold": "retired as their intervals lie below the threshold",
    }
    found = [
        known[rule] for k, rule in enumerate(RULES) if rule and (selection.losses.rule == k).any()
    ]
    return " or ".join(found) or "retired"


ENDS = {
    "exhausted": "there are no further samples",
    "budget": "the budget is spent",
    "stopped": "it was stopped",
}
"""Why a race ended before it was certain."""


def outcome(selection: Selection, width: int) -> str:
    """Describes how a race ended: its winner, or the leader if uncertain, and the reason."""
    if selection.winner is None:
        return "no configuration is left"
    labels, _ = distinct(selection.labels)
    name = middle_cut(labels[selection.winner], width)
    if selection.end == "certain":
        return f"winner {name}"
    return f"not certain, as {ENDS[selection.end]}; {name} was ahead"


def verdicts(ledger: pd.DataFrame, *, columns: Sequence[str] = ("source", "task")) -> Chart:
    """Draws a ledger of claims as a matrix: a row per question, a cell per source and task.

    Args:
        ledger: The ledger, from `replay.claims.ledger`.
        columns: The columns of the ledger that distinguish the columns of the matrix.

    Example:
        >>> type(replay.plots.verdicts(replay.ledger({"runs": frame}))).__name__
        'Axes'
    """
    style.require(ledger, "claim", "verdict", "n", *columns)
    rows = list(dict.fromkeys(ledger["claim"].map(question)))
    across = list(dict.fromkeys(ledger[[*columns]].itertuples(index=False, name=None)))
    asked = [middle_cut(text, 60) for text in rows]
    said = [REPLIES.get(verdict, verdict) for verdict in ledger["verdict"]]
    marks: list[Mark] = []
    for text, row in zip(said, ledger.to_dict("records"), strict=True):
        claim, verdict = question(row["claim"]), row["verdict"]
        x, y = across.index(tuple(row[name] for name in columns)), rows.index(claim)
        fill = VERDICTS.get(verdict)
        marks.append(
            Spans(
                x0=[x - 0.48], x1=[x + 0.48], y0=[y - 0.44], y1=[y + 0.44],
                color=fill or "ink", opacity=1.0 if fill else 0.0,
                texts=[f"{claim}\n{row.get('answer', text)}"],
            )
        )  # fmt: skip
        ink = "#ffffff" if fill else "ink"
        marks.append(Label(x=x, y=y, text=text, anchor="middle", color=ink, dy=4, bare=True))
    parts = [[str(part).replace("_", " ") for part in each] for each in across]
    heads = ["\n".join("\n".join(wrap(part, 13)) for part in each) for each in parts]
    panel = Panel(
        title="", marks=marks, height=36.0 * len(rows),
        x=Axis(
            domain=(-0.5, len(across) - 0.5), above=True,
            ticks=[(float(k), head) for k, head in enumerate(heads)],
        ),
        y=Axis(
            domain=(len(rows) - 0.5, -0.5),
            ticks=[(float(k), text) for k, text in enumerate(asked)],
        ),
        width=max(400.0, 8.5 * max(map(len, asked), default=0) - 60.0)
        + max(130.0, 9.5 * max(map(len, said), default=0)) * len(across),
    )  # fmt: skip
    return Chart(panels=[panel])


def _titled(title: str, of: str) -> str:
    return f"{title}: {of}" if of else title
