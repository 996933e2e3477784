"""Names of configurations, by what tells them from each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from string import hexdigits

import pandas as pd

from replay.logs.frames import GREEDY

HASH = 24
"""Digits from which on a hexadecimal value is a hash, of which the first eight are shown."""


def configuration_labels(configurations: pd.Series[str]) -> pd.Series[str]:
    """Names configurations by the settings that not all of them share; empty if there is one.

    Args:
        configurations: The column of `replay.load_tables`, JSON objects.

    Example:
        >>> texts = pd.Series(['{"search.name": "islands"}', '{}'])
        >>> configuration_labels(texts).tolist()
        ['search islands', 'search greedy']
    """
    known = {text: json.loads(text) for text in configurations.unique()}
    if len(known) < 2:
        return configurations.map(dict.fromkeys(known, ""))
    searches = {text: str(each.pop("search.name", GREEDY)) for text, each in known.items()}
    several = len(set(searches.values())) > 1
    labels = {}
    for text, settings in known.items():
        rivals = [each for other, each in known.items() if searches[other] == searches[text]]
        parts = [f"search {searches[text]}"] if several else []
        parts += [_in_words(n, settings.get(n)) for n in _varied(rivals) if n in settings]
        labels[text] = ", ".join(parts) or "all else as by default"
    return configurations.map(labels)


def _varied(settings: Sequence[dict[str, object]]) -> list[str]:
    """Names of the settings in which some differ, without versions of code."""
    names = dict.fromkeys(name for each in settings for name in each)
    differ = (n for n in names if len({repr(each.get(n)) for each in settings}) > 1)
    return [name for name in differ if not name.endswith(".source")]


def _in_words(name: str, value: object) -> str:
    short = f"{value:g}" if isinstance(value, float) else str(value)
    if len(short) >= HASH and not set(short) - set(hexdigits):
        short = short[:8]
    if name == "task":
        return f"task version {short[:17]}"
    last = name if name.startswith("limits.") else name.rpartition(".")[2]
    return f"{last} {short}"
