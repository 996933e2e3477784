"""Logs of CodeEvolve: each island's last checkpoint, an untrusted pickle, and its text log.

One epoch is one call with one child, so N = 1 and a generation is an epoch. Each island becomes a
run of what that island itself found: programs that migrated to it are left out. Islands of one
configuration are islands of one run rather than seeds: from the first generation that can descend
from a migrant on (`mixed` in the header) they are no independent runs. A session that goes on from
an epoch makes the later ones again; what it replaced was paid, too, and is counted in `lost`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from evo.records import Attempt, Child, Evaluation, Sampling, Status
from replay.importers.foreign import (
    NOT_IN_SOURCE,
    UNKNOWN_SAMPLING,
    Failure,
    Imported,
    LogFormatError,
    answered,
    assemble,
    born,
    common,
    convert,
    failed,
    finite,
    judged,
    named,
    read_text,
    told,
)
from replay.importers.pickles import Stub, load

NAME = "CodeEvolve"
_CHECKPOINT = re.compile(r"^ckpt_(\d{1,9})\.pkl$")
_LOGS = ("results.log", "results.log.gz")
_MOST_EPOCHS = 100_000

_ENTRY = re.compile(
    r"^\[island (\d{1,9})\] (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) \| \w+ +\| \d+ \| ", re.MULTILINE
)
_SESSION = re.compile(r"Starting from epoch (\d{1,9}) with evolve_config = ")
_EPOCH = re.compile(r"=+ EPOCH (\d{1,9}) =+")
_TOKENS = re.compile(r"using (\d{1,12}) prompt tokens and (\d{1,12}) completion tokens")
_MODEL = re.compile(r"\(\d+\): \w+\(model_name=([^,()]+),temp=([\d.]+),top_p=([\d.]+)")
_STATED = re.compile(
    r"Program\(id=([^,()]+),fitness=([^,()]+),island_found=(\d{1,9}),iteration_found=(\d{1,9}),"
    r"returncode=(-?\d+|None),eval_metrics=\{(.*?)\}\)",
    re.DOTALL,
)
_METRIC = re.compile(r"'([^']*)': (-?[\d.]+(?:[eE][+-]?\d+)?)")


class _Program(msgspec.Struct):
    id: str
    island_found: int
    iteration_found: int
    returncode: int | None
    fitness: float | None
    parent_id: str | None = None
    inspiration_ids: list[str] | None = None
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


@dataclass
class _Island:
    """What is known of an island, from its checkpoint, its text log or both.

    Attributes:
        epochs: Those that were made.
        programs: By id; migrants included.
        failures: Why an epoch has no program.
        attempts: Tokens of an epoch's calls.
        seconds: Wall time of an epoch.
        again: Epochs that a later session made again, and the completion tokens they took.
        mixed: First epoch that can descend from a migrant.
    """

    number: int = 0
    epochs: int = 0
    programs: dict[str, _Program] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)
    attempts: dict[int, tuple[Attempt, ...]] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    sampling: Sampling = UNKNOWN_SAMPLING
    again: tuple[int, float] = (0, 0.0)
    mixed: int | None = None
    notes: list[str] = field(default_factory=list)


def recognises(path: Path) -> bool:
    """Whether the path is such a checkpoint or text log, or an island's folder with either."""
    return any(_files(path))


def _files(path: Path) -> tuple[Path | None, Path | None]:
    """An island's last checkpoint and its text log."""
    if path.is_file():
        is_checkpoint, is_log = bool(_CHECKPOINT.match(path.name)), path.name in _LOGS
        return path if is_checkpoint else None, path if is_log else None
    found = [
        (int(match[1]), file)
        for folder in (path, path / "ckpt")
        for file in folder.glob("ckpt_*.pkl")
        if (match := _CHECKPOINT.match(file.name))
    ]
    log = next((path / name for name in _LOGS if (path / name).is_file()), None)
    if log is None and path.name == "ckpt":
        log = next((path.parent / name for name in _LOGS if (path.parent / name).is_file()), None)
    return max(found)[1] if found else None, log


def read(path: Path) -> list[Imported]:
    """Reads an island: its last checkpoint, its text log, or both in one folder."""
    checkpoint, log = _files(path)
    if path.is_file() and checkpoint is None and log is None:
        checkpoint = path
    if checkpoint is None and log is None:
        raise LogFormatError(f"{path}: expected ckpt/ckpt_<epoch>.pkl or results.log")
    island = _Island() if log is None else _read_log(log)
    if checkpoint is not None:
        island = _read_checkpoint(checkpoint, island)
    folder = (path if path.is_dir() else path.parent).resolve()
    folder = folder.parent if folder.name == "ckpt" else folder
    return [_imported(island, path, f"{folder.parent.name}_{folder.name}")]


def _read_checkpoint(file: Path, told_of: _Island) -> _Island:
    """What a checkpoint holds, with the times and settings that the text log told of."""
    found = load(file, package="codeevolve")
    if not isinstance(found, dict) or not {"sol_db", "evolve_state"} <= set(found):
        raise LogFormatError(f"{file}: expected a dict with sol_db and evolve_state")
    base = found["sol_db"].attributes if isinstance(found["sol_db"], Stub) else {}
    programs = base.get("programs")
    if not isinstance(programs, dict) or not all(isinstance(p, Stub) for p in programs.values()):
        raise LogFormatError(f"{file}: expected sol_db with a dict of programs")
    evolution = convert(found["evolve_state"], _Evolution, f"{file}: evolve_state")
    all_programs = [
        convert(program.attributes, _Program, f"{file}: sol_db.programs")
        for program in programs.values()
    ]
    island = _Island(
        number=convert(base.get("id"), int, f"{file}: sol_db.id"),
        programs={program.id: program for program in all_programs},
        failures={e.epoch: ("no_program", str(e.error_msg)) for e in evolution.errors},
        models={usage.model_name for usage in evolution.tok_usage if usage.model_name},
        seconds=told_of.seconds,
        sampling=told_of.sampling,
        again=told_of.again,
    )
    for usage in evolution.tok_usage:
        made = answered(usage.prompt_tok, usage.compl_tok)
        island.attempts[usage.epoch] = island.attempts.get(usage.epoch, ()) + made
    own = [p for p in all_programs if p.island_found == island.number]
    island.epochs = max(
        [len(evolution.best_fit_hist), *(p.iteration_found for p in own), *island.failures,
         *island.attempts]
    )  # fmt: skip
    foreign = {p.id for p in all_programs if p.island_found != island.number}
    near = [p.iteration_found for p in own if foreign & {p.parent_id, *(p.inspiration_ids or ())}]
    island.mixed = min(near, default=None)
    if foreign:
        island.notes.append(f"{len(foreign)} programs that migrated to it")
    if note := _foreign_best(own, evolution.best_fit_hist):
        island.notes.append(note)
    return island


def _foreign_best(own: Sequence[_Program], stated: Sequence[float]) -> str:
    """Says from which epoch on the island's stated best is not its own."""
    good = [(p.iteration_found, finite(p.fitness)) for p in own if p.returncode == 0]
    for epoch, best in enumerate(stated, start=1):
        ours = max((f for e, f in good if f is not None and e <= epoch), default=0.0)
        if (finite(best) or 0.0) > ours + 1e-9:
            return f"the island's best from epoch {epoch} on was a migrant"
    return ""


def _read_log(file: Path) -> _Island:
    """What a text log tells."""
    text = read_text(file)
    heads = list(_ENTRY.finditer(text))
    if not heads:
        raise LogFormatError(f"{file}: expected lines such as '[island 0] DATE | INFO | PID | ...'")
    island = _Island(number=convert(int(heads[0][1]), int, file))
    epoch, began = 0, None
    for head, after in zip(heads, (*heads[1:], None), strict=True):
        said = text[head.end() : after.start() if after else len(text)].strip()
        try:
            at = datetime.strptime(head[2], "%Y-%m-%d %H:%M:%S,%f")
        except ValueError as error:
            raise LogFormatError(f"{file}: {error}") from None
        if match := _SESSION.match(said):
            _drop(island, int(match[1]))
            epoch = int(match[1])
        elif match := _EPOCH.match(said):
            epoch = int(match[1])
            island.epochs = max(island.epochs, epoch)
            if epoch > _MOST_EPOCHS:
                break
            began = at
        elif match := _TOKENS.search(said):
            made = answered(int(match[1]), int(match[2]))
            island.attempts[epoch] = island.attempts.get(epoch, ()) + made
        elif said.startswith("Error with SEARCH/REPLACE"):
            island.failures[epoch] = ("no_program", said)
        elif said.startswith("Error in evaluating program"):
            island.failures[epoch] = (told(said), said)
        elif said.startswith("Error"):
            island.failures[epoch] = (None, said)
        elif said.startswith(("Child solution", "EVOLVE COMPONENTS")):
            _add_stated(island, said)
        elif said.startswith("Migration finished") and island.mixed is None:
            island.mixed = epoch + 1
        if epoch and began is not None:
            island.seconds[epoch] = (at - began).total_seconds()
        if models := _MODEL.findall(said):
            island.models |= {name for name, _, _ in models}
            temperature, top_p = (common(float(m[k]) for m in models) for k in (1, 2))
            island.sampling = Sampling(temperature=temperature, top_p=top_p, max_tokens=None)
    if island.mixed is not None and island.mixed > island.epochs:
        island.mixed = None
    return island


def _drop(island: _Island, kept: int) -> None:
    """Forgets the epochs after one from which a session goes on, but counts them."""
    gone = range(kept + 1, island.epochs + 1)
    spent = [a.usage or {} for e in gone for a in island.attempts.get(e, ())]
    calls, tokens = island.again
    tokens += sum(usage["completion_tokens"] for usage in spent if "completion_tokens" in usage)
    island.again = (calls + len(gone), tokens)
    island.programs = {k: p for k, p in island.programs.items() if p.iteration_found <= kept}
    for known in (island.failures, island.attempts, island.seconds):
        for epoch in gone:
            known.pop(epoch, None)
    island.epochs = min(island.epochs, kept)


def _add_stated(island: _Island, said: str) -> None:
    if match := _STATED.search(said):
        key, fitness, found, epoch, code, metrics = match.groups()
        number = finite(float(fitness)) if re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", fitness) else None
        known: Mapping[str, Any] = {name: float(text) for name, text in _METRIC.findall(metrics)}
        # The fitness is printed to eight digits; the metric that it is is printed in full.
        exact = [v for v in known.values() if number is not None and abs(v - number) < 6e-9]
        island.programs[key] = _Program(
            id=key,
            island_found=int(found),
            iteration_found=int(epoch),
            returncode=None if code == "None" else int(code),
            fitness=exact[0] if len(set(exact)) == 1 else number,
            eval_metrics=dict(known),
        )


def _imported(island: _Island, path: Path, name: str) -> Imported:
    own = [p for p in island.programs.values() if p.island_found == island.number]
    by_epoch = {program.iteration_found: program for program in own}
    if island.epochs > _MOST_EPOCHS or min([0, *by_epoch]) < 0:
        raise LogFormatError(
            f"{path}: expected epochs from 0 to {_MOST_EPOCHS}, got {island.epochs}"
        )
    children = []
    for epoch in range(1, island.epochs + 1):
        attempts = island.attempts.get(epoch, ())
        failure = island.failures.get(epoch, (None, NOT_IN_SOURCE))
        if epoch in by_epoch:
            children.append([_child(by_epoch[epoch], attempts, island)])
        else:
            children.append([failed(epoch, 0, *failure, attempts=attempts)])
    lost = [
        "seeds and times of calls",
        f"island {island.number} of one run: independent of the others before migration only",
        *island.notes,
    ]
    if (doubled := len(own) - len(by_epoch)) > 0:
        lost.append(f"{doubled} further programs of an epoch")
    if island.again[0]:
        lost.append(
            f"{island.again[0]} epochs that a later session made again, with {island.again[1]:.0f} "
            "completion tokens"
        )
    first = by_epoch.get(0)
    return assemble(
        path,
        NAME,
        name=name,
        model=named(island.models),
        children=children,
        initial=None if first is None else _evaluation(first, None),
        program=first.code if first and isinstance(first.code, str) else None,
        lost=lost,
        sampling=island.sampling,
        seconds=[island.seconds.get(epoch) for epoch in range(1, island.epochs + 1)],
        mixed=island.mixed,
    )


def _child(program: _Program, attempts: tuple[Attempt, ...], island: _Island) -> Child:
    parent = island.programs.get(program.parent_id or "")
    own = parent is not None and parent.island_found == island.number
    return born(
        program.iteration_found,
        _evaluation(program, island.failures.get(program.iteration_found)),
        attempts=attempts,
        parent=(parent.iteration_found, 0) if parent is not None and own else None,
        island=program.island_found,
        reply=program.model_msg,
        program=program.code,
    )


def _evaluation(program: _Program, logged: Failure | None) -> Evaluation:
    metrics = program.eval_metrics or {}
    failure: Failure | None = None
    if program.returncode != 0:
        said = str(program.error) if program.error else logged[1] if logged else ""
        status: Status | None = told(said) if said else None
        failure = (status or "error", (said or "the source does not say why")[-4000:])
    return judged(
        program.fitness,
        failure=failure,
        metrics=metrics,
        seconds=finite(metrics.get("eval_time")),
    )
