"""The budget explorer's charts for paper."""

import contextlib
import re

import numpy as np
from synthetic_runs import as_frame

from replay.explorers import explore_budget
from replay.explorers.budget_picture import _curves


def test_what_lies_below_the_axis_is_pointed_at_and_brackets_are_named():
    best = np.r_[-101, -100, np.linspace(0.9, 0.95, 199)] + np.arange(6)[:, None] / 1e3
    frame = as_frame(best, children=2, seeds=range(6))
    with contextlib.closing(explore_budget(frame, generations=1)) as explorer:
        for T, shape in ((1, "below"), (128, "dot")):
            explorer.controls["generations"].value = T
            fitness, _ = _curves(explorer._spec.view(explorer.settings, False))
            [end] = [mark for mark in fitness.marks if mark.kind == "points"]
            low, high = fitness.y.domain
            assert end.shape == shape
            assert low < end.y[0] < high
        words = explorer.words
    assert re.search(r"In brackets: a \d+ % interval, of logged means; .*95 %, of the prob", words)
    assert "predictions" not in words
