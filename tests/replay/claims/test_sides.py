"""The values of two sides, and what of them belongs together."""

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame

import replay
from replay.claims.sides import Sides
from replay.logs.frames import ReplayWarning


@pytest.mark.parametrize(
    ("left", "right", "pairs", "paired"),
    [
        (3, 3, 3, True),
        (3, 3, 2, False),
        (3, 4, 3, False),
        (4, 3, 3, False),
        (4, 4, 3, False),
        (0, 0, 0, False),
    ],
)
def test_sides_are_paired_if_every_run_has_its_partner_and_there_is_one(
    left: int, right: int, pairs: int, paired: bool
) -> None:
    made = Sides(
        left=np.arange(1.0 * left), right=np.arange(1.0 * right), pairs=pairs, by="seed",
        given="", depths=(4, 8), runs=left + right,
    )  # fmt: skip
    assert made.paired == paired
    assert made.units == (pairs if paired else left + right)
    assert ("paired by seed" in made.setting) == paired


@pytest.mark.parametrize(("seeds", "paired"), [((7, 7), True), ((7, 8), False), ((-1, -1), False)])
def test_runs_whose_seeds_are_unknown_are_no_pairs(seeds: tuple[int, int], paired: bool) -> None:
    best = np.array([[0.1, 0.2, 0.3]])
    both = [
        as_frame(best + k / 10, children=1, seeds=[seed], model=f"m{k}")
        for k, seed in enumerate(seeds)
    ]
    verdict = replay.judge(pd.concat(both, ignore_index=True), {"model": "m0"}, {"model": "m1"})
    assert ("paired by seed" in verdict.paragraph) == paired


def test_a_run_stands_on_one_side_alone_or_on_both_at_two_depths() -> None:
    best = np.linspace(0.1, 0.9, 30).reshape(6, 5)
    frame = as_frame(best, children=1, seeds=range(6))
    frame["early"] = frame["seed"] < 4
    with pytest.raises(
        ValueError, match=r"got 'toy-chain-1-0' on both, .* \(4 of 6 runs are on both\)"
    ):
        replay.judge(frame, {"early": True}, {"children": 1})
    depths = replay.judge(frame, {"generations": 4}, {"generations": 2})
    assert depths.n == 6
    assert depths.effect > 0
    with pytest.raises(ValueError, match="6 of 6 runs are on both"):
        replay.judge(frame, {"generations": 4}, {"children": 1, "generations": 4})


def test_a_run_that_ends_before_the_others_is_named_where_it_says_how_deep_runs_are_compared() -> (
    None
):
    best = np.linspace(0.1, 0.9, 60).reshape(12, 5)
    frame = as_frame(best, children=1, seeds=range(12)).assign(late=lambda f: f["seed"] > 5)
    short = frame[(frame["seed"] != 2) | (frame["generation"] < 3)]
    sides = ({"late": True}, {"late": False})
    words = "5 of 6 runs go further than generation 2, .* since 'toy-chain-1-2' ends there"
    with pytest.warns(ReplayWarning, match=words):
        replay.judge(short, *sides)
    with pytest.warns(ReplayWarning, match="11 of 12 runs go further than generation 2"):
        replay.judge(short, "ucb1", "single", arms=2)
    replay.judge(frame, *sides)  # without a warning, which would be an error
    replay.judge(short, *sides, calls=4)
    replay.judge(short, "ucb1", "single", arms=2, rounds=2)
