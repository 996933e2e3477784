"""Where earlier runs come from, and that no run is both learned from and judged."""

import numpy as np
import pandas as pd
import pytest
from samples import write_sample

import replay


def frame(runs: int, first: int = 0, children: int = 4, generations: int = 8) -> pd.DataFrame:
    rng = np.random.default_rng(first)
    rows = [
        {"run": f"r{first + k}", "task": "t", "model": "m", "seed": first + k, "generation": g,
         "children": children, "best_fitness": value}
        for k in range(runs)
        for g, value in enumerate(np.append(0.1, 0.1 + rng.exponential(0.05, generations).cumsum()))
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_judged_run_among_the_earlier_ones_is_refused() -> None:
    judged = frame(12)
    with pytest.raises(ValueError, match="expected runs that are not judged, got r10"):
        replay.judge(judged, "freeze_thaw", "single", earlier=frame(3, first=10), arms=2)
    with pytest.raises(ValueError, match="runs of one children, got 4, 8"):
        replay.simulate(judged, "freeze_thaw", rounds=4, earlier=frame(8, first=50, children=8))


def test_judge_compete_and_simulate_take_the_same_earlier_runs() -> None:
    judged, earlier = frame(30), frame(20, first=100)
    verdict = replay.judge(judged, "freeze_thaw", "single", earlier=earlier)
    contest = replay.compete(judged, ["freeze_thaw"], earlier=earlier)
    made = replay.simulate(judged, "freeze_thaw", rounds=8, arms=6, replicates=64, earlier=earlier)
    again = replay.simulate(
        judged, "freeze_thaw", rounds=8, arms=6, replicates=64,
        earlier=replay.fitness_matrix(earlier),
    )  # fmt: skip
    assert np.array_equal(made.pulls, again.pulls)
    finals = contest.finals.set_index("policy")["value"]
    assert verdict.effect == pytest.approx(finals["freeze_thaw"] - finals["single"])


def test_all_leaves_out_policies_that_have_nothing_to_learn_from() -> None:
    judged = frame(12)
    without = {*replay.compete(judged, ["all"], replicates=200).finals["policy"]}
    taught = replay.compete(judged, ["all"], replicates=200, earlier=frame(8, first=50))
    assert {*taught.finals["policy"]} - without == {"optimal_stopping", "freeze_thaw"}


def test_earlier_runs_are_read_from_logs(tmp_path) -> None:
    for seed in range(6):
        write_sample(tmp_path / f"{seed}.jsonl", children=4, seed=seed)
    fitness = replay.fitness_matrix(replay.load(tmp_path))
    rounds = fitness.shape[1] - 1
    settings = {"rounds": rounds, "arms": 2, "replicates": 40}
    one = replay.simulate(fitness[::-1], "freeze_thaw", earlier=str(tmp_path), **settings)
    other = replay.simulate(fitness[::-1], "freeze_thaw", earlier=fitness, **settings)
    assert np.array_equal(one.pulls, other.pulls)
