from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

SQUARE = np.array([(x, y) for x in range(4) for y in range(4)], dtype=float)


def test_a_square_grid_has_its_known_ratio(mmd):
    metrics = mmd.score(SQUARE)
    assert metrics["objective"] == 1 / 18  # 1^2 over 3^2 + 3^2, correctly rounded
    assert metrics["fitness"] == metrics["strict_fitness"] == 12.889266112 / 18


@given(seed=st.integers(0, 2**32))
def test_objective_is_the_squared_ratio_of_the_definition(mmd, seed):
    points = np.random.default_rng(seed).uniform(size=(16, 2))
    distances = [np.hypot(*(a - b)) for a, b in combinations(points, 2)]
    expected = (min(distances) / max(distances)) ** 2
    assert mmd.score(points)["objective"] == pytest.approx(expected, rel=1e-12)


def test_coincident_points_are_legal_and_worth_nothing(mmd):
    assert mmd.score(np.ones((16, 2)))["fitness"] == 0.0
    two = SQUARE.copy()
    two[1] = two[0]
    assert mmd.score(two)["fitness"] == 0.0
