"""The engines that are known by name.

    register_engine(Engine("mine", prepare))       # `{"engine": "mine"}` is an arm from now on

An installed package may add engines by entry points of the group `evo.engines`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from evo.gate.engines import gepa, openevolve, shinka
from evo.gate.engines.job import Engine
from evo.plugins import MistakenType, Registry, meant, plugged_in

ENGINES: Registry[Engine] = Registry(
    "engine",
    {engine.name: engine for engine in (openevolve.ENGINE, shinka.ENGINE, gepa.ENGINE)},
    reserved={"evo": "this package", "ours": "the searches of this package"},
    group="evo.engines",
)
"""Name -> engine."""


class EngineError(ValueError):
    """An engine is unknown, not installed, or did not run.

    Example:
        >>> try:
        ...     evo.drive("nobody", "mmd", calls=8)
        ... except evo.EngineError as error:
        ...     print(str(error)[:16])
        engine: expected
    """


def register_engine(engine: Engine) -> None:
    """Registers an engine under its name; an engine of your own with the same name is replaced.

    Args:
        engine: The engine: its name, how it is prepared and started, and how its prompts are read.

    Raises:
        ValueError: The name is empty, that of a shipped engine, "evo" or "ours".

    Example:
        >>> def prepare(job):
        ...     return [job.python, "-m", "mine", str(job.folder)]
        >>> evo.register_engine(evo.Engine("mine", prepare))
        >>> evo.ENGINES.pop("mine").name
        'mine'
    """
    if not isinstance(engine, Engine):
        raise MistakenType(f"expected an evo.Engine, got {engine!r}")
    if not engine.name or engine.name in ENGINES.taken:
        taken = ", ".join(sorted(ENGINES.taken))
        raise ValueError(f"name: expected one that is none of {taken}, got {engine.name!r}")
    ENGINES[engine.name] = engine


def find_engine(name: str) -> Engine:
    """Returns the engine of a name; EngineError if there is none."""
    known = plugged_in("evo.engines", ENGINES)
    if name not in known:
        hint = meant(str(name), known)
        listed = ", ".join(sorted(known))
        raise EngineError(f"engine: expected one of {listed}, got {name!r}{hint}")
    found: Engine = known[name]
    return found


def check_installed(python: Path, engine: Engine) -> None:
    """Raises EngineError, with what to do, unless a Python has what an engine needs."""
    asked = [str(python), "-c", f"import {engine.module}" if engine.module else "pass"]
    try:
        done = subprocess.run(asked, capture_output=True, check=False, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"python {python}: cannot be run: {error}") from None
    if done.returncode != 0:
        package = engine.package or engine.module
        raise EngineError(
            f"{python} has no package {package}: make an environment for it "
            f"(python -m venv FOLDER; FOLDER/bin/pip install {package}) and give "
            "python=FOLDER/bin/python (--python, of `evo compare` --python NAME=FOLDER/bin/python)"
        )
