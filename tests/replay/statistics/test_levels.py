"""The level of an interval is a share between 0 and 1, both ends left out."""

import numpy as np
import pytest

from replay.statistics.levels import check_level


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, 95, np.nan, np.inf])
def test_what_is_no_level_is_refused(level):
    with pytest.raises(
        ValueError, match=r"level: expected a number between 0 and 1, such as 0\.95"
    ):
        check_level(level)


@pytest.mark.parametrize("level", [5e-324, 0.5, 0.95, np.nextafter(1, 0)])
def test_any_share_is_a_level(level):
    check_level(level)
