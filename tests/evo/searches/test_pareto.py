"""A frontier: who is a candidate, and how often it is drawn."""

import math

import pytest
from archives import stream
from hypothesis import given
from hypothesis import strategies as st

from evo.searches import Member, Pareto


def scored(place: int, *scores: float) -> Member:
    named = dict(zip("abc", scores, strict=True))
    return Member((1, place), sum(scores) / 3, (), "", {"speed": 2.0 * place}, named)


def test_a_frontier_holds_what_is_best_on_some_instance() -> None:
    search = Pareto()
    state = search.start(Member((0, 0), 0.0, (), "", {"speed": 9.0}, dict.fromkeys("abc", 0.0)), 0)
    generation = [scored(0, 1, 0, 0), scored(1, 0, 1, 0.5), scored(2, 0.9, 0.9, 0.4)]
    state = search.fold(state, [*generation, scored(3, 1, 0, 0.5), scored(4, 0, 0.9, 0)])
    # Of those that are the best, (1, 0) shares all it is best on with (1, 3), which is better.
    assert search.weights(state) == {(1, 1): 2.0, (1, 3): 2.0}
    places = [r.parents[0] for r in search.plan(state, 3000, stream(3000, 2))]
    assert abs(places.count((1, 1)) / 3000 - 0.5) < 0.05
    fast = Pareto(metrics=("-speed", "speed"))
    state = fast.fold(fast.start(Member((0, 0), 0.0, (), "", {"speed": 9.0}), 0), generation)
    assert fast.weights(state) == {(0, 0): 1.0, (1, 0): 1.0}


def test_scores_that_are_nearly_equal_or_nothing_count_on_the_frontier() -> None:
    def candidates(*scores: dict[str, float | None]) -> set[int]:
        search = Pareto()
        state = search.start(Member((0, 0), None), 0)
        made = [Member((1, k), 0.5 - k / 9, scores=each) for k, each in enumerate(scores)]
        return {place[1] for place in search.weights(search.fold(state, made))}

    last_bit = math.nextafter(1.0, 2)
    assert candidates({"a": 1.0, "b": 0.0}, {"a": last_bit, "b": 0.0}) == {0}
    assert candidates({"a": 0.0, "b": 1.0}, {"a": -1.0, "b": 1.0}) == {0}
    assert candidates({"a": None, "b": 1.0}, {"a": -1.0, "b": 0.5}) == {0, 1}


def test_a_frontier_forgets_what_is_best_on_nothing() -> None:
    search = Pareto()
    state = search.start(Member((0, 0), 0.0, scores={"a": 0.0}), 0)
    state = search.fold(state, [Member((1, 0), 1.0, scores={"a": 1.0})])
    assert [each.place for each in state.members] == [(1, 0)]


SCORES = st.dictionaries(st.sampled_from("abcd"), st.none() | st.sampled_from([0.0, 0.5, 1.0]))


@given(st.lists(st.tuples(SCORES, st.none() | st.sampled_from([0.0, 0.5, 1.0])), max_size=6))
def test_candidates_cover_every_objective_and_none_of_them_could_be_spared(
    found: list[tuple[dict[str, float | None], float | None]],
) -> None:
    search = Pareto()
    members = [Member((1, k), value, scores=each) for k, (each, value) in enumerate(found)]
    state = search.fold(search.start(Member((0, 0), None), 0), members)
    able = [m for m in members if m.fitness is not None]
    # Without a score on any instance the fitness is the objective.
    scores = {
        m.place: {name: v for name, v in m.scores.items() if v is not None}
        or {"fitness": m.fitness}
        for m in able
    }
    fronts = []
    for name in {name for each in scores.values() for name in each}:
        best = max(each[name] for each in scores.values() if name in each)
        fronts.append({place for place, each in scores.items() if each.get(name) == best})
    weights = search.weights(state)
    assert bool(weights) == bool(able)
    assert all(front & set(weights) for front in fronts)
    for place, weight in weights.items():
        own = [front for front in fronts if place in front]
        assert weight == len(own)
        assert any(not (front & set(weights)) - {place} for front in own)
    assert [each.place for each in state.members] == [
        place for place in scores if any(place in front for front in fronts)
    ]


def test_less_of_a_metric_with_a_minus_is_better() -> None:
    def best(metric: str, *values: float) -> set[int]:
        search = Pareto(metrics=(metric,))
        members = [Member((1, k), 0.5, metrics={"x": value}) for k, value in enumerate(values)]
        state = search.fold(search.start(Member((0, 0), None), 0), members)
        return {place[1] for place in search.weights(state)}

    assert best("x", 1.0, 3.0, 2.0) == {1}
    assert best("-x", 1.0, 3.0, 2.0) == {0}
    with pytest.raises(ValueError, match="got '-y'"):
        Pareto(metrics=("-y",)).start(Member((0, 0), 0.5, metrics={"x": 1.0}), 0)
    kept = Pareto(metrics=("-x",)).start(Member((0, 0), 0.5, metrics={"x": 1.0}), 0)
    assert [each.place for each in kept.members] == [(0, 0)]


def test_an_empty_frontier_asks_for_the_initial_program() -> None:
    search = Pareto()
    state = search.fold(search.start(Member((0, 0), None), 0), [Member((1, 0), None)])
    assert [each.parents for each in search.plan(state, 2, stream(2, 1))] == [((0, 0),)] * 2
