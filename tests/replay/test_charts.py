import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from replay import charts
from replay.style import THEMES, save

WORDS = {"title": "A title", "about": "About ten runs.", "x": "budget (calls)"}
TABLE = pd.DataFrame(
    {
        "value": [0.1, 0.2, 0.3, np.nan],
        "low": [0.0, 0.1, np.nan, np.nan],
        "high": [0.2, 0.3, np.nan, np.nan],
        "task": ["a", "b", "a", "b"],
    },
    index=["deep", "deep", "broad", "broad"],
)


@pytest.mark.parametrize("theme", THEMES)
def test_charts_draw_in_every_theme(tmp_path, theme):
    table = pd.DataFrame({"deep": [0.1, 0.2, 0.4], "broad": [0.1, np.nan, 0.3]}, index=[1, 2, 4])
    made = [
        charts.lines(table, y="fitness", doublings=True, theme=theme, **WORDS),
        charts.lines(table, y="fitness", low=table - 0.1, high=table + 0.1, theme=theme, **WORDS),
        charts.estimates(TABLE, groups="task", bound=0, theme=theme, **WORDS),
    ]
    for number, ax in enumerate(made):
        assert save(ax, tmp_path / f"{number}.png").stat().st_size > 8_000
        assert ax.get_xlabel() == "budget (calls)"


def test_each_estimate_has_its_row_and_each_group_its_colour():
    ax = charts.estimates(TABLE, groups="task", **WORDS)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["deep", "broad"]
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines]
    assert [x for x, _ in points[:3]] == [0.1, 0.2, 0.3]
    assert [round(y) for _, y in points] == [0, 0, 1, 1]
    colours = [to_hex(line.get_color()) for line in ax.lines]
    assert colours[0] == colours[2] != colours[1] == colours[3]


def test_a_table_without_intervals_is_refused():
    with pytest.raises(ValueError, match="no \\['high', 'low'\\]"):
        charts.estimates(TABLE[["value"]], **WORDS)
