"""Programs for tests of filters, and archives of them."""

from typing import Any

from hypothesis import strategies as st

from evo.filters.ends import BREAKS
from evo.searches import Member

QUIET: dict[str, Any] = {"progress": False, "workers": 1}


PROGRAM = "def value():\n    a = 1.5\n    b = 2.5\n    return a * b\n"


JUDGE = "def score(value):\n    return {'fitness': 1 - abs(value - 5) / 5}\n"


def archive(*programs: str) -> list[Member]:
    return [Member((1, index), 0.5, (), program) for index, program in enumerate(programs)]


PIECES = st.lists(st.sampled_from(["a", "b", " ", *BREAKS]), max_size=12).map("".join)
