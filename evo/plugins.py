"""What other packages add by entry points: tasks, models, policies, log formats.

| group | an entry gives |
|---|---|
| `evo.tasks` | the folder of a task, a path |
| `evo.models` | an `evo.Model` |
| `evo.policies` | a policy class |
| `evo.searches` | a search class |
| `replay.importers` | a function from a path to a list of imported runs |
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any


@functools.cache
def plugged_in(group: str) -> Mapping[str, Any]:
    """Returns what other packages add to a group, by name; they are imported for it."""
    return {entry.name: entry.load() for entry in entry_points(group=group)}
