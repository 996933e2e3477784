"""Play a log again: with itself as the model (rerun), or under other limits (rescore)."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from evo import parallel
from evo.logs.caps import held, with_seconds
from evo.logs.constructions import keep_value
from evo.logs.inputs import at_least, limits_of
from evo.logs.journal import LogError, Writer, check_free, encode_line, write_new
from evo.logs.log import Log, read_log
from evo.logs.maintenance import lines_through, require_whole
from evo.logs.records import Child, Evaluation, Header, Initial, Limits, Line
from evo.logs.types import as_path
from evo.models.critics import known_of
from evo.models.recorded import RecordedModel
from evo.runs.arm import Arm
from evo.runs.configuration import software_versions
from evo.runs.evaluate import DrawEvaluator, fixed_limit, plain
from evo.runs.judge import by_harness, draw_of, has_harness
from evo.runs.loop import fitness_of
from evo.runs.resources import open_resources
from evo.runs.settings import Settings
from evo.sandbox import Evaluator
from evo.searches.base import Search, choose
from evo.searches.registry import known_search, search_of
from evo.tasks.task import Task, with_function
from evo.values import UnknownValue

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Difference:
    """A child that came out otherwise when its log was played again; generation 0 is the initial.

    It is unstable if a further evaluation differed from both: it depends on the clock or on chance.
    """

    generation: int
    index: int
    logged: Evaluation
    again: Evaluation
    unstable: bool

    def __str__(self) -> str:
        kind = "unstable" if self.unstable else "differs"
        before, now = (
            each.status if each.fitness is None else f"{each.status} {each.fitness!r}"
            for each in (self.logged, self.again)
        )
        where = f"generation {self.generation}, child {self.index}"
        return f"{where}: {kind}: {before} in the log, {now} now"


@dataclass(frozen=True)
class Rerun:
    """Differences found by playing a log again; generation 0 counts as an evaluation.

    Prompts that are not the logged ones go by generation and index, which is N for advice; where a
    generation would be planned otherwise now, the log's plan was kept. Plans are not checked where
    the search is not known here.
    """

    log: Log
    evaluations: int
    differences: tuple[Difference, ...]
    differing_prompts: tuple[tuple[int, int], ...]
    differing_plans: tuple[int, ...] = ()
    plans_checked: bool = True

    @property
    def same(self) -> bool:
        """Whether everything was reproduced."""
        return not (self.differences or self.differing_prompts or self.differing_plans)

    @property
    def other_versions(self) -> dict[str, tuple[str, str]]:
        """Software whose version has changed: by name, the version in the log and the one here."""
        here, there = software_versions(), self.log.header.versions
        found = {name: (there[name], here[name]) for name in here if name in there}
        return {name: both for name, both in found.items() if both[0] != both[1]}

    @property
    def _unchecked(self) -> str:
        """What was not checked, as the end of a sentence."""
        search = self.log.header.search
        if self.plans_checked or search is None:
            return ""
        return f"; whether {search.name!r}, not known here, plans the same was not checked"

    def __str__(self) -> str:
        if self.same:
            return f"{self.log.path}: {self.evaluations} evaluations, all the same{self._unchecked}"
        lines = [str(difference) for difference in self.differences]
        if self.differing_prompts:
            lines.append(f"{len(self.differing_prompts)} prompts differ from the logged ones")
        if self.differing_plans:
            lines.append(f"{len(self.differing_plans)} generations would be planned otherwise now")
        if self.other_versions:
            others = [
                f"{n} {old} in the log, {new} now" for n, (old, new) in self.other_versions.items()
            ]
            lines.append(f"other software may run programs differently: {'; '.join(others)}")
        return f"{self.log.path}: {self.evaluations} evaluations\n  " + "\n  ".join(lines)

    __repr__ = __str__


def rerun(
    path: str | os.PathLike[str],
    *,
    search: Search | None = None,
    workers: int | None = None,
    log: str | os.PathLike[str] | None = None,
) -> Rerun:
    """Plays a log's complete generations through the same code, with the log as the model.

    Args:
        path: A log with replies.
        search: The log's search, if it is one of your own that `evo.SEARCHES` does not name.
        workers: Evaluations at a time; None: one per core.
        log: Where to keep the log of the rerun; None: nowhere.

    Raises:
        LogError: The log is damaged or compact, or holds no plans though its search is unknown.
        ValueError: The log was made by another search.

    Example:
        >>> evo.rerun(path).same
        True
    """
    logged = _read_texts(path)
    if logged.header.source != "evo":
        raise LogError(f"{path}: written by {logged.header.source}; only runs of evo are played")
    header = logged.header if search is None else known_search(logged.header, search)
    model = RecordedModel(
        logged.children, model=logged.header.model, sampling=logged.header.sampling,
        width=logged.header.children,
        advice={each.generation: each for each in logged.advice_calls if not each.again},
    )  # fmt: skip
    settings = Settings(max_concurrent=64, workers=workers, progress=False)
    with tempfile.TemporaryDirectory(prefix="evo-rerun-") as folder:
        target = as_path("log", log) if log is not None else Path(folder) / "rerun.jsonl"
        with open_resources(settings, only=model) as resources:
            fork = logged.header.fork
            ours = fork is None or all(each.header.source == "evo" for each in fork.segments)
            # What a fork of an imported run inherits cannot be played again.
            taken = [] if ours or fork is None else lines_through(logged, fork.at, logged.children)
            first = taken or _asked(logged)
            with Writer.create(target, logged.header, *first) as writer:
                arm = Arm(writer, header, resources)
                arm.play(logged)
                arm.begin(read_log(target) if taken else None)
                while arm.generation < len(logged.generations):
                    arm.advance()
            again = read_log(target)
            differences = _compare(logged, again, arm.draws)
    done = len(logged.generations)
    return Rerun(
        log=logged,
        evaluations=1 + done * logged.header.children,
        differences=tuple(differences),
        differing_prompts=tuple(sorted(model.differing)),
        differing_plans=tuple(arm.planner.differing),
        plans_checked=_is_known(header),
    )


def _is_known(header: Header) -> bool:
    """Whether the search of a run is known here."""
    try:
        search_of(header.search)
    except UnknownValue:
        return False
    return True


def _asked(log: Log) -> list[Line]:
    """Returns the calls of a log that stand in lines of their own and are not asked for again."""
    ended = [call for call in log.advice_calls if call.again]
    beside = [*log.instance_calls, *log.critic_calls, *log.embedding_calls]
    return [*beside, *log.replies.values(), *ended]


def _read_texts(path: str | os.PathLike[str]) -> Log:
    """Reads a log whose programs can be evaluated again."""
    log = read_log(path)
    if log.header.compact:
        raise LogError(f"{log.path}: a compact log holds no programs to evaluate again")
    if not log.header.task.evaluator_file and log.header.task.score != "critic":
        raise LogError(
            f"{log.path}: imported without its task: `replay import {log.header.source.lower()} "
            "PATH --full --task FOLDER` makes a log that can be evaluated again"
        )
    require_whole(log)
    if log.initial is None:
        raise LogError(f"{log.path}: holds no evaluation yet; `evo resume` continues it")
    return log


def equal(one: Evaluation, other: Evaluation) -> bool:
    """Returns whether two evaluations agree in status, and in fitness to 1e-9."""
    if one.status != other.status:
        return False
    if one.fitness is None or other.fitness is None:
        return one.fitness is other.fitness
    return abs(one.fitness - other.fitness) <= TOLERANCE


def _compare(logged: Log, again: Log, draws: DrawEvaluator) -> list[Difference]:
    """Compares two logs of one run; a program that differs is evaluated once more."""
    assert logged.initial is not None
    assert again.initial is not None
    task, last = logged.header.task, len(logged.generations)
    before, now = (
        {(o.generation, o.index): o.evaluation for o in log.outcomes} for log in (logged, again)
    )
    before = {(0, 0): logged.initial.evaluation, **before}
    now[0, 0] = again.initial.evaluation
    differences = []
    for place, was in before.items():
        if place[0] > last or equal(was, now[place]):
            continue
        program = again.child(*place).program if place[0] else task.files[task.program_file]
        unstable = program is not None and not equal(now[place], draws.mean(program))
        differences.append(Difference(*place, was, now[place], unstable))
    return differences


def rescore(
    path: str | os.PathLike[str],
    *,
    metric: str | None = None,
    limits: Limits | Mapping[str, object] | None = None,
    evaluation_timeout: float | Literal["auto"] | None = None,
    draws: int | None = None,
    all_stages: bool = False,
    workers: int | None = None,
    task: Task | None = None,
    log: str | os.PathLike[str] | None = None,
) -> Log:
    """Evaluates a log's programs again and writes a new log with what comes out.

    The lineage stays as it was searched: each generation states the best of the new fitnesses.

    Args:
        path: A log with programs.
        metric: Take this metric as the fitness, for instance `strict_fitness`; None: the fitness.
        limits: Limits of an evaluation, or a dict of those that differ from the log's; None: the
            log's, with the time limit that the run fixed, if it did.
        evaluation_timeout: Seconds; replaces that limit alone. With "auto", here as among the
            limits, it is fixed anew by the initial program.
        draws: Draws whose mean is a program's fitness; None: the log's.
        all_stages: Whether programs that a stage refused are evaluated in full, too.
        workers: Evaluations at a time; None: one per core.
        task: The task of the log, if its evaluator is a function of this process.
        log: Path of the new log; None: beside the old one, named `.rescored.jsonl`.

    A log at the new path that an equal call has written stays as it is and is returned.

    Raises:
        LogError: The log is damaged or compact, or the new path holds anything else.
        ValueError: No program has the metric.

    Example:
        >>> strict = evo.rescore(path, metric="strict_fitness", log=new())
        >>> strict.header.source
        'evo rescore by strict_fitness'
    """
    logged = _read_texts(path)
    header = logged.header
    anew = limits is not None or evaluation_timeout is not None
    limits = header.limits if limits is None else limits_of(limits, header.limits)
    limits = with_seconds(limits, evaluation_timeout)
    stem = logged.path.name.removesuffix(".gz").removesuffix(".jsonl")
    target = logged.path.with_name(f"{stem}.rescored.jsonl") if log is None else as_path("log", log)
    what = f" by {metric}" if metric else ""
    draws = header.draws if draws is None else at_least("draws", draws, 1)
    if header.task.asks_model and draws > 1:
        raise ValueError("draws: a text's evaluation makes calls and has one draw")
    header = msgspec.structs.replace(
        header, limits=limits, draws=draws, confirm=0, source=f"evo rescore{what}",
        task=with_function(header.task, task),
    )  # fmt: skip
    before = _rescored_before(target, header)
    fixed = None if anew or logged.initial is None else logged.initial.limit
    lines = evaluated_again(
        logged, header, metric=metric, workers=workers, all_stages=all_stages, fixed=fixed
    )
    if before is not None:
        _require_equal(before, lines)
        return before
    lines[1:1] = [*_asked(logged), *(call for call in logged.advice_calls if not call.again)]
    write_new(target, b"".join(encode_line(line) for line in lines))
    return read_log(target)


def _rescored_before(target: Path, header: Header) -> Log | None:
    """Returns the log of an equal rescore at a path; LogError if anything else is there."""
    if target.is_file():
        with contextlib.suppress(LogError):
            there = read_log(target)
            if encode_line(there.header) == encode_line(header):
                return there
    check_free(target, finished=True)
    return None


def _require_equal(there: Log, lines: Sequence[Line]) -> None:
    """Raises LogError where a log has other evaluations than lines that would be written to it."""
    was = [there.initial, *there.children]
    now = [line for line in lines if isinstance(line, Initial | Child)]
    if len(was) != len(now) or not all(
        one is not None and equal(one.evaluation, other.evaluation)
        for one, other in zip(was, now, strict=True)
    ):
        raise LogError(
            f"{there.path}: exists already and differs from what would be written; choose another "
            "path or remove it"
        )


def evaluated_again(
    logged: Log,
    header: Header,
    *,
    metric: str | None = None,
    workers: int | None,
    all_stages: bool = False,
    fixed: float | None = None,
) -> list[Line]:
    """Returns the lines of a log with its programs evaluated under a header, or by a metric.

    Args:
        logged: The log.
        header: The configuration under which they are evaluated.
        metric: See `rescore`, as for the next two.
        workers: Evaluations at a time.
        all_stages: Whether refused programs are evaluated in full.
        fixed: The time limit that a run fixed; None: where there is to be one, the initial
            program's evaluation fixes it.
    """
    first = header.task.files[header.task.program_file]

    def again(evaluation: Evaluation) -> bool:
        return evaluation.status != "partial" or (all_stages and bool(evaluation.stages))

    whole = [child for child in logged.children if child.program and again(child.evaluation)]
    programs = list(dict.fromkeys([first, *(child.program or "" for child in whole)]))
    model = RecordedModel((), model=header.model, sampling=header.sampling)
    settings = Settings(max_concurrent=8, workers=workers)
    with open_resources(settings, only=model) as resources:
        draw, _ = draw_of(
            header, resources, known=known_of([*logged.instance_calls, *logged.critic_calls])
        )
        if fixed is None and header.limits.auto:
            fixed = fixed_limit(header.limits, DrawEvaluator(header, draw).mean(first))
        under = msgspec.structs.replace(header, limits=header.limits.fixed(fixed))
        draws = DrawEvaluator(under, draw)

        def evaluate(program: str) -> Evaluation:
            found = plain(draws.mean(program))
            if not metric or found.status != "ok":
                return found
            if metric not in found.metrics:
                have = ", ".join(sorted(found.metrics)) or "none"
                raise ValueError(f"metric {metric!r}: the evaluations have {have}")
            return msgspec.structs.replace(found, fitness=found.metrics[metric])

        found = parallel.map(evaluate, programs, max_workers=8, progress=True)
    evaluated = dict(zip(programs, found, strict=True))
    children = [
        msgspec.structs.replace(child, evaluation=now)
        if (now := _evaluated_again(child, evaluated)) and again(child.evaluation)
        else child
        for child in logged.children
    ]
    return _retold(logged, header, Initial(evaluation=evaluated[first], limit=fixed), children)


def _evaluated_again(child: Child, evaluated: Mapping[str, Evaluation]) -> Evaluation | None:
    """The new evaluation of a child; None if it had no program to evaluate."""
    if child.program is None and child.evaluation.status == "ok":  # as some imports have it
        words = "not evaluated again: its program is not in the log"
        return Evaluation(status=None, error=words, seconds=None)
    return evaluated.get(child.program or "")


def _retold(logged: Log, header: Header, initial: Initial, children: Sequence[Child]) -> list[Line]:
    """Returns the lines of a log with the same lineage and other evaluations."""
    lines: list[Line] = [header, initial]
    fitness, place = initial.evaluation.fitness, (0, 0)
    for generation in logged.generations:
        number = generation.generation
        group = [child for child in children if child.generation == number]
        chosen = choose(group, fitness, header.min_improvement, fitness_of)
        if chosen is not None:
            fitness, place = chosen.evaluation.fitness, (number, chosen.index)
        now = {"best_fitness": fitness, "best": place, "improved": chosen is not None}
        plan = [logged.plans[number]] if number in logged.plans else []
        plan += [logged.requests[each.request] for each in group if each.request is not None]
        lines += [*plan, *group, msgspec.structs.replace(generation, **now)]
    return lines


def keep_best_value(path: str | os.PathLike[str]) -> Path:
    """Runs a log's best program, jailed, and keeps its construction beside the log for pictures.

    Returns the file, `NAME.value.json`. LogError: the log is damaged or compact, its best program
    is `ok` no more, or its construction is too large to keep.
    """
    log = _read_texts(path)
    best, header = log.best, log.header
    assert best.program is not None
    with contextlib.closing(Evaluator(1)) as sandbox:
        run = functools.partial(sandbox.evaluate, keep_value=True)
        draw = by_harness(run) if has_harness(header.task) else run
        found = draw(header.task, best.program, held(log.limits, str(path)))
    if found.status != "ok" or found.value is None:
        raise LogError(
            f"{path}: its best program gives {found.status!r} and no construction to keep"
            f"{': ' + found.error if found.error else ''}"
        )
    return keep_value(log.path, best.program, found.value)
