"""What the package brings along: sample logs of a real LLM, and the notebooks with their logs."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from evo.logs.types import as_path

PACKAGED = Path(sysconfig.get_path("data")) / "share" / "evo-replay"
"""Where notebooks and logs are in an installed package."""

CLONED = Path(__file__).parents[2]
"""Where they are in a clone of the repository."""

SAMPLES = Path("logs", "corpus", "qwen2.5-coder-1.5b")
OPENING = Path("notebooks", "pictures", "opening")


def copy_samples(folder: str | os.PathLike[str]) -> list[Path]:
    """Copies the sample logs to a folder.

    Args:
        folder: The folder, which is created if it is missing.

    Returns:
        The paths of the copies.

    Raises:
        FileExistsError: A file of the same name is there already.
        FileNotFoundError: This installation has no samples.
    """
    source = _packaged_logs() / SAMPLES
    return _copy(source, sorted(source.rglob("*.jsonl.gz")), as_path("folder", folder))


def notebooks(folder: str | os.PathLike[str]) -> list[Path]:
    """Copies the notebooks, and the logs that they read, to a folder.

    They run from there without a key and without a network; `FOLDER/notebooks` has the notebooks,
    `FOLDER/logs` some 30 MB of logs.

    Args:
        folder: The folder, which is created if it is missing.

    Returns:
        The paths of the notebooks.

    Raises:
        FileExistsError: A file of the same name is there already.
        FileNotFoundError: This installation has no notebooks.

    Example:
        >>> replay.notebooks("evo-replay")[0].name  # doctest: +SKIP
        '00_quickstart.ipynb'
    """
    source = _packaged_logs()
    logs = [
        path
        for part in ("corpus", "samples")
        for path in sorted((source / "logs" / part).rglob("*"))
        if path.is_file()
    ]
    books = sorted((source / "notebooks").glob("[0-9]*.ipynb"))
    pictures = sorted((source / OPENING).glob("*.png"))
    return _copy(source, [*books, *pictures, *logs], as_path("folder", folder))[: len(books)]


def _packaged_logs() -> Path:
    """Returns the folder with the notebooks and logs of this installation."""
    for root in (CLONED, PACKAGED):  # what an editable installation copied grows old
        if (root / SAMPLES).is_dir():
            return root
    raise FileNotFoundError(f"no notebooks and logs, expected them in {PACKAGED} or {CLONED}")


def _copy(source: Path, files: Sequence[Path], folder: Path) -> list[Path]:
    """Copies files to the places that they have in their source; all of them, or none."""
    copies = [folder / file.relative_to(source) for file in files]
    for copy in copies:
        if copy.exists():
            raise FileExistsError(f"{copy}: exists already; name another folder")
    for file, copy in zip(files, copies, strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return copies
