"""Shrunk effects, their exaggeration, and bands of power."""

import math

import numpy as np
import pytest

from replay.claims.decision import exaggeration, kurtosis_of, power_band, shrunk


def test_a_shrunk_effect_is_less_and_none_where_the_error_is_as_large():
    assert shrunk(1.0, 0.5) == pytest.approx(0.75)
    assert shrunk(-1.0, 0.5) == pytest.approx(-0.75)
    assert shrunk(0.4, 0.5) == 0
    assert shrunk(0.0, 0.5) == 0


def test_the_expected_exaggeration_is_that_of_simulated_verdicts():
    rng = np.random.default_rng(0)
    for effect in (2.2, 3.0, 6.0):
        true = shrunk(effect, 1.0)
        seen = true + rng.standard_normal(400_000)
        called = np.abs(seen)[np.abs(seen) > 1.9623]
        assert exaggeration(effect, 1.0, 1000.0) == pytest.approx(called.mean() / true, rel=0.01)
    assert exaggeration(0.9, 1.0, 50.0) == math.inf
    assert exaggeration(900.0, 1.0, 50.0) == 1
    assert math.isnan(exaggeration(1.0, math.nan, 5.0))


def test_heavy_tails_widen_a_band_of_power():
    assert kurtosis_of(np.random.default_rng(0).normal(size=20_000)) < 0.1
    heavy = kurtosis_of(np.random.default_rng(0).lognormal(size=200), np.zeros(3))
    assert heavy > 2
    narrow, wide = (power_band(1.0, 0.4, 18.0, 2.0, kurtosis=each) for each in (0.0, heavy))
    assert wide[0] < narrow[0]
    assert wide[1] - wide[0] > narrow[1] - narrow[0]
