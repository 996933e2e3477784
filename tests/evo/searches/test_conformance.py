"""What runs keep, whatever was asked of them: a new capability joins by a line in RUNS."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from branching import Branching
from evo_runs import QUIET, timeless, write_task
from killing import kill_after
from tiers import thorough_after

import evo
from evo.cli.entry import main
from evo.runs.budget import Ledger
from evo.runs.configuration import make_header
from evo.runs.handle import Control
from evo.runs.identity import differences
from evo.runs.resources import Resources, open_resources
from evo.runs.session import RunJob, run_jobs
from evo.runs.settings import Goal
from evo.searches import (
    SEARCHES,
    BestOfN,
    Greedy,
    Islands,
    MapElites,
    Pareto,
    Population,
    Request,
    Tree,
)
from evo.studies.sweep.fields import configure

T, N = 4, 3
FEW = Population(size=4, elite=1)
TWO = Islands(islands=2, interval=2, population=Population(size=3, elite=1))
MAP = MapElites(bins=3)
MODELS = ["offline", "offline-2"]
NEAR = {"name": "near_duplicates", "ratio": 0.97}


@dataclass(frozen=True)
class Kind:
    """Options of a run, some that are wrong, and the words that the message about these holds."""

    options: dict[str, Any]
    wrong: dict[str, Any]
    message: str


RUNS = {
    "greedy": Kind({}, {"search": "greed"}, "did you mean 'greedy'"),
    "best_of_n": Kind({"search": BestOfN()}, {"search": BestOfN}, "give an instance"),
    "population": Kind({"search": FEW}, {"search": {"name": "population", "size": 0}}, "size"),
    "islands": Kind({"search": TWO}, {"search": {"name": "islands", "islands": 0}}, "islands"),
    "map_elites": Kind({"search": MAP}, {"search": {"name": "map_elites", "bins": 0}}, "bins"),
    "pareto": Kind({"search": Pareto()}, {"search": {"name": "pareto", "x": 1}}, "unknown field"),
    "tree": Kind({"search": Tree()}, {"search": {"name": "tree", "prior": 0}}, "prior"),
    "branching": Kind({"search": Branching()}, {"search": "branching"}, "unknown search"),
    "diffs": Kind({"edits": "diff", "search": TWO}, {"edits": "diffs"}, "expected one of"),
    "models": Kind({"models": MODELS}, {"models": ["offline"]}, "at least two"),
    "protected": Kind({"filters": ("protected_regions",)}, {"filters": 3}, "expected the name"),
    "same": Kind({"filters": ("same_program",)}, {"filters": "same"}, "unknown filter"),
    "near": Kind({"filters": NEAR}, {"filters": {**NEAR, "ratio": 2}}, "ratio"),
}
every = pytest.mark.parametrize("name", RUNS)

TELLS: dict[str, Any] = {"feedback": True, "inspirations": 1}
PROGRAM = """\
# EVOLVE-BLOCK-START
def f():
    a = 0.25
    b = 0.5
    return a + b / 3
# EVOLVE-BLOCK-END
"""
EVALUATOR = """\
def score(value):
    if not {low} <= value <= {high}:
        raise ValueError("expected a number in [{low}, {high}]")
    return {{"fitness": 1 - abs(1 - value), "notes": f"off by {{value - 1:.3g}}"}}
"""


def make_task(folder: Path, low: float = 0.0, high: float = 2.0) -> Path:
    toml = "entry = ['f']\nstatement = 'Return a number near 1.'\n"
    return write_task(folder, PROGRAM, EVALUATOR.format(low=low, high=high), toml)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_task(tmp_path_factory.mktemp("tasks") / "near")


@pytest.fixture(scope="module")
def resources() -> Iterator[Resources]:
    with open_resources(evo.Settings(progress=False), Control()) as opened:
        yield opened


@pytest.fixture(scope="module")
def runs(
    task: Path, resources: Resources, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, evo.Log]:
    """One run of each kind, which later ones are compared with."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        name: brought(folder / f"{name}.jsonl", header_of(task, name), resources) for name in RUNS
    }


def header_of(task: Path, name: str, **options: Any) -> evo.logs.records.Header:
    given = {"children": N, "seed": 3, **TELLS, **options}
    return make_header(task, **RUNS[name].options, **given)


def brought(
    path: Path,
    header: Any,
    resources: Resources,
    generations: int = T,
    ledger: Ledger | None = None,
) -> evo.Log:
    log = run_jobs([RunJob(path, header, Goal(generations))], resources, ledger=ledger)[0].log
    assert log is not None
    return log


def same(one: evo.Log, other: evo.Log) -> None:
    """Holds that two logs are of one run as far as both go."""
    count = min(len(one.children), len(other.children))
    assert timeless(one.children[:count]) == timeless(other.children[:count])
    plans = one.plans.keys() & other.plans.keys()
    assert [one.plans[g].requests for g in plans] == [other.plans[g].requests for g in plans]


@every
def test_it_plans_before_it_calls_and_parents_are_as_planned(
    name: str, runs: dict[str, evo.Log]
) -> None:
    log = runs[name]
    assert len(log.children) == T * N
    assert not evo.verify(log).faults
    planned = log.header.search is not None or bool(log.header.models)
    assert len(log.plans) == (T if planned else 0)
    assert log.header.prompt_version == 5
    kinds = [b'"plan"' in line[:50] for line in log.path.read_bytes().splitlines()]
    if planned:
        assert kinds.index(True) < next(
            i
            for i, line in enumerate(log.path.read_bytes().splitlines())
            if b'"child"' in line[:50]
        )
    fitness = {(o.generation, o.index): o.evaluation.fitness for o in log.outcomes} | {(0, 0): 0.4}
    for outcome in log.outcomes:
        for place in outcome.parents:
            assert place[0] < outcome.generation
            assert fitness[place] is not None
    texts = {(c.generation, c.index): c.program for c in log.children} | {(0, 0): PROGRAM}
    for request in (each for plan in log.plans.values() for each in plan.requests):
        shown = {(texts[place] or "").strip() for place in request.inspirations}
        assert shown.isdisjoint((texts[place] or "").strip() for place in request.parents)
    assert (log.trajectory[1:] >= log.trajectory[:-1]).all()
    assert bool(log.rejections) == (name in ("same", "near"))


@every
def test_bad_input_is_named(name: str, task: Path) -> None:
    with pytest.raises((ValueError, TypeError), match=RUNS[name].message):
        make_header(task, **RUNS[name].wrong)


@every
def test_it_identifies_a_run_and_is_a_field_of_sweeps(name: str, task: Path) -> None:
    header = header_of(task, name, seed=0)
    plain = make_header(task, children=N, **TELLS)
    assert bool(differences(header, plain)) == (name != "greedy")
    values = {"task": str(task), "children": N, **TELLS, **RUNS[name].options}
    assert not differences(configure(values, {}).header, header)


@every
def test_rerun(name: str, runs: dict[str, evo.Log]) -> None:
    if name == "branching":  # by its plans alone where the search is not known
        assert evo.rerun(runs[name]).same
        SEARCHES["branching"] = Branching
    try:
        assert evo.rerun(runs[name]).same
    finally:
        SEARCHES.pop("branching", None)


@every
def test_prefix(
    name: str, task: Path, runs: dict[str, evo.Log], resources: Resources, tmp_path: Path
) -> None:
    shorter = brought(tmp_path / "1.jsonl", header_of(task, name), resources, 1)
    assert len(shorter.children) == N
    same(shorter, runs[name])
    extended = brought(tmp_path / "1.jsonl", header_of(task, name), resources, T)
    same(extended, runs[name])
    assert len(extended.children) == T * N


@pytest.mark.parametrize("name", thorough_after(4, RUNS))
def test_it_goes_on_from_any_line(
    name: str, task: Path, runs: dict[str, evo.Log], resources: Resources, tmp_path: Path
) -> None:
    whole = runs[name]
    lines = whole.path.read_bytes().splitlines(keepends=True)
    first = 2 + list(RUNS).index(name) % 5  # every line is the first that is cut off of some kind
    for kept in range(first, len(lines), 5):
        path = tmp_path / f"{kept}.jsonl"
        path.write_bytes(b"".join(lines[:kept]) + b'{"crc":"torn')
        log = brought(path, header_of(task, name), resources)
        same(log, whole)
        assert len(log.children) == T * N
        assert not evo.verify(log).faults


@every
def test_a_budget_is_a_prefix(
    name: str, task: Path, runs: dict[str, evo.Log], resources: Resources, tmp_path: Path
) -> None:
    ledger = Ledger({"calls": N + 1})
    log = brought(tmp_path / "a.jsonl", header_of(task, name), resources, ledger=ledger)
    assert len(log.generations) == 2
    assert log.ends[-1].reason == "budget"
    same(log, runs[name])


@every
def test_one_child_and_one_generation(
    name: str, task: Path, resources: Resources, tmp_path: Path
) -> None:
    header = header_of(task, name, children=1)
    log = brought(tmp_path / "a.jsonl", header, resources, 1)
    assert [(child.generation, child.index) for child in log.children] == [(1, 0)]
    longer = brought(tmp_path / "b.jsonl", header, resources, 3)
    same(log, longer)
    assert len(longer.children) == 3


@every
def test_fork(name: str, runs: dict[str, evo.Log], tmp_path: Path) -> None:
    search = RUNS[name].options.get("search", Greedy())
    if name == "branching":
        with pytest.raises(ValueError, match="unknown search 'branching'"):
            evo.fork(runs[name], at=2, log_dir=tmp_path, **QUIET)
    log = evo.fork(runs[name], at=2, copies=2, search=search, log_dir=tmp_path, **QUIET)
    same(log[0], runs[name])
    assert timeless(log[1].children[: 2 * N]) == timeless(runs[name].children[: 2 * N])
    assert not evo.verify(log[1]).faults


@pytest.mark.filterwarnings("ignore:none of the first 8 programs is ok")
@every
def test_where_all_children_fail_the_initial_program_is_rewritten(
    name: str, resources: Resources, tmp_path: Path
) -> None:
    task = make_task(tmp_path / "narrow", low=0.4166, high=0.4167)
    log = brought(tmp_path / "a.jsonl", header_of(task, name, feedback=False), resources, 2)
    ok = {(o.generation, o.index) for o in log.outcomes if o.evaluation.fitness is not None}
    for outcome in log.outcomes:
        assert set(outcome.parents) <= {(0, 0)} | ok
    assert log.trajectory[-1] == pytest.approx(log.trajectory[0])


class Stubborn(Branching):
    """A search whose code was changed so that it plans otherwise."""

    def plan(self, state: Any, children: int, rng: Any) -> list[Request]:
        return [Request(((0, 0),), "mutate")] * children


def test_a_plan_is_kept_and_a_change_is_reported(
    task: Path, runs: dict[str, evo.Log], tmp_path: Path
) -> None:
    whole = runs["branching"]
    lines = whole.path.read_bytes().splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if b'"plan"' in line[:50])
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines[: last + 2]))
    with (
        pytest.warns(UserWarning, match="the code of search 'branching' is not that which began"),
        pytest.warns(UserWarning, match=f"generation {T} goes on as it was planned"),
    ):
        log = evo.resume(path, generations=T, search=Stubborn(), **QUIET)
    same(log, whole)
    SEARCHES["branching"] = Stubborn
    try:
        with pytest.warns(UserWarning, match="the code of search 'branching'"):
            again = evo.rerun(whole)
    finally:
        del SEARCHES["branching"]
    assert not again.same
    assert again.differing_plans == tuple(range(1, T + 1))
    assert "would be planned otherwise" in str(again)


def test_an_unknown_search_goes_on_once_it_is_given(
    runs: dict[str, evo.Log], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(before := runs["branching"].path.read_bytes())
    assert main(["resume", str(path), "-T", str(T + 1), "-q"]) == 2
    said = capsys.readouterr().err
    assert "unknown search 'branching'" in said
    assert said.count("\n") == 1
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="the log was made by 'branching'"):
        evo.resume(path, generations=T + 1, search=BestOfN(), **QUIET)
    assert (
        len(evo.resume(path, generations=T + 1, search=Branching(), **QUIET).generations) == T + 1
    )
    with pytest.raises(ValueError, match="the log was made by 'greedy'"):
        evo.resume(runs["greedy"], generations=T + 1, search=Branching(), **QUIET)


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ([], "expected a request for each of 3 children, got 0"),
        ([Request(((0, 0),), "shrink")] * N, "unknown operator 'shrink'"),
        ([Request(((1, 7),))] * N, "expected parents that are ok programs"),
        ([Request(())] * N, "expected a parent for each request"),
    ],
)
def test_what_a_search_may_not_ask(requests: Any, message: str, task: Path, tmp_path: Path) -> None:
    class Asking(Branching):
        def plan(self, state: Any, children: int, rng: Any) -> Any:
            return requests

    with pytest.raises(ValueError, match=message):
        evo.run(task, children=N, search=Asking(), log=tmp_path / "a.jsonl", **QUIET)
    assert not (tmp_path / "a.jsonl").exists()


KILLED = ("islands", "diffs", "models")
"""Of a search, edits and several models; every search goes on from any line in a test above."""
FLAGS = {"search": "--search", "edits": "--edits", "models": "--models", "filters": "--filter"}


@pytest.mark.slow
@pytest.mark.parametrize("name", thorough_after(1, KILLED))
def test_it_goes_on_after_kill_9(name: str, task: Path, tmp_path: Path) -> None:
    path = tmp_path / "killed" / "a.jsonl"
    path.parent.mkdir()
    given = {key: getattr(each, "name", each) for key, each in RUNS[name].options.items()}
    command = ["run", str(task), "--log", str(path), "-T", "100", "-N", str(N), "--seed", "3", "-q"]
    command += ["--feedback", "--workers", "1", *words_of(given)]
    for kill in range(3):  # at lines of several kinds; every step: torture/test_cell_kills.py
        assert not kill_after(command, path.parent, 2 + kill, 0.01 * (kill % 3))
        command = ["resume", str(path), "-q", "--workers", "1"]
    goal = len(evo.read_log(path).generations) + 1
    log = evo.resume(path, generations=goal, **QUIET)
    options: dict[str, Any] = {**given, "feedback": True, "children": N, "seed": 3, **QUIET}
    whole = evo.run(task, generations=goal, log=tmp_path / "whole.jsonl", **options)
    assert len(log.children) == len(whole.children) == N * goal
    same(log, whole)
    assert len({(c.generation, c.index) for c in log.outcomes}) == len(log.outcomes)
    assert not evo.verify(log).faults


def words_of(options: dict[str, Any]) -> list[str]:
    """Options as words of a command; of several values each by itself."""
    several = {key: [each] if isinstance(each, str) else each for key, each in options.items()}
    return [
        word for key, values in several.items() for value in values for word in (FLAGS[key], value)
    ]


NOISY = """\
import random

def score(value):
    return {"fitness": 1 - abs(1 - value) + random.gauss(0, 0.05)}
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["greedy", "population"])
def test_a_best_program_is_confirmed_whatever_the_search(name: str, tmp_path: Path) -> None:
    task = make_task(tmp_path / "noisy")
    (task / "evaluator.py").write_text(NOISY)
    path = tmp_path / "a.jsonl"
    options: dict[str, Any] = {"draws": 2, "confirm": 3, "children": N, "seed": 3, **TELLS}
    log = evo.run(task, generations=3, **RUNS[name].options, log=path, **options, **QUIET)
    assert log.confirmations
    assert evo.rerun(log).same
    assert not evo.verify(log).faults
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in range(len(lines) // 2, len(lines), 4):
        part = tmp_path / f"{kept}.jsonl"
        part.write_bytes(b"".join(lines[:kept]))
        again = evo.resume(part, generations=3, **QUIET)
        same(again, log)
        assert [g.best_fitness for g in again.generations] == [
            g.best_fitness for g in log.generations
        ]


@pytest.mark.slow
@pytest.mark.thorough
def test_searches_are_fields_of_sweeps_selections_and_arms(task: Path, tmp_path: Path) -> None:
    common: dict[str, Any] = {"task": task, "generations": 1, "children": 2, **QUIET}
    space = {"search": ["greedy", Population(size=3), {"name": "islands", "islands": 2}]}
    made = evo.sweep(space, seeds=[1], log_dir=tmp_path / "sweep", **common)
    logs = [evo.read_log(path) for path in Path(made.folder).glob("runs/*.jsonl")]
    named = {log.header.search and log.header.search.name: log for log in logs}
    assert named.keys() == {None, "population", "islands"}
    alone = evo.run(search=Population(size=3), seed=1, log=tmp_path / "alone.jsonl", **common)
    same(alone, named["population"])
    chosen = evo.select_best(
        {"search": ["greedy", "best_of_n"]}, seeds=[1, 2], bounds=(-1, 1),
        log_dir=tmp_path / "select", **common,
    )  # fmt: skip
    assert isinstance(chosen, evo.Selection)
    arms: list[Any] = [{"search": "islands"}, {"search": Population(size=3)}, 4]
    options: dict[str, Any] = {"children": 2, "log_dir": tmp_path / "arms", **QUIET}
    allocation = evo.allocate_live(task, "round_robin", arms=arms, rounds=3, **options)
    searches = [log.header.search and log.header.search.name for log in allocation.arms]
    assert searches == ["islands", "population", None]
