"""A child that behaves as an earlier program is kept out of the archive, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from evo_runs import same_run, write_task

import evo
import replay
from evo.filters import SameOutput
from evo.filters.base import exclusion
from evo.logs.records import Evaluation, Instance
from evo.runs.planning import Planner
from evo.runs.state import state_of
from evo.searches import Member
from replay.logs.tables import load_tables
from replay.reports.models import cells_of_models

QUIET: dict[str, Any] = {"progress": False, "workers": 1}
SEARCHES = ("greedy", "population", "islands", "tree", "best_of_n", "pareto", "map_elites")
PROGRAM = "def value():\n    a = 1.5\n    b = 2.5\n    return a * b\n"
JUDGE = (
    "def score(value):\n"
    "    return {'fitness': 1 - abs(round(value) - 5) / 50, 'private_exact': value}\n"
)
"""Many programs have the same rounded value, which is all that may be seen of them."""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(
        tmp_path_factory.mktemp("tasks") / "toy", PROGRAM, JUDGE, "entry = ['value']\n"
    )


def ok(fitness: float, **metrics: float) -> Evaluation:
    return Evaluation(status="ok", fitness=fitness, metrics=metrics)


def on_instances(*scores: float | None) -> Evaluation:
    made = tuple(
        Instance(id=str(k), status="error" if score is None else "ok", score=score)
        for k, score in enumerate(scores)
    )
    return Evaluation(status="ok", fitness=0.5, instances=made)


def member(evaluation: Evaluation) -> Member:
    scores = {each.id: each.score for each in evaluation.instances}
    return Member((1, 2), evaluation.fitness, (), "x = 1\n", evaluation.metrics, scores)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (ok(0.5), ok(0.5), True),
        (ok(0.5), ok(0.5 + 1e-12), True),
        (ok(0.5), ok(0.5 + 1e-6), False),
        (ok(1e12), ok(1e12 + 1), True),
        (ok(0.5, objective=2.0), ok(0.5, objective=2.0), True),
        (ok(0.5, objective=2.0), ok(0.5, objective=2.1), False),
        (ok(0.5, objective=2.0), ok(0.5), False),
        (on_instances(0.25, 0.75), on_instances(0.25, 0.75), True),
        (on_instances(0.25, 0.75), on_instances(0.75, 0.25), False),  # of the same mean
        (on_instances(0.25, None), on_instances(0.25, None), True),
        (on_instances(0.25, None), on_instances(0.25, 0.0), False),
    ],
)
def test_two_programs_behave_alike_if_all_that_is_measured_is_the_same(
    one: Evaluation, other: Evaluation, same: bool
) -> None:
    reason = SameOutput().after(one, [member(other)])
    assert reason == ("generation 1, child 2 behaves the same" if same else None)


def test_what_failed_behaves_like_nothing() -> None:
    failed = Evaluation(status="error", error="x")
    assert SameOutput().after(failed, [member(ok(0.5))]) is None
    assert SameOutput().after(ok(0.5), [Member((1, 0), None)]) is None


@dataclass(frozen=True)
class Odd:
    """Answers as a predicate would."""

    name = "odd"

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Lets everything pass."""
        return None

    def after(self, evaluation: Evaluation, archive: Sequence[Member]) -> Any:
        """Returns no sentence."""
        return True


def test_an_answer_that_is_no_sentence_is_an_error() -> None:
    with pytest.raises(TypeError, match="filter 'odd': expected `after` to return a sentence"):
        exclusion(ok(0.5), filters=[Odd()], archive=[])


@dataclass(frozen=True)
class Looks:
    """Says what it sees."""

    name = "looks"

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Lets everything pass."""
        return None

    def after(self, evaluation: Evaluation, archive: Sequence[Member]) -> str | None:
        """Returns the names of metrics."""
        return f"{sorted(evaluation.metrics)} of {len(archive)}"


def test_a_filter_sees_no_private_metric_and_no_generation_under_way(
    task: Path, tmp_path: Path
) -> None:
    log = evo.run(
        task, filters=[Looks()], generations=2, children=3, log=tmp_path / "a.jsonl", **QUIET
    )
    seen = {child.kept_out for child in log.children if child.evaluation.status == "ok"}
    assert seen == {"looks: [] of 1"}  # nothing ever joins the initial program
    assert not any(each.improved for each in log.generations)


@pytest.mark.parametrize("search", SEARCHES)
def test_what_is_kept_out_is_paid_for_and_never_a_parent(
    search: str, task: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"generations": 6, "children": 4, "search": search}
    if search == "map_elites":
        options["search"] = evo.searches.MapElites(metrics={"length": (0, 200)})
    path = tmp_path / "a.jsonl"
    log = evo.run(task, filters=[SameOutput()], log=path, **options, **QUIET)
    out = {(child.generation, child.index) for child in log.children if child.kept_out}
    assert out
    assert log.exclusions == {"same_output": len(out)}
    assert not log.rejections
    for child in log.children:
        assert out.isdisjoint(child.parents)
        if child.kept_out:
            assert child.evaluation.status == "ok"
            assert child.attempts
            assert child.kept_out.startswith("same_output: generation ")
    table = replay.children(path, progress=False)
    assert (table["kept_out"] != "").sum() == len(out)
    alone = {**options, "generations": 1}
    plain = evo.run(task, log=tmp_path / "b.jsonl", **alone, **QUIET)
    first = [
        [(c.program, c.evaluation.fitness) for c in each.children[:4]] for each in (plain, log)
    ]
    assert first[0] == first[1]  # in generation 1 nothing is kept out yet of what is asked for


@dataclass(frozen=True)
class NoJumps:
    """Keeps out what is too good to be true."""

    most: float = 0.3
    name = "no_jumps"

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Lets everything pass."""
        return None

    def after(self, evaluation: Evaluation, archive: Sequence[Member]) -> str | None:
        """Returns a sentence about a fitness above `most`."""
        return "too good" if (evaluation.fitness or 0.0) > self.most else None


def test_what_is_kept_out_is_no_best_program_no_improvement_and_never_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    log = evo.run("mmd", filters=[NoJumps()], inspirations=3, generations=5, children=8, log=path,
                  models=["offline", "offline-2"], **QUIET)  # fmt: skip
    out = [child for child in log.children if child.kept_out]
    assert out
    assert log.best.fitness == log.best_fitness
    assert log.best.fitness is not None
    assert log.best.fitness <= 0.3
    places = {(child.generation, child.index) for child in out}
    shown = {
        place for plan in log.plans.values() for r in plan.requests for place in r.inspirations
    }
    assert shown
    assert places.isdisjoint(shown)
    table = replay.children(path, progress=False)
    assert not table.loc[table["kept_out"] != "", "improved"].any()
    best = replay.load(path, progress=False)["generation_best"]
    assert best.max() <= 0.3
    cells = cells_of_models(load_tables(path, progress=False), is_llm=False)
    stated = {cell.quantity: cell.value for cell in cells}
    for name, returned in state_of(log).returns.items():
        own = table[(table["asked_model"] == name) & (table["kept_out"] == "")]
        gains = (own["fitness"] - own["best_fitness"]).clip(lower=0.0).sum()
        assert returned.gain == pytest.approx(gains)
        assert stated[f"{name}: gain"] == pytest.approx(gains)


@pytest.mark.parametrize("search", ["greedy", "population"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_log_of_it_reruns_resumes_and_forks(
    search: str, asynchronous: bool, task: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"children": 3, "search": search, "filters": ["same_output"]}
    options |= {"asynchronous": True, "max_concurrent": 1} if asynchronous else {}
    whole = evo.run(task, generations=5, log=tmp_path / "whole.jsonl", **options, **QUIET)
    assert whole.exclusions
    evo.run(task, generations=2, log=tmp_path / "parts.jsonl", **options, **QUIET)
    parts = evo.resume(tmp_path / "parts.jsonl", generations=5, progress=False)
    assert same_run(parts, whole)
    assert [c.kept_out for c in parts.children] == [c.kept_out for c in whole.children]
    assert evo.rerun(whole.path).same
    if not asynchronous:
        [fork] = evo.fork(whole.path, at=2, generations=5, log_dir=tmp_path, progress=False)
        assert [c.kept_out for c in fork.children] == [c.kept_out for c in whole.children]


def test_a_plan_that_names_what_was_kept_out_is_refused(task: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    log = evo.run(
        task, filters=[SameOutput()], search="population", generations=4, children=4, log=path,
        **QUIET,
    )  # fmt: skip
    out = next((c.generation, c.index) for c in log.children if c.kept_out and c.generation < 4)
    state = state_of(log, through=3)
    entry = state.entry(out)
    assert entry is not None
    assert entry.evaluation.fitness is not None
    plan = log.plans[4]
    request = msgspec.structs.replace(plan.requests[0], parents=(out,))
    changed = msgspec.structs.replace(plan, requests=(request, *plan.requests[1:]))
    with pytest.raises((ValueError, evo.LogError), match="ok programs of complete generations"):
        Planner("a.jsonl", {**log.plans, 4: changed}, played=True)(state)
