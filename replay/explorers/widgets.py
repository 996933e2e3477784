"""Controls of one size, sentences that are spoken, and what closes widgets.

Widgets live in the kernel until they are closed. A cell that is run again makes its explorer anew,
and the kernel would keep the widgets, figure and data of the one before: so the new one closes it.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import html
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from evo.logs.types import Fields
from replay.logs.others import from_here, origin_of
from replay.plots.scripts import WIDE, spoken

if TYPE_CHECKING:
    import pandas as pd
    from ipywidgets import Widget
    from traitlets.utils.bunch import Bunch

TRACK = 220.0
"""Pixels of a column of controls at least."""


def control(kind: str, label: str, *, tip: str | None = None, **how: Any) -> Widget:
    """A control with its label, as wide as its track; it begins with its first or least value."""
    import ipywidgets

    look = {"style": {"description_width": "initial"}, "layout": {"width": "auto"}}
    return getattr(ipywidgets, kind)(description=label, tooltip=tip, **look, **how)


def choice(label: str, options: Sequence[object], *, tip: str) -> Widget:
    """A drop-down list."""
    return control("Dropdown", label, tip=tip, options=list(options))


def slider(label: str, options: Sequence[object], *, tip: str) -> Widget:
    """A slider over listed values."""
    return control("SelectionSlider", label, tip=tip, options=list(options))


def counter(label: str, least: int, most: int, *, tip: str) -> Widget:
    """A slider over whole numbers."""
    return control("IntSlider", label, tip=tip, value=least, min=least, max=most)


def entry(label: str, value: float, step: float, *, tip: str) -> Widget:
    """A field for a number, any finite one."""
    most = sys.float_info.max
    return control("BoundedFloatText", label, tip=tip, value=value, min=-most, max=most, step=step)


def words(label: str, hint: str, *, tip: str) -> Widget:
    """A field for a text, which counts once the field is left or Enter is pressed."""
    return control("Text", label, tip=tip, placeholder=hint, continuous_update=False)


def several(label: str, options: Sequence[object], rows: int, *, tip: str) -> Widget:
    """A list from which several can be chosen."""
    return control("SelectMultiple", label, tip=tip, options=options, rows=rows)


def toggles(label: str, options: Sequence[str], *, most: int) -> Widget:
    """Buttons; up to `most` can be down, and the value is a tuple in the order of choice."""
    import ipywidgets
    import traitlets

    class Toggles(ipywidgets.Box):  # type: ignore[misc]
        value = traitlets.Tuple()

        def take(self, change: Bunch) -> None:
            for each in buttons:
                each.value = each.description in change["new"]
                each.disabled = not each.value and len(change["new"]) >= most

        def press(self, change: Bunch) -> None:
            name = change["owner"].description
            rest = tuple(each for each in self.value if each != name)
            if change["new"] != (name in self.value):
                self.value = (*rest, name) if change["new"] else rest

    look = {"width": "auto", "margin": "1px"}
    buttons = [
        ipywidgets.ToggleButton(description=name, tooltip=f"Show {name}", layout=look)
        for name in options
    ]
    head = ipywidgets.Label(f"{label} (up to {most})")
    layout = {"flex_flow": "row wrap", "align_items": "center", "width": "100%"}
    made = Toggles([head, *buttons], layout=layout)
    made.observe(made.take, names="value")
    for each in buttons:
        each.observe(made.press, names="value")
    return made


def begin(controls: Mapping[str, Widget], settings: Fields, fit: Callable[..., None]) -> None:
    """Put controls where they are asked to begin; `fit` makes room for that first."""
    from traitlets import TraitError

    now = {name: control.value for name, control in controls.items()}
    if unknown := [name for name in settings if name not in now]:
        names = ", ".join(now) or "none"
        raise ValueError(f"expected settings among {names}, got {unknown[0]!r}")
    fit(controls, {**now, **settings})
    for name, given in settings.items():
        control, value = controls[name], tuple(given) if type(given) is list else given
        with contextlib.suppress(TraitError):
            control.value = value
        if control.value != value:
            known = getattr(control, "options", None)
            known = known or f"{getattr(control, 'min', '')} to {getattr(control, 'max', '')}"
            raise ValueError(f"{name}: expected a value out of {known}, got {value!r}")


def flip_book(
    name: str,
    frames: Mapping[object, tuple[bytes, str]],
    now: object,
    make: Callable[[list[bytes], list[str], int], Widget | None],
) -> Widget:
    """A slider over pictures with their words, which are all in the page: it needs no kernel.

    Args:
        name: What the slider moves.
        frames: Pictures and words by value.
        now: The value to begin with.
        make: From pictures, words and the number of the first to show, to a widget whose trait `at`
            is that number; if it returns None, the pictures are plain images.
    """
    import ipywidgets

    natural = {"width": "auto", "max_width": "100%", "align_self": "flex-start", "margin": "0"}
    at = list(frames).index(now) if now in frames else 0
    slider = ipywidgets.SelectionSlider(
        options=[(f"{value:g}", k) for k, value in enumerate(frames)],
        index=at,
        description=name,
        style={"description_width": "initial"},
        layout={"width": "420px", "max_width": "100%"},
    )
    pngs, texts = [png for png, _ in frames.values()], [words for _, words in frames.values()]
    book, turned = make(pngs, texts, at), "at"
    if book is None:
        pages = [
            ipywidgets.VBox([
                ipywidgets.Image(value=png, format="png", layout=natural),
                ipywidgets.HTML(spoken(words)),
            ])
            for png, words in frames.values()
        ]  # fmt: skip
        book, turned = ipywidgets.Stack(pages, selected_index=at), "selected_index"
    link = ipywidgets.jslink((slider, "index"), (book, turned))
    made = ipywidgets.VBox([slider, book])
    made.link = link  # lives and dies with it
    made.add_class("replay-explorer")
    return made


def button(label: str, tip: str, work: Callable[[], object]) -> Widget:
    """A button as wide as its words."""
    import ipywidgets

    made = ipywidgets.Button(description=label, tooltip=tip, layout={"width": "auto"})
    made.on_click(lambda _: work())
    return made


def grid(widgets: Sequence[Widget]) -> Widget:
    """Controls in equal tracks, as many as the page has room for, that hold the longest choice."""
    import ipywidgets

    lists = [each for each in widgets if isinstance(each, ipywidgets.Dropdown)]
    signs = [len(each.description) + len(label) for each in lists for label in _labels(each)]
    width = max([TRACK, *(60 + 6.3 * count for count in signs)])
    tracks = f"repeat(auto-fill, minmax(min({width:.0f}px, 100%), 1fr))"
    layout = {"grid_template_columns": tracks, "width": "100%", "grid_gap": "2px 12px"}
    return ipywidgets.GridBox(list(widgets), layout=layout)


def _labels(widget: Widget) -> list[str]:
    """What a list offers, as it is shown."""
    return [each[0] if isinstance(each, tuple) else str(each) for each in widget.options]


def arranged(controls: Mapping[str, Widget], folded: Sequence[str]) -> Widget:
    """Arranges the controls of an explorer; some are hidden until they are requested.

    Sliders come last, in a grid of their own that stays in sight (`page.js`) beside what they move.
    """
    import ipywidgets

    kinds = ipywidgets.SelectionSlider, ipywidgets.IntSlider, ipywidgets.FloatSlider
    seen = [control for name, control in controls.items() if name not in folded]
    wide = [control for control in seen if isinstance(control, ipywidgets.Box)]
    sliders = [control for control in seen if isinstance(control, kinds)]
    parts = [grid([control for control in seen if control not in (*wide, *sliders)]), *wide]
    if folded:
        hidden = grid([controls[name] for name in folded])
        parts.append(ipywidgets.Accordion([hidden], titles=("Parameters",)))
    if sliders:
        parts.append(grid(sliders))
        parts[-1].add_class("replay-sliders")
    made = ipywidgets.VBox(parts, layout={"width": "100%"})
    made.add_class("replay-settings")
    return made


def row(widgets: Sequence[Widget]) -> Widget:
    """Widgets side by side, in further lines where the page is narrow."""
    import ipywidgets

    return ipywidgets.Box(list(widgets), layout={"flex_flow": "row wrap", "max_width": "100%"})


@functools.cache
def page_script() -> str:
    """HTML that runs `page.js`, once however often it stands in a page."""
    script = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
    lines = (line for line in script.splitlines() if not line.strip().startswith("//"))
    code = html.escape("\n".join(lines), quote=True)
    return f"<img alt='' hidden src='data:,' onerror=\"{code}\">"


def name_of(value: Any, otherwise: str | None = None) -> str:
    """The variable that a user of IPython has for a value, else this code, or that of a frame."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        names: dict[str, object] = {}
    else:
        names = getattr(get_ipython(), "user_ns", {})
    for name, each in names.items():
        if each is value and not name.startswith("_"):
            return name
    return source_of(value) if otherwise is None else otherwise


def naming(frame: pd.DataFrame) -> Callable[[], str]:
    """The same for a frame, asked again and again: its sources are looked through once."""
    source = functools.cache(lambda: source_of(frame))
    return lambda: name_of(frame, "") or source()


def source_of(frame: pd.DataFrame) -> str:
    """Code that loads a frame again from the logs that it names; `frame` if it names none."""
    sources = [str(each) for each in frame["source"].unique()] if "source" in frame else []
    if not sources or not all(sources):
        return "frame"
    places = {each: from_here(origin.place) for each in sources if (origin := origin_of(each))}
    own = {each: from_here(each) for each in sources if each not in places}
    places |= own
    if len(own) > 3:
        folders = {each: near[: near.rfind("/") + 1] for each, near in own.items()}
        places |= {each: f"{glob.escape(folder)}*.jsonl*" for each, folder in folders.items()}
    named = dict.fromkeys(places[each] for each in sources)
    return f"replay.load({', '.join(map(repr, named))})"


_COPY = (
    "const text = this.dataset.code, code = this.nextElementSibling;"
    "(navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject()).catch(() => {"
    'getSelection().selectAllChildren(code); document.execCommand("copy"); })'
)
"""Copies a button's code; where the clipboard is denied by the older way, else it is selected."""


def copyable(code: str) -> str:
    """A call with a button that copies it."""
    shown = html.escape(code, quote=True)
    return (
        f"<div style='{WIDE}'><button class='jupyter-button' data-code=\"{shown}\" "
        f"onclick='{_COPY}' title='Copy the call that gives this picture'>Copy as code</button> "
        f"<code style='overflow-wrap:anywhere'>{shown}</code></div>"
    )


UNSAID: tuple[object, ...] = (None, "", "default", [], ())
"""Settings that chose nothing."""


def short(value: object) -> str:
    """A setting in a file name."""
    text = "+".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return "".join(c if c.isalnum() or c in "._+" else "_" for c in text)


def file_stem(name: str, settings: Mapping[str, object]) -> str:
    """Returns a name for the file of a saved view: the explorer's name and the chosen settings.

    A log among these is given by the name of its file alone.

    Example:
        >>> from replay.explorers.widgets import file_stem
        >>> file_stem("run", {"log": "logs/local/tsp-s40.jsonl.gz", "generation": 0, "where": ""})
        'run-tsp_s40-0'
    """
    chosen = (each for each in settings.values() if each is not False and each not in UNSAID)
    parts = (
        re.sub(r"^.*/|\.jsonl(\.gz)?$", "", each) if isinstance(each, str) else each
        for each in chosen
    )
    return "-".join([name, *map(short, parts)])[:120]


class Closable(Protocol):
    """Something made of widgets."""

    def close(self) -> None:
        """Free the widgets."""


_open: dict[str, tuple[str, list[Closable]]] = {}
"""The explorers by cell, with the run of the cell that made them."""


def close_previous(made: Closable) -> None:
    """Close what an earlier run of the current cell has left, and remember this instead."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return
    shell: Any = get_ipython()
    if shell is None or not hasattr(shell, "get_parent"):
        return
    parent = shell.get_parent() or {}
    if parent.get("msg_type") != "execute_request":
        return  # made by a handler: whoever owns that closes it
    cell = parent.get("metadata", {}).get("cellId") or parent.get("content", {}).get("code", "")
    run = parent.get("header", {}).get("msg_id", "")
    before, others = _open.get(cell, ("", []))
    if before != run:
        for each in others:
            each.close()
        others = []
    _open[cell] = (run, [*others, made])


def close_tree(widget: Widget) -> None:
    """Close a widget and all that belongs to it: its layout and style are widgets too."""
    children = getattr(widget, "children", ())
    for child in children if isinstance(children, tuple) else ():  # an int is a setting
        close_tree(child)
    for part in ("layout", "style", "link"):
        if (own := getattr(widget, part, None)) is not None and hasattr(own, "close"):
            own.close()
    widget.close()
