"""Logs of CodeEvolve: each island's last checkpoint, an untrusted pickle, and its text log.

One epoch is one call with one child, so N = 1 and a generation is an epoch. Each island becomes a
run of what that island itself found: programs that migrated to it are left out. Islands of one
configuration are islands of one run rather than seeds: from the first generation that can descend
from a migrant on (`mixed` in the header) they are no independent runs. A session that goes on from
an epoch makes the later ones again; what it replaced was paid, too, and is counted in `lost`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec

from evo.logs.records import Attempt, Child
from evo.logs.types import Fields, JsonObject
from replay.importers import foreign, reading
from replay.importers.foreign import Failure, Imported
from replay.importers.pickles import Stub, load
from replay.importers.reading import LogFormatError

_CHECKPOINT = re.compile(r"^ckpt_(\d{1,9})\.pkl$")
_LOGS = ("results.log", "results.log.gz")

_ENTRY = re.compile(
    r"^\[island (\d{1,9})\] (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) \| \w+ +\| \d+ \| ", re.MULTILINE
)
_SESSION = re.compile(r"Starting from epoch (\d{1,9}) with evolve_config = ")
_EPOCH = re.compile(r"=+ EPOCH (\d{1,9}) =+")
_TOKENS = re.compile(r"using (\d{1,12}) prompt tokens and (\d{1,12}) completion tokens")
_NUMBER = r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_MODEL = re.compile(rf"\(\d+\): \w+\(model_name=([^,()]+),temp=({_NUMBER}),top_p=({_NUMBER})")
_STATED = re.compile(
    r"Program\(id=([^,()]+),fitness=([^,()]+),island_found=(\d{1,9}),iteration_found=(\d{1,9}),"
    r"returncode=(-?\d{1,9}|None),eval_metrics=\{(.*?)\}\)",
    re.DOTALL,
)
_METRIC = re.compile(rf"'([^']*)': ({_NUMBER})")


class _Program(msgspec.Struct):
    id: str
    island_found: int
    iteration_found: int
    returncode: int | None
    fitness: float | None
    parent_id: str | None = None
    inspiration_ids: list[str] | None = None
    error: object = None
    eval_metrics: JsonObject | None = None
    code: object = None
    model_msg: object = None


class _Usage(msgspec.Struct):
    epoch: int
    prompt_tok: float | None = None
    compl_tok: float | None = None
    model_name: str | None = None


class _Error(msgspec.Struct):
    epoch: int
    error_msg: object = None


class _Evolution(msgspec.Struct):
    best_fit_hist: list[float]
    tok_usage: list[_Usage] = []
    errors: list[_Error] = []


@dataclass
class _Island:
    """What is known of an island, most of it by epoch."""

    number: int = 0
    epochs: int = 0
    programs: dict[str, _Program] = field(default_factory=dict)  # by id, migrants included
    failures: dict[int, Failure] = field(default_factory=dict)
    attempts: dict[int, tuple[Attempt, ...]] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    sampling: dict[str, float | None] = field(default_factory=dict)
    again: tuple[int, float] = (0, 0.0)  # epochs made again, and their completion tokens
    mixed: int | None = None  # first epoch that can descend from a migrant
    notes: list[str] = field(default_factory=list)

    @property
    def own(self) -> list[_Program]:
        return [p for p in self.programs.values() if p.island_found == self.number]

    def add_call(self, epoch: int, prompt: object, completion: object) -> None:
        made = foreign.answered(prompt, completion)
        self.attempts[epoch] = self.attempts.get(epoch, ()) + made


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
    folders = (path, path.parent) if path.name == "ckpt" else (path,)
    logs = (folder / name for folder in folders for name in _LOGS)
    return max(found)[1] if found else None, next((log for log in logs if log.is_file()), None)


def read(path: Path) -> list[Imported]:
    """Reads an island: its last checkpoint, its text log, or both in one folder."""
    checkpoint, log = _files(path)
    if path.is_file() and log is None:
        checkpoint = path
    if checkpoint is None and log is None:
        raise LogFormatError(f"{path}: expected ckpt/ckpt_<epoch>.pkl or results.log")
    island = _Island() if log is None else _read_log(log)
    if checkpoint is not None:
        island = _read_checkpoint(checkpoint, island)
    folder = (path if path.is_dir() else path.parent).resolve()
    folder = folder.parent if folder.name == "ckpt" else folder
    return [_imported(island, path, f"{folder.parent.name}_{folder.name}")]


def _read_checkpoint(file: Path, logged: _Island) -> _Island:
    """Reads a checkpoint, with the times and settings of the text log."""
    found = load(file, package="codeevolve")
    if not isinstance(found, dict) or not {"sol_db", "evolve_state"} <= set(found):
        raise LogFormatError(f"{file}: expected a dict with sol_db and evolve_state")
    base = found["sol_db"].attributes if isinstance(found["sol_db"], Stub) else {}
    programs = base.get("programs")
    if not isinstance(programs, dict) or not all(isinstance(p, Stub) for p in programs.values()):
        raise LogFormatError(f"{file}: expected sol_db with a dict of programs")
    evolution = reading.convert(found["evolve_state"], _Evolution, f"{file}: evolve_state")
    stated = [
        reading.convert(program.attributes, _Program, f"{file}: sol_db.programs")
        for program in programs.values()
    ]
    island = _Island(
        number=reading.convert(base.get("id"), int, f"{file}: sol_db.id"),
        programs={program.id: program for program in stated},
        failures={e.epoch: ("no_program", str(e.error_msg)) for e in evolution.errors},
        models={usage.model_name for usage in evolution.tok_usage if usage.model_name},
        seconds=logged.seconds,
        sampling=logged.sampling,
        again=logged.again,
    )
    for usage in evolution.tok_usage:
        island.add_call(usage.epoch, usage.prompt_tok, usage.compl_tok)
    told_of = [p.iteration_found for p in island.own]
    told_of += [*island.failures, *island.attempts]
    island.epochs = max([len(evolution.best_fit_hist), *told_of])
    migrants = {p.id for p in stated if p.island_found != island.number}
    near = (p for p in island.own if migrants & {p.parent_id, *(p.inspiration_ids or ())})
    island.mixed = min((p.iteration_found for p in near), default=None)
    if migrants:
        island.notes.append(f"{len(migrants)} programs that migrated to it")
    return island


def _read_log(file: Path) -> _Island:
    """Reads a text log."""
    text = reading.read_text(file)
    heads = list(_ENTRY.finditer(text))
    if not heads:
        raise LogFormatError(f"{file}: expected lines such as '[island 0] DATE | INFO | PID | ...'")
    island = _Island(number=int(heads[0][1]))
    epoch, began = 0, None
    for head, after in zip(heads, (*heads[1:], None), strict=True):
        message = text[head.end() : after.start() if after else len(text)].strip()
        try:
            at = datetime.strptime(head[2], "%Y-%m-%d %H:%M:%S,%f")
        except ValueError as error:
            raise LogFormatError(f"{file}: {error}") from None
        if match := _SESSION.match(message):
            epoch = int(match[1])
            _drop(island, epoch)
        elif match := _EPOCH.match(message):
            epoch, began = foreign.within(int(match[1]), file, "epochs"), at
            island.epochs = max(island.epochs, epoch)
        else:
            _take_entry(island, epoch, message)
        if epoch and began is not None:
            island.seconds[epoch] = (at - began).total_seconds()
    if island.mixed is not None and island.mixed > island.epochs:
        island.mixed = None
    return island


def _take_entry(island: _Island, epoch: int, message: str) -> None:
    """Takes what an entry reports about its epoch."""
    if match := _TOKENS.search(message):
        island.add_call(epoch, int(match[1]), int(match[2]))
    elif message.startswith("Error with SEARCH/REPLACE"):
        island.failures[epoch] = ("no_program", message)
    elif message.startswith("Error"):
        in_program = message.startswith("Error in evaluating program")
        island.failures[epoch] = (foreign.status_of(message) if in_program else None, message)
    elif message.startswith(("Child solution", "EVOLVE COMPONENTS")):
        _add_stated(island, message)
    elif message.startswith("Migration finished") and island.mixed is None:
        island.mixed = epoch + 1
    if models := _MODEL.findall(message):
        island.models |= {name for name, _, _ in models}
        for k, name in enumerate(("temperature", "top_p"), start=1):
            island.sampling[name] = foreign.common(float(model[k]) for model in models)


def _drop(island: _Island, kept: int) -> None:
    """Drops the epochs after the one from which a session continues, and counts them."""
    gone = range(kept + 1, island.epochs + 1)
    spent = [a.usage or {} for e in gone for a in island.attempts.get(e, ())]
    calls, tokens = island.again
    tokens += sum(usage.get("completion_tokens", 0) for usage in spent)
    island.again = (calls + len(gone), tokens)
    island.programs = {k: p for k, p in island.programs.items() if p.iteration_found <= kept}
    for known in (island.failures, island.attempts, island.seconds):
        for epoch in gone:
            known.pop(epoch, None)
    island.epochs = min(island.epochs, kept)


def _add_stated(island: _Island, message: str) -> None:
    if match := _STATED.search(message):
        key, fitness, found, epoch, code, metrics = match.groups()
        number = foreign.finite(float(fitness)) if re.fullmatch(_NUMBER, fitness) else None
        known: Fields = {name: float(value) for name, value in _METRIC.findall(metrics)}
        # The fitness is printed to eight digits; the metric that it is is printed in full.
        exact = {v for v in known.values() if number is not None and abs(v - number) < 6e-9}
        island.programs[key] = _Program(
            id=key,
            island_found=int(found),
            iteration_found=int(epoch),
            returncode=None if code == "None" else int(code),
            fitness=exact.pop() if len(exact) == 1 else number,
            eval_metrics=dict(known),
        )


def _imported(island: _Island, path: Path, name: str) -> Imported:
    by_epoch = {program.iteration_found: program for program in island.own}
    before = [program for program in island.own if program.iteration_found == 0]
    if before:  # what was made of the initial program at epoch 0 comes behind it
        by_epoch[0] = before[0]
    if island.epochs > foreign.MOST or min([0, *by_epoch]) < 0:
        raise LogFormatError(
            f"{path}: expected epochs from 0 to {foreign.MOST}, got {island.epochs}"
        )
    epochs = range(1, island.epochs + 1)
    lost = [
        "seeds and times of calls",
        f"island {island.number} of one run: independent of the others before migration only",
        *island.notes,
    ]
    if doubled := len(island.own) - len(by_epoch):
        lost.append(f"{doubled} further {'program' if doubled == 1 else 'programs'} of an epoch")
    if calls := island.attempts.get(0):
        spent = sum((each.usage or {}).get("completion_tokens", 0) for each in calls)
        made = "1 call" if len(calls) == 1 else f"{len(calls)} calls"
        lost.append(f"{made} at epoch 0, with {spent:.0f} completion tokens")
    if island.again[0]:
        lost.append(
            f"{island.again[0]} epochs that a later session made again, with {island.again[1]:.0f} "
            "completion tokens"
        )
    return foreign.assemble(
        path,
        "CodeEvolve",
        name=name,
        model=foreign.named(island.models),
        children=[[_child(epoch, by_epoch.get(epoch), island)] for epoch in epochs],
        initial=_child(0, by_epoch[0], island) if 0 in by_epoch else None,
        lost=lost,
        sampling=island.sampling,
        seconds=[island.seconds.get(epoch) for epoch in epochs],
        mixed=island.mixed,
    )


def _child(epoch: int, program: _Program | None, island: _Island) -> Child:
    attempts, why = island.attempts.get(epoch, ()), island.failures.get(epoch)
    if program is None:
        return foreign.failed(epoch, why or (None, foreign.NOT_IN_SOURCE), attempts=attempts)
    failure: Failure | None = None
    if program.returncode != 0:
        message = str(program.error or (why[1] if why else ""))
        # A program that failed without a word may have failed in any way.
        status = foreign.status_of(message) or "error" if message else None
        failure = (status, (message or foreign.NOT_IN_SOURCE)[-4000:])
    metrics = program.eval_metrics or {}
    seconds = foreign.finite(metrics.get("eval_time"))
    parent = island.programs.get(program.parent_id or "")
    own = parent is not None and parent.island_found == island.number
    return foreign.born(
        epoch,
        foreign.judged(program.fitness, failure=failure, metrics=metrics, seconds=seconds),
        attempts=attempts,
        parent=(parent.iteration_found, 0) if parent is not None and own else None,
        island=program.island_found,
        reply=program.model_msg,
        program=program.code,
    )
