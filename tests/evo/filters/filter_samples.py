"""Programs for tests of filters, archives of them, and a filter of one's own."""

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Sized:
    """Refuses what is long, or where the archive is small."""

    most: int = 60
    least: int = 0

    name = "sized"

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Returns why."""
        if len(archive) < self.least:
            return f"{len(archive)} programs are known"
        return f"{len(program)} characters" if len(program) > self.most else None
