"""Sample logs: a few runs of a real LLM that the package brings along."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

PACKAGED = Path(sysconfig.get_path("data")) / "share" / "evo-replay" / "samples"
"""Where the samples are in an installed package."""

CLONED = Path(__file__).parents[2] / "logs" / "corpus" / "qwen2.5-coder-1.5b"
"""Where they are in a clone of the repository."""


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
    source = next((each for each in (PACKAGED, CLONED) if each.is_dir()), None)
    if source is None:
        raise FileNotFoundError(f"no sample logs, expected them in {PACKAGED} or {CLONED}")
    logs = sorted(source.rglob("*.jsonl.gz"))
    copies = [Path(folder) / log.relative_to(source) for log in logs]
    for copy in copies:
        if copy.exists():
            raise FileExistsError(f"{copy}: exists already; name a folder without the samples")
    for log, copy in zip(logs, copies, strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log, copy)
    return copies
