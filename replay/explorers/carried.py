"""The controls that a page saved as HTML has, too: it holds a chart for each of their settings."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from replay.explorers.explorer_spec import ExplorerSpec, Settings
from replay.plots.chart import Chart, pack

if TYPE_CHECKING:
    from ipywidgets import Widget

    from evo.logs.types import JsonObject

MOST_VIEWS, MOST_BYTES = 128, 3_000_000
"""Charts of a page, and bytes of all of them together."""

MOST_CHOICES = 4096
"""Combinations of values of a page; many of them may have one chart."""

MOST_STEPS, FEWEST_STEPS = 64, 4
"""Values of a slider of a page at most, and what is left of them where there is little room."""

ALL = "all"


@dataclass(frozen=True)
class Carried:
    """A control of a page.

    Attributes:
        name: Its setting.
        label: What stands beside it.
        kind: How it looks.
        values: What can be chosen.
        texts: How that is written.
        at: The number of the value to begin with.
    """

    name: str
    label: str
    kind: Literal["list", "slider", "box"]
    values: Sequence[Any]
    texts: Sequence[str]
    at: int

    def thinned(self) -> Carried | None:
        """A slider with half of its steps, the first among them; None: it cannot do with fewer."""
        if self.kind != "slider" or len(self.values) < 2 * FEWEST_STEPS:
            return None
        kept = sorted({*range(0, len(self.values), 2), self.at})
        values, texts = [self.values[k] for k in kept], [self.texts[k] for k in kept]
        return replace(self, values=values, texts=texts, at=kept.index(self.at))


def book_of(spec: ExplorerSpec, controls: Mapping[str, Widget], now: Settings) -> JsonObject | None:
    """The charts for all settings of the controls that a page carries; None: it carries none.

    Where there would be too many, sliders have fewer steps, and where that does not do, the last
    control is left out; `note` says which.

    Args:
        spec: What the explorer shows; `spec.carried` names the controls.
        controls: The widgets by setting.
        now: Every setting.

    Returns:
        What `book` of `chart.js` reads, and as `drawn` whether every chart bears its words.
    """
    left_out, known = list[str](), dict[str, tuple[bytes, bool]]()
    listed = (carried(name, controls[name], spec, now) for name in spec.carried)
    whole = [each for each in listed if each is not None]
    whole = [each for each in whole if not _always_hidden(each.name, whole, spec, now)]
    found = list(whole)
    while found:
        choices = _choices(spec, found, now)
        if choices is not None and (made := _pages(spec, choices, known)) is not None:
            pages, which, drawn = made
            names = " and ".join(filter(None, [", ".join(left_out[:-1]), *left_out[-1:]]))
            note = f"This page has no room for other values of {names}."
            return {
                "controls": [
                    {"name": e.name, "label": e.label, "kind": e.kind, "texts": list(e.texts),
                     "at": e.at}
                    for e in found
                ],
                "pages": [json.loads(page) for page in pages],
                "which": which,
                "hidden": [
                    [k for k, each in enumerate(found) if each.name in hidden]
                    for _, hidden in choices
                ],
                "note": note if left_out else "",
                "drawn": drawn,
            }  # fmt: skip
        fewer = {k: less for k, each in enumerate(found) if (less := each.thinned()) is not None}
        if fewer:
            longest = max(fewer, key=lambda k: len(found[k].values))
            found[longest] = fewer[longest]
        else:
            left_out.insert(0, whole.pop().label)
            found = list(whole)
    return None


def _always_hidden(name: str, found: Sequence[Carried], spec: ExplorerSpec, now: Settings) -> bool:
    """Whether no value of any control makes this one matter."""
    return all(
        name in spec.hidden({**now, each.name: value}) for each in found for value in each.values
    )


def _choices(
    spec: ExplorerSpec, found: Sequence[Carried], now: Settings
) -> list[tuple[Settings, set[str]]] | None:
    """The settings of each choice, and the controls that do not matter there; None: too many.

    What does not matter is as it is now, so that choices that differ in it alone are one.
    """
    if prod(len(each.values) for each in found) > MOST_CHOICES:
        return None
    choices = []
    for values in itertools.product(*(each.values for each in found)):
        chosen = {each.name: value for each, value in zip(found, values, strict=True)}
        hidden = spec.hidden({**now, **chosen})
        chosen = {name: value for name, value in chosen.items() if name not in hidden}
        choices.append(({**now, **chosen}, hidden))
    distinct = {repr(settings) for settings, _ in choices}
    return choices if len(distinct) <= MOST_VIEWS else None


def carried(name: str, control: Widget, spec: ExplorerSpec, now: Settings) -> Carried | None:
    """A control of a page; None: there is nothing to choose.

    Of what has no list of values, such as a text, the page states the value that it has.
    """
    kind: Literal["list", "slider", "box"] = "list"
    options, value = getattr(control, "options", None), now[name]
    bounds: list[Any] = [getattr(control, end, None) for end in ("min", "max", "step")]
    pairs: list[tuple[str, Any]]
    fixed = False
    if name in spec.scrubs:
        kind, pairs = "slider", [(f"{each:g}", each) for each in spec.scrubs[name](now)]
    elif isinstance(value, bool) and options is None:
        kind, pairs = "box", [("no", False), ("yes", True)]
    elif options is not None and isinstance(value, tuple):
        pairs = [(ALL, ()), *((str(each), (each,)) for _, each in _labelled(options))]
        if len(value) > 1:
            pairs.append((" and ".join(map(str, value)), value))
    elif options is not None:
        kind = "slider" if type(control).__name__ == "SelectionSlider" else "list"
        pairs = _labelled(options)
    elif isinstance(value, int | float) and all(isinstance(e, int | float) for e in bounds):
        kind, pairs = "slider", _steps(*bounds)
        if value not in [each for _, each in pairs]:
            pairs = sorted([*pairs, (f"{value:g}", value)], key=lambda pair: pair[1])
    else:
        fixed, pairs = True, [(str(value), value)] if value not in ("", None) else []
    values = [each for _, each in pairs]
    if value not in values or (len(values) < 2 and not fixed):
        return None
    label = control.description or name
    return Carried(name, label, kind, values, [text for text, _ in pairs], values.index(value))


def _labelled(options: Any) -> list[tuple[str, Any]]:
    """What can be chosen, with its texts: given as a dict, as such pairs, or without texts."""
    if isinstance(options, Mapping):
        return [(str(label), value) for label, value in options.items()]
    listed = list(options)
    if all(isinstance(each, tuple) and len(each) == 2 for each in listed):
        return [(str(label), value) for label, value in listed]
    return [(str(each), each) for each in listed]


def _steps(low: float, high: float, step: float) -> list[tuple[str, Any]]:
    """The values of a slider over numbers, at most so many."""
    count = int((high - low) / step + 1e-9) + 1 if step else 1
    skip = -(-count // MOST_STEPS)
    whole = all(isinstance(each, int) for each in (low, step))
    values = [low + k * step for k in range(0, count, skip)]
    if not whole:
        values = [float(f"{each:.12g}") for each in values]
    return [(f"{each:g}", each) for each in values]


def _pages(
    spec: ExplorerSpec,
    choices: Sequence[tuple[Settings, set[str]]],
    known: dict[str, tuple[bytes, bool]],
) -> tuple[list[bytes], list[int], bool] | None:
    """The charts of all choices; `known` keeps those that were made, by settings.

    Returns:
        Each chart once, packed with its words; by choice, which of them it shows; and whether each
        of them bears its words. None: they are too long.
    """
    numbers: dict[bytes, int] = {}
    which, drawn, room = [], True, MOST_BYTES
    for settings, _ in choices:
        key = repr(settings)
        if key not in known:
            known[key] = _page(spec, settings)
        page, bears = known[key]
        if page not in numbers:
            room -= len(page)
        if room < 0:
            return None
        drawn = drawn and bears
        which.append(numbers.setdefault(page, len(numbers)))
    return list(numbers), which, drawn


def _page(spec: ExplorerSpec, settings: Settings) -> tuple[bytes, bool]:
    """The chart of settings, packed with its words, and whether it bears them."""
    try:
        view = spec.view(spec.adjust("", settings), False)
        chart, words = spec.chart_of(view), view.words
    except ValueError as error:
        chart, words = Chart(message=str(error)), str(error)
    page = b'{"label":' + json.dumps(words).encode() + b"," + pack(chart)[1:]
    return page, words == chart.words
