"""The arrays of the explorer of budgets."""

import numpy as np
import pytest
from synthetic_runs import as_frame

from replay.explorers.budget_arrays import fitness_limits
from replay.explorers.budget_data import outlook


@pytest.mark.parametrize(("level", "low"), [(0.0, 0.0), (0.7, 0.0), (-5.0, -6.0)])
def test_the_axis_of_a_constant_task_begins_at_no_negative_fitness(level, low):
    frame = as_frame(np.full((4, 5), level), children=2, seeds=range(4))
    ends = fitness_limits(outlook(frame, None))
    assert low <= ends[0] <= level < ends[1]
