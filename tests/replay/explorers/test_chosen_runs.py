import json

import numpy as np
import pytest
from synthetic_runs import chain_runs

from replay.explorers.chosen_runs import _view, runs_chart
from replay.plots.chart import pack


@pytest.fixture(scope="module")
def frame():
    return chain_runs(budget=16, sizes=(2, 4))[0]


def test_every_number_of_the_chart_is_one_of_the_rows(frame):
    names = frame["run"].drop_duplicates().tolist()[1:6]
    [panel] = json.loads(pack(runs_chart(_view(frame, names))))["panels"]
    assert [each["label"] for each in panel["marks"]] == names
    for line in panel["marks"]:
        rows = frame[frame["run"] == line["label"]]
        assert line["x"] == rows["generation"].tolist()
        assert line["y"] == [None if np.isnan(each) else each for each in rows["best_fitness"]]
    looks = [(each["color"], each["dash"]) for each in panel["marks"]]
    assert len(set(looks)) == len(looks)


def test_runs_without_a_fitness_are_a_sentence(frame):
    names = frame["run"].unique()[:1].tolist()
    view = _view(frame.assign(best_fitness=np.nan), names)
    assert runs_chart(view).message == "No run has a program that is ok."
