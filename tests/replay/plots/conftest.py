"""Runs over depth and breadth, and what is estimated from them."""

import pytest
from synthetic_runs import bilinear_runs, chain_runs

import replay


@pytest.fixture(scope="module")
def runs():
    return bilinear_runs(budget=64)


@pytest.fixture(scope="module")
def grid(runs):
    return replay.depth_breadth(runs)


@pytest.fixture(scope="module")
def planned():
    frame, children = chain_runs(sizes=(1, 2, 4, 8), budget=8)
    return replay.plan(frame, children=children, budget=16, tau=0.5, kernels=4, arms=(2,))
