"""Panels of one's own: a function from a frame and settings to a chart, as an explorer's tab."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evo.plugins import MistakenType, Registry, plugged_in, with_refusals
from replay.explorers.chart_explorer import ChartExplorer, notice
from replay.explorers.explorer import Explorer
from replay.explorers.explorer_spec import ExplorerSpec, Settings, call
from replay.explorers.paper import on_axes
from replay.explorers.widgets import choice, naming
from replay.logs.frames import models_apart
from replay.logs.given import check_loaded
from replay.plots.chart import Chart
from replay.plots.output import in_dark
from replay.plots.registry import drawn_on, draws, figures, guarded_figure
from replay.plots.scripts import picture_of
from replay.plots.style import Theme

if TYPE_CHECKING:
    import pandas as pd
    from ipywidgets import Widget
    from matplotlib.figure import Figure

HEIGHT = 4.6  # inches of what draws on axes
KEPT = 32
"""Charts of a panel that are kept in memory."""


@dataclass(frozen=True)
class ExplorerPanel:
    """A function `frame, **settings -> Chart`, and the controls of its settings.

    Attributes:
        make: The function. One with an argument `ax` draws on axes and is shown as a picture.
        controls: By setting, what `ipywidgets.interact` takes for a control.
    """

    make: Callable[..., Any]
    controls: Mapping[str, Any] = field(default_factory=dict)


TABS = ("Budget", "Table of runs", "Allocation", "Curves", "Figures", "Sweep", "Selection")
"""The tabs of `replay.explore` that are built in."""

PANELS: Registry[ExplorerPanel] = Registry("panel", {}, TABS)
"""Name -> panel; each is a tab of `replay.explore`."""


def register(name: str, panel: Callable[..., Any], **controls: Any) -> None:
    """Makes a function of a frame and settings a tab of `replay.explore`.

    Args:
        name: Of the tab. A name that is registered again is replaced.
        panel: `frame, **settings -> Chart`; see `replay.plots.charts`. It cannot change the frame
            that it is given, and its failure of any kind is shown as a sentence. A function with an
            argument `ax` is called with `ax` and `theme`, draws on the axes, and is shown as a
            still picture.
        controls: By setting, what `ipywidgets.interact` takes: a list or a dict makes a drop-down
            list, two or three numbers a slider, a bool a box to tick, a text a field, a widget
            itself. A setting without one gets it from the default of its argument, if it can.

    Raises:
        TypeError: The panel is no function of a frame.
        ValueError: The name is that of a built-in tab, the function has no such setting, or a
            control cannot be made.

    Example:
        >>> def spent(frame, *, x="calls"):
        ...     return replay.plots.charts.trajectories(frame, x=x)
        >>> replay.explorers.register("Spent", spent, x=["calls", "tokens"])
    """
    controls_of(panel, controls)
    PANELS[name] = ExplorerPanel(panel, controls)


def panels() -> dict[str, ExplorerPanel]:
    """Every panel by name: those that were registered, and of packages that add some."""
    known = with_refusals(plugged_in("replay.panels", PANELS))
    return {
        name: each if isinstance(each, ExplorerPanel) else ExplorerPanel(each)
        for name, each in known.items()
    }


def controls_of(panel: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Widget]:
    """The controls of a panel's settings, in the order of its arguments."""
    from ipywidgets import ValueWidget, interactive

    if not callable(panel) or not (arguments := inspect.signature(panel).parameters):
        raise MistakenType(
            f"expected a panel, a function of a frame and its settings, got {panel!r:.80}"
        )
    _, *others = arguments.values()
    open_ended = any(each.kind is each.VAR_KEYWORD for each in others)
    own = [each for each in others if each.kind is not each.VAR_KEYWORD]
    known = {each.name: each.default for each in own if each.name not in ("ax", "theme")}
    if not open_ended and (unknown := [name for name in given if name not in known]):
        names = ", ".join(known) or "none"
        raise ValueError(f"expected settings among {names}, got {unknown[0]!r}")
    if empty := [name for name, each in given.items() if isinstance(each, list) and not each]:
        raise ValueError(f"{empty[0]}: expected a list of values to choose from, got an empty one")
    made: dict[str, Widget] = {}
    for name in dict.fromkeys([*known, *given]):
        default = known.get(name, inspect.Parameter.empty)
        abbreviation = given.get(name, default)
        control = (
            abbreviation
            if isinstance(abbreviation, ValueWidget)
            else interactive.widget_from_abbrev(abbreviation, default)
        )
        if control is None and name not in given:
            continue  # it keeps its default
        if control is None:
            raise ValueError(
                f"{name}: expected what ipywidgets.interact makes a control of, such as a list of "
                f"values or a pair of numbers, got {abbreviation!r}"
            )
        control.description = control.description or name.replace("_", " ")
        control.style.description_width = "initial"
        control.layout.width = "auto"
        made[name] = control
    return made


@dataclass(frozen=True)
class PanelView:
    """What a panel shows for its settings.

    Attributes:
        chart: What it makes, or a picture of what it draws.
        draw: Draws it on axes; None: the chart does.
    """

    chart: Chart
    draw: Callable[..., object] | None = None

    @property
    def words(self) -> str:
        """The titles of the chart."""
        return self.chart.words

    def table(self) -> pd.DataFrame:
        """The numbers of the chart.

        Raises:
            ValueError: There are none, as the function draws.
        """
        if self.draw is not None:
            raise ValueError("a function that draws on axes states no numbers; save its picture")
        return self.chart.table()

    def figure(self, theme: Theme) -> Figure:
        """The figure for paper."""
        draw = self.draw
        if draw is None:
            return self.chart.figure(theme)
        return on_axes(lambda ax: draw(**drawn_on(draw, ax, theme)), HEIGHT, theme)


def view_of(
    make: Callable[..., Any], name: str, frame: pd.DataFrame, settings: Settings, theme: Theme
) -> PanelView:
    """What a function makes of a frame, or draws of it."""
    if not draws(make):
        return PanelView(make(frame, **settings))
    draw = functools.partial(make, frame, **settings)
    figure = on_axes(lambda ax: draw(**drawn_on(draw, ax, theme)), HEIGHT, theme)
    picture, dark = picture_of(figure), b""
    if theme == "neutral":
        with in_dark(figure):
            dark = picture_of(figure)
    return PanelView(Chart(picture=picture, dark=dark, title=name), draw)


def explore_panel(
    frame: pd.DataFrame, panel: str | Callable[..., Any], *, theme: Theme = "neutral", **begins: Any
) -> Explorer:
    """Shows a panel with its controls.

    Args:
        frame: What the panel takes first, such as rows of `replay.load`.
        panel: The name of one that was registered, or a function as `register` takes it.
        theme: Inks; `neutral` suits light and dark pages alike.
        **begins: Where its controls begin.

    Raises:
        ValueError: There is no such panel, setting or value.

    Example:
        >>> def spent(frame, *, x="calls"):
        ...     return replay.plots.charts.trajectories(frame, x=x)
        >>> explorer = replay.explorers.explore_panel(frame, spent, x="calls")
        >>> type(explorer).__name__
        'ChartExplorer'
    """
    if isinstance(panel, str):
        known = panels()
        if panel not in known:
            names = ", ".join(known) or "none yet"
            raise ValueError(f"expected a panel among those registered ({names}), got {panel!r}")
        name, shown = panel, known[panel]
    else:
        name, shown = getattr(panel, "__name__", "panel"), ExplorerPanel(panel)
    named, make = naming(frame), guarded_figure("panel", name, shown.make)

    def fresh(**settings: Any) -> PanelView:
        return view_of(make, name, frame, settings, theme)

    kept = functools.lru_cache(maxsize=KEPT)(fresh)

    def view(settings: Settings) -> PanelView:
        try:
            return kept(**settings)
        except TypeError:  # a value that has no hash
            return fresh(**settings)

    def code(settings: Settings) -> str:
        given = "".join(f", {setting}={value!r}" for setting, value in settings.items())
        return f"replay.explorers.explore_panel({named()}, {name!r}{given}).figure()"

    controls = controls_of(shown.make, shown.controls)
    spec = ExplorerSpec(
        name=name.lower().replace(" ", "-"),
        theme=theme,
        view=lambda settings, coarse: view(settings),
        figure=lambda view, theme: view.figure(theme),
        chart=lambda view: view.chart,
        code=code,
        carried=list(controls),
    )
    helped = (inspect.getdoc(shown.make) or "").partition("\n")[0]
    return ChartExplorer(spec, controls, help=helped, begins=begins)


def explore_figures(frame: pd.DataFrame, *, theme: Theme = "neutral", **begins: Any) -> Explorer:
    """Shows every figure of `replay.plots.FIGURES`, of one task, model and search at a time.

    Args:
        frame: Rows of `replay.load`.
        theme: Inks; `neutral` suits light and dark pages alike.
        **begins: Where its controls begin: figure (its name) and runs (task and model).

    Raises:
        ValueError: There is no such setting or value.

    Example:
        >>> type(replay.explorers.explore_figures(frame)).__name__
        'ChartExplorer'
    """
    check_loaded("explore_figures", frame, "replay.load")
    groups = {
        f"{task}, {model}": part
        for (task, model), part in frame.groupby(["task", models_apart(frame)], sort=False)
    }
    if not groups:
        return notice("figures", "there are no runs", theme)
    named = naming(frame)

    @functools.lru_cache(maxsize=KEPT)
    def view(name: str, runs: str) -> PanelView:
        return view_of(figures()[name], name, groups[runs], {}, theme)

    spec = ExplorerSpec(
        name="figures",
        theme=theme,
        view=lambda now, coarse: view(now["figure"], now["runs"]),
        figure=lambda view, theme: view.figure(theme),
        chart=lambda view: view.chart,
        code=lambda now: call("explore_figures", named(), now),
        carried=("figure", "runs"),
    )
    controls = {
        "figure": choice("Figure", list(figures()), tip="What is drawn"),
        "runs": choice("Runs", list(groups), tip="Task and model"),
    }
    return ChartExplorer(spec, controls, help="Every figure of a group of runs.", begins=begins)
