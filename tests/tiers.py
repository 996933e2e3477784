"""Which cases of a test belong to the thorough tier, which CI runs beside README's command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thorough_after(kept: int, cases: Iterable[Any]) -> list[Any]:
    """Cases of a parametrization, of which those after the first `kept` are thorough ones."""
    every = list(cases)
    rest = (case if isinstance(case, tuple) else (case,) for case in every[kept:])
    return [*every[:kept], *(pytest.param(*case, marks=pytest.mark.thorough) for case in rest)]
