"""Budgets: generation 0 counts, one generation overshoots, and timing changes nothing."""

import dataclasses
import functools
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from evo_runs import timeless, write_task
from tiers import thorough_after

import evo
import replay
from evo.gate.account import Account
from evo.logs.cost import UNITS, Unit
from evo.logs.journal import encode_line
from evo.logs.records import Model
from evo.models.registry import find_model
from evo.policies import POLICIES
from evo.rewards import default_reward
from evo.runs.bounds import cost_bound
from evo.runs.budget import BudgetError, Ledger, check_budget
from evo.runs.state import State, costs_of_log
from evo.studies.allocation.journal import read_journal
from evo.studies.folders import ALLOCATION
from evo.tasks.task import load_task

QUIET = {"progress": False}
WP = load_task("wp", instances=5)


def test_generation_0_counts_where_it_costs_calls(tmp_path: Path) -> None:
    log = evo.run(
        WP, generations=9, children=2, budget={"calls": 6}, log=tmp_path / "a.jsonl", **QUIET
    )
    assert len(log.generations) == 1  # 5 calls for the initial text, then at least 2 more
    assert (
        evo.run(
            WP, generations=9, children=2, budget={"calls": 5}, log=tmp_path / "b.jsonl", **QUIET
        ).generations
        == []
    )


@pytest.mark.parametrize("in_flight", [1, 3])
def test_an_allocation_counts_every_call_that_is_made(in_flight: int, tmp_path: Path) -> None:
    live = evo.allocate_live(
        WP,
        "round_robin",
        arms=4,
        children=2,
        rounds=30,
        budget={"calls": 30},
        in_flight=in_flight,
        log_dir=tmp_path,
        **QUIET,
    )
    made = sum(len(log.calls) for log in live.arms)
    assert live.spent["calls"][-1] == made
    assert 30 <= made < 30 + 5 + 2 * 6  # generation 0 and a generation of the arm that crossed it
    frame = replay.load(tmp_path)
    again = replay.simulate(
        replay.fitness_matrix(frame),
        "round_robin",
        rounds=30,
        replicates=1,
        costs=replay.cost_matrices(frame),
        budget={"calls": 30},
        missing="stop",
    )
    if in_flight == 1:
        n = len(live.told)
        assert again.pulls[0, :n].tolist() == live.pulls[:n].tolist()
        assert again.spent["calls"][0, n - 1] == made


def test_what_cannot_be_counted_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    bare = evo.Model(name="bare", base_url="http://127.0.0.1:9/v1")
    path = tmp_path / "a.jsonl"
    for unit, word in (("dollars", "prices"), ("flops", "active_parameters")):
        with pytest.raises(BudgetError, match=f"{unit} cannot be counted.*'bare' has no {word}"):
            evo.run("mmd", model=bare, budget={unit: 1}, log=path, **QUIET)
        with pytest.raises(BudgetError, match=f"{unit} cannot be counted"):
            evo.allocate_live(
                "mmd", "ucb1", arms=[{"model": bare}], budget={unit: 1}, log_dir=tmp_path, **QUIET
            )
    assert not list(tmp_path.iterdir())
    limitless = ({"calls": float("nan")}, {"calls": float("inf")}, {"calls": float("-inf")})
    for budget in ({"euros": 1}, {"calls": 0}, *limitless, {"calls": "9"}, 512):
        with pytest.raises(BudgetError, match=r"budget: expected .*, got"):
            check_budget(budget)  # type: ignore[arg-type]
    ledger = Ledger({"tokens": 9})
    with pytest.raises(
        BudgetError, match=r"tokens is unknown.*evo\.Reply\(None, usage=.*in another unit"
    ):
        ledger.settle({"tokens": float("nan"), "calls": 1.0})
    with pytest.raises(BudgetError, match="nothing is counted in 'tokens'"):
        ledger.settle({"calls": 1.0})
    assert ledger.total == {}


def test_a_unit_is_added_by_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def joules(prompt: float, cached: float, completion: float, *, model: Model) -> float:
        return 0.3 * (prompt - cached + completion)

    unit = Unit("of electricity", joules, needs=("active_parameters",))
    monkeypatch.setitem(UNITS, "joules", unit)
    model = find_model("offline-2")
    flops = 2 * (model.active_parameters or 0) / 0.3
    how = {"generations": 6, "children": 2, "model": model, **QUIET}
    whole = evo.run("mmd", log=tmp_path / "whole.jsonl", **how)
    costs = costs_of_log(whole)
    assert [each["joules"] * flops for each in costs] == pytest.approx([e["flops"] for e in costs])
    limit = sum(each["joules"] for each in costs[:4]) * 0.99
    part = evo.run("mmd", log=tmp_path / "part.jsonl", budget={"joules": limit}, **how)
    assert (len(part.generations), part.ends[-1].reason) == (3, "budget")
    again = evo.resume(part.path, budget={"flops": limit * flops}, progress=False)
    assert len(again.generations) == 3
    bound = cost_bound(whole.header, 6, retries=0)
    assert bound.generation["joules"] * flops == pytest.approx(bound.generation["flops"])
    account = Account(model, {"joules": limit}, None, None)
    assert account.bounded
    unknown = msgspec.structs.replace(model, active_parameters=None)
    how["model"] = unknown
    with pytest.raises(BudgetError, match="joules cannot be counted"):
        evo.run(
            "mmd", log=tmp_path / "b.jsonl", budget={"joules": 1.0}, **{**how, "model": unknown}
        )
    for wrong in ("joule", "watts"):
        with pytest.raises(BudgetError, match="seconds, joules, got"):
            check_budget({wrong: 1.0})


def test_target_and_patience_are_goals(tmp_path: Path) -> None:
    whole = evo.run("cp", generations=5, children=3, log=tmp_path / "whole.jsonl", **QUIET)
    target = float(whole.trajectory[2])
    reached = int(np.argmax(whole.trajectory >= target))
    path = tmp_path / "target.jsonl"
    part = evo.run("cp", generations=5, children=3, target=target, log=path, **QUIET)
    assert (len(part.generations), part.ends[-1].reason) == (reached, "target")
    before = path.read_bytes()
    evo.resume(path, **QUIET)
    assert path.read_bytes() == before  # its target is reached
    evo.resume(path, generations=5, **QUIET)
    assert path.read_bytes() == before  # another T keeps the target
    further = evo.resume(path, generations=5, target=2.0, **QUIET)
    assert timeless(further.children) == timeless(whole.children)
    barren = evo.run(
        "cp", generations=50, children=1, patience=2, log=tmp_path / "patience.jsonl", **QUIET
    )
    improved = [generation.improved for generation in barren.generations]
    assert barren.ends[-1].reason == "patience"
    assert improved[-2:] == [False, False]
    assert "FF" not in "".join("T" if each else "F" for each in improved[:-1])
    for goal in ({"patience": 0}, {"target": float("nan")}):
        with pytest.raises(ValueError, match=r"patience|target"):
            evo.run("cp", log=tmp_path / "c.jsonl", **goal)


@dataclasses.dataclass(frozen=True)
class FewFailures:
    """Ends a run once too large a share of the last generation failed."""

    share: float
    name: str = "too many failures"

    def reached(self, state: State) -> bool:
        last = state.archive[-1]
        failed = sum(entry.evaluation.status != "ok" for entry in last)
        return state.generation > 0 and failed > self.share * len(last)


class Generation:
    """Ends a run after a generation."""

    def __init__(self, number: int) -> None:
        self.name, self.number = f"generation {number}", number

    def reached(self, state: State) -> bool:
        return state.generation >= self.number


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_rule_of_ones_own_ends_a_run_and_is_no_part_of_it(
    tmp_path: Path, asynchronous: bool
) -> None:
    common = {"children": 2, "asynchronous": asynchronous, "max_concurrent": 1, **QUIET}
    whole = evo.run("mmd", generations=4, log=tmp_path / "whole.jsonl", **common)
    given = {"generations": 4, "log": tmp_path / "part.jsonl", **common}
    rules = [FewFailures(1.0), Generation(2)]
    part = evo.run("mmd", stops=rules, **given)
    assert len(part.generations) == 2
    assert (part.ends[-1].reason, part.ends[-1].message) == ("rule", "generation 2")
    assert part.finished
    before = part.path.read_bytes()
    assert evo.run("mmd", stops=rules, **given).path.read_bytes() == before
    further = evo.resume(part.path, stops=[Generation(3)], **QUIET)
    assert [end.message for end in further.ends] == ["generation 2", "generation 3"]
    again = evo.run("mmd", **given)  # without rules it goes on to its T
    assert timeless(again.children) == timeless(whole.children)
    assert (again.ends[-1].reason, again.ends[-1].message) == ("completed", None)
    assert evo.rerun(again.path).same


def test_a_rule_ends_each_of_several_runs_by_itself_and_what_is_none_is_refused(
    tmp_path: Path,
) -> None:
    logs = evo.run_many("mmd", seeds=[1, 2], generations=3, children=1, log_dir=tmp_path,
                        stops=[Generation(1)], **QUIET)  # fmt: skip
    assert [len(log.generations) for log in logs] == [1, 1]
    for wrong in (Generation(1), [Generation], ["patience"], [lambda state: True]):
        with pytest.raises(TypeError, match="stops: expected a list of values with a name"):
            evo.run("mmd", stops=wrong, log=tmp_path / "none.jsonl")
    assert not (tmp_path / "none.jsonl").exists()


@pytest.fixture
def silence() -> Iterator[tuple[str, list[float]]]:
    """An endpoint that accepts connections and never answers: its address, and when it was met."""
    met: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        over, kept = threading.Event(), []

        def accept() -> None:
            while not over.is_set():
                try:
                    kept.append(server.accept()[0])
                    met.append(time.monotonic())
                except TimeoutError:
                    continue

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1", met
        over.set()
        thread.join()
        for each in kept:
            each.close()


@pytest.mark.parametrize("verb", thorough_after(1, ["run", "allocate"]))
def test_a_stop_is_heeded_while_the_endpoint_hangs(
    verb: str, silence: tuple[str, list[float]], tmp_path: Path
) -> None:
    url, met = silence
    hanging = evo.Model(name="hanging", base_url=url)
    shared: dict[str, Any] = {"model": hanging, "children": 4, "max_concurrent": 2, **QUIET}
    if verb == "run":
        handle: Any = evo.start("mmd", log=tmp_path / "a.jsonl", **shared)
    else:
        handle = evo.start_allocation("mmd", "ucb1", arms=2, log_dir=tmp_path, **shared)
    while len(met) < 2:
        assert handle.running
        time.sleep(0.02)
    evo.stop(handle.paths[0])
    handle.wait(300)  # what was under way, and would hang for 600 s, had five
    assert len(met) == 2  # and nothing began
    assert "stopped" in repr(handle)
    assert evo.read_log(handle.paths[0]).ends[-1].reason == "interrupted"


def test_a_paused_run_finishes_what_is_under_way(tmp_path: Path) -> None:
    handle = evo.start("cp", generations=200, children=2, log=tmp_path / "a.jsonl", **QUIET)
    while len(handle.log.generations) < 2:
        time.sleep(0.02)
    assert "running, a.jsonl: T " in repr(handle)
    handle.pause()
    paused = handle.wait(300)
    assert "paused" in repr(handle)
    assert 2 <= len(paused.generations) < 200
    whole = evo.run(
        "cp", generations=len(paused.generations), children=2, log=tmp_path / "b.jsonl", **QUIET
    )
    done = len(whole.children)
    assert timeless(paused.children[:done]) == timeless(whole.children)


def test_failures_do_not_invert_rewards() -> None:
    rising = np.minimum(-4 + 0.1 * np.arange(41), -1)
    fitness = np.array([np.full(41, np.nan), rising])
    done = replay.simulate(fitness, "ucb1", rounds=40, replicates=1, lengths=[40, 40])
    assert (done.pulls == 1).mean() > 0.5
    assert done.rewards[done.pulls == 0].tolist() == [-4.0] * int((done.pulls == 0).sum())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A task whose scale nobody knows."""
    program = "def solve():\n    return [1.0, 2.0]\n"
    judge = "def score(value):\n    return {'fitness': 1 / (1 + sum(v * v for v in value))}\n"
    return write_task(tmp_path / "toy", program, judge, "entry = ['solve']\n")


def test_the_reward_is_the_rank_unless_the_scale_is_known(folder: Path, tmp_path: Path) -> None:
    setting: dict[str, Any] = {"arms": 2, "rounds": 2, "children": 1, **QUIET}
    evo.allocate_live(folder, "ucb1", log_dir=tmp_path / "a", **setting)
    assert read_journal(tmp_path / "a" / ALLOCATION).header.reward == "rank"
    (folder / "task.toml").write_text('entry = ["solve"]\nscale = "unit"\n')
    evo.allocate_live(folder, "ucb1", log_dir=tmp_path / "b", **setting)
    assert read_journal(tmp_path / "b" / ALLOCATION).header.reward == "best_fitness"
    for record in (load_task("mmd").record, WP.record):
        assert default_reward(record) == "best_fitness"


def test_a_policy_with_parameters_keeps_its_name(folder: Path, tmp_path: Path) -> None:
    policy = functools.partial(POLICIES["epsilon_greedy"], epsilon=0.5)
    setting: dict[str, Any] = {"arms": 2, "children": 1, "log_dir": tmp_path / "a", **QUIET}
    first = evo.allocate_live(folder, policy, rounds=3, **setting)
    journal = tmp_path / "a" / ALLOCATION
    header = read_journal(journal).header
    assert (header.policy, header.parameters) == ("epsilon_greedy", {"epsilon": 0.5})
    again = evo.allocate_live(folder, policy, rounds=3, **setting)
    assert again.pulls.tolist() == first.pulls.tolist()
    as_before = msgspec.structs.replace(header, policy="epsilongreedy")
    rest = journal.read_bytes().splitlines(keepends=True)[1:]
    journal.write_bytes(encode_line(as_before) + b"".join(rest))
    old = evo.allocate_live(folder, policy, rounds=3, **setting)
    assert old.pulls.tolist() == first.pulls.tolist()


def test_time_that_is_over_before_the_first_generation_leaves_a_log_that_goes_on(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"
    how: dict[str, Any] = {"generations": 2, "children": 1, "log": path, "progress": False}
    log = evo.run("mmd", budget={"seconds": 1e-6}, **how)
    assert log.initial is not None
    assert (len(log.generations), log.ends[-1].reason) == (0, "budget")
    assert len(evo.run("mmd", **how).generations) == 2


def test_calls_are_whole_and_other_units_need_not_be() -> None:
    assert check_budget({"calls": 2.0, "tokens": 1.5}) == {"calls": 2.0, "tokens": 1.5}
    with pytest.raises(BudgetError, match=r"expected a whole number of calls, got 1\.5"):
        check_budget({"calls": 1.5})


def test_prices_that_a_function_lacks_are_stated_where_it_becomes_a_model(tmp_path: Path) -> None:
    def answer(messages: object) -> None:
        """Gives no reply."""

    how = r"evo\.Model\('answer', call=\.\.\., input_price=\.\.\., output_price=\.\.\.\)"
    with pytest.raises(BudgetError, match=f"has no prices .*; give it some in {how}, or use"):
        evo.run("mmd", model=answer, budget={"dollars": 1}, log=tmp_path / "a.jsonl")
