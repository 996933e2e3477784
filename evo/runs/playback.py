"""Play a log again: with itself as the model (rerun), or under other limits (rescore)."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from evo.caps import held, with_seconds
from evo.configuration import Settings, at_least
from evo.critics import Scorer
from evo.journal import LogError, Writer, check_free, encode_line, write_new
from evo.llm.recorded import RecordedModel
from evo.log import Log, keep_value, read_log
from evo.records import Child, Evaluation, Generation, Header, Initial, Limits, Line, Made
from evo.runs.arm import Arm, choose_child
from evo.runs.evaluations import Draws, Evaluates
from evo.runs.instances import InstanceEvaluator
from evo.runs.noise import DrawnEvaluator
from evo.runs.resources import open_resources
from evo.sandbox import Evaluator
from evo.sandbox.cluster import open_evaluator
from evo.upkeep import lines_through, require_whole

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Difference:
    """A child that came out otherwise when its log was played again.

    Attributes:
        generation: From 0, the initial program.
        index: From 0.
        logged: The evaluation in the log.
        again: The evaluation now.
        unstable: A further evaluation differed from both: it depends on the clock or on chance.
    """

    generation: int
    index: int
    logged: Evaluation
    again: Evaluation
    unstable: bool

    def __str__(self) -> str:
        kind = "unstable" if self.unstable else "differs"
        return (
            f"generation {self.generation}, child {self.index}: {kind}: "
            f"{_describe(self.logged)} in the log, {_describe(self.again)} now"
        )


def _describe(evaluation: Evaluation) -> str:
    fitness = "" if evaluation.fitness is None else f" {evaluation.fitness!r}"
    return f"{evaluation.status}{fitness}"


@dataclass(frozen=True)
class Rerun:
    """What playing a log again found.

    Attributes:
        log: The log that was played.
        evaluations: Number of evaluations compared, the initial program's included.
        differences: Those that came out otherwise.
        differing_prompts: (generation, index) of children whose prompt is not the logged one.
        differing_plans: Generations that their search plans otherwise now; the log's plan was kept.
    """

    log: Log
    evaluations: int
    differences: tuple[Difference, ...]
    differing_prompts: tuple[tuple[int, int], ...]
    differing_plans: tuple[int, ...] = ()

    @property
    def same(self) -> bool:
        """Whether everything was reproduced."""
        return not (self.differences or self.differing_prompts or self.differing_plans)

    def __str__(self) -> str:
        if self.same:
            return f"{self.log.path}: {self.evaluations} evaluations, all the same"
        lines = [str(difference) for difference in self.differences]
        if self.differing_prompts:
            lines.append(f"{len(self.differing_prompts)} prompts differ from the logged ones")
        if self.differing_plans:
            lines.append(f"{len(self.differing_plans)} generations would be planned otherwise now")
        return f"{self.log.path}: {self.evaluations} evaluations\n  " + "\n  ".join(lines)


def rerun(
    path: str | os.PathLike[str],
    *,
    workers: int | None = None,
    log: str | os.PathLike[str] | None = None,
) -> Rerun:
    """Plays a log's complete generations through the same code, with the log as the model.

    Args:
        path: A log with replies.
        workers: Evaluations at a time; None: one per core.
        log: Where to keep the log of the rerun; None: nowhere.

    Raises:
        LogError: The log is damaged or compact, or holds no plans though its search is unknown.
    """
    logged = read_log(path)
    _require_texts(logged)
    if logged.header.source != "evo":
        raise LogError(f"{path}: written by {logged.header.source}; only runs of evo are played")
    if logged.initial is None:
        raise LogError(f"{path}: holds no evaluation yet; `evo resume` continues it")
    model = RecordedModel(
        logged.children, model=logged.header.model, sampling=logged.header.sampling
    )
    settings = Settings(max_concurrent=64, workers=workers, progress=False)
    with tempfile.TemporaryDirectory(prefix="evo-rerun-") as folder:
        target = Path(log) if log is not None else Path(folder) / "rerun.jsonl"
        with open_resources(settings, only=model) as resources:
            taken = _not_ours(logged)
            first = taken or _asked(logged)
            with Writer.create(target, logged.header, *first) as writer:
                arm = Arm(writer, logged.header, resources)
                arm.play(logged)
                arm.begin(read_log(target) if taken else None)
                while arm.generation < len(logged.generations):
                    arm.advance()
            again = read_log(target)
            differences = _compare(logged, again, arm.maker.evaluator)
    done = len(logged.generations)
    return Rerun(
        log=logged,
        evaluations=1 + done * logged.header.children,
        differences=tuple(differences),
        differing_prompts=tuple(sorted(model.differing)),
        differing_plans=tuple(arm.planner.differing),
    )


def _not_ours(logged: Log) -> list[Made]:
    """What a fork of an imported run inherits: it cannot be played again."""
    fork = logged.header.fork
    if fork is None or all(each.header.source == "evo" for each in fork.segments):
        return []
    return lines_through(logged, fork.at, logged.children)


def _asked(log: Log) -> list[Line]:
    """Returns the calls of a log that stand in lines of their own."""
    return [*log.instance_calls, *log.critic_calls, *log.replies.values()]


def _require_texts(log: Log) -> None:
    if log.header.compact:
        raise LogError(f"{log.path}: a compact log holds no programs to evaluate again")
    if not log.header.task.evaluator_file and log.header.task.score != "critic":
        raise LogError(
            f"{log.path}: imported without its task: `replay import {log.header.source.lower()} "
            "PATH --full --task FOLDER` makes a log that can be evaluated again"
        )
    require_whole(log)


def equal(one: Evaluation, other: Evaluation) -> bool:
    """Returns whether two evaluations agree in status, and in fitness to 1e-9."""
    if one.status != other.status:
        return False
    if one.fitness is None or other.fitness is None:
        return one.fitness is other.fitness
    return abs(one.fitness - other.fitness) <= TOLERANCE


def _compare(logged: Log, again: Log, evaluator: Evaluates) -> list[Difference]:
    """Compares two logs of one run; a program that differs is evaluated once more."""
    assert logged.initial is not None
    assert again.initial is not None
    last = len(logged.generations)
    pairs = [(0, 0, logged.initial.evaluation, again.initial.evaluation)]
    now = {(o.generation, o.index): o.evaluation for o in again.outcomes}
    pairs += [
        (o.generation, o.index, o.evaluation, now[o.generation, o.index])
        for o in logged.outcomes
        if o.generation <= last
    ]
    task, differences = logged.header.task, []
    for generation, index, before, after in pairs:
        if equal(before, after):
            continue
        unstable = False
        program = (
            again.child(generation, index).program if generation else task.files[task.program_file]
        )
        if program is not None and after.status != "no_program":
            third = evaluator.evaluate(task, program, logged.header.limits)
            unstable = not equal(after, third)
        differences.append(Difference(generation, index, before, after, unstable))
    return differences


def rescore(
    path: str | os.PathLike[str],
    *,
    metric: str | None = None,
    limits: Limits | None = None,
    evaluation_timeout: float | None = None,
    draws: int | None = None,
    workers: int | None = None,
    log: str | os.PathLike[str] | None = None,
) -> Log:
    """Evaluates a log's programs again and writes a new log with what comes out.

    The lineage stays as it was searched: each generation states the best of the new fitnesses.

    Args:
        path: A log with programs.
        metric: Take this metric as the fitness, for instance `strict_fitness`; None: the fitness.
        limits: Limits of an evaluation; None: the log's.
        evaluation_timeout: Seconds; replaces that limit alone.
        draws: Draws whose mean is a program's fitness; None: the log's.
        workers: Evaluations at a time; None: one per core.
        log: Path of the new log; None: beside the old one, named `.rescored.jsonl`.

    Raises:
        LogError: The log is damaged or compact, or the new path exists.
        ValueError: No program has the metric.
    """
    logged = read_log(path)
    _require_texts(logged)
    if logged.initial is None:
        raise LogError(f"{path}: holds no evaluation yet; `evo resume` continues it")
    header = logged.header
    limits = with_seconds(limits or header.limits, evaluation_timeout)
    target = Path(log) if log is not None else _rescored_path(logged.path)
    check_free(target, finished=True)
    what = f" by {metric}" if metric else ""
    draws = header.draws if draws is None else at_least("draws", draws, 1)
    if header.task.asks_model and draws > 1:
        raise ValueError("draws: a text's evaluation makes calls and has one draw")
    header = msgspec.structs.replace(
        header, limits=limits, draws=draws, confirm=0, source=f"evo rescore{what}"
    )
    lines = evaluated_again(logged, header, metric=metric, workers=workers)
    lines[1:1] = _asked(logged)
    write_new(target, b"".join(encode_line(line) for line in lines))
    return read_log(target)


def evaluated_again(
    logged: Log, header: Header, *, metric: str | None = None, workers: int | None = None
) -> list[Line]:
    """Returns the lines of a log with its programs evaluated as a header says, or by a metric."""
    first = header.task.files[header.task.program_file]
    whole = [c for c in logged.children if c.program and c.evaluation.status != "partial"]
    programs = [first, *(child.program for child in whole if child.program)]
    with contextlib.closing(open_evaluator(Settings(workers=workers).workers)) as sandbox:
        evaluator = DrawnEvaluator(header, _player(logged, header, sandbox))
        evaluated = _evaluate_all(evaluator, header, list(dict.fromkeys(programs)))
    if metric:
        evaluated = {p: _with_metric(e, metric) for p, e in evaluated.items()}
    children = [
        msgspec.structs.replace(child, evaluation=evaluated[child.program])
        if child.program in evaluated and child.evaluation.status != "partial"
        else child
        for child in logged.children
    ]
    return _retold(logged, header, Initial(evaluation=evaluated[first]), children)


def _rescored_path(path: Path) -> Path:
    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return path.with_name(f"{name}.rescored.jsonl")


def _player(logged: Log, header: Header, sandbox: Draws) -> Draws:
    """Returns what evaluates a log's programs again, with its replies on instances if there are."""
    if not header.task.instances_file:
        return sandbox
    model = RecordedModel((), model=header.model, sampling=header.sampling)
    scorer = Scorer(header.critic, model) if header.critic else None
    player = InstanceEvaluator(header, sandbox.evaluate, model, max_concurrent=1, scorer=scorer)
    player.learn([*logged.instance_calls, *logged.critic_calls])
    return player


def _evaluate_all(
    evaluator: Evaluates, header: Header, programs: Sequence[str]
) -> dict[str, Evaluation]:
    from joblib import Parallel, delayed
    from tqdm.auto import tqdm

    evaluate = functools.partial(evaluator.evaluate, header.task, limits=header.limits)
    results = Parallel(n_jobs=8, backend="threading", batch_size=1, return_as="generator")(
        delayed(evaluate)(program) for program in programs
    )
    shown = tqdm(results, total=len(programs), desc="rescore", unit="program", leave=False)
    plain = (msgspec.structs.replace(each, value=None) for each in shown)
    return dict(zip(programs, plain, strict=True))


def _with_metric(evaluation: Evaluation, metric: str) -> Evaluation:
    """Returns the evaluation with one of its metrics as the fitness."""
    if evaluation.status != "ok":
        return evaluation
    if metric not in evaluation.metrics:
        have = ", ".join(sorted(evaluation.metrics)) or "none"
        raise ValueError(f"metric {metric!r}: the evaluations have {have}")
    return msgspec.structs.replace(evaluation, fitness=evaluation.metrics[metric])


def _retold(logged: Log, header: Header, initial: Initial, children: Sequence[Child]) -> list[Line]:
    """Returns the lines of a log with the same lineage and other evaluations."""
    lines: list[Line] = [header, initial]
    fitness, place = initial.evaluation.fitness, (0, 0)
    members: dict[int, list[Child]] = {}
    for child in children:
        members.setdefault(child.generation, []).append(child)
    for generation in logged.generations:
        group = members[generation.generation]
        lines += [logged.plans[g] for g in (generation.generation,) if g in logged.plans]
        chosen = choose_child(group, fitness, header.min_improvement)
        if chosen is not None:
            fitness = chosen.evaluation.fitness
            place = (chosen.generation, chosen.index)
        lines += group
        lines.append(
            Generation(
                generation=generation.generation,
                best_fitness=fitness,
                best=place,
                improved=chosen is not None,
                seconds=generation.seconds,
                repeats=generation.repeats,
            )
        )
    return lines


def keep_best_value(path: str | os.PathLike[str]) -> Path:
    """Runs a log's best program, jailed, and keeps its construction beside the log for pictures.

    Args:
        path: A log with programs; those of this version hold the construction already.

    Returns:
        The file, `NAME.value.json`.

    Raises:
        LogError: The log is damaged or compact, its best program is `ok` no more, or its
            construction is too large to keep.
    """
    log = read_log(path)
    _require_texts(log)
    best, header = log.best, log.header
    assert best.program is not None
    with contextlib.closing(Evaluator(1)) as sandbox:
        found = sandbox.evaluate(
            header.task, best.program, held(header.limits, str(path)), keep_value=True
        )
    if found.status != "ok" or found.value is None:
        raise LogError(
            f"{path}: its best program gives {found.status!r} and no construction to keep"
            f"{': ' + found.error if found.error else ''}"
        )
    return keep_value(log.path, best.program, found.value)
