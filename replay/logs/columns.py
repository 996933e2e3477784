"""What each column of a table says: a setting of a run, a measure of it, or where it is from.

Whoever asks which settings tell runs apart asks here, and every column of every table stands here:
`tests/replay/logs/test_columns.py` reads logs, sweeps and allocations and looks.
"""

from __future__ import annotations

from collections.abc import Container

import pandas as pd

from evo.logs.cost import UNITS

FAMILY = ("task", "model", "children", "search")
"""Settings in which runs must agree before their fitness can be taken together."""

SETTINGS = frozenset({
    *FAMILY, "protocol", "condition", "configuration", "tool", "is_llm", "generations", "draws",
    "asked_model", "arm",
})  # fmt: skip
"""Columns that say what a run, or a row of it, was made with."""

REPORTED = ("prompt_tokens", "cached_tokens", "completion_tokens")
"""Columns of tokens that the endpoint reported, summed; what it left out is not in them."""

SPENT = (
    *("n_attempts", "n_without_usage", *REPORTED, "tokens", "flops", "dollars"),
    *("call_seconds", "evaluation_seconds"),
)
"""What calls cost; summed over the calls of a row."""

COUNTED = ("n_calls", "n_ok", "n_repeats", *SPENT, "seconds")
"""What is summed over a generation, generation 0 included."""

MEASURES = frozenset({
    *COUNTED, "best_fitness", "generation_best", "fitness", "parent_fitness",
    "initial_fitness", "fitness_sd", "objective", "strict_fitness", "score", "gain", "fresh_gain",
    "improved", "status", "error", "notes", "finish_reason", "http_status", "latency", "lost",
    "n_tests", "n_accepted", "false_acceptances", "done", "stages", "audit_status",
    "audit_fitness", "kept_out",
})  # fmt: skip
"""Columns that say how a run went."""

ORIGINS = frozenset({
    "run", "seed", "source", "log", "path", "hash", "id", "header", "root", "copy", "forked_from",
    "rescored", "mixed", "repeat_of", "compact", "trial", "generation", "index", "instance",
    "attempt", "pull", "unit_scale", "parents", "operator", "island", "inherited", "repeats",
})  # fmt: skip
"""Columns that say which run, and which row of it, this is."""


def settings_that_vary(frame: pd.DataFrame, *, beside: Container[str] = ()) -> list[str]:
    """Returns the columns that tell configurations apart: settings that take several values.

    A column that is none of this project's, such as one that a user added, is a setting.

    Args:
        frame: Rows of any table of `replay`.
        beside: Columns that are used otherwise and are left out.

    Returns:
        Their names, in the order of the frame.

    Example:
        >>> from replay.logs.columns import settings_that_vary
        >>> settings_that_vary(pd.DataFrame({"run": ["a", "b"], "children": [4, 8], "seed": 0}))
        ['children']
    """
    others = {*MEASURES, *ORIGINS, *UNITS}  # users add units of cost
    names = [name for name in map(str, frame) if name not in others and name not in beside]
    return [name for name in names if frame[name].nunique(dropna=False) > 1]
