"""Other tools under a stated budget: started behind a gate, on one of our tasks, then imported.

A tool runs at its own defaults, and is given what it needs: the model, the task and where to
leave its records. Programs are judged here, in our sandbox, by the task's own evaluator.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pandas as pd

from evo.gate.engines import openevolve, shinka
from evo.gate.engines.job import ASK, Job, Judge, Tool, resampled
from evo.gate.gate import Gate
from evo.logs.journal import file_name, unused
from evo.logs.records import Model
from evo.models.offline import OFFLINE_MODELS
from evo.models.registry import find_model
from evo.tasks.task import Task, load_task
from replay.importers import read, write

PATIENCE = 60.0  # seconds that a tool has to end by itself once its budget is used up
GRACE = 20.0  # seconds that it has to write what it knows once it is asked to end


class DriverError(ValueError):
    """A tool is not there, or did not run."""


TOOLS: dict[str, Tool] = {"openevolve": openevolve.TOOL, "shinka": shinka.TOOL}


def drive(
    tool: str,
    task: str | os.PathLike[str] | Task,
    *,
    calls: int,
    python: str | os.PathLike[str] = sys.executable,
    seeds: Sequence[int] = (40,),
    model: str | Model = "offline",
    log_dir: str | os.PathLike[str] = "logs/local",
) -> pd.DataFrame:
    """Runs another tool at a budget of calls and returns its runs as `replay.load` returns ours.

    A run that is there already is kept, so the same call goes on where it was interrupted.

    Args:
        tool: `openevolve` or `shinka`.
        task: Name, folder or Task, of a program in Python that an evaluator scores.
        calls: Requests to the model that each run may make, failed ones included, at least 1.
        python: The Python in whose environment the tool is installed.
        seeds: One run each.
        model: Name in the registry, or a Model; the tool knows it by its name.
        log_dir: Gets for each run the imported log and a folder with the tool's own files, its
            output and the log of the gate.

    Returns:
        Rows of `replay.load`; the tool's name is in the column `search`.

    Raises:
        DriverError: The tool is unknown, not installed there, or ended before its first call.
        TaskError: There is no such task.
    """
    from replay.logs import tables

    if tool not in TOOLS:
        raise DriverError(f"tool: expected one of {', '.join(TOOLS)}, got {tool!r}")
    loaded = load_task(task)
    if loaded.record.evolves != "python" or loaded.record.asks_model:
        raise DriverError(f"{loaded.name}: expected a task whose programs are Python")
    check_installed(Path(python), TOOLS[tool])
    paths = []
    for seed in seeds:
        path = Path(log_dir) / f"{tool}-{file_name(loaded.name)}-s{seed}.jsonl"
        if not path.exists():
            _run(TOOLS[tool], loaded, calls, Path(python), seed, model, path)
        paths.append(path)
    return tables.load(paths, progress=False)


def check_installed(python: Path, tool: Tool) -> None:
    """Raises DriverError, with what to do, unless a Python has the tool."""
    try:
        asked = [str(python), "-c", f"import {tool.module}"]
        done = subprocess.run(asked, capture_output=True, check=False, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DriverError(f"--python {python}: cannot be run: {error}") from None
    if done.returncode != 0:
        raise DriverError(
            f"{python} has no package {tool.package}: make an environment for it "
            f"(python -m venv FOLDER; FOLDER/bin/pip install {tool.package}) and give "
            "--python FOLDER/bin/python"
        )


def _run(
    tool: Tool, task: Task, calls: int, python: Path, seed: int, model: str | Model, path: Path
) -> None:
    """Makes one run and imports it."""
    folder = path.with_suffix("").absolute()
    if folder.exists():
        aside = unused(folder.parent, f"{folder.name}-interrupted")
        folder.rename(aside)
        warnings.warn(f"an interrupted run is set aside as {aside}", stacklevel=3)
    folder.mkdir(parents=True)
    found = find_model(model)
    offline = found.name in OFFLINE_MODELS and found.base_url is None
    gate = Gate(
        found,
        budget={"calls": calls},
        log=folder / "gate.jsonl",
        transport=resampled(seed) if offline else None,
    )
    with Judge(task) as judge, gate:
        (folder / "judging.py").write_text(ASK.format(url=judge.url))
        job = Job(folder, task, gate.model.name, gate.url, calls, seed)
        # Nothing of this process's environment reaches the tool but where things are.
        environment = {n: os.environ[n] for n in ("PATH", "HOME", "TMPDIR") if n in os.environ}
        keys = ("OPENAI_API_KEY", "LOCAL_OPENAI_API_KEY")
        output = folder / "output.txt"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [python.absolute(), *tool.prepare(job)],
                cwd=folder,
                env=environment | dict.fromkeys(keys, f"{tool.module}-s{seed}"),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            _watch(process, gate)
    if gate.account.spent["calls"] == 0:
        lines = output.read_text(errors="replace").strip().splitlines() or ["nothing"]
        raise DriverError(f"{tool.package} made no call; {output} ends with: {lines[-1]}")
    (run,) = read(folder / "out", tool.format)
    lost = [run.header.lost] if run.header.lost else []
    if silent := int(gate.account.spent["calls"]) - len(run.children):
        lost.append(f"{silent} of {calls} calls, which left no program")
    header = msgspec.structs.replace(run.header, model=found, seed=seed, lost="; ".join(lost))
    write(replace(run, header=header), path, compact=False, task=task.record)


def _watch(process: subprocess.Popen[bytes], gate: Gate) -> None:
    """Waits for a tool's end, and ends it a while after its budget is used up."""
    used_up = None
    try:
        while process.poll() is None:
            if gate.account.used_up and not gate.account.in_flight:
                used_up = used_up or time.monotonic()
                if time.monotonic() > used_up + PATIENCE:
                    break
            time.sleep(0.1)
    finally:
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(GRACE)
        with suppress(ProcessLookupError):  # and what it leaves behind
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
