"""A run on paper: every child is a point on its axes."""

import msgspec
import numpy as np
from odd_logs import write
from samples import sample_lines

from evo.logs.log import read_log
from evo.logs.records import Child, Evaluation
from replay.explorers.run_data import RunData
from replay.explorers.run_picture import RunPicture


def test_very_low_values_do_not_squeeze_the_rest(tmp_path):
    lines = sample_lines(generations=12, children=5)
    low = Evaluation(status="ok", fitness=-1e9)
    position = next(k for k, line in enumerate(lines) if isinstance(line, Child))
    lines[position] = msgspec.structs.replace(lines[position], evaluation=low)
    data = RunData(read_log(write(tmp_path / "a.jsonl", *lines)))
    picture = RunPicture("light")
    picture._set_up(data)
    assert picture._fitness.get_ylim()[0] > -1
    assert np.isfinite(picture._points).all()
    assert "below the axis" in picture._fitness.texts[0].get_text()
