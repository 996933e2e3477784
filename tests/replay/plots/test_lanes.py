"""Lanes of a tree: nothing lies over another, and each path stands near the one it left."""

import itertools

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.plots.lanes import lanes_of


def tree(*rows):
    """Rows (generation, index, parents, last) with optional best_line and island."""
    names = ["generation", "index", "parents", "last", "best_line", "island"]
    full = [(*row, *(False, None)[len(row) - 4 :]) for row in rows]
    table = pd.DataFrame(full, columns=names)
    return table.assign(island=pd.to_numeric(table["island"]))


def test_a_line_of_descent_stands_in_one_lane_and_the_best_one_in_that_of_the_root():
    table = tree(
        (0, 0, (), 0, True),
        (1, 0, ((0, 0),), 1, False),
        (1, 1, ((0, 0),), 1, True),
        (2, 0, ((1, 0),), 2, False),
        (2, 1, ((1, 1),), 2, True),
    )
    lane, strips = lanes_of(table)
    best, other = lane[[0, 2, 4]], lane[[1, 3]]
    assert len({*best}) == len({*other}) == 1
    assert abs(best[0] - other[0]) == 1  # as near as there is room
    assert strips == {-1.0: (-0.7, 1.7)}


def test_without_a_best_line_the_larger_family_goes_straight_on():
    table = tree(
        (0, 0, (), 0), (1, 0, ((0, 0),), 1), (1, 1, ((0, 0),), 1), (2, 0, ((1, 1),), 2)
    )  # fmt: skip
    lane, _ = lanes_of(table)
    assert lane[0] == lane[2] == lane[3] != lane[1]


def test_islands_have_strips_of_their_own_one_above_the_other():
    table = tree(
        (1, 0, (), 1, False, 0), (1, 1, (), 1, False, 1), (2, 0, ((1, 0),), 2, False, 0),
        (2, 1, ((1, 0),), 2, False, 1),
    )  # fmt: skip
    lane, strips = lanes_of(table)
    (low, high), (above, _) = strips[0], strips[1]
    assert low < high < above
    for row, island in enumerate(table["island"]):
        assert strips[island][0] < lane[row] < strips[island][1]
    assert lane[3] != lane[0]  # a child on another island goes on there


@st.composite
def trees(draw):
    rows, places = [(0, 0, (), 0, False, None)], [(0, 0)]
    for generation in range(1, draw(st.integers(1, 6))):
        known = list(places)
        for index in range(draw(st.integers(1, 4))):
            parent = draw(st.sampled_from(known))
            last = generation + draw(st.sampled_from([0, 0, 1, 3]))
            rows.append((generation, index, (parent,), last, draw(st.booleans()), None))
            places.append((generation, index))
    return tree(*rows)


@settings(max_examples=60)
@given(trees())
def test_no_two_programs_lie_over_each_other(table):
    lane, strips = lanes_of(table)
    spans = list(zip(lane, table["generation"], table["last"], strict=True))
    for (one, first, last), (other, begin, end) in itertools.combinations(spans, 2):
        if one == other and first != begin:
            continue  # a path may hold both; places of one generation never share a lane
        assert one != other or last < begin or end < first
    [(low, high)] = strips.values()
    assert lane.min() == 0
    assert (low, high) == (lane.min() - 0.7, lane.max() + 0.7)
