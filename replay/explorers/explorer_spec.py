"""What an explorer is about, as values and functions; nothing here makes a widget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from replay.plots.chart import Chart

if TYPE_CHECKING:
    import pandas as pd
    from ipywidgets import Widget
    from matplotlib.figure import Figure

    from replay.plots.style import Theme

Settings = dict[str, Any]
"""Values of the controls by name."""

DEFAULT = "default"
"""Value of a control that leaves the setting as it is without it."""


class SettingView(Protocol):
    """The view for one setting of the controls."""

    @property
    def words(self) -> str:
        """Describes the picture in sentences."""

    def table(self) -> pd.DataFrame:
        """The numbers that the picture shows."""


@dataclass(frozen=True, kw_only=True)
class PictureSpec:
    """The picture of any explorer, as functions of settings.

    Attributes:
        name: Begins the names of saved files.
        theme: Inks, see `replay.plots.style`; `neutral` is the page's.
        view: From settings, and whether to be quick about it, to a view. Raises ValueError, with a
            sentence for the user, where there is none.
        figure: From a view and a theme to the figure for paper; None: that of its chart.
        chart: From a view to the chart that the browser draws, see `ChartExplorer`.
        code: From the settings that matter to the call that gives the picture as a figure.
        adjust: From the name of the control that was moved, and settings, to settings that fit
            together.
        slow: Computes, beside the controls, what views at rest need for settings; returns whether
            that was anything.
    """

    name: str
    theme: Theme
    view: Callable[[Settings, bool], SettingView]
    figure: Callable[[Any, Theme], Figure] | None = None
    chart: Callable[[Any], Chart] | None = None
    code: Callable[[Settings], str] = lambda settings: ""
    adjust: Callable[[str, Settings], Settings] = lambda moved, settings: settings
    slow: Callable[[Settings], object] = lambda settings: None

    def draw(self, view: Any, theme: Theme) -> Figure:
        """The figure of a view for paper."""
        return (
            self.chart_of(view).figure(theme) if self.figure is None else self.figure(view, theme)
        )

    def chart_of(self, view: SettingView) -> Chart:
        """The chart of a view, or its words."""
        return Chart(message=view.words) if self.chart is None else self.chart(view)


@dataclass(frozen=True, kw_only=True)
class ExplorerSpec(PictureSpec):
    """What an explorer with widgets for controls shows, and how.

    Attributes:
        fit: Makes room in the controls for settings that they are about to get.
        scrubs: Values by parameter over which `KernelExplorer.scrub` goes, given settings.
        hidden: From settings to the controls that do not matter now.
        clicked: From the key of a mark to the settings that a click on it changes.
        folded: Controls that are out of sight until one asks for them.
        carried: Controls that a page saved as HTML keeps, as far as their charts fit into it.
    """

    fit: Callable[[Mapping[str, Widget], Settings], None] = lambda controls, settings: None
    scrubs: Mapping[str, Callable[[Settings], Sequence[object]]] = field(default_factory=dict)
    hidden: Callable[[Settings], set[str]] = lambda settings: set()
    clicked: Callable[[Any], Settings] = dict
    folded: Sequence[str] = ()
    carried: Sequence[str] = ()


def call(function: str, first: str, settings: Settings) -> str:
    """The call of an explorer that begins with these settings, and of its figure."""
    given = [first, *(f"{name}={value!r}" for name, value in settings.items())]
    return f"replay.explorers.{function}({', '.join(given)}).figure()"


@dataclass(frozen=True)
class Sentence:
    """A view that states why there is nothing to see."""

    words: str

    def table(self) -> pd.DataFrame:
        """The sentence."""
        import pandas as pd

        return pd.DataFrame({"note": [self.words]})
