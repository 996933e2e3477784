"""The values of two sides, and what of them belongs together."""

import numpy as np
import pytest

from replay.claims.sides import Sides


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
