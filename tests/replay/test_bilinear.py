import math

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import bilinear_runs

from replay.bilinear import NAMES, fit_bilinear

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


def test_more_parameters_always_raise_r2_but_not_the_cross_validated_one():
    scores = fit_bilinear(bilinear_runs((-0.5, -0.2, -0.2, 0.0), run_noise=0.8)).scores
    assert scores["r2"].is_monotonic_increasing
    assert (scores["r2_cv"] < scores["r2"]).all()
    assert scores["r2_cv"].loc["budget"] > scores["r2_cv"].loc["bilinear"]


def test_fitness_at_and_above_one_counts_as_the_ceiling_and_is_reported():
    frame = bilinear_runs(budget=16)
    frame.loc[frame["generation"] == 16, "best_fitness"] = 1.2
    fit = fit_bilinear(frame, ceiling=0.999)
    assert np.isfinite([found["value"] for found in fit.coefficients.values()]).all()
    table = fit.sensitivity
    assert (table["capped"] > 0).all()
    assert sorted(table["ceiling"].unique()) == [0.99, 0.999, 0.999999]
    slopes = table[table["average"] == "log"].sort_values("ceiling")["a"]
    assert slopes.is_monotonic_decreasing
    with pytest.raises(ValueError, match="below 1"):
        fit_bilinear(frame, ceiling=1.0)


def test_too_few_cells_and_mixed_tasks_are_refused():
    frame = bilinear_runs(budget=8)
    with pytest.raises(ValueError, match="at least two T for each of at least two N"):
        fit_bilinear(frame[frame["children"] == 1])
    mixed = pd.concat([frame, frame.assign(task="other", run=frame["run"] + "-b")])
    with pytest.raises(ValueError, match="select one"):
        fit_bilinear(mixed)


def test_equal_seeds_give_equal_fits():
    frame = bilinear_runs(budget=16)
    assert fit_bilinear(frame, seed=4).coefficients == fit_bilinear(frame, seed=4).coefficients


@pytest.mark.slow
def test_intervals_hold_the_truth():
    """A short form of benchmarks/bilinear_coverage.py: 120 draws, standard error 2 points."""
    truth = (-0.5, -0.2, -0.1, -0.06)
    rng = np.random.default_rng(7)
    held = np.zeros(4)
    for draw in range(120):
        fit = fit_bilinear(bilinear_runs(truth, rng=rng), resamples=600, seed=draw)
        held += [
            fit.coefficients[name]["low"] <= value <= fit.coefficients[name]["high"]
            for name, value in zip(NAMES, truth, strict=True)
        ]
    assert (held / 120 > 0.88).all()
    assert (held / 120).mean() < 0.99
