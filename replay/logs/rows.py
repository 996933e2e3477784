"""The rows that one log adds to each table: of a run, its generations, children, attempts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from evo.logs.noise import noise_of
from evo.logs.records import Header, Outcome
from evo.policies.rewards import has_unit_scale
from replay.logs.columns import REPORTED, SPENT
from replay.logs.costs import Calls, floats
from replay.logs.decode import LeanRun
from replay.logs.frames import GREEDY
from replay.logs.versions import settings_text, version_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Rows = dict[str, Any]
"""Columns by name: an array or a list of cells, or one value for the whole run."""


def identity(calls: Calls) -> Rows:
    """The columns of every row that describe its run."""
    run, header, fork = calls.run, calls.run.header, calls.run.header.fork
    of = calls.rescores
    made = made_with(header, of.header if of and header.source == RESCORED else None)
    return {
        "run": run.name,
        **made,
        "unit_scale": has_unit_scale(header.task),
        "header": run.key,
        "forked_from": fork.through[:12] if fork else "",
        "copy": fork.copy if fork else -1,
        "root": of.key if of else fork.root[:12] if fork else run.key,
        "rescored": of is not None,
        "repeat_of": "",
        "mixed": np.nan if header.mixed is None else float(header.mixed),
    }


def made_with(header: Header, original: Header | None = None) -> Rows:
    """The columns that say what a run was made with; `original` is of the run that it rescores."""
    return {
        "task": header.task.name,
        "task_version": version_of(header.task),
        "model": header.model_name,
        "seed": header.seed,
        "children": header.children,
        "search": search_of(original or header),
        "settings": settings_text(header),
    }


UNNAMED = "unknown"
"""The task of runs whose tool does not say it."""

RESCORED = "evo rescore"
"""How the source of a log begins that evaluates the programs of another one again."""

_GREEDY_TOOLS = ("evo", "self-evolving-allocation")
"""Sources whose runs are greedy where their header names no search."""


def search_of(header: Header) -> str:
    """Name of a run's search; of another tool's run that of the tool."""
    if header.search is None:
        return GREEDY if header.source in _GREEDY_TOOLS else header.source
    return header.search.name


_EVALUATION = ("limits", "draws", "confirm")
_SETTINGS = (
    *("sampling", "min_improvement", "limits", "search", "statement", "feedback", "inspirations"),
    *("drafts", "critic", "batches", "draws", "confirm", "spending", "edits", "filters"),
    *("diff_share", "models", "model_policy", "model_weights", "asynchronous", "advice"),
)
"""What identifies a run beside its task, model, N and seed."""


def settings_of(header: Header, search: str = GREEDY) -> dict[str, object]:
    """What identifies a run beside its N and seed: each setting that has a value, by its name.

    `search` names the search of a run whose header states none.
    """
    given = {name: getattr(header, name) for name in _SETTINGS}
    given["advice"] = header.advice or None  # tables of runs without it stay as they were
    stated = msgspec.to_builtins(given, str_keys=True)
    task = version_of(header.task) or header.task.hash
    named = {} if search == GREEDY else {"search.name": search}
    return {"task": task, "model": header.model.id, **named, **_flat(stated)}


def _flat(value: object, prefix: str = "") -> dict[str, object]:
    if isinstance(value, dict):
        inner = (_flat(each, f"{prefix}.{key}" if prefix else key) for key, each in value.items())
        return {name: each for part in inner for name, each in part.items()}
    if isinstance(value, list | tuple):
        return {prefix: json.dumps(value)} if value else {}
    return {} if value is None else {prefix: value}


def programs_of(header: Header) -> str:
    """The fields that decide how a run's programs were made, without those of their evaluation."""
    fork = (header.fork.through, header.fork.copy) if header.fork else None
    search = (getattr(header, name) for name in _SETTINGS if name not in _EVALUATION)
    return repr((header.task.hash, header.model.id, header.children, header.seed, fork, *search))


def evaluation_of(header: Header) -> str:
    """The fields that decide how programs were evaluated."""
    return repr([getattr(header, name) for name in _EVALUATION])


def run_row(calls: Calls, spent: dict[str, Floats]) -> Rows:
    """The row of a run; `spent` is of `Calls.spent`, here and below."""
    run, header = calls.run, calls.run.header
    best, original = _best_by_generation(run), calls.rescores
    search = search_of(header if original is None else original.header)
    fresh = [run.fresh.get(f"{end}_fitness", np.nan) for end in ("initial", "final")]
    return {
        **identity(calls),
        "generations": np.array([len(run.generations)]),
        "n_calls": np.array([int(calls.counted.sum())]),
        **{name: np.array([_total(name, spent[name])]) for name in SPENT},
        "is_llm": header.model.is_llm,
        "compact": header.compact,
        "tool": header.source,
        "lost": [header.lost],
        "configuration": [json.dumps(settings_of(header, search), sort_keys=True)],
        "ending": run.ending,
        "noise": noise_of(header, run.initial, several=True),
        "n_tests": len(run.tests),
        "n_accepted": sum(test.accepted for test in run.tests),
        "false_acceptances": sum(test.alpha for test in run.tests),
        "gain": best[-1] - best[0],
        "fresh_gain": fresh[1] - fresh[0],
        "source": str(run.path),
    }


def _kind_of_replies(calls: Calls, generation: int) -> str | None:
    """What the replies of a generation were asked to be; None where another tool does not say."""
    of = calls.rescores if calls.run.header.source == RESCORED else None
    header = of.header if of else calls.run.header
    return header.at_generation(generation).edits if header.source == "evo" else None


def child_rows(calls: Calls, spent: dict[str, Floats]) -> Rows:
    """A row for each child."""
    run, found, header = calls.run, calls.run.children, calls.run.header
    judged = [child.evaluation for child in found]
    fitness = floats(each.fitness for each in judged)
    repeats = {(g.generation, k): tuple(first) for g in run.generations for k, *first in g.repeats}
    best = _best_by_generation(run)
    generation = calls.generation[: len(found)]
    before = best[np.clip(generation - 1, 0, len(best) - 1)]
    return {
        **identity(calls),
        "generation": generation,
        "index": np.array([child.index for child in found], dtype=np.int64),
        "status": [each.status for each in judged],
        "fitness": fitness,
        "parent_fitness": _parent_fitness(run, fitness, before),
        "best_fitness": before,
        "improved": _in_archive(found)
        & (
            (fitness > before + run.header.min_improvement)
            | (np.isnan(before) & ~np.isnan(fitness))
        ),
        "inherited": calls.inherited[: len(found)],
        "parents": [child.parents for child in found],
        "operator": [child.operator for child in found],
        "edits": [c.edits or _kind_of_replies(calls, c.generation) for c in found],
        "island": _islands(run.header, generation, found),
        "asked_model": [c.model or header.at_generation(c.generation).model.name for c in found],
        "repeats": [repeats.get((child.generation, child.index)) for child in found],
        "kept_out": [child.kept_out for child in found],
        "draws": np.array([each.draws for each in judged], dtype=np.int64),
        "fitness_sd": floats(each.fitness_sd for each in judged),
        "stages": np.array([len(each.stages) for each in judged], dtype=np.int64),
        "audit_status": [each.audit.status if each.audit else None for each in judged],
        "audit_fitness": floats(each.audit.fitness if each.audit else None for each in judged),
        "finish_reason": [c.attempts[-1].finish_reason if c.attempts else None for c in found],
        **{name: values[: len(found)] for name, values in spent.items()},
        "objective": floats(each.metrics.get("objective") for each in judged),
        "strict_fitness": floats(each.metrics.get("strict_fitness") for each in judged),
        "notes": [each.notes for each in judged],
        "error": [each.error for each in judged],
        "source": str(run.path),
    }


def _islands(header: Header, generation: NDArray[np.int64], found: Sequence[Outcome]) -> Floats:
    """The island of each child: as another tool stated it, else by the rule of the search."""
    stated = floats(child.island for child in found)
    if np.isnan(stated).all():
        return islands_of(header, generation, [child.index for child in found])
    return stated


def islands_of(
    header: Header, generation: NDArray[np.int64], index: NDArray[np.int64] | Sequence[int]
) -> Floats:
    """The island that made each child, from 0, by the rule of the search; NaN without islands."""
    search = header.search
    if search is None or search.name != "islands" or "islands" not in search.fields:
        return np.full(len(generation), np.nan)
    islands = int(search.fields["islands"])
    return np.asarray(
        ((generation - 1) * header.children + np.asarray(index)) % islands, dtype=np.float64
    )


def _in_archive(children: Sequence[Outcome]) -> NDArray[np.bool_]:
    """Whether no filter kept a child out."""
    return np.array([not child.kept_out for child in children], dtype=np.bool_)


def _best_by_generation(run: LeanRun) -> Floats:
    first = run.initial.evaluation.fitness if run.initial else None
    return floats([first, *(generation.best_fitness for generation in run.generations)])


def _total(name: str, values: Floats) -> float:
    """Sum over calls: NaN where one is unknown; of what endpoints report, where each is."""
    if name in REPORTED and not np.isnan(values).all():
        return float(np.nansum(values))
    return float(values.sum())


def _parent_fitness(run: LeanRun, fitness: Floats, before: Floats) -> Floats:
    """Fitness of what each child rewrote: as its line states, under greedy the best so far."""
    first = run.initial.evaluation.fitness if run.initial else None
    known = {(0, 0): np.nan if first is None else first}
    places = ((child.generation, child.index) for child in run.children)
    known.update(zip(places, fitness.tolist(), strict=True))
    rest = before if search_of(run.header) == GREEDY else np.full(len(fitness), np.nan)
    stated = floats(
        known.get(child.parents[0]) if child.parents else None for child in run.children
    )
    return np.where([bool(child.parents) for child in run.children], stated, rest)


def generation_rows(calls: Calls, spent: dict[str, Floats]) -> Rows:
    """A row for each complete generation, generation 0 included."""
    run, owner = calls.run, calls.generation
    end = len(run.generations) + 1

    def total(values: NDArray[np.generic] | None) -> Floats:
        """Sums over each generation's calls; 0 without any."""
        return np.bincount(owner, values, minlength=end)[:end].astype(np.float64, copy=False)

    fitness = np.full(len(owner), np.nan)
    fitness[: len(run.children)] = [child.evaluation.fitness for child in run.children]
    ok = ~np.isnan(fitness) & (owner < end)
    generation_best = np.full(end, -np.inf)
    ranked = ok.copy()
    ranked[: len(run.children)] &= _in_archive(run.children)
    np.maximum.at(generation_best, owner[ranked], fitness[ranked])
    generation_best[np.isneginf(generation_best)] = np.nan
    best = _best_by_generation(run)
    generation_best[0] = best[0]
    n_ok = total(ok).astype(np.int64)
    n_ok[0] = int(not np.isnan(best[0]))
    costs = {name: total(spent[name]) for name in SPENT}
    costs["evaluation_seconds"][0] += _seconds_of_initial(calls)
    for name in REPORTED:  # what endpoints report is summed as far as they do
        known = ~np.isnan(spent[name])
        sums = total(np.where(known, spent[name], 0.0))
        costs[name] = np.where((total(known) > 0) | (total(None) == 0), sums, np.nan)
    free = calls.rescores is not None
    waited = [0.0 if free or each.inherited else each.seconds for each in run.generations]
    return {
        **identity(calls),
        "generation": np.arange(end),
        "best_fitness": best,
        "generation_best": generation_best,
        "protocol": run.header.protocol,
        "condition": run.header.condition,
        "n_calls": total(calls.counted).astype(np.int64),
        "n_ok": n_ok,
        "n_repeats": _repeats(run, end),
        **costs,
        "seconds": floats([0.0, *waited]),
        "source": str(run.path),
    }


def _seconds_of_initial(calls: Calls) -> float:
    """Seconds that the initial program was evaluated, NaN where unknown; 0 where inherited."""
    initial = calls.run.initial
    if calls.rescores is not None or (initial is not None and initial.inherited):
        return 0.0
    if initial is None:
        return np.nan
    each = [initial.evaluation, *([initial.second] if initial.second else [])]
    return float(floats(evaluation.seconds for evaluation in each).sum())


def _repeats(run: LeanRun, end: int) -> Floats:
    """How many children of each generation equal an earlier program; NaN in other tools' logs."""
    if run.header.source != "evo":
        return np.full(end, np.nan)
    inherited = run.header.fork.at if run.header.fork else 0
    own = [len(each.repeats) if each.generation > inherited else 0 for each in run.generations]
    return floats([0, *own])


def instance_rows(calls: Calls) -> Rows:
    """A row for each evaluation and instance."""
    run = calls.run
    found = [(0, 0, run.initial.evaluation.instances)] if run.initial else []
    found += [(child.generation, child.index, child.evaluation.instances) for child in run.children]
    rows = [(generation, index, each) for generation, index, many in found for each in many]
    return {
        **identity(calls),
        "generation": np.array([generation for generation, _, _ in rows], dtype=np.int64),
        "index": np.array([index for _, index, _ in rows], dtype=np.int64),
        "instance": [each.id for _, _, each in rows],
        "status": [each.status for _, _, each in rows],
        "score": floats(each.score for _, _, each in rows),
        "source": str(run.path),
    }


def attempt_rows(calls: Calls) -> Rows:
    """A row for each attempt that was paid for by this run."""
    children = calls.run.children
    places = [
        (call.generation, children[k].index if k < len(children) else -1, number)
        for k, call in enumerate(calls.made)
        for number in range(len(call.attempts))
    ]
    generation, index, number = np.array(places, dtype=np.int64).reshape(-1, 3).T
    columns: Rows = {
        "generation": generation,
        "index": index,
        "attempt": number,
        "status": [attempt.status for attempt in calls.attempts],
        "latency": floats(attempt.latency for attempt in calls.attempts),
        **calls.reported,
        "finish_reason": [attempt.finish_reason for attempt in calls.attempts],
        "http_status": floats(attempt.http_status for attempt in calls.attempts),
        "error": [attempt.error for attempt in calls.attempts],
    }
    own = np.repeat(~calls.inherited, calls.per_call)
    return {
        "run": calls.run.name,
        **{
            name: values[own] if isinstance(values, np.ndarray) else [*compress(values, own)]
            for name, values in columns.items()
        },
        "source": str(calls.run.path),
    }
