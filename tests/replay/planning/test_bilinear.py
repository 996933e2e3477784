import math

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import bilinear_runs

from replay.planning.bilinear import NAMES, REGIME_NAMES, fit_bilinear

QUIET = {"run_noise": 0.0, "generation_noise": 0.0}


def test_without_noise_the_truth_comes_back():
    truth = (-0.5, -0.2, -0.1, -0.04)
    fit = fit_bilinear(bilinear_runs(truth, **QUIET))
    for name, value in zip(NAMES, truth, strict=True):
        assert fit.coefficients[name]["value"] == pytest.approx(value, abs=1e-9)
    assert fit.r2 == pytest.approx(1)
    np.testing.assert_allclose(
        fit.predict([1, 8, 512], [1, 4, 1]),
        1 - np.exp([-0.5, -0.5 - 0.2 * math.log(8) - 0.1 * math.log(4)
                    - 0.04 * math.log(8) * math.log(4), -0.5 - 0.2 * math.log(512)]),
    )  # fmt: skip


def test_it_is_least_squares_on_the_cells():
    frame = bilinear_runs(budget=32)
    fit = fit_bilinear(frame)
    powers = frame[frame["generation"].isin([1, 2, 4, 8, 16, 32])]
    logs = np.log(1 - powers["best_fitness"]).groupby([powers["generation"], powers["children"]])
    mean = logs.mean()
    t, n = (np.log(mean.index.get_level_values(level).to_numpy(float)) for level in (0, 1))
    design = np.column_stack([np.ones_like(t), t, n, t * n])
    expected = np.linalg.lstsq(design, mean.to_numpy())[0]
    found = [fit.coefficients[name]["value"] for name in NAMES]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("truth", "regime"),
    [
        ((-0.5, -0.3, -0.1, 0.0), "depth corner"),
        ((-0.5, -0.1, -0.3, 0.0), "breadth corner"),
        ((-0.2, -0.1, -0.1, -0.08), "interior"),
        ((-0.2, -0.1, -0.1, 0.0), "undetermined"),
    ],
)
def test_regimes(truth, regime):
    noise = 1.5 if regime == "undetermined" else 0.2
    fit = fit_bilinear(bilinear_runs(truth, run_noise=noise))
    if regime == "undetermined":
        assert fit.regime_at(512, certainty=0.95) == regime
    else:
        assert fit.regime_at(512) == regime
    assert sum(fit.optimum(512).probabilities.values()) == pytest.approx(1)


def test_optimum_and_plateau_are_those_of_the_formulas():
    a, b, c, C, loss = -0.2, -0.1, -0.06, 512, 0.05
    fit = fit_bilinear(bilinear_runs((-0.5, a, b, c), **QUIET))
    found = fit.optimum(C, loss=loss)
    x = (a - b + c * math.log(C)) / (2 * c)
    half = math.sqrt(loss / abs(c))
    assert math.log(found.generations) == pytest.approx(x)
    assert found.generations * found.children == pytest.approx(C)
    assert np.log(found.plateau) == pytest.approx([x - half, x + half], abs=0.02)


def test_the_optimum_moves_with_the_budget():
    fit = fit_bilinear(bilinear_runs((-0.5, -0.3, -0.1, -0.06), **QUIET))
    assert fit.regime_at(8) == "depth corner"
    assert fit.regime_at(4096) == "interior"
    with pytest.raises(ValueError, match="at least 4"):
        fit.optimum(2)


def test_fitness_at_and_above_one_counts_as_the_ceiling():
    frame = bilinear_runs(budget=16)
    frame.loc[frame["generation"] == 16, "best_fitness"] = 1.2
    fit = fit_bilinear(frame, ceiling=0.999)
    assert np.isfinite([found["value"] for found in fit.coefficients.values()]).all()
    higher = fit_bilinear(frame, ceiling=0.999999)  # the depth that reaches it gains by it
    assert higher.coefficients["a"]["value"] < fit.coefficients["a"]["value"]
    with pytest.raises(ValueError, match="below 1"):
        fit_bilinear(frame, ceiling=1.0)


def test_fitness_beyond_the_best_says_what_is_missing():
    frame = bilinear_runs(budget=16)
    far = frame.assign(best_fitness=100 * frame["best_fitness"])
    for scaled in (far, far.assign(best_fitness=far["best_fitness"] + 5)):
        with pytest.raises(ValueError, match=r"got 1\.0 where runs reach .* pass best="):
            fit_bilinear(scaled)


def test_equal_cells_have_no_regime():
    frame = bilinear_runs((-0.5, 0, 0, 0), budget=16, **QUIET)
    fit = fit_bilinear(frame)
    assert fit.regime_at(16) == "undetermined"
    assert fit.optimum(16).probabilities == pytest.approx(dict.fromkeys(REGIME_NAMES[:3], 1 / 3))


def test_one_run_a_cell_has_no_interval_and_no_regime():
    fit = fit_bilinear(bilinear_runs(budget=16, seeds=[1]))
    for found in fit.coefficients.values():
        assert np.isfinite(found["value"])
        assert np.isnan([found["low"], found["high"]]).all()
    assert fit.regime_at(16) == "undetermined"
    assert np.isnan(list(fit.optimum(16).probabilities.values())).all()
    assert "no intervals" in str(fit)


def test_runs_of_unequal_depth_weigh_by_the_cells_that_they_reach():
    """The covariance against the plain jackknife over whole runs within each N."""
    frame = bilinear_runs(budget=16, seeds=range(6))
    short = frame["run"].str.endswith(("-1", "-3", "-4")) & (frame["generation"] > 1)
    frame = frame[~short]
    fit = fit_bilinear(frame)
    value = np.array([fit.coefficients[name]["value"] for name in NAMES])
    variance = np.zeros(4)
    for _, part in frame.groupby("children"):
        runs = part["run"].unique()
        without = [fit_bilinear(frame[frame["run"] != run]).coefficients for run in runs]
        moved = np.array([[each[name]["value"] for name in NAMES] for each in without])
        variance += (len(runs) - 1) / len(runs) * ((moved - moved.mean(axis=0)) ** 2).sum(axis=0)
    spread = np.std(fit.draws, axis=0)
    assert (0.85 * np.sqrt(variance) < spread).all()
    assert (spread < 1.3 * np.sqrt(variance)).all()
    low = np.array([fit.coefficients[name]["low"] for name in NAMES])
    assert (value - low > 1.96 * 0.85 * np.sqrt(variance)).all()


@pytest.mark.parametrize("off", [-0.2, 0.2])
@pytest.mark.parametrize("end", ["deep", "broad"])
def test_interior_begins_half_a_doubling_from_the_corners(off, end):
    """The optimum of a quiet surface put just inside and just outside of log(2) / 2."""
    C, c = 64, -0.1
    x = math.log(2) / 2 * (1 + off)
    x = math.log(C) - x if end == "deep" else x
    a = 2 * c * x - c * math.log(C)  # with b = 0
    fit = fit_bilinear(bilinear_runs((-0.5, a, 0.0, c), **QUIET))
    corner = "depth corner" if end == "deep" else "breadth corner"
    assert fit.regime_at(C) == ("interior" if off > 0 else corner)


def test_too_few_cells_and_mixed_tasks_are_refused():
    frame = bilinear_runs(budget=8)
    with pytest.raises(ValueError, match="at least two T for each of at least two N"):
        fit_bilinear(frame[frame["children"] == 1])
    mixed = pd.concat([frame, frame.assign(task="other", run=frame["run"] + "-b")])
    with pytest.raises(ValueError, match="select some"):
        fit_bilinear(mixed)


def cut(frame, rng):
    """A quarter of the runs is missing, and every other one ends early."""
    runs = frame["run"].unique()
    frame = frame[frame["run"].isin(runs[rng.random(len(runs)) > 0.25])]
    depth = frame.groupby("run")["generation"].max()
    early = np.maximum(1, np.floor(depth * rng.random(len(depth))))
    ends = depth.where(rng.random(len(depth)) > 0.5, early)
    return frame[frame["generation"] <= frame["run"].map(ends)]


@pytest.mark.parametrize("seeds", [3, 5])
def test_intervals_of_missing_and_truncated_grids_cover(seeds):
    """Cells that a single run reaches are left out; it used to cost every interval."""
    held, without = [], 0
    for number in range(30):
        rng = np.random.default_rng([2, number])
        fit = fit_bilinear(cut(bilinear_runs(budget=64, seeds=range(seeds), rng=rng), rng))
        without += not len(fit.draws)
        limits = [fit.coefficients[name] for name in "abc"]
        held += [
            found["low"] <= truth <= found["high"]
            for found, truth in zip(limits, (-0.2, -0.1, -0.04), strict=True)
            if len(fit.draws)
        ]
    assert without <= 3
    assert np.mean(held) > 0.88


def test_cells_of_a_single_run_are_left_out_and_counted():
    frame = bilinear_runs(budget=16, seeds=range(3))
    alone = (frame["children"] == 4) & (frame["seed"] > 0) & (frame["generation"] > 2)
    fit, same = (
        fit_bilinear(frame[~alone]),
        fit_bilinear(frame[~((frame["children"] == 4) & (frame["generation"] > 2))]),
    )
    assert fit.n_single == 1
    assert "1 cells left out" in str(fit)
    assert fit.coefficients["c"]["value"] == pytest.approx(same.coefficients["c"]["value"])


def test_a_fit_that_needs_cells_of_a_single_run_says_what_is_missing():
    frame = bilinear_runs(budget=16, seeds=range(1))
    fit = fit_bilinear(frame)
    assert not len(fit.draws)
    assert np.isnan(fit.coefficients["c"]["low"])
    assert f"{fit.n_single} of the cells are reached by a single run" in str(fit)


def test_best_has_to_be_given_where_fitness_is_far_from_one():
    frame = bilinear_runs(budget=16, seeds=range(4))
    moved = frame.assign(best_fitness=frame["best_fitness"] - 5)
    with pytest.raises(ValueError, match="expected best="):
        fit_bilinear(moved)
    given = fit_bilinear(moved, best=-4.0)
    assert given.coefficients["c"]["value"] == pytest.approx(
        fit_bilinear(frame).coefficients["c"]["value"]
    )
