"""P-values and samples against SciPy and by counting."""

import numpy as np
import pytest

from replay.statistics.resampling import LARGEST, check_size, holm, resampled, tail_p, weights


def test_samples_draw_whole_runs_with_replacement():
    rng = np.random.default_rng(0)
    rows = resampled(7, 4000, rng)
    assert rows.shape == (4000, 7)
    assert set(np.unique(rows)) == set(range(7))
    shares = weights(7, 4000, rng)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares.mean(axis=0), 1 / 7, atol=0.01)
    counts = np.stack([np.bincount(row, minlength=7) for row in rows]) / 7
    np.testing.assert_allclose(shares.var(axis=0), counts.var(axis=0), rtol=0.15)


def test_a_tail_counts_what_was_seen_unless_sampling_ended_with_a_hit():
    drawn = np.array([0.0, 3.0, 1.0, 5.0, 2.0])
    assert tail_p(2.0, drawn) == (1 + 3) / 6
    assert tail_p(9.0, drawn) == 1 / 6
    assert tail_p(2.0, drawn, enough=2) == 2 / 4  # the second hit was the fourth draw
    assert tail_p(2.0, drawn, enough=4) == (1 + 3) / 6


def test_stopping_after_enough_hits_keeps_the_level():
    """Of many null values, at most as many have p <= alpha as alpha says."""
    rng = np.random.default_rng(1)
    values, worlds = rng.normal(size=4000), rng.normal(size=(4000, 200))
    ps = [tail_p(value, drawn, enough=5) for value, drawn in zip(values, worlds, strict=True)]
    for alpha in (0.025, 0.05, 0.2):
        assert np.mean(np.array(ps) <= alpha) <= alpha + 3 * np.sqrt(alpha / 4000)
        assert np.mean(np.array(ps) <= alpha) >= 0.7 * alpha


def test_holms_factors_fall_by_one_and_nan_is_left_out():
    found = holm([0.01, 0.04, np.nan, 0.03, 0.005])
    np.testing.assert_allclose(found, [0.03, 0.06, np.nan, 0.06, 0.02])
    assert holm([]).tolist() == []
    assert holm([0.4, 0.9]).tolist() == pytest.approx([0.8, 0.9])


def test_numbers_up_to_the_largest_have_squares_that_add_up():
    check_size([-LARGEST, LARGEST, 0.0])
    assert np.isfinite(np.sum(np.full(1000, LARGEST) ** 2))
    with pytest.raises(ValueError, match="divide it by a power of ten"):
        check_size([1.0, -1.001 * LARGEST])
