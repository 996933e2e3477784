"""The folder of a new task, with comments, which evaluates at once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal, get_args

from evo.logs.types import as_path
from evo.plugins import meant

Kind = Literal["program", "instances", "prompt"]
"""A program that is run once, one that is run for each row of data, or a text under which a model
answers each row."""

_TEMPLATES = Path(__file__).with_name("templates")


def new_task(folder: str | os.PathLike[str], kind: Kind = "program") -> list[Path]:
    """Writes the files of a new task and returns their paths.

    Args:
        folder: Where to write; it may exist if it is empty.
        kind: `program`, `instances` or `prompt`.

    Raises:
        ValueError: The kind is unknown.
        FileExistsError: There is something at this place, which is left as it is.

    Example:
        >>> paths = evo.new_task(new(""), "instances")
        >>> evo.evaluate(paths[0].parent, evo.load_task(paths[0].parent).initial_program).status
        'ok'
    """
    if kind not in get_args(Kind):
        known = ", ".join(get_args(Kind))
        raise ValueError(
            f"kind: expected one of {known}, got {kind!r}{meant(kind, get_args(Kind))}"
        )
    place = as_path("folder", folder)
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise FileExistsError(f"{place} exists already: give another folder, or empty this one")
    source = _TEMPLATES / kind
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for path in sorted(source.iterdir()):
        if path.is_file():
            written.append(Path(shutil.copyfile(path, place / path.name)))
    return written
