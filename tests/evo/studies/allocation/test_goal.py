"""Target and patience of an allocation: what ends it, what closes an arm, live as replayed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evo_runs import write_task
from hypothesis import given
from hypothesis import strategies as st

import evo
import replay
from evo.cli.entry import main
from evo.policies import POLICIES, Draws
from evo.policies.base import Floats
from evo.studies.allocation.goal import AllocationGoal, goal_at
from evo.studies.allocation.journal import read_journal
from evo.studies.allocation.loop import Allocations, InOrder, allocate
from replay.simulation.arms import Logged, LoggedArms

pytestmark = pytest.mark.filterwarnings(
    "ignore::evo.policies.PolicyWarning", "ignore::replay.logs.frames.ReplayWarning"
)

EVALUATOR = """
def score(value):
    total = sum(float(x) for x in value)
    return {'fitness': total / (1 + abs(total)), 'objective': total}
"""


def trajectories(runs: int, generations: int, seed: int) -> Floats:
    """Random non-decreasing rows, multiples of 1/64."""
    rng = np.random.default_rng(seed)
    jumps = rng.integers(1, 20, (runs, generations)) * (rng.random((runs, generations)) < 0.3)
    return np.c_[np.full(runs, 0.25), 0.25 + jumps.cumsum(axis=1) / 64]


def play(name: str, fitness: Floats, *goals: AllocationGoal, in_flight: int = 1) -> Allocations:
    """One replicate over all rows, of 24 rounds."""
    policy = POLICIES[name]((1, len(fitness)), rounds=24, rng=Draws(3, 1))
    lengths = np.full(len(fitness), fitness.shape[1] - 1)
    arms = LoggedArms(Logged(fitness, lengths, {}), np.arange(len(fitness))[None, :])
    return allocate(policy, arms, rounds=24, goals=goals, in_flight=in_flight)


def barren(row: Floats, generation: int) -> int:
    """Generations in a row without an improvement, up to this one."""
    rises = np.flatnonzero(np.diff(row[: generation + 1]) > 0)
    return generation - (int(rises[-1]) + 1 if len(rises) else 0)


ANY = {
    "name": st.sampled_from(sorted(POLICIES)),
    "runs": st.integers(1, 5),
    "seed": st.integers(0, 1000),
    "in_flight": st.integers(1, 3),
}


@given(**ANY, target=st.integers(8, 120).map(lambda count: count / 64))
def test_no_round_is_asked_once_an_arm_has_reached_the_target(
    name: str, runs: int, seed: int, in_flight: int, target: float
) -> None:
    fitness = trajectories(runs, 24, seed)
    whole = play(name, fitness, in_flight=in_flight)
    part = play(name, fitness, AllocationGoal(target=target), in_flight=in_flight)
    count = len(part.told)
    reached = np.flatnonzero(part.best_fitness[0, :count] >= target)
    beyond = count - 1 - reached[0] if len(reached) else 0
    assert beyond < in_flight  # what was in flight is completed
    assert part.pulls[0, :count].tolist() == whole.pulls[0, :count].tolist()
    assert (part.pulls[0, count:] == -1).all()
    if target <= 0.25:
        assert count == 0
    elif not len(reached):
        assert count == 24


@given(**ANY, patience=st.integers(1, 6))
def test_an_arm_is_pulled_until_it_has_not_improved_for_the_patience(
    name: str, runs: int, seed: int, in_flight: int, patience: int
) -> None:
    fitness = trajectories(runs, 24, seed)
    done = play(name, fitness, AllocationGoal(patience=patience), in_flight=in_flight)
    depth = np.zeros(runs, dtype=int)
    for arm in done.pulls[0][done.pulls[0] >= 0]:
        assert barren(fitness[arm], depth[arm]) < patience
        depth[arm] += 1
    if len(done.told) < 24:
        assert all(barren(fitness[k], depth[k]) == patience for k in range(runs))


@given(**ANY, patience=st.integers(1, 4), target=st.integers(20, 60).map(lambda count: count / 64))
def test_replicates_end_each_at_a_goal_of_its_own(
    name: str, runs: int, seed: int, in_flight: int, patience: int, target: float
) -> None:
    fitness = trajectories(5, 24, seed)
    setting: dict[str, Any] = {
        "rounds": 20, "seed": seed, "in_flight": in_flight, "target": target,
        "patience": patience,
    }  # fmt: skip
    many = replay.simulate(fitness, name, arms=runs, replicates=6, **setting)
    for count in (1, 3):
        few = replay.simulate(fitness, name, arms=many.arms[:count], replicates=count, **setting)
        assert few.pulls.tolist() == many.pulls[:count].tolist()
        assert few.best_fitness.tolist() == many.best_fitness[:count].tolist()


def test_the_last_goal_that_was_reached_holds() -> None:
    goals = [AllocationGoal(target=1.0), AllocationGoal(asked=5, told=3, patience=2)]
    assert goal_at([], 0, 0) == AllocationGoal()
    assert goal_at(goals, 5, 2) == goal_at(goals, 4, 3) == goals[0]
    assert goal_at(goals, 5, 3) == goals[1]


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ({"patience": 0}, "patience: expected at least 1"),
        ({"target": float("nan")}, "target: expected a finite fitness"),
        ({"target": "much"}, "target: expected a number"),
    ],
)
def test_a_goal_that_cannot_be_is_refused_before_anything_is_made(
    goal: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        evo.allocate_live("mmd", "ucb1", log_dir=tmp_path / "a", progress=False, **goal)
    assert not (tmp_path / "a").exists()
    with pytest.raises((ValueError, TypeError)):
        replay.simulate(np.ones((2, 9)), "ucb1", rounds=4, **goal)


def test_a_bound_in_hindsight_knows_no_goal() -> None:
    with pytest.raises(ValueError, match="leave out target and patience"):
        replay.simulate(trajectories(3, 9, 0), "oracle_arm", rounds=4, patience=2)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> evo.Task:
    """The offline model rewrites constants of such a program."""
    folder, program = tmp_path_factory.mktemp("tasks"), "def solve():\n    return [1.0, 2.0]\n"
    return evo.load_task(write_task(folder / "toy", program, EVALUATOR, "entry = ['solve']\n"))


SMALL: dict[str, Any] = {
    "arms": 3, "rounds": 16, "children": 1, "reward": "best_fitness", "progress": False,
}  # fmt: skip
GOALS: list[dict[str, Any]] = [
    {"target": 0.78}, {"patience": 2}, {"target": 0.85, "patience": 3}, {"target": 0.5},
]  # fmt: skip


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "allocation.jsonl").read_text().splitlines()]


def steps(folder: Path) -> list[tuple[Any, ...]]:
    """Kind, round, arm and digest of each line of rounds."""
    return [
        (each["kind"], each["round"], each["arm"], each.get("digest"))
        for each in lines_of(folder)
        if each["kind"] in ("asked", "told")
    ]


@pytest.mark.parametrize("in_flight", [1, 2])
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("policy", ["thompson", "round_robin"])
def test_a_replay_of_the_logs_equals_the_live_allocation(
    goal: dict[str, Any], policy: str, in_flight: int, task: evo.Task, tmp_path: Path
) -> None:
    live = evo.allocate_live(task, policy, log_dir=tmp_path, in_flight=in_flight, **SMALL, **goal)
    matrix = replay.fitness_matrix(replay.load(tmp_path))
    again = replay.simulate(
        matrix, policy, rounds=16, replicates=1, missing="stop", in_flight=in_flight,
        completion_order=live.completion_order.tolist(), **goal,
    )  # fmt: skip
    assert again.pulls[0].tolist() == live.pulls.tolist()
    assert again.best_fitness[0].tolist() == live.best_fitness.tolist()
    assert again.rewards[0].tolist() == pytest.approx(live.rewards.tolist(), nan_ok=True)
    ended = {"completed", *goal}
    assert live.end in ended
    assert (live.end == "completed") == (len(live.told) == 16 and live.end != "target")
    before = (tmp_path / "allocation.jsonl").read_bytes()
    same = evo.allocate_live(task, policy, log_dir=tmp_path, in_flight=in_flight, **SMALL, **goal)
    assert same.pulls.tolist() == live.pulls.tolist()
    assert same.end == live.end
    assert (tmp_path / "allocation.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "goal", [{"patience": 2}, {"target": 0.8}, {"target": 0.85, "patience": 3}]
)
def test_an_allocation_of_one_arm_ends_where_the_run_does(
    goal: dict[str, Any], task: evo.Task, tmp_path: Path
) -> None:
    run = evo.run(
        task, generations=16, children=1, seed=40, log=tmp_path / "r", progress=False, **goal
    )
    done = evo.allocate_live(task, "ucb1", log_dir=tmp_path / "a", **{**SMALL, "arms": 1}, **goal)
    assert done.arms[0].trajectory.tolist() == run.trajectory.tolist()
    assert done.end == run.ends[-1].reason


@pytest.mark.parametrize("in_flight", [1, 2])
def test_another_target_or_patience_goes_on_from_any_line(
    in_flight: int, task: evo.Task, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    setting = {**SMALL, "in_flight": in_flight}
    whole = evo.allocate_live(task, "exp3p", log_dir=tmp_path / "whole", **setting)
    folder = tmp_path / "steps"
    goals: list[dict[str, Any]] = [{"target": 0.75}, {"patience": 1}, {"patience": 2}, {}]
    for number, goal in enumerate(goals):
        before = steps(folder) if number else []
        made = evo.allocate_live(task, "exp3p", log_dir=folder, **setting, **goal)
        assert steps(folder)[: len(before)] == before
        shutil.copytree(folder, tmp_path / f"after{number}")
    assert made.end == "completed"
    assert "end:" not in repr(made)
    assert len(made.told) == 16
    kinds = [(line.get("target"), line.get("patience")) for line in lines_of(folder)
             if line["kind"] == "goal"]  # fmt: skip
    assert kinds == [(0.75, None), (None, 1), (None, 2), (None, None)]
    if in_flight == 1:  # with a target alone the pulls are those without one, as far as they go
        first = read_journal(tmp_path / "after0" / "allocation.jsonl")
        assert [*first.asked.values()] == whole.pulls[: len(first.asked)].tolist()
    for cut in range(3, len(steps(folder)), 7):  # killed there, with the logs as they were
        part = tmp_path / f"cut{cut}"
        shutil.copytree(folder, part)
        journal = (folder / "allocation.jsonl").read_bytes().splitlines(keepends=True)
        (part / "allocation.jsonl").write_bytes(b"".join(journal[:cut]))
        evo.allocate_live(task, "exp3p", log_dir=part, **setting)
        held = [
            line for line in map(json.loads, journal[:cut]) if line["kind"] in ("asked", "told")
        ]
        assert len(read_journal(part / "allocation.jsonl").told) == 16
        assert [step[:3] for step in steps(part)[: len(held)]] == [
            (line["kind"], line["round"], line["arm"]) for line in held
        ]
    assert not [each for each in recwarn if "state is not the one logged" in str(each.message)]


def test_rounds_in_a_target_end_as_a_run_does_where_generation_0_reaches_it(
    task: evo.Task, tmp_path: Path
) -> None:
    done = evo.allocate_live(task, "ucb1", log_dir=tmp_path, target=0.7, **SMALL)
    assert len(done.told) == 0
    assert done.end == "target"
    assert ", end: target>" in repr(done)
    assert done.best_fitness[-1] == 0.75


def test_the_command_takes_both_and_says_why_it_ended(
    task: evo.Task, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(task.save(tmp_path / "task"))
    command = ["allocate", place, "--policy", "ucb1", "--arms", "2", "--rounds", "30", "-N", "1"]
    command += ["-q", "--log-dir", str(tmp_path / "a")]
    assert main([*command, "--patience", "1"]) == 0
    assert "the patience has closed every run" in capsys.readouterr().out
    assert main([*command, "--target", "0.76"]) == 0
    assert "the target is reached" in capsys.readouterr().out
    goals = read_journal(tmp_path / "a" / "allocation.jsonl").goals
    assert [each.pair for each in goals] == [(None, 1), (0.76, None)]


def test_the_order_of_another_allocation_is_refused_with_a_goal_too() -> None:
    fitness = trajectories(3, 9, 1)
    policy = POLICIES["random"]((1, 3), rounds=9, rng=Draws(3, 1))
    arms = LoggedArms(Logged(fitness, np.full(3, 9), {}), np.arange(3)[None, :])
    with pytest.raises(ValueError, match="round 3 is to be completed next"):
        allocate(
            policy, arms, rounds=9, in_flight=2, flights=InOrder([3]),
            goals=[AllocationGoal(patience=1)],
        )  # fmt: skip
