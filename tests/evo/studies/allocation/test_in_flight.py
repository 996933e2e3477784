"""Rounds in flight: what may be asked when, what is told, and that logs and replays repeat it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evo_runs import Notes, write_task
from hypothesis import assume, given
from hypothesis import strategies as st

import evo
import replay
from evo.policies import POLICIES, Draws
from evo.policies.base import Floats
from evo.studies.allocation.journal import read_journal
from evo.studies.allocation.loop import Allocations, InOrder, allocate
from replay.simulation.arms import Logged, LoggedArms
from replay.simulation.simulate import simulate

pytestmark = pytest.mark.filterwarnings("ignore::evo.policies.PolicyWarning")

NAN = np.nan


def trajectories(runs: int, generations: int, seed: int = 0) -> Floats:
    """Random non-decreasing rows, multiples of 1/64."""
    rng = np.random.default_rng(seed)
    jumps = rng.integers(0, 20, (runs, generations)) * (rng.random((runs, generations)) < 0.3)
    return np.c_[np.full(runs, 0.25), 0.25 + jumps.cumsum(axis=1) / 64]


class Shuffled(InOrder):
    """Flights whose latencies are drawn."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def first(self, flying: Sequence[int]) -> int:
        return int(self.rng.choice(flying))


def play(
    name: str,
    fitness: Floats,
    *,
    rounds: int,
    in_flight: int,
    flights: InOrder | None = None,
    **others: Any,
) -> tuple[Allocations, list[tuple[str, int, int, str]]]:
    """One replicate over all rows, and what a watcher saw of it."""
    lengths = (~np.isnan(fitness)).sum(axis=1) - 1
    costs = {"calls": np.full(fitness.shape, 4.0) * (np.arange(fitness.shape[1]) > 0)}
    policy = POLICIES[name]((1, len(fitness)), rounds=rounds, rng=Draws(3, 1))
    notes = Notes(policy)
    done = allocate(
        policy,
        LoggedArms(Logged(fitness, lengths, costs), np.arange(len(fitness))[None, :]),
        rounds=rounds,
        in_flight=in_flight,
        flights=flights,
        watcher=notes,
        **others,
    )
    return done, notes.lines


@given(
    name=st.sampled_from(sorted(POLICIES)),
    runs=st.integers(1, 6),
    rounds=st.integers(1, 40),
    in_flight=st.integers(1, 8),
    seed=st.integers(0, 1000),
)
def test_an_arm_flies_once_and_as_many_fly_as_may(
    name: str, runs: int, rounds: int, in_flight: int, seed: int
) -> None:
    fitness = trajectories(runs, 8, seed)
    done, lines = play(
        name, fitness, rounds=rounds, in_flight=in_flight, flights=Shuffled(seed), reward="rank"
    )
    flying: dict[int, int] = {}
    depth = np.zeros(runs, dtype=int)
    asked = 0
    for (what, index, arm, _), following in itertools.zip_longest(lines, lines[1:]):
        if what == "asked":
            assert index == asked
            assert arm not in flying.values()
            flying[index] = arm
            asked += 1
        else:
            assert flying.pop(index) == arm
            depth[arm] += 1
        free = [k for k in range(runs) if depth[k] < 8 and k not in flying.values()]
        asks = len(flying) < in_flight and asked < rounds and bool(free)
        assert (following is not None and following[0] == "asked") == asks
    assert not flying
    assert asked == min(rounds, runs * 8) == len(done.told)
    assert done.best_fitness[0, -1] == fitness[np.arange(runs), depth].max()
    assert (np.diff(done.best_fitness[0]) >= 0).all()


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_order_told_repeats_an_allocation_whatever_its_latencies(name: str) -> None:
    fitness = trajectories(5, 30)
    fitness[1, 4:], fitness[3, 9:] = NAN, NAN
    done, lines = play(name, fitness, rounds=40, in_flight=3, flights=Shuffled(7))
    again, same = play(name, fitness, rounds=40, in_flight=3, flights=InOrder(done.told.tolist()))
    assert lines == same  # interleaving and digests
    assert again.pulls.tolist() == done.pulls.tolist()
    part, first = play(name, fitness, rounds=40, in_flight=3, flights=InOrder(done.told[:11]))
    cut = [line[:2] for line in lines].index(("told", int(done.told[10]))) + 1
    assert first[:cut] == lines[:cut]
    assert len(part.told) == len(done.told)


def test_an_order_of_another_allocation_is_refused() -> None:
    with pytest.raises(ValueError, match=r"round 3 is to be completed next, but only \[0, 1\]"):
        play("random", trajectories(4, 9), rounds=9, in_flight=2, flights=InOrder([3]))


@pytest.mark.filterwarnings("ignore::replay.logs.frames.ReplayWarning")  # arms close early
@given(
    name=st.sampled_from(sorted(POLICIES)),
    in_flight=st.integers(1, 6),
    lengths=st.lists(st.integers(1, 12), min_size=2, max_size=6),
    arms=st.sampled_from([None, 3]),
    budget=st.sampled_from([{}, {"tokens": 31.0}]),
    seed=st.integers(0, 1000),
)
@pytest.mark.thorough
def test_replicates_of_a_delayed_replay_are_allocations_of_their_own(
    name: str,
    in_flight: int,
    lengths: list[int],
    arms: int | None,
    budget: dict[str, float],
    seed: int,
) -> None:
    """Arms that close early make replicates wait at different rounds."""
    assume(arms is None or arms <= len(lengths))  # arms are drawn without replacement
    fitness = trajectories(len(lengths), 12, seed)
    fitness[np.arange(13) > np.array(lengths)[:, None]] = NAN
    costs = {"tokens": np.random.default_rng(seed).integers(1, 9, fitness.shape).astype(float)}
    setting: dict[str, Any] = {
        "rounds": 20, "seed": seed, "in_flight": in_flight, "reward": "scaled",
        "costs": costs, "budget": budget,
    }  # fmt: skip
    many = simulate(fitness, name, arms=arms, replicates=70, **setting)
    few = simulate(fitness, name, arms=arms, replicates=3, **setting)
    for part in ("pulls", "best_fitness", "rewards"):
        np.testing.assert_array_equal(getattr(few, part), getattr(many, part)[:3])
    np.testing.assert_array_equal(few.spent["tokens"], many.spent["tokens"][:3])
    if not budget:
        total = np.array(lengths)[many.arms].sum(axis=1)
        assert ((many.pulls >= 0).sum(axis=1) == np.minimum(20, total)).all()
    alone = allocate(
        POLICIES[name]((1, many.arms.shape[1]), rounds=20, rng=Draws(seed, 1, first=65)),
        LoggedArms(Logged(fitness, np.array(lengths), costs), many.arms[65:66]),
        rounds=20,
        budget=budget,
        reward="scaled",
        in_flight=in_flight,
    )
    assert alone.best_fitness[0].tolist() == many.best_fitness[65].tolist()
    assert alone.rewards[0].tolist() == pytest.approx(many.rewards[65].tolist(), nan_ok=True)


@pytest.mark.parametrize("name", ["exp3p", "exp3ix", "exp3_mixed"])
def test_a_late_reward_is_weighted_by_the_probability_at_its_ask(name: str) -> None:
    """The estimate of an arm rises by f(gain, p at the ask), whatever was asked meanwhile."""
    parameters = {"eta": 0.3, "gamma": 0.2} | ({"beta": 0.0} if name == "exp3p" else {})
    cls: Any = POLICIES[name]
    policy = cls((1, 4), rounds=50, rng=Draws(5, 1), **parameters)
    rng = np.random.default_rng(1)
    flying: dict[int, float] = {}
    for _ in range(200):
        if len(flying) < 3:
            free = np.array([[k not in flying for k in range(4)]])
            weights = np.where(free[0], np.exp(0.3 * (policy.gains[0] - policy.gains[0].max())), 0)
            mix = 0.0 if name == "exp3ix" else 0.2
            p = (1 - mix) * weights / weights.sum() + mix * free[0] / free[0].sum()
            arm = int(policy.ask(free)[0])
            flying[arm] = float(p[arm])
        else:
            arm = int(rng.choice(list(flying)))
            before, gain, p_asked = policy.gains.copy(), float(rng.random()), flying.pop(arm)
            policy.tell(np.array([arm]), np.array([gain]))
            expected = (gain - 1) / (p_asked + 0.2) if name == "exp3ix" else gain / p_asked
            rise = policy.gains[0] - before[0]
            assert rise[arm] == pytest.approx(expected, rel=1e-9)
            assert np.delete(rise, arm).tolist() == [0, 0, 0]


def test_one_pull_exceeds_a_budget_whatever_is_in_flight() -> None:
    """Arms cost 4 calls a pull: the last ones wait until it is certain that there is room."""
    fitness = trajectories(6, 30)
    for in_flight in (1, 2, 5):
        done, lines = play(
            "round_robin", fitness, rounds=30, in_flight=in_flight, budget={"calls": 38.0}
        )
        assert len(done.told) == 10
        flying = itertools.accumulate(1 if line[0] == "asked" else -1 for line in lines)
        assert max(flying) == in_flight  # until then nothing waits


# Live, on a task whose evaluation takes no time.

EVALUATOR = """def score(value):
    total = sum(float(x) for x in value)
    return {'fitness': total / (1 + abs(total)), 'objective': total}
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> evo.Task:
    """The offline model rewrites constants of such a program."""
    folder, program = tmp_path_factory.mktemp("tasks"), "def solve():\n    return [1.0, 2.0]\n"
    return evo.load_task(write_task(folder / "toy", program, EVALUATOR, "entry = ['solve']\n"))


LIVE: dict[str, Any] = {
    "arms": 4, "rounds": 14, "children": 2, "in_flight": 3, "reward": "best_fitness",
    "progress": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def live(task: evo.Task, tmp_path_factory: pytest.TempPathFactory) -> evo.Allocation:
    return evo.allocate_live(task, "exp3p", log_dir=tmp_path_factory.mktemp("live"), **LIVE)


def interleaving(folder: Path) -> list[tuple[str, int, int]]:
    """Kind, round and arm of each line of the journal."""
    import json

    lines = (folder / "allocation.jsonl").read_text().splitlines()[1:]
    return [(each["kind"], each["round"], each["arm"]) for each in map(json.loads, lines)]


def test_a_replay_in_the_order_told_repeats_the_live_allocation(live: evo.Allocation) -> None:
    matrix = replay.fitness_matrix(replay.load(live.path))
    setting = {"rounds": 14, "replicates": 1, "in_flight": 3}
    again = replay.simulate(matrix, "exp3p", missing="stop", told=live.told.tolist(), **setting)
    assert again.pulls[0].tolist() == live.pulls.tolist()
    assert again.rewards[0].tolist() == live.rewards.tolist()
    assert again.best_fitness[0].tolist() == live.best_fitness.tolist()
    policy = POLICIES["exp3p"]((1, 4), rounds=14, rng=Draws(0, 1))
    notes = Notes(policy)
    lengths = (~np.isnan(matrix)).sum(axis=1) - 1
    allocate(
        policy,
        LoggedArms(Logged(matrix, lengths, {}), np.arange(4)[None, :], missing="stop"),
        rounds=14,
        in_flight=3,
        flights=InOrder(live.told.tolist()),
        watcher=notes,
    )
    told = read_journal(live.path / "allocation.jsonl").told
    digests = [digest for what, *_, digest in notes.lines if what == "told"]
    assert digests == [record.digest for record in told.values()]
    assert [line[:3] for line in notes.lines] == interleaving(live.path)


@pytest.mark.parametrize("kept", [3, 9, 20])
def test_a_killed_allocation_repeats_its_journal_and_goes_on(
    kept: int, live: evo.Allocation, task: evo.Task, tmp_path: Path
) -> None:
    journal = (live.path / "allocation.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "allocation.jsonl").write_bytes(b"".join(journal[:kept]))
    for log in live.arms[: kept % 4]:  # some arms' logs are there, and torn
        (tmp_path / log.path.name).write_bytes(log.path.read_bytes()[:-40])
    again = evo.allocate_live(task, "exp3p", log_dir=tmp_path, **LIVE)
    before = interleaving(live.path)
    assert interleaving(tmp_path)[: kept - 1] == before[: kept - 1]
    assert len(again.told) == 14
    if again.told.tolist() == live.told.tolist():
        assert again.pulls.tolist() == live.pulls.tolist()
    lines = (tmp_path / "allocation.jsonl").read_bytes().splitlines(keepends=True)
    assert lines[:kept] == journal[:kept]
