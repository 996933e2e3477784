"""One name for two comparisons: of two vectors, and of the configurations of a frame."""

import numpy as np
import pytest
from synthetic_runs import as_frame

import replay
from replay.claims.task_comparison import TaskComparison
from replay.statistics.comparison import MeanDifference
from replay.statistics.comparison import compare as compare_vectors


def test_vectors_are_compared_as_vectors_with_their_settings():
    a, b = np.linspace(0, 1, 8), np.linspace(0.2, 1.2, 8)
    for settings in ({}, {"level": 0.8}, {"paired": True}):
        found = replay.compare(a, b, **settings)
        assert isinstance(found, MeanDifference)
        assert repr(found) == repr(compare_vectors(a, b, **settings))  # a NaN equals no other


def test_a_frame_is_compared_by_its_search_unless_another_column_is_named():
    best = np.maximum.accumulate(np.random.default_rng(1).random((12, 5)), axis=1)
    frame = as_frame(best, children=2, seeds=range(12)).assign(search="greedy", settings="")
    frame = frame.assign(search=np.where(frame["seed"] < 6, "greedy", "tree"))
    found = replay.compare(frame)
    assert isinstance(found, TaskComparison)
    assert found.by == "search"
    other = replay.compare(frame.assign(search="greedy", model=frame["search"]), by="model")
    assert other.by == "model"
    assert other.verdicts["effect"].tolist() == found.verdicts["effect"].tolist()


def test_a_frame_stands_alone():
    frame = as_frame(np.zeros((2, 3)), children=2, seeds=[1, 2])
    with pytest.raises(ValueError, match=r"expected a frame alone.*got a frame and DataFrame"):
        replay.compare(frame, frame)
