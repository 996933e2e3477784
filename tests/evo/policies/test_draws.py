"""Draws: a replicate gets the same ones, however many there are."""

import numpy as np
import pytest
from scipy.stats import kstest

from evo.policies import Draws
from evo.policies.draws import BLOCK


def test_replicates_get_the_same_however_many_there_are():
    few, many = Draws(7, 5), Draws(7, 3 * BLOCK + 1)
    for _ in range(40):
        assert (few.random((5, 4)) == many.random((3 * BLOCK + 1, 4))[:5]).all()
        assert (few.random(5) == many.random(3 * BLOCK + 1)[:5]).all()
        normal = many.standard_normal((3 * BLOCK + 1, 2))
        assert (few.standard_normal((5, 2)) == normal[:5]).all()


def test_chunks_are_parts_of_the_whole():
    whole, part = Draws(7, 200), Draws(7, 72, first=2 * BLOCK)
    across, one = Draws(7, 90, first=30), Draws(7, 1, first=199)
    for _ in range(300):
        drawn = whole.random((200, 3))
        assert (drawn[128:] == part.random((72, 3))).all()
        assert (drawn[30:120] == across.random((90, 3))).all()
        assert (drawn[199:] == one.random((1, 3))).all()


def test_kinds_do_not_disturb_each_other():
    alone, mixed = Draws(1, 4), Draws(1, 4)
    for _ in range(5):
        mixed.standard_normal((4, 3))
        assert (alone.random(4) == mixed.random(4)).all()


def test_draws_have_their_distribution():
    draws = Draws(2, 1000)
    uniform = np.concatenate([draws.random((1000, 5)) for _ in range(10)], axis=None)
    normal = np.concatenate([draws.standard_normal((1000, 5)) for _ in range(10)], axis=None)
    assert kstest(uniform, "uniform").pvalue > 1e-3
    assert kstest(normal, "norm").pvalue > 1e-3


def test_seeds_keys_and_blocks_differ():
    streams = [Draws(0, 128), Draws(1, 128), Draws(0, 128, key=1), Draws(2**70, 128)]
    values = {tuple(d.random(128)[at : at + 2]) for d in streams for at in (0, BLOCK)}
    assert len(values) == 8


def test_wrong_sizes_and_seeds_are_refused():
    with pytest.raises(ValueError, match=r"got \(3, 2\)"):
        Draws(0, 4).random((3, 2))
    with pytest.raises(ValueError, match="seed of 0 or more, got -1"):
        Draws(-1, 4)
