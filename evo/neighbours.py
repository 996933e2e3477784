"""Other packages with our import names: `evo` of odometry and `replay` of recommenders."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

OTHERS = {"evo": ("evo", "evo"), "replay": ("replay_rec", "replay-rec")}
"""Of each of our import names: how the metadata folder of the other package begins, its name."""

ADVICE = "install evo-replay in an environment of its own"


def warn_of_neighbour(name: str, file: str) -> None:
    """Warns if the other package of this import name is installed into the same folder.

    Args:
        name: `evo` or `replay`.
        file: The `__file__` of our package of that name.
    """
    stem, other = OTHERS[name]
    if any(Path(file).parents[1].glob(f"{stem}-[0-9]*.dist-info")):
        from evo.warning import warn

        warn(
            f"the packages evo-replay and {other} are installed side by side and share the import "
            f"name `{name}`, so that one overwrites files of the other; {ADVICE}"
        )


def require_ours(module: ModuleType, known: str) -> None:
    """Raises ImportError if a module of our import name belongs to another package.

    Args:
        module: The module that was imported as `evo` or `replay`.
        known: A public name that ours has.
    """
    if known not in getattr(module, "__all__", ()):
        place, other = getattr(module, "__file__", None), OTHERS[module.__name__][1]
        raise ImportError(
            f"`import {module.__name__}` finds another package, {place} (probably {other}, which "
            f"has the same import name as evo-replay); {ADVICE}",
            name=module.__name__,
        )
