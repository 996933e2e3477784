import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame, bilinear_runs

from replay import claims


def verdicts(table):
    return dict(zip(table["claim"], table["verdict"], strict=True))


@pytest.mark.parametrize(
    ("c", "regime", "expected"),
    [
        (-0.12, "interior", "holds"),
        (-0.12, "corner", "fails"),
        (0.0, "corner", "holds"),
        (0.0, "interior", "fails"),
    ],
)
def test_regimes_of_known_surfaces(c, regime, expected):
    frame = bilinear_runs((-0.3, -0.25, -0.05, c), run_noise=0.05, generation_noise=0.02)
    table = claims.depth_breadth_claims(frame, regimes={"toy": regime})
    found = verdicts(table)
    assert found[f"c says {regime}"] == expected
    assert found[f"the optimum is {regime}"] == expected
    assert found["the bilinear fit explains the grid"] == "holds"
    assert (table["n"] == 100).all()


def test_noise_leaves_a_regime_undetermined():
    frame = bilinear_runs((-0.3, -0.1, -0.1, -0.03), run_noise=0.6, seeds=range(3), budget=32)
    found = verdicts(claims.depth_breadth_claims(frame, calls=32, regimes={"toy": "interior"}))
    assert found["c says interior"] == "undetermined"


def test_a_task_that_the_paper_does_not_have_has_no_regime_to_check():
    assert len(claims.depth_breadth_claims(bilinear_runs(budget=32))) == 2


def test_r2_intervals_hold_the_r2_of_new_runs():
    tables = [
        claims.depth_breadth_claims(bilinear_runs(rng=np.random.default_rng(k))) for k in range(12)
    ]
    r2 = pd.concat(table.head(1) for table in tables)
    typical = r2["value"].median()
    assert (r2["low"].le(typical) & r2["high"].ge(typical)).sum() >= 10
    assert r2["high"].max() <= 1


def test_an_envelope_rises_or_not_and_needs_two_models_to_collapse():
    one = bilinear_runs(run_noise=0.05)
    found = verdicts(claims.envelope_claims(one, axis="tokens"))
    assert found["the best in sweep rises with the budget"] == "holds"
    assert found["models share that curve"] == "does not apply"
    other = bilinear_runs(run_noise=0.05, rng=np.random.default_rng(1)).assign(model="other")
    other["run"] = "other " + other["run"]
    both = claims.envelope_claims(pd.concat([one, other]), axis="tokens")
    assert verdicts(both)["models share that curve"] == "holds"
    assert set(verdicts(claims.envelope_claims(one, axis="flops")).values()) == {
        "holds",
        "does not apply",
    }
    flat = bilinear_runs((-0.5, 0.0, 0.0, 0.0), run_noise=0.0, generation_noise=0.0)
    table = claims.envelope_claims(flat, axis="tokens")
    assert table["value"].iloc[0] == 0.0
    assert table["verdict"].iloc[0] == "undetermined"


def arms(rises, n=12, rounds=40):
    """Runs of which those in `rises` climb to 0.9 while the others stay at 0.1."""
    best = np.full((n, rounds + 1), 0.1)
    best[rises] = np.linspace(0.1, 0.9, rounds + 1)
    return as_frame(best, children=1, seeds=range(n))


def test_a_pool_that_must_share_its_pulls_loses_to_one_run_among_equals():
    table = claims.bandit_claims(arms(range(12)), rounds=40, policies=("ucb1",))
    found = verdicts(table)
    assert found["a pool beats one run"] in {"fails", "undetermined"}
    assert found["ucb1 beats one run"] in {"fails", "undetermined"}
    assert found["ucb1 reaches tau before one run does"] != "holds"
    assert found["K = 5 beats K = 2"] != "holds"
    assert found["K = 10 beats K = 50"] == "does not apply"
    assert table.set_index("claim")["value"].isna().sum() == 1


def test_a_policy_that_finds_the_good_arm_beats_random():
    table = claims.bandit_claims(
        arms(range(0, 12, 3)), rounds=40, policies=("best_arm", "round_robin")
    )
    found = verdicts(table)
    assert found["best_arm beats random allocation"] != "fails"
    assert found["round_robin beats random allocation"] != "holds"


def test_claims_are_of_one_size_of_generation():
    other = arms([]).assign(children=2)
    other["run"] = "other " + other["run"]
    frame = pd.concat([arms(range(12)), other])
    pd.testing.assert_frame_equal(
        claims.bandit_claims(frame, rounds=40, policies=("ucb1",)),
        claims.bandit_claims(arms(range(12)), rounds=40, policies=("ucb1",)),
    )


def says_nothing(table):
    return (
        (table["verdict"] == "does not apply").all()
        and table[["value", "low", "high"]].isna().all(axis=None)
        and table["why"].str.startswith("needs ").all()
    )


@pytest.mark.parametrize("generations", [1, 4, 40])
def test_runs_of_one_size_are_no_sweep(generations):
    frame = as_frame(np.full((5, generations + 1), 0.5), children=8, seeds=range(5))
    toy = claims.depth_breadth_claims(frame, regimes={"toy": "corner"})
    assert len(toy) == 4
    assert says_nothing(toy)
    assert says_nothing(claims.envelope_claims(frame, axis="tokens"))
    assert says_nothing(claims.bandit_claims(frame))
    assert (toy["n"] == 5).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"arms": 7}, "needs 14 runs of one N for pools of 7, has 12"),
        ({"rounds": 9}, "needs 10 pulls for a choice among 5 arms, has 9"),
        ({"rounds": 41}, "needs runs of 41 generations, the shortest has 40"),
    ],
)
def test_a_claim_of_pools_says_what_it_lacks(changed, message):
    table = claims.bandit_claims(arms(range(12)), **changed)
    assert says_nothing(table[~table["claim"].str.startswith("K = ")])
    assert message in set(table["why"])


def test_one_run_of_a_size_is_no_sweep_either():
    frame = bilinear_runs(budget=16, seeds=range(3))
    alone = frame[(frame["children"] != 4) | (frame["seed"] == 0)]
    assert (
        claims.depth_breadth_claims(alone)["why"]
        .eq("needs two runs of each N, has one of N = 4")
        .all()
    )


def test_while_nothing_is_ok_fitness_counts_as_nothing():
    frame = arms(range(0, 12, 3))
    late = frame.assign(best_fitness=frame["best_fitness"].where(frame["best_fitness"] > 0.3))
    late = late[late["run"].isin(late.dropna()["run"])]
    never = frame[~frame["run"].isin(late["run"])].assign(best_fitness=np.nan)
    table = claims.bandit_claims(pd.concat([late, never]), policies=("best_arm",))
    assert set(table["why"]) >= {"half the runs have no fitness at all"}
    table = claims.bandit_claims(pd.concat([late, never]), policies=("best_arm",), tau=0.5)
    told = table[table["verdict"] != "does not apply"]
    assert len(told) == 5
    assert np.isfinite(told["value"]).all()


def test_the_best_in_sweep_is_compared_on_sizes_that_are_no_powers_of_two():
    part = bilinear_runs(budget=64, run_noise=0.05)
    depth = {1: 36, 4: 12, 8: 4}
    uneven = part[part["generation"] <= part["children"].map(depth).fillna(-1)]
    uneven = uneven.assign(children=uneven["children"].map({1: 1, 4: 3, 8: 9}))
    row = claims.envelope_claims(uneven, axis="tokens").iloc[0]
    assert row["n"] == 10
    assert row["verdict"] == "holds"


def test_a_ledger_holds_every_claim_of_every_source():
    sweep = bilinear_runs(budget=16)
    table = claims.ledger({"swept": sweep, "arms": arms(range(12))}, axis="tokens", replicates=50)
    counts = table.groupby("source")["claim"].nunique()
    assert counts["swept"] == counts["arms"] == table["claim"].nunique()
    assert set(table["verdict"]) <= {"holds", "fails", "undetermined", "does not apply"}
    told = table["verdict"] != "does not apply"
    assert (table["why"].eq("") == told).all()
