"""E-values against exact enumeration, and how often looking again misleads."""

import itertools

import numpy as np
import pytest

from replay.statistics.sequential import (
    FRACTIONS,
    e_holm,
    e_process,
    pairs_to_settle,
    sequence,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("half_range", [None, 3.0])
def test_over_all_signs_the_e_value_has_mean_one_at_every_look(half_range):
    """Exactly so: given the sizes of the differences, all signs are equally likely."""
    sizes = np.abs(RNG.normal(size=8))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=8)))
    e = e_process(signs * sizes, half_range)
    np.testing.assert_allclose(e.mean(axis=0), 1.0)
    assert e.min() >= 0


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_first_pair_is_a_bet_of_five_stakes(sign):
    stakes = np.tanh([0.15, 0.3, 0.6, 1.2, 2.4])
    np.testing.assert_allclose(e_process([sign * 7.0]), [(1 + sign * stakes).mean()])


def test_an_e_value_looks_at_nothing_that_comes_later():
    d = RNG.normal(0.3, 1, size=30)
    for half_range in (None, 10.0):
        whole = e_process(d, half_range)
        for n in (1, 7, 29):
            np.testing.assert_allclose(e_process(d[:n], half_range), whole[:n])


def test_the_confidence_sequence_holds_what_is_not_rejected():
    for half_range in (None, 4.0):
        d = RNG.normal(0.4, 0.5, size=60)
        found = sequence(d, half_range=half_range)
        assert found.low < found.value < found.high
        step = 1e-6
        assert e_process(d, half_range, found.low - step)[-1] >= 40
        assert e_process(d, half_range, found.low + step)[-1] < 40
        assert e_process(-d, half_range, -found.high - step)[-1] >= 40
        assert (found.low > 0) == (found.e_greater >= 40) == (found.e_value >= 20)


def test_bets_and_signs_do_not_depend_on_scale():
    d = RNG.normal(0.3, 0.2, size=40)
    one, other = sequence(d), sequence(100 * d)
    assert one.e_value == pytest.approx(other.e_value)
    assert other.low == pytest.approx(100 * one.low, rel=1e-6)
    bet, wide = sequence(d, half_range=1.0), sequence(100 * d, half_range=100.0)
    assert bet.e_value == pytest.approx(wide.e_value)
    assert wide.high == pytest.approx(100 * bet.high, rel=1e-6)


def test_five_pairs_settle_nothing_whatever_they_are():
    for n in (1, 5):
        found = sequence(np.full(n, 1.0) + 0.1 * RNG.random(n))
        assert found.e_value < 20
        assert (found.low, found.high) == (-np.inf, np.inf)
    assert sequence(np.full(12, 1.0) + 0.1 * RNG.random(12)).e_value > 20
    assert sequence(np.zeros(9)).e_value == 0.5


@pytest.mark.parametrize("law", ["normal", "lognormal", "rare"])
def test_looking_after_every_pair_up_to_a_hundred_misleads_in_one_of_twenty_at_most(law):
    rng = np.random.default_rng(3)
    draw = {
        "normal": lambda: rng.normal(size=(500, 100)),
        "lognormal": lambda: rng.lognormal(size=(500, 100)),
        "rare": lambda: (rng.random((500, 100)) < 0.1) + 0.01 * rng.random((500, 100)),
    }[law]
    d = draw() - draw()
    ever = sum((e_process(sign * d) >= 40).any(axis=1) for sign in (1, -1))
    assert ever.mean() <= 0.05


def test_e_holm_is_the_least_mean_with_smaller_ones():
    e = np.array([100.0, 1.0, 30.0, np.nan, 0.5])
    expected = [min(100, 100.5 / 2, 101.5 / 3, 131.5 / 4), min(1, 1.5 / 2), 31.5 / 3, np.nan, 0.5]
    np.testing.assert_allclose(e_holm(e), expected)
    assert e_holm([7.0]).tolist() == [7.0]


@pytest.mark.parametrize("wrong", [[], [np.nan], [[1.0]]])
def test_mistakes_are_named(wrong):
    with pytest.raises(ValueError, match="finite difference"):
        sequence(wrong)
    with pytest.raises(ValueError, match="within"):
        sequence([2.0], half_range=1.0)


@pytest.mark.parametrize("effect", [-0.5, 0.0, 0.5])
def test_no_bet_loses_more_than_its_stake_whatever_effect_is_tested(effect):
    """Under a null of `effect` the worst pair is a loss of R + effect, and only it costs all."""
    worst = e_process(np.full(3, -1.0), 1.0, effect)
    stakes = 1 - np.array(FRACTIONS)
    np.testing.assert_allclose(worst, [(stakes**n).mean() for n in (1, 2, 3)])
    best = e_process(np.full(1, 1.0), 1.0, effect)
    gain = (1 - effect) / (1 + effect)
    np.testing.assert_allclose(best, 1 + np.mean(FRACTIONS) * gain)


@pytest.mark.parametrize("half_range", [None, 6.0])
def test_pairs_that_settle_do_so_in_the_share_that_is_asked(half_range):
    """Continuations from the law itself, whose mean and variance the pairs so far have."""
    rng = np.random.default_rng(4)
    d = rng.standard_normal(30)
    d = np.clip(0.35 + (d - d.mean()) / d.std(ddof=1), -3, 3)
    more = pairs_to_settle(d, share=0.8, half_range=half_range)
    law = np.clip(d.mean() + rng.standard_normal((400, int(more))) * d.std(ddof=1), -6, 6)
    path = np.concatenate([np.broadcast_to(d, (400, len(d))), law], axis=1)
    settled = (e_process(path, half_range)[:, len(d) :] >= 40).any(axis=1).mean()
    assert 0.68 < settled < 0.92
    assert pairs_to_settle(d, share=0.3, half_range=half_range) < more
    assert pairs_to_settle(-d, share=0.8, half_range=half_range) == more  # either side


def test_an_effect_too_small_for_the_stakes_is_settled_by_no_number_of_pairs():
    d = np.tile([1.0, -1.0], 20)
    assert pairs_to_settle(d + 0.01, share=0.8) == np.inf
    within = pairs_to_settle(d + 0.01, share=0.8, margin=0.8)
    assert 0 < within < 200  # but that it lies within a margin is
