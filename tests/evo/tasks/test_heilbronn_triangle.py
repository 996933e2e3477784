from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

CORNERS = np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])


def weights(seed, *, border=3):
    """Barycentric coordinates of 11 points, some of them on each side of the triangle."""
    drawn = np.random.default_rng(seed).dirichlet([1, 1, 1], size=11)
    for side in range(3):
        drawn[side * border : (side + 1) * border, side] = 0
    return drawn / drawn.sum(axis=1, keepdims=True)


def is_exactly_inside(points):
    exact = [(Fraction(float(x)), Fraction(float(y))) for x, y in points]
    return all(
        0 <= x <= 1 and y >= 0 and y * y <= 3 * x * x and y * y <= 3 * (1 - x) * (1 - x)
        for x, y in exact
    )


@given(seed=st.integers(0, 2**32))
def test_objective_is_the_least_area_relative_to_the_triangle(ht, seed):
    drawn = weights(seed, border=0)
    areas = [abs(np.linalg.det(drawn[list(three)])) for three in combinations(range(11), 3)]
    metrics = ht.score(drawn @ CORNERS)
    assert metrics["objective"] == pytest.approx(min(areas), abs=1e-14)
    assert metrics["fitness"] == pytest.approx(metrics["objective"] / 0.036529889880030156)


@given(seed=st.integers(0, 2**32), outside=st.sampled_from([0, 1e-16, 1e-9, 5e-7]))
def test_points_are_moved_exactly_inside_at_a_small_loss(ht, seed, outside):
    points = weights(seed) @ ((1 + 2 * outside) * (CORNERS - CORNERS.mean(axis=0)))
    points += CORNERS.mean(axis=0)
    assert is_exactly_inside(ht.evaluator._move_inside(points))
    metrics = ht.score(points)
    lost = metrics["fitness"] - metrics["strict_fitness"]
    assert 0 <= lost <= 12 * outside * metrics["fitness"] + 1e-11
    if outside > 1e-10 and metrics["fitness"] > 0.01:
        assert lost > outside * metrics["fitness"]


@pytest.mark.parametrize("corner", range(3))
@pytest.mark.parametrize(("beyond", "is_legal"), [(4e-7, True), (3e-6, False)])
def test_the_tolerance_is_one_millionth(ht, corner, beyond, is_legal):
    points = weights(1) @ CORNERS
    points[0] = CORNERS[corner] + beyond * (CORNERS[corner] - CORNERS.mean(axis=0))
    if is_legal:
        assert ht.score(points)["strict_fitness"] >= 0
    else:
        with pytest.raises(ValueError, match="point 0 is outside the triangle"):
            ht.score(points)
