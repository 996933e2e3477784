from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import chain_runs

from replay.planning.kernel import fit_kernel

SIZES = (1, 2, 4, 8, 16, 32, 64)


@pytest.fixture(scope="module")
def logged():
    return chain_runs(sizes=SIZES, budget=128, frailty=8)


@pytest.fixture(scope="module")
def kernel(logged):
    return fit_kernel(logged[1])


def test_runs_never_fall_and_begin_at_the_initial_program(kernel):
    best = kernel.simulate(64, 4, runs=200)
    assert best.shape == (200, 65)
    np.testing.assert_allclose(best[:, 0], 0.2, atol=1e-9)
    assert (np.diff(best, axis=1) >= 0).all()
    assert best.max() <= 1 + 1e-9


@pytest.mark.parametrize("frailty", [None, 4])
def test_cells_of_the_true_chain_are_predicted(frailty):
    """Estimated from 10 runs per N, against 300 runs of the truth."""
    _, children = chain_runs(sizes=SIZES, budget=128, frailty=frailty)
    truth, _ = chain_runs(
        sizes=(1, 8), budget=64, frailty=frailty, seeds=range(300), rng=np.random.default_rng(1)
    )
    kernel = fit_kernel(children)
    for N, part in truth.groupby("children"):
        curve = part.groupby("generation")["best_fitness"].mean().to_numpy()
        found = kernel.simulate(len(curve) - 1, int(N), runs=3000).mean(axis=0)
        assert np.abs(found - curve).max() < 0.06


def test_the_best_of_many_children_is_that_of_as_many_draws():
    """One generation of N from the initial program: P(none better) = (1 - p)^N."""
    _, children = chain_runs(sizes=(16,), budget=16, seeds=range(40), rate=0.05)
    kernel = replace(fit_kernel(children), variance=1e-6)
    for N in (1, 8, 64):
        stayed = (kernel.simulate(1, N, runs=20_000)[:, 1] <= 0.2 + 1e-9).mean()
        expected = (1 - kernel.better[0]) ** N
        assert stayed == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 20_000))


def test_beyond_what_was_logged_steps_are_as_long_as_elsewhere():
    """In z a step is the share of the gap that it takes away, -log of what remains."""
    _, children = chain_runs(sizes=(4,), budget=64, step=0.3)
    assert fit_kernel(children).visits.mean == pytest.approx(0.3, rel=0.2)


def test_dead_ends_are_told_from_alike_parents():
    alike = fit_kernel(chain_runs(sizes=(1, 4), budget=256, frailty=None)[1])
    differ = fit_kernel(chain_runs(sizes=(1, 4), budget=256, frailty=2)[1])
    assert differ.concentration <= 8
    assert alike.concentration > 32


def test_lucky_runs_are_told_from_lucky_parents():
    """A run's own rate stays with it: the best of five such runs is better than of alike ones."""
    settings = {"sizes": (1,), "budget": 48, "rate": 0.2}
    logged = chain_runs(**settings, seeds=range(30), luck=0.8)[1]
    kernel = fit_kernel(logged)
    assert kernel.variance >= 0.3
    assert fit_kernel(chain_runs(**settings, seeds=range(30))[1]).variance <= 0.1
    rng = np.random.default_rng(5)
    truth = chain_runs(**settings, seeds=range(600), luck=0.8, rng=rng)[0]
    ends = truth[truth["generation"] == 48]["best_fitness"].to_numpy()
    gain = ends.reshape(-1, 5).max(axis=1).mean() - ends.mean()
    ours, alike = (
        ends.reshape(-1, 5).max(axis=1).mean() - ends.mean()
        for ends in (
            made.simulate(48, 1, runs=6000)[:, -1]
            for made in (kernel, replace(kernel, variance=1e-6))
        )
    )
    assert ours == pytest.approx(gain, abs=0.035)
    assert alike < gain - 0.035


def test_inside_is_what_five_runs_were_as_deep_and_as_broad_as():
    _, children = chain_runs(sizes=(2, 8), budget=16, seeds=range(5))
    kernel = fit_kernel(children, best=1.0)
    found = {(T, N): kernel.inside(T, N) for T in (1, 2, 3, 8, 9) for N in (1, 2, 4, 8, 9)}
    inside = {split for split, known in found.items() if known}
    assert inside == {(T, 2) for T in (1, 2, 3, 8)} | {(T, N) for T in (1, 2) for N in (4, 8)}
    four = fit_kernel(children[~children["run"].str.endswith("-4")], best=1.0)
    assert four.inside(2, 2)
    assert not four.inside(3, 2)
    one = fit_kernel(children[children["run"] == "toy-chain-2-0"], best=1.0)
    assert not any(one.inside(T, N) for T, N in found)


def test_states_are_seen_where_three_runs_had_parents():
    _, children = chain_runs(sizes=(2,), budget=16, seeds=range(3))
    three, two = (fit_kernel(children[children["run"].isin(children["run"].unique()[:n])])
                  for n in (3, 2))  # fmt: skip
    near = np.argmin(np.abs(three.fitness[1:] - 0.2)) + 1  # where all begin
    assert three.seen[[0, near]].all()
    assert not three.seen[-1]
    assert not two.seen[1:].any()


def test_what_forks_inherited_is_told_once():
    """Two forks of one run at generation 4, beside the run itself and without it."""
    _, children = chain_runs(sizes=(4,), budget=32, seeds=range(6))
    names = children["run"].unique()
    children = children.assign(root=children["run"], forked_from="", inherited=False)
    mine = children[children["run"] == names[0]]
    forks = [
        mine.assign(run=f"fork-{copy}", forked_from="x", inherited=mine["generation"] <= 4)
        for copy in range(2)
    ]
    ours = children[children["run"] != names[0]]
    for kept in ([mine], []):
        told = fit_kernel(pd.concat([*kept, *forks, ours])).visits
        rows = [mine] if kept else [forks[0][forks[0]["inherited"]]]
        own = [fork[~fork["inherited"]] for fork in forks]
        expected = fit_kernel(pd.concat([*rows, *own, ours])).visits
        assert told.tried.sum() == expected.tried.sum() < 8 * 32


def test_fitness_far_beyond_the_best_says_what_is_missing(logged):
    columns = ["fitness", "parent_fitness"]
    far = logged[1].assign(**{c: 100 * logged[1][c] for c in columns})
    with pytest.raises(ValueError, match=r"got 1\.0 where 20 to .* was logged; pass best="):
        fit_kernel(far)


def test_what_was_logged_again_and_again_keeps_its_fitness():
    """Thresholds lie on the fitness of the same program: it must reach itself."""
    _, children = chain_runs(sizes=(4,), budget=32, seeds=range(8))
    same = children["improved"] & (children["generation"] <= 2)
    children.loc[same, "fitness"] = children.loc[same, "fitness"].clip(lower=0.4321)
    kernel = fit_kernel(children)
    assert (kernel.fitness == 0.4321).sum() == 1
    logged = children[children["generation"] == 1].groupby("run")["fitness"].max() >= 0.4321
    reached = kernel.simulate(1, 4, runs=4000)[:, -1] >= 0.4321
    assert reached.mean() == pytest.approx(logged.mean(), abs=0.2)


def test_order_of_rows_does_not_matter(logged, kernel):
    mixed = fit_kernel(logged[1].sample(frac=1, random_state=0))
    np.testing.assert_allclose(np.sort(mixed.better), np.sort(kernel.better))
    np.testing.assert_allclose(mixed.steps, kernel.steps, atol=1e-12)


def test_the_level_of_few_differing_runs_is_uncertain():
    """Of n runs whose factors vary by v, the mean is unknown by v / n."""
    _, children = chain_runs(sizes=(1,), budget=48, seeds=range(6), luck=0.8)
    kernel = fit_kernel(children)
    found = [(each.level, each.variance) for each in kernel.resampled(200)]
    levels, variances = np.array(found).T
    assert levels.mean() == pytest.approx(1, abs=0.1)
    assert levels.var() == pytest.approx(variances.mean() / 6, rel=0.4)
    assert len(set(variances)) > 2


def test_an_initial_program_without_fitness_is_a_state_of_its_own():
    _, children = chain_runs(sizes=(2,), budget=32, failed=0.5)
    children.loc[children["parent_fitness"] == 0.2, "parent_fitness"] = np.nan
    children.loc[children["fitness"] == 0.2, "fitness"] = np.nan
    kernel = fit_kernel(children)
    best = kernel.simulate(16, 2, runs=300)
    assert np.isnan(best[:, 0]).all()
    assert 0 < np.isnan(best[:, 1]).mean() < 1
    assert np.isfinite(best[:, -1]).mean() > 0.9


def test_a_pilot_without_a_better_child_still_gives_odds():
    _, children = chain_runs(sizes=(4,), budget=8, seeds=range(3), rate=0.0)
    assert not children["improved"].any()
    with pytest.raises(ValueError, match="expected best="):
        fit_kernel(children)  # 1 is far away from all that was seen
    kernel = fit_kernel(children, best=1.0)
    assert 0 < kernel.better[0] < 0.1
    assert kernel.simulate(64, 8)[:, -1].mean() > 0.2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.drop(columns="improved"), "no column"),
        (lambda table: table.assign(search="islands"), "search 'greedy'.*; these are of islands"),
        (lambda table: table.assign(fitness=np.nan, parent_fitness=np.nan), "got none"),
        (
            lambda table: pd.concat([table, table.assign(model="other")]),
            "one task and one model",
        ),
    ],
)
def test_tables_that_make_no_sense_are_refused(logged, change, words):
    with pytest.raises(ValueError, match=words):
        fit_kernel(change(logged[1]))


def test_resamples_without_any_fitness_fall_back_on_the_prior():
    """One of ten runs ever found something: many resamples do not hold it."""
    children = chain_runs(sizes=(1,), budget=16)[1]
    lucky = children["run"] == children["run"].iloc[0]
    barren = children.assign(
        fitness=children["fitness"].where(lucky),
        parent_fitness=children["parent_fitness"].where(lucky & (children["generation"] > 1)),
        improved=children["improved"] & lucky,
    )
    for kernel in fit_kernel(barren).resampled(20):
        assert np.isfinite(kernel.better).all()
        assert ((kernel.better > 0) & (kernel.better < 1)).all()
