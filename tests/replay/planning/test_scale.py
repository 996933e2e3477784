"""Fitness may have any scale: decisions stay, and numbers move with a f + b.

An analysis returns what stays exactly, what stays up to rounding, fitness, and differences of it.
"""

import numpy as np
import pytest
from synthetic_runs import chain_runs
from tiers import thorough_after

import replay

FITNESS = ["best_fitness", "fitness", "parent_fitness"]
ORDER = ["generations", "children", "arms", "policy", "inside", "tied"]
LIMITS = ["value", "low", "high"]


def depth(frame, children, move):
    found, front = replay.depth_breadth(frame, resamples=50), replay.envelope(frame, best=move(1))
    decided = found.best[["generations", "children", "statistic"]].to_numpy().tolist()
    numbers = [*found.best["p_best"], *front.collapse["r2"]]
    fitness = found.cells[[*LIMITS, "median"]]
    return (decided, [*front.points["children"]]), numbers, fitness, found.knowing["gain"]


def bilinear(frame, children, move):
    fit = replay.fit_bilinear(frame, best=move(1))
    numbers = [value for name in "abc" for value in fit.coefficients[name].values()]
    numbers += [fit.r2, *fit.optimum(16).probabilities.values()]
    return fit.regime_at(16), numbers, fit.predict([4, 2], [2, 8]), []


def kernel(frame, children, move):
    fit = replay.fit_kernel(children, best=move(1))
    paths = [each.simulate(8, 2, runs=200) for each in fit.resampled(2, seed=3)]
    return (fit.variance, fit.concentration), [], paths, []


def plan(frame, children, move):
    made = replay.plan(
        frame, children=children, budget=16, tau=move(0.5), best=move(1), kernels=3, arms=(2,),
        policies=("ucb1", "thompson_nig"),
    )  # fmt: skip
    decided = made.choice, made.options[ORDER].to_numpy().tolist()
    return decided, [made.p_tau], made.outcomes, made.options[["ahead", "margin"]]


def compete(frame, children, move):
    part = frame[frame["children"] == 2]
    made = replay.compete(part, ["ucb1"], tau=move(0.5), reward="rank", replicates=60)
    gaps = np.concatenate([made.effects[LIMITS], made.regrets[LIMITS]])
    return made.times["time"].tolist(), made.pulls[LIMITS], made.curves[LIMITS], gaps


def judge(frame, children, move):
    found = replay.judge(frame, {"children": 1}, {"children": 4}, calls=16)
    gaps = [found.effect, found.margin, found.detectable]
    return (found.verdict, found.runs_needed), [found.p], [], gaps


@pytest.mark.parametrize("analysis", [depth, bilinear, kernel, plan, compete, judge])
@pytest.mark.parametrize("seed", thorough_after(1, [0, 1]))
def test_scale_and_origin_of_fitness_change_the_numbers_alone(analysis, seed):
    rng = np.random.default_rng(seed)
    tables = chain_runs(sizes=(1, 2, 4), budget=16, seeds=range(10), rng=rng)
    if analysis is depth and seed:  # runs that find nothing at first
        frame = tables[0]
        late = frame["run"].isin(frame["run"].unique()[::9]) & (frame["generation"] < 3)
        frame.loc[late, "best_fitness"] = np.nan
    decided, numbers, fitness, gaps = analysis(*tables, lambda value: value)
    for a, b in ((0.01, -5.0), (100.0, 5.0), (1.0, 5.0)):
        moved = (
            table.assign(**{c: a * table[c] + b for c in FITNESS if c in table}) for table in tables
        )
        found = analysis(*moved, lambda value, a=a, b=b: a * value + b)
        assert found[0] == decided
        np.testing.assert_allclose(found[1], numbers, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found[2], a * np.asarray(fitness) + b, rtol=1e-6, atol=1e-6 * a)
        np.testing.assert_allclose(found[3], a * np.asarray(gaps), rtol=1e-6, atol=1e-9 * a)
