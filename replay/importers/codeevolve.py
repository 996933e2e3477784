"""Logs of CodeEvolve: each island's last checkpoint, an untrusted pickle.

One epoch is one call with one child, so N = 1 and a generation is an epoch. Each island becomes a
run of what that island itself found: programs that migrated to it are left out. Islands of one
configuration are islands of one run rather than seeds, and are independent only before the first
migration.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from evo.records import Attempt, Child, Evaluation, Model, Status
from replay.importers.foreign import (
    NOT_IN_SOURCE,
    UNKNOWN_SEED,
    Imported,
    LogFormatError,
    answered,
    assemble,
    convert,
    failed,
    finite,
    judged,
)
from replay.importers.pickles import Stub, load

NAME = "CodeEvolve"
_CHECKPOINT = re.compile(r"^ckpt_(\d{1,9})\.pkl$")
_MOST_EPOCHS = 100_000


class _Program(msgspec.Struct):
    id: str
    island_found: int
    iteration_found: int
    returncode: int | None
    fitness: float | None
    error: Any = None
    eval_metrics: dict[str, Any] | None = None
    code: Any = None
    model_msg: Any = None


class _Usage(msgspec.Struct):
    epoch: int
    prompt_tok: float | None = None
    compl_tok: float | None = None
    model_name: str | None = None


class _Error(msgspec.Struct):
    epoch: int
    error_msg: Any = None


class _Evolution(msgspec.Struct):
    best_fit_hist: list[float]
    tok_usage: list[_Usage] = []
    errors: list[_Error] = []


@dataclass(frozen=True)
class _Island:
    number: int
    programs: list[_Program]
    evolution: _Evolution


def recognises(path: Path) -> bool:
    """Whether the path is such a checkpoint, or a folder with islands' checkpoints."""
    return bool(_last_checkpoints(path))


def _last_checkpoints(path: Path) -> list[Path]:
    """The last checkpoint of each island at or below a path."""
    if path.is_file():
        return [path] if _CHECKPOINT.match(path.name) else []
    last: dict[Path, tuple[int, Path]] = {}
    for file in path.rglob("ckpt_*.pkl"):
        if match := _CHECKPOINT.match(file.name):
            epoch = int(match.group(1))
            if epoch >= last.get(file.parent, (-1, file))[0]:
                last[file.parent] = (epoch, file)
    return [last[folder][1] for folder in sorted(last)]


def read(path: Path) -> list[Imported]:
    """Reads a checkpoint, or the last one of each island in a folder and below.

    Raises:
        LogFormatError: There is none, it is damaged, or it asks for what no checkpoint needs.
    """
    files = _last_checkpoints(path)
    if not files:
        raise LogFormatError(f"{path}: expected <island>/ckpt/ckpt_<epoch>.pkl")
    return [_imported(_island(file), file, _name(file, path)) for file in files]


def _name(file: Path, root: Path) -> str:
    """Name of an island's run: the folders from the root down to it."""
    folders = file.resolve().parent
    folders = folders.parent if folders.name == "ckpt" else folders
    base = (root if root.is_dir() else file.parent).resolve()
    inside = folders.relative_to(base).as_posix() if folders.is_relative_to(base) else "."
    return inside.replace("/", "_") if inside != "." else f"{folders.parent.name}_{folders.name}"


def _island(file: Path) -> _Island:
    found = load(file, package="codeevolve")
    if not isinstance(found, dict) or not {"sol_db", "evolve_state"} <= set(found):
        raise LogFormatError(f"{file}: expected a dict with sol_db and evolve_state")
    base = found["sol_db"].attributes if isinstance(found["sol_db"], Stub) else {}
    programs = base.get("programs")
    if not isinstance(programs, dict) or not all(isinstance(p, Stub) for p in programs.values()):
        raise LogFormatError(f"{file}: expected sol_db with a dict of programs")
    return _Island(
        number=convert(base.get("id"), int, f"{file}: sol_db.id"),
        programs=[
            convert(program.attributes, _Program, f"{file}: sol_db.programs")
            for program in programs.values()
        ],
        evolution=convert(found["evolve_state"], _Evolution, f"{file}: evolve_state"),
    )


def _imported(island: _Island, file: Path, name: str) -> Imported:
    own = [p for p in island.programs if p.island_found == island.number]
    migrants = len(island.programs) - len(own)
    by_epoch = {program.iteration_found: program for program in own}
    errors = {error.epoch: error for error in island.evolution.errors}
    used: dict[int, list[_Usage]] = {}
    for usage in island.evolution.tok_usage:
        used.setdefault(usage.epoch, []).append(usage)
    last = max([len(island.evolution.best_fit_hist), *by_epoch, *errors, *used])
    if last > _MOST_EPOCHS or min([0, *by_epoch]) < 0:
        raise LogFormatError(f"{file}: expected epochs from 0 to {_MOST_EPOCHS}, got {last}")
    children = []
    for epoch in range(1, last + 1):
        attempts = _attempts(used.get(epoch, []))
        if epoch in by_epoch:
            children.append([_child(by_epoch[epoch], attempts)])
            continue
        error = errors.get(epoch)
        status: Status = "no_program" if error is not None or attempts else "no_reply"
        reason = str(error.error_msg) if error is not None else NOT_IN_SOURCE
        children.append([failed(epoch, 0, status, reason, attempts=attempts)])
    lost = [
        "sampling settings, seeds and times of calls",
        f"island {island.number} of one run: independent of the others before migration only",
    ]
    if migrants:
        lost.append(f"{migrants} programs that migrated to it")
    if (doubled := len(own) - len(by_epoch)) > 0:
        lost.append(f"{doubled} further programs of an epoch")
    models = sorted({u.model_name for u in island.evolution.tok_usage if u.model_name})
    made = assemble(
        file,
        NAME,
        name=name,
        task="unknown",
        model=Model(name="+".join(models) or "unknown"),
        children=children,
        initial=_evaluation(by_epoch[0]) if 0 in by_epoch else None,
        lost=lost,
    )
    if note := _foreign_best(made, island.evolution.best_fit_hist):
        header = msgspec.structs.replace(made.header, lost=f"{made.header.lost}; {note}")
        return Imported(
            source=made.source,
            name=made.name,
            header=header,
            initial=made.initial,
            children=made.children,
            generations=made.generations,
        )
    return made


def _foreign_best(made: Imported, stated: Sequence[float]) -> str:
    """Says from which epoch on the island's stated best is not its own."""
    for generation, best in zip(made.generations, stated, strict=False):
        known, ours = finite(best), generation.best_fitness or 0.0
        if known is not None and known > ours + 1e-9:
            return f"the island's best from epoch {generation.generation} on was a migrant"
    return ""


def _attempts(usages: Sequence[_Usage]) -> tuple[Attempt, ...]:
    return tuple(a for u in usages for a in answered(u.prompt_tok, u.compl_tok))


def _child(program: _Program, attempts: tuple[Attempt, ...]) -> Child:
    return Child(
        generation=program.iteration_found,
        index=0,
        seed=UNKNOWN_SEED,
        prompt_hash="",
        attempts=attempts,
        evaluation=_evaluation(program),
        reply=program.model_msg if isinstance(program.model_msg, str) else None,
        program=program.code if isinstance(program.code, str) else None,
    )


def _evaluation(program: _Program) -> Evaluation:
    metrics = program.eval_metrics or {}
    failure: tuple[Status, str] | None = None
    if program.returncode != 0:
        said = str(program.error) if program.error else "the source does not say why"
        failure = ("timeout" if said.startswith("TimeoutError") else "error", said[-4000:])
    return judged(
        program.fitness,
        failure=failure,
        metrics=metrics,
        seconds=finite(metrics.get("eval_time")),
    )
