"""`evo.select_best`: choices are tried on paired samples until the best of them is known.

Going on after a kill needs no state of its own: the selection is played again from its first
round, and samples are taken from their logs as far as these reach, then from the model.
"""

from __future__ import annotations

import dataclasses
import json
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

import msgspec
import numpy as np

from evo.logs import examples
from evo.logs.inputs import as_named, at_least, switch
from evo.logs.journal import LogError, Writer, open_regular
from evo.logs.types import Fields, JsonObject
from evo.plugins import MistakenType, meant
from evo.policies import Draws
from evo.policies.rewards import default_reward
from evo.runs.budget import check_budget
from evo.runs.concurrency import find_preset
from evo.runs.configuration import settings_of
from evo.runs.handle import Control, Handle, Prepared, in_background, in_foreground, verb
from evo.runs.options import StudyOptions, VariedOptions
from evo.runs.places import Resume
from evo.runs.settings import Settings
from evo.runs.signatures import check_options, lists_options, options_in
from evo.studies.folders import SELECTION, keep_identity, parameters_of, refuse_other
from evo.studies.places import place_of_study
from evo.studies.selection import (
    IntervalKind,
    SelectorClass,
    Terms,
    find_selector,
    neighbours,
    selector_name,
)
from evo.studies.selection.choices import Choices, ChoiceScoring, listed
from evo.studies.selection.race import Selection, Standing, race, rewards_of, selection_of
from evo.studies.selection.samples import ProblemSamples, RowSamples, RunSamples
from evo.studies.study import Study
from evo.studies.sweep.fields import dotted
from evo.tasks.task import Task
from evo.warning import warn

if TYPE_CHECKING:
    from evo.studies.selection.samples import Agent

SEEDS = "40:60"  # by default
_WHAT = "a selection"
LABEL = 60  # characters of a value, which may be a whole text


@lists_options(StudyOptions)
def prepare_selection(
    choices: Sequence[Fields] | Fields,
    *,
    task: str | os.PathLike[str] | Task | None = None,
    evaluate: Agent | None = None,
    data: Sequence[object] | None = None,
    cost_weight: float = 0.0,
    selector: str | SelectorClass = "arm_elimination",
    parameters: Mapping[str, object] | None = None,
    samples: Literal["seeds", "problems"] = "seeds",
    seeds: Iterable[int] | str = SEEDS,
    delta: float = 0.05,
    batch: int | None = None,
    bounds: tuple[float, float] | None = None,
    failure_value: float | None = None,
    interval: IntervalKind = "anytime",
    c: float = 1.0,
    orders: Mapping[str, Sequence[object]] | None = None,
    budget: Mapping[str, float] | None = None,
    seed: int = 0,
    log_dir: str | os.PathLike[str] | None = None,
    resume: Resume = True,
    generations: int | None = None,
    base: Fields | None = None,
    parallel: bool = True,
    **options: Unpack[StudyOptions],
) -> Prepared[Selection]:
    """Finds which choice does best on average, in few samples.

    A sample is one run: the best fitness after its last generation, be that T or where `target` or
    `patience` ends it. Sample i of every configuration has the same seed. Configurations that
    differ in these three alone share their logs. If a task evolves a system prompt on a data set, a
    sample may instead be one problem, and its outcome the score of the reply, which takes far fewer
    calls than a whole run. With `evaluate`, a sample is whatever that makes of a row of `data`.

    All samples of a round are in flight at once; `max_concurrent` limits their calls. Called again
    with the same arguments, a selection goes on where it was killed, or is returned as it ended: no
    logged call is made twice.

    Args:
        choices: Fields of each configuration, such as {"children": 4, "temperature": 0.6}; or a
            space as for `evo.sweep`, whose grid is taken. For problems, `text` is one: what the
            model gets as system prompt (default: the task's initial text), or a Log, for its best
            text. For `evaluate`, its keyword arguments, or values for each, whose product is taken.
        task: Name, alias, folder or Task, where the configurations do not say.
        evaluate: agent(row, **choice) -> score, or (score, cost); a coroutine function will do,
            and a score of None is a failure. What it raises ends the selection, resumably.
        data: Rows for `evaluate`, in an order that `seed` shuffles.
        cost_weight: Amount by which a unit of cost lowers a row's score; bounds apply afterwards.
        selector: Name, or a callable (shape, terms, *, rng) -> selector.
        parameters: Of the selector, such as {"threshold": 0.9} or {"epsilon": 0.01}.
        samples: `seeds`: runs; `problems`: those of the task's data set, which `seed` shuffles.
        seeds: In the order in which they are run; as many as brute force would run.
        delta: Largest probability that the winner is wrong.
        batch: Samples of a choice in a round, at least; None: 1 run, or as many problems or rows
            as the preset has, else 10.
        bounds: Least and largest outcome there is; the closer, the fewer samples. What lies beyond
            is clipped and counted in `clipped`. None: [0, 1], which tasks have to declare, and in
            which most scores of an agent have to lie.
        failure_value: The value of a sample without a fitness or score (default: the lower bound).
        interval: `anytime`, or `compat` for mean +- c * SE, which is wrong far more often.
        c: Number of standard errors, for `compat`.
        orders: Of the values of a field, for `hill_climbing`; otherwise numbers go by size.
        budget: Limits by unit: samples, calls, tokens, flops, dollars, seconds; for `evaluate`
            samples, cost, seconds. Runs come out as if served one after another, sample by sample.
        seed: Seed of the selector; the runs have their own.
        log_dir: Folder of the logs and selection.json (default: that of the same selection in
            logs/local, else a new one there).
        resume: Whether the same selection goes on; False: begin a new one, in a folder that holds
            none.
        generations: T, unless the choices have it (default: 8).
        base: Further fields that all configurations share, such as {"limits": {"seconds": 5}}.
        parallel: False works in order, one call at a time, as `max_concurrent=1` does.
        **options: Listed below.

    Raises:
        ValueError: A mistake in the arguments, or the folder holds another selection.
        LogError: A log is damaged or busy, or the folder holds a selection and none shall go on.
        EndpointDown: The endpoint does not answer; the selection can go on later.

    Example:
        >>> def agent(row, words):
        ...     return float(len(row["text"].split()) >= words)
        >>> rows = [{"text": "one two three"}] * 200
        >>> chosen = evo.select_best(
        ...     {"words": [1, 5]}, evaluate=agent, data=rows, log_dir=new(""), progress=False
        ... )
        >>> chosen.labels[chosen.winner]
        'words=1'

    Example:
        >>> def agent(row, words):
        ...     return float(len(row["text"].split()) >= words)
        >>> rows = [{"text": "one two three"}] * 200
        >>> handle = evo.start_selection(
        ...     {"words": [1, 5]}, evaluate=agent, data=rows, log_dir=new(""), progress=False
        ... )
        >>> handle.wait().end
        'certain'
    """
    check_options(StudyOptions, options, verb=select_best)
    at_once: StudyOptions = {} if switch("parallel", parallel) else {"max_concurrent": 1}
    settings = settings_of({**options, **at_once})
    seed = at_least("seed", seed, 0)
    depth = {} if generations is None else {"generations": generations}
    shared = {
        **depth,
        **dotted(as_named("base", base)),
        **dotted(options_in(VariedOptions, options)),
    }
    found: Choices
    choices, orders = listed(choices), as_named("orders", orders)
    if evaluate is not None or data is not None:
        parts = {"task": task is None, "samples": samples == "seeds", "seeds": seeds is SEEDS}
        _check_alone([*(name for name, left_out in parts.items() if not left_out), *shared])
        found = RowSamples(choices, evaluate, data, cost_weight, seed)
    else:
        found = _of_model(choices, shared, task, samples, seeds, seed)
    limits = _limits_of(budget, found)
    low, high = _bounds_of(found, bounds)
    varied = [_varied(each, found.values) for each in found.values]
    terms = Terms(
        size=len(found.sampled), delta=delta, low=float(low), high=float(high), interval=interval,
        batch=_batch(settings, found) if batch is None else at_least("batch", batch, 1), c=c,
        neighbours=neighbours(varied, orders),
    )  # fmt: skip
    rewards_of(np.zeros(0), terms, failure_value)  # a mistake in it leaves no folder behind
    build = find_selector(selector, **as_named("parameters", parameters))
    name = selector_name(build)
    fields = {
        "selector": name, "parameters": parameters_of(build), "seed": seed,
        "failure_value": failure_value, "orders": {k: list(v) for k, v in orders.items()},
    }  # fmt: skip
    identity = _Identity(fields, terms, found, varied, batch_given=batch is not None)
    folder = place_of_study(
        f"{found.name}-select-{name}", log_dir, SELECTION, identity.is_in,
        resume=resume, progress=settings.progress,
    )  # fmt: skip
    identity.keep_in(folder)
    terms = identity.terms_in(folder)
    most = limits.pop("samples", None)
    scoring = ChoiceScoring(terms, failure_value, stated=bounds is not None or found.kind != "rows")

    def work(control: Control) -> Selection:
        rounds: list[Standing] = []
        marker = folder / SELECTION
        with Study(marker, settings, control, limits) as study:
            study.claim(Writer.claim(marker))
            found.begin(study, scoring, most)
            races = race(build((1, len(varied)), terms, rng=Draws(seed, 1)), found, rounds.append)
            made = selection_of(
                races, rounds, found.outcomes, terms, selector=name, path=folder,
                configurations=tuple(found.values), logs=found.logs(races.standing.count[0]),
                labels=tuple(map(labelled, varied)),
            )  # fmt: skip
        _warn_of_failures(made, rows=found.kind == "rows")
        stopped = control.stopping.is_set() and made.end == "budget"
        return dataclasses.replace(made, end="stopped") if stopped else made

    return Prepared([folder], work, many=True, runs=found.runs)


select_best = verb("select_best", prepare_selection, in_foreground, Selection)
start_selection = verb("start_selection", prepare_selection, in_background, Handle[Selection])


def _warn_of_failures(made: Selection, *, rows: bool) -> None:
    """Warns where no sample has an outcome, so that the winner is the first of equals."""
    count = int(made.samples.sum())
    if count and int(made.failures.sum()) == count:
        why = (
            "evaluate returned no score, see whether it ends in `return`"
            if rows
            else "none has a fitness, `evo show LOG` says why"
        )
        warn(
            f"all {count} samples failed, so that nothing tells the choices apart: {why}",
        )


def _of_model(
    choices: Sequence[Fields] | Fields,
    shared: Fields,
    task: str | os.PathLike[str] | Task | None,
    samples: str,
    seeds: Iterable[int] | str,
    seed: int,
) -> ProblemSamples | RunSamples:
    """Returns choices whose samples call a model: runs, or problems of a data set."""
    if samples == "problems":
        return ProblemSamples(choices, shared, task, seed)
    if samples == "seeds":
        return RunSamples(choices, shared, task, seeds)
    raise ValueError(f"samples: expected 'seeds' or 'problems', got {samples!r}")


def _check_alone(others: Sequence[str]) -> None:
    """Raises MistakenType where others than choices are given beside rows."""
    if others:
        raise MistakenType(f"{others[0]}: evaluate and data take choices alone")


def _limits_of(budget: Mapping[str, float] | None, found: Choices) -> dict[str, float]:
    """Returns a budget, all of whose units must be those of the samples."""
    units = ("samples", *found.units)
    if wrong := [unit for unit in as_named("budget", budget) if unit not in units]:
        raise ValueError(
            f"budget: expected a unit out of {', '.join(units)}, "
            f"got {wrong[0]!r}{meant(wrong[0], units)}"
        )
    return check_budget(budget, found.headers, more=("samples", "cost"))


def _varied(values: Fields, among: Sequence[Fields]) -> dict[str, object]:
    """Returns the fields in which configurations differ; all of a lone one."""
    names = dict.fromkeys(name for each in among for name in each)
    differing = [n for n in names if any(each.get(n) != among[0].get(n) for each in among)]
    return {n: values.get(n) for n in differing} or dict(values)


def labelled(values: Fields) -> str:
    """Returns the name of a configuration, such as `children=4, temperature=0.6`."""
    shown = {k: textwrap.shorten(str(_plain(v)), LABEL) for k, v in values.items() if v is not None}
    return ", ".join(f"{name}={value}" for name, value in shown.items()) or "default"


def _plain(value: object) -> object:
    """Returns a value as JSON and labels hold it."""
    if isinstance(value, msgspec.Struct):
        return getattr(value, "name", str(value))
    return value.item() if hasattr(value, "item") else value


def _bounds_of(found: Choices, bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Returns the bounds that were given, else the scale that tasks declare, else [0, 1].

    ValueError: scores of a data set, or fitness, may be any numbers.
    """
    if bounds is not None:
        if np.shape(bounds) != (2,):
            raise MistakenType(
                "bounds: expected (low, high), the least and the largest outcome there is, got "
                f"{bounds!r:.80}"
            )
        return bounds
    for task in (header.task for header in found.headers):
        any_fitness = found.kind == "seeds" and default_reward(task) != "best_fitness"
        if any_fitness or (found.kind == "problems" and task.scores == "any"):
            raise ValueError(
                f"bounds: the task {task.name!r} declares no scale; give bounds=(low, high) "
                '(--low, --high), the least and the largest fitness there is, or scale="unit" to '
                "evo.task, in a folder to its task.toml"
            )
    return 0.0, 1.0


def _batch(settings: Settings, found: Choices) -> int:
    """Returns the batch of a new selection."""
    usual = find_preset(settings.preset or "conservative").problems_per_batch
    return 1 if found.kind == "seeds" else usual


def _read(path: Path) -> JsonObject:
    try:
        with open_regular(path) as file:
            return msgspec.json.decode(file.read(), type=JsonObject)
    except ValueError as error:
        raise LogError(f"{path}: not a selection: {error}; {examples.SELECTION}") from None


@dataclasses.dataclass(frozen=True)
class _Identity:
    """What identifies a selection, as selection.json holds it."""

    fields: Mapping[str, object]
    terms: Terms
    found: Choices
    varied: Sequence[Fields]
    batch_given: bool

    def terms_in(self, folder: Path) -> Terms:
        """Returns the terms with the batch of a folder's selection, unless one was given."""
        if self.batch_given or not (folder / SELECTION).exists():
            return self.terms
        batch = _read(folder / SELECTION).get("batch", 1)
        return dataclasses.replace(self.terms, batch=at_least("batch", batch, 1))

    def text(self, folder: Path) -> str:
        """Returns the text of selection.json in a folder."""
        terms, found = vars(self.terms_in(folder)), self.found
        held = {k: v for k, v in terms.items() if k not in ("neighbours", "low", "high")}
        plain = [{key: _plain(value) for key, value in mine.items()} for mine in self.varied]
        choices = [{"id": id_, **mine} for id_, mine in zip(found.ids, plain, strict=True)]
        whole = {**self.fields, **held, found.kind: list(found.sampled)}
        whole |= {"configurations": choices, **found.more}
        return json.dumps(whole, indent=1, default=str) + "\n"

    def keep_in(self, folder: Path) -> None:
        """Writes selection.json, or checks it against what stands there."""
        text = self.text(folder)
        keep_identity(folder / SELECTION, _WHAT, json.loads(text), text.encode(), _read)

    def is_in(self, folder: Path) -> bool:
        """Whether a folder holds this very selection; an error if it holds another one."""
        path = folder / SELECTION
        if not path.exists():
            return False
        refuse_other(path, _WHAT, _read(path), json.loads(self.text(folder)))
        return True
