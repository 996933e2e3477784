"""Functions that make charts as functions that draw on axes."""

import inspect

import pytest
from matplotlib.colors import to_hex

from replay.plots import style
from replay.plots.chart import Chart
from replay.plots.drawn import drawn
from replay.plots.marks import Line
from replay.plots.panel import Axis, Panel
from replay.plots.style import THEMES


def chart(values, *, title="made"):
    """Draws values.

    Args:
        values: Numbers.
        title: Of the panel.

    Raises:
        ValueError: There are none.
    """
    if not values:
        raise ValueError("expected values, got none")
    line = Line(x=range(len(values)), y=values)
    return Chart(panels=[Panel(title=title, x=Axis(), y=Axis(), marks=[line])])


def test_it_draws_what_the_chart_holds_on_the_axes_that_it_is_given():
    ax = style.subplots()[1][0]
    found = drawn(chart)([1.0, 3.0], title="mine", ax=ax, theme="dark")
    assert found is ax
    assert ax.get_title(loc="left") == "mine"
    assert ax.lines[0].get_ydata().tolist() == [1, 3]
    assert to_hex(ax.figure.get_facecolor()).upper() == THEMES["dark"].ground
    other = drawn(chart)([1.0]).figure
    assert other is not ax.figure
    assert to_hex(other.get_facecolor()).upper() == THEMES["light"].ground
    with pytest.raises(ValueError, match="expected values"):
        drawn(chart)([])


def test_its_signature_is_that_of_the_chart_with_axes_and_a_theme():
    signature = inspect.signature(drawn(chart))
    assert list(signature.parameters) == ["values", "title", "ax", "theme"]
    assert signature.parameters["title"].default == "made"
    assert signature.parameters["ax"].default is None
    assert signature.parameters["theme"].default == "light"
    assert signature.return_annotation == "Axes"


def test_its_documentation_names_the_axes_after_the_arguments_and_keeps_the_rest():
    text = inspect.getdoc(drawn(chart))
    parts = ["Draws values.", "title: Of the panel.", "ax: Axes", "theme: ", "Returns:", "Raises:"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert drawn(chart).__name__ == "chart"
