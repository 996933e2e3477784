"""Runs without a barrier: what is planned follows from the order of the log, kill or no kill."""

import json
import random

import pytest
from evo_runs import QUIET, write_task

import evo
from evo.logs.maintenance import require_whole
from evo.logs.records import Attempt, Child, CriticCall, Evaluation, Generation, Initial
from evo.models.client import Call, EndpointRefused
from evo.runs.ask import OneCall, child_seed
from evo.runs.budget import Ledger
from evo.runs.configuration import make_header
from evo.runs.evaluate import DrawEvaluator, Evaluate
from evo.runs.loop import Steps
from evo.runs.planning import Planner, asked_in
from evo.runs.resources import open_resources
from evo.runs.session import RunJob, run_jobs
from evo.runs.settings import Goal, Settings
from evo.runs.state import State, costs_of_log
from evo.runs.steady import machine_of

OPTIONS = {"children": 3, "generations": 3, "seed": 7, "asynchronous": True}

PROGRAM = evo.load_task("mmd").initial_program

CONDITIONS = {
    "greedy": {"feedback": True, "edits": "diff"},
    "population": {"search": "population", "inspirations": 2},
    "islands": {"search": {"name": "islands", "islands": 2, "interval": 1}},
    "tree": {"search": "tree", "filters": ["same_program", "near_duplicates"]},
    "models": {"models": ["offline", "offline-2"], "search": "map_elites"},
    "drafts": {"drafts": 2, "critic": "offline-2", "draws": 2},
}


def check_order(log: evo.Log, window: int) -> None:
    """Every child was planned from what was complete, and as soon as there was room."""
    width = log.header.children
    assert sorted(child.request for child in log.outcomes) == list(range(len(log.outcomes)))
    for child in log.outcomes:
        assert child.after == max(0, child.request - window + 1)
        for generation, index in child.parents:
            assert generation == 0 or (generation - 1) * width + index < child.after
        key = child.reply_key(width)
        assert child.seed == child_seed(7, width, *key[:2])


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_log_plays_itself_again(tmp_path, condition) -> None:
    log = evo.run("mmd", log=tmp_path / "a.jsonl", **OPTIONS, **CONDITIONS[condition], **QUIET)
    assert [generation.generation for generation in log.generations] == [1, 2, 3]
    check_order(log, window=3)
    again = evo.rerun(log.path, log=tmp_path / "again.jsonl")
    assert again.same, str(again)
    twin = evo.read_log(tmp_path / "again.jsonl")
    assert [c.request for c in twin.outcomes] == [c.request for c in log.outcomes]
    assert twin.trajectory.tolist() == log.trajectory.tolist()
    for number in range(1, 4):
        hashes = [c.prompt_hash for c in log.outcomes if c.generation == number]
        assert [prompt.hash for prompt in asked_in(log, number)] == hashes
    calls = sum(cost["calls"] for cost in costs_of_log(log))
    assert calls == 9 * log.header.drafts + len(log.critic_calls)
    require_whole(log)


def test_one_call_at_a_time_goes_in_order_and_gives_the_same_again(tmp_path) -> None:
    one, other = (
        evo.run("mmd", log=tmp_path / f"{name}.jsonl", max_concurrent=1, **OPTIONS, **QUIET)
        for name in "ab"
    )
    assert [child.request for child in one.outcomes] == list(range(9))
    check_order(one, window=1)
    assert [c.program for c in one.children] == [c.program for c in other.children]


def by_hand(path, told: int | None = None, **options: object) -> evo.Log:
    """Tells replies in a random order, until so many are told."""
    order = random.Random(told or 0)
    with evo.Searcher("mmd", log=path, **{**OPTIONS, **options}) as searcher:
        prompts = searcher.waiting
        while not searcher.done and told != 0:
            prompts += [each for each in searcher.ask() if each not in prompts]
            prompt = prompts.pop(order.randrange(len(prompts)))
            program = f"{PROGRAM}\n# {prompt.seed}\n"
            searcher.tell(prompt, program=program)
            told = None if told is None else told - 1
    return evo.read_log(path)


@pytest.mark.parametrize("told", [1, 4, 8])
def test_what_was_under_way_is_asked_again_after_a_stop(tmp_path, told) -> None:
    path = tmp_path / "a.jsonl"
    left = by_hand(path, told, search="population")
    assert len(left.outcomes) == told
    under_way = {n: plan for n, plan in left.requests.items() if n >= 0}
    log = by_hand(path, search="population")
    assert len(log.outcomes) == 9
    assert log.outcomes[:told] == left.outcomes
    assert {n: log.requests[n] for n in under_way} == under_way
    check_order(log, window=3)
    again = evo.rerun(path)
    assert again.same, str(again)


def test_a_run_that_is_extended_goes_on_from_all_that_is_complete(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    evo.run("mmd", log=path, **{**OPTIONS, "generations": 1}, **QUIET)
    log = evo.run("mmd", log=path, **OPTIONS, **QUIET)
    assert len(log.outcomes) == 9
    assert {c.after for c in log.outcomes if c.request in (3, 4, 5)} == {3}
    assert evo.rerun(path).same
    with pytest.raises(evo.LogError, match="asynchronous True there, False here"):
        evo.run("mmd", log=path, **{**OPTIONS, "asynchronous": False}, **QUIET)


def spent_at_plans(path) -> list[dict[str, float]]:
    """What was settled by unit as each request was planned, in the order of the log's lines."""
    found, calls, tokens = [], 0, 0
    for line in map(json.loads, path.read_text().splitlines()):
        if line["kind"] == "plan":
            found.append({"calls": calls, "tokens": tokens})
        elif line["kind"] in ("reply", "critic_call"):
            calls += 1
            tokens += sum(each["usage"]["total_tokens"] for each in line["attempts"])
    return found


@pytest.mark.parametrize(
    ("condition", "budget"),
    [({}, {"calls": 4}), ({}, {"tokens": 1500}), (CONDITIONS["drafts"], {"calls": 15})],
)
def test_no_child_is_planned_once_a_budget_is_used_up(tmp_path, condition, budget) -> None:
    path, [(unit, limit)] = tmp_path / "a.jsonl", budget.items()
    log = evo.run("mmd", log=path, budget=budget, **condition, **OPTIONS, **QUIET)
    assert log.ends[-1].reason == "budget"
    assert max(spent[unit] for spent in spent_at_plans(path)) < limit
    assert len(log.outcomes) == len(spent_at_plans(path)) < 9  # what is under way is finished
    planned = spent_at_plans(path)
    evo.run("mmd", log=path, budget=budget, **condition, **OPTIONS, **QUIET)
    assert spent_at_plans(path) == planned
    log = evo.run("mmd", log=path, **condition, **OPTIONS, **QUIET)
    assert len(log.outcomes) == 9
    assert evo.rerun(path).same
    require_whole(log)


def test_with_one_call_at_a_time_a_budget_is_met_exactly_and_all_of_it_is_counted(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    for calls in (1, 2, 4, 5, 8):
        budget = {"calls": calls}
        log = evo.run("mmd", log=path, max_concurrent=1, budget=budget, **OPTIONS, **QUIET)
        assert (len(log.calls), len(log.generations)) == (calls, calls // 3)
        assert log.ends[-1].reason == "budget"
    ledger = Ledger({"calls": 8.0})
    with open_resources(Settings(progress=False)) as resources:
        job = RunJob(path, log.header, Goal(generations=3))
        assert [each.end for each in run_jobs([job], resources, ledger=ledger)] == ["budget"]
    assert (ledger.total["calls"], ledger.exhausted, *ledger.open()) == (8, "calls", False)


def test_what_a_critic_costs_late_counts(tmp_path) -> None:
    path, ledger = tmp_path / "a.jsonl", Ledger({"calls": 99.0})
    identity = {name: value for name, value in OPTIONS.items() if name != "generations"}
    header = make_header("mmd", **identity, **CONDITIONS["drafts"])
    with open_resources(Settings(progress=False)) as resources:
        run_jobs([RunJob(path, header, Goal(generations=4))], resources, ledger=ledger)
    assert ledger.total["calls"] == len(evo.read_log(path).calls)


def test_a_call_after_its_generation_counts_as_under_way() -> None:
    header = make_header("mmd", children=1, asynchronous=True, drafts=2, critic="offline-2")
    state = State(header)
    state.take(Initial(evaluation=Evaluation(status="ok", fitness=0.0)))
    state.take(Generation(generation=1, best_fitness=0.0, best=(0, 0), improved=False, seconds=0))
    assert state.under_way_cost["calls"] == 0
    call = CriticCall(generation=1, index=0, program="", attempts=(), score=1.0)
    state.take(call)
    assert (state.under_way_cost["calls"], state.costs[1]["calls"]) == (1, 1)


def test_a_target_ends_it(tmp_path) -> None:
    log = evo.run("mmd", log=tmp_path / "b.jsonl", target=0.0, **OPTIONS, **QUIET)
    assert log.ends[-1].reason == "target"


def test_runs_of_an_allocation_need_no_barrier_between_their_children(tmp_path) -> None:
    evo.allocate_live(
        "mmd", "ucb1", arms=2, rounds=4, children=2, asynchronous=True, log_dir=tmp_path / "a",
        **QUIET,
    )  # fmt: skip
    logs = [evo.read_log(path) for path in sorted((tmp_path / "a").glob("arm-*.jsonl"))]
    assert sum(len(log.generations) for log in logs) == 4
    assert all(log.header.asynchronous for log in logs)


def test_refusals_are_logged_unless_there_is_nothing_else(tmp_path) -> None:
    judge = "def evaluate(path):\n    return {'combined_score': 1.0}\n"
    folder = write_task(tmp_path / "long", "x = 1\n" + "# long\n" * 40_000, judge)
    with pytest.raises(EndpointRefused, match="refused every child"):
        evo.run(folder, log=tmp_path / "a.jsonl", **OPTIONS, **QUIET)
    log = evo.read_log(tmp_path / "a.jsonl")
    assert not log.outcomes
    assert log.ends[-1].reason == "refused"


@pytest.mark.parametrize("refused", [(1,), (2, 3), (1, 2, 5, 6), (1, 3, 5, 9)])
def test_what_is_refused_is_logged_once_another_child_is_answered_or_none_is_left(
    tmp_path, refused
) -> None:
    made = []

    def model(messages: list[dict[str, str]]) -> str:
        made.append(len(made))
        if len(made) in refused:
            raise ValueError("not this one")
        return f"```python\n{PROGRAM}\n# {len(made)}\n```"

    log = evo.run(
        "mmd", model=model, log=tmp_path / "a.jsonl", max_concurrent=1, **OPTIONS, **QUIET
    )
    assert [child.request for child in log.outcomes if child.evaluation.status == "no_reply"] == [
        number - 1 for number in refused
    ]
    order, waiting = [], []
    for number in range(len(made)):
        if number + 1 in refused:
            waiting.append(number)
        else:
            order += [number, *waiting]
            waiting = []
        if (number + 1) % OPTIONS["children"] == 0:  # no further one may be planned yet
            order += waiting
            waiting = []
    assert [child.request for child in log.outcomes] == order
    assert len(log.generations) == OPTIONS["generations"]
    assert evo.rerun(log.path).same


@pytest.mark.parametrize("answered", [True, False])
def test_refusals_end_a_run_only_once_no_child_under_way_can_be_answered(answered) -> None:
    header = make_header("mmd", children=3, seed=7, asynchronous=True)
    machine = machine_of(State(header), window=3)
    machine.log(Initial(evaluation=Evaluation(status="ok", fitness=0.5)))
    evaluate = Evaluate(DrawEvaluator(header, lambda *_, **__: Evaluation(status="error")))
    steps = Steps(plan=Planner(), ask=OneCall(header, machine.log), evaluate=evaluate)

    def refused(item) -> list[object]:
        return machine.tell(item, Call((), rejected="the key is refused"))

    machine.begin(steps)
    machine.begin(steps)
    first, *others = machine.ask(9)
    for item in others:
        refused(item)
    for item in machine.ask(9):  # as many as a generation has children, and one more
        refused(item)
    assert machine.failure is None
    assert not machine.ask(9)  # no further one is planned before the first shows what is the matter
    assert not machine.wants_more
    if not answered:
        refused(first)
        assert isinstance(machine.failure, EndpointRefused)
        assert not machine.state.children
        return
    lines = machine.tell(first, Call((Attempt(status="ok", latency=None),), "no program"))
    assert [line.request for line in lines if isinstance(line, Child)] == [0, 1, 2, 3, 4]
    assert machine.state.generation == 1
    assert len(machine.ask(9)) == 1  # what is left of the second generation
    assert machine.failure is None


def test_what_needs_whole_generations_is_refused(tmp_path) -> None:
    for name, value in {"confirm": 2, "batches": 2}.items():
        with pytest.raises(ValueError, match=name):
            evo.run("mmd", log=tmp_path / "a.jsonl", **{name: value}, **OPTIONS, **QUIET)
    log = evo.run("mmd", log=tmp_path / "b.jsonl", **{**OPTIONS, "generations": 1}, **QUIET)
    with pytest.raises(ValueError, match="without a barrier"):
        evo.fork(log, at=1, generations=2, **QUIET)


def test_a_table_of_the_run_agrees_with_the_log(tmp_path) -> None:
    replay = pytest.importorskip("replay")
    log = evo.run("mmd", log=tmp_path / "a.jsonl", **OPTIONS, **QUIET)
    tables = replay.load_tables(log.path)
    assert tables.generations["n_calls"].tolist() == [0, 3, 3, 3]
    assert tables.generations["best_fitness"].tolist() == log.trajectory.tolist()
