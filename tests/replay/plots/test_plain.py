"""Figures and their axes show themselves in a cell."""

import numpy as np
import pytest
from synthetic_runs import as_frame

from replay import plots
from replay.plots.plain import PlainFigure


@pytest.fixture(scope="module")
def shown():
    frame = as_frame(np.sort(np.random.default_rng(0).random((5, 4)), axis=1), children=2,
                     seeds=range(5))  # fmt: skip
    return plots.trajectories(frame), plots.charts.trajectories(frame).figure()


def test_the_last_line_of_a_cell_shows_a_picture(shown):
    formatters = pytest.importorskip("IPython.core.formatters")
    for each in (*shown, plots.subplots(1, 2)[1][1], PlainFigure().subplot_mosaic("AB")["A"]):
        data, about = formatters.DisplayFormatter().format(each)
        assert data["image/png"].startswith(b"\x89PNG")
        assert about["image/png"]["width"] > 0


def test_other_projections_and_classes_stay_what_they_are():
    assert PlainFigure().add_subplot(projection="polar").name == "polar"
