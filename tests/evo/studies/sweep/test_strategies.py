"""Strategies: which trials they propose, given those before."""

import pytest
from sweep_spaces import WIDE, inside, play

from evo.studies.sweep.space import parse_space
from evo.studies.sweep.strategies import STRATEGIES, Trial, build_strategy


@pytest.mark.parametrize("name", ["random", "guided", "bayesian"])
def test_trials_stay_inside_and_are_as_many_as_asked_for(name) -> None:
    space = parse_space(WIDE)
    history = play(name, space, trials=30)
    assert len(history) == 30
    assert all(inside(space, trial.values) for trial in history)
    assert history == play(name, space, trials=30)
    assert history != play(name, space, trials=30, seed=1)


def test_guided_begins_like_random_and_without_history_is_random() -> None:
    space = parse_space(WIDE)
    at_random = play("random", space, trials=40)
    guided = play("guided", space, trials=40, explore_ratio=0.3)
    assert guided[:12] == at_random[:12]
    assert guided[12:] != at_random[12:]
    nothing_works = play("guided", space, trials=40, value=lambda values: None)
    assert [trial.values for trial in nothing_works] == [trial.values for trial in at_random]
    one = play("guided", space, trials=3, explore_ratio=0.0)
    assert one[0] == at_random[0]


def test_guided_changes_one_field_of_the_best() -> None:
    space = parse_space({name: WIDE[name] for name in ("model", "children", "max_tokens")})
    value = lambda values: float(values["children"])  # noqa: E731
    history = play("guided", space, trials=30, top_k=2, value=value)
    for first in range(9, 30, 2):
        best = []
        for trial in sorted(history[:first], key=lambda trial: -value(trial.values)):
            if trial.values not in best:
                best.append(trial.values)
        for k, trial in enumerate(history[first : first + 2]):
            parent = best[:2][(first + k - 9) % len(best[:2])]
            assert sum(parent[name] != trial.values[name] for name in parent) <= 1
    assert max(value(trial.values) for trial in history) == 9.0


@pytest.mark.parametrize("name", [*STRATEGIES])
def test_a_strategy_that_is_interrupted_goes_on_the_same(name) -> None:
    listed = {"model": ["a", "b"], "sampling.temperature": [0.2, 0.4, 0.8], "children": [2, 4, 8]}
    space = parse_space(listed if name == "grid" else WIDE)
    trials = None if name == "grid" else 40
    whole = play(name, space, trials=trials)
    strategy = build_strategy(name, {}, space, seed=0, trials=trials)
    first = strategy.propose([])
    for cut in {len(first), min(len(whole), len(first) + 5 if name == "guided" else 24)}:
        anew = build_strategy(name, {}, space, seed=0, trials=trials)
        batch = anew.propose(whole[:cut])
        assert batch == [trial.values for trial in whole[cut : cut + len(batch)]]


def test_unknown_strategies_and_options_are_listed() -> None:
    space = parse_space({"children": [1]})
    with pytest.raises(ValueError, match="known: grid, random, guided, bayesian"):
        build_strategy("gird", {}, space, seed=0, trials=None)
    with pytest.raises(TypeError, match="known: explore_ratio, top_k"):
        build_strategy("guided", {"topk": 3}, space, seed=0, trials=None)
    with pytest.raises(ValueError, match="every combination"):
        build_strategy("grid", {}, space, seed=0, trials=3)
    assert build_strategy("random", {}, space, seed=0, trials=None).planned == 100


@pytest.mark.parametrize("name", ["random", "guided", "bayesian"])
@pytest.mark.parametrize(("a", "b"), [(0.01, 5.0), (100.0, -5.0), (1.0, 0.0)])
def test_scale_and_sign_of_fitness_decide_nothing(name, a, b) -> None:
    space = parse_space({n: WIDE[n] for n in ("model", "children", "max_tokens")})
    proposed = [
        [trial.values for trial in play(name, space, trials=30, value=value)]
        for value in (lambda v: v["children"] / 8.0, lambda v: a * (v["children"] / 8.0) + b)
    ]
    assert proposed[0] == proposed[1]


LISTED = {"children": [2, 4, 8], "model": ["a", "b"]}


def test_a_grid_is_proposed_once_and_goes_on_with_what_is_left() -> None:
    space = parse_space(LISTED)
    grid = build_strategy("grid", {}, space, seed=0, trials=None)
    whole = grid.propose([])
    assert len(whole) == grid.planned == 6
    assert {tuple(sorted(each.items())) for each in whole} == {
        (("children", n), ("model", m)) for n in (2, 4, 8) for m in ("a", "b")
    }
    history = [Trial(each, 0.5) for each in whole]
    for done in range(7):
        assert grid.propose(history[:done]) == whole[done:]


def test_more_trials_begin_with_the_same_ones() -> None:
    space = parse_space(WIDE)
    few, many = (build_strategy("random", {}, space, seed=3, trials=n) for n in (4, 9))
    assert many.propose([])[:4] == few.propose([])
    assert few.propose([Trial({}, None)] * 4) == []
    assert len(many.propose([Trial({}, None)] * 4)) == 5


@pytest.mark.parametrize(
    ("ratio", "trials", "explored"), [(0.0, 10, 1), (0.3, 10, 3), (0.39, 10, 3), (1.0, 10, 10)]
)
def test_the_share_at_random_is_rounded_down_and_at_least_one(
    ratio: float, trials: int, explored: int
) -> None:
    space = parse_space(WIDE)
    options = {"explore_ratio": ratio, "top_k": 2}
    guided = build_strategy("guided", options, space, seed=0, trials=trials)
    first = guided.propose([])
    assert (
        first == build_strategy("random", {}, space, seed=0, trials=trials).propose([])[:explored]
    )
    history = [Trial(each, 0.5) for each in first]
    assert len(guided.propose(history)) == min(2, trials - explored)


@pytest.mark.parametrize(
    "options", [{"explore_ratio": -0.01}, {"explore_ratio": 1.01}, {"top_k": 0}]
)
def test_shares_and_numbers_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        build_strategy("guided", options, parse_space(WIDE), seed=0, trials=9)


def test_of_a_configuration_that_was_tried_twice_the_better_trial_counts() -> None:
    """So that it is changed once in a round, and not twice."""
    space = parse_space({"children": [1, 2, 3, 4, 5, 6, 7, 8, 9], "model": ["a", "b"]})
    guided = build_strategy("guided", {"explore_ratio": 0.4, "top_k": 2}, space, seed=0, trials=10)
    best, other = {"children": 9, "model": "a"}, {"children": 1, "model": "b"}
    history = [Trial(best, 0.9), Trial(best, 0.8), Trial(other, 0.1), Trial(best, None)]
    one, two = guided.propose(history)
    assert sum(one[name] != best[name] for name in best) <= 1
    assert sum(two[name] != other[name] for name in other) <= 1


def test_the_only_sampler_that_there_once_was_may_still_be_named() -> None:
    build_strategy("bayesian", {"sampler": "tpe"}, parse_space(WIDE), seed=0, trials=3)
    with pytest.raises(TypeError, match="sampler"):
        build_strategy("bayesian", {"sampler": "cma"}, parse_space(WIDE), seed=0, trials=3)
    with pytest.raises(ValueError, match="did you mean 'random'"):
        build_strategy("randon", {}, parse_space(WIDE), seed=0, trials=3)
