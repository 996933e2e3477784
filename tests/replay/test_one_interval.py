"""A mean of the same runs has one interval, within the bounds of its scores, wherever it stands."""

import numpy as np
import pytest
from synthetic_runs import as_frame

import replay
from replay.explorers.allocation_data import RunsAsArms
from replay.explorers.budget_data import outlook
from replay.logs.frames import bounds_of
from replay.logs.tables import Tables
from replay.reports.report import Group, fitness_section

T = 4


def runs(initial=0.2, *, unit=True):
    """Seven runs of which nearly all solve everything, so that a plain t interval exceeds 1."""
    ends = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.35])
    rises = initial + (ends[:, None] - initial) * np.linspace(0, 1, T + 1) ** 0.1
    return as_frame(rises, children=2, seeds=range(7)).assign(unit_scale=unit)


def reported(frame):
    """The final mean of a report."""
    first = frame.groupby("run", sort=False, as_index=False).first()
    about = {"generations": T, "repeat_of": "", "forked_from": "", "rescored": False, "lost": None,
             "ending": "", "noise": ""}  # fmt: skip
    tables = Tables(first.assign(root=first["run"], tool="evo", **about), frame, frame.iloc[:0])
    cells = fitness_section(Group("toy", "chain", True, tables, 0, "", 0), None).cells
    return cells[cells["quantity"] == "final, mean"].iloc[0]


def shown(frame):
    """The mean at the end by each that shows one: value, low and high."""
    cells = replay.depth_breadth(frame, resamples=20).cells
    split = outlook(frame, None).cell(T, 2)
    contest = replay.compete(frame, ["ucb1"], replicates=50)
    curve = RunsAsArms(frame).play("single", (), 2, T, "best_fitness", 50).curve
    ends = frame.loc[frame["generation"] == T, "best_fitness"]
    return {
        "report": reported(frame),
        "grid": cells[cells["generations"] == T].iloc[0],
        "explorer of budgets": split,
        "contest": contest.finals.set_index("policy").loc["single"],
        "explorer of policies": type(curve)(
            value=curve.value[-1], low=curve.low[-1], high=curve.high[-1], n=7
        ),
        "interval": replay.interval(ends, bounds=bounds_of(frame)),
    }


@pytest.mark.parametrize("unit", [True, False])
def test_a_mean_has_one_interval(unit):
    found = {
        name: [float(getattr(each, limit)) for limit in ("value", "low", "high")]
        for name, each in shown(runs(unit=unit)).items()
    }
    for name, limits in found.items():
        assert limits == pytest.approx(found["interval"]), name
    assert (found["interval"][2] == 1) == unit


def test_the_best_so_far_is_never_below_an_initial_program_that_all_have():
    assert bounds_of(runs()) == (0.2, 1.0)
    assert bounds_of(runs(unit=False)) == (0.2, np.inf)
    apart = runs().assign(best_fitness=lambda f: f["best_fitness"] * (1 - f["seed"] / 1000))
    assert bounds_of(apart) == (0.0, 1.0)
    later = runs()[lambda f: (f["generation"] > 0) | (f["seed"] > 0)]
    assert bounds_of(later) == (0.0, 1.0)
    beyond = runs().assign(best_fitness=lambda f: 1.1 * f["best_fitness"])
    assert bounds_of(beyond) == (pytest.approx(0.22), np.inf)


def test_bands_of_policies_keep_to_the_scale_of_scores():
    found = replay.compete(runs(), ["ucb1", "thompson"], replicates=50).curves
    assert found["high"].max() <= 1
    assert found["low"].min() >= 0.2
