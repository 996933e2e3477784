import numpy as np
import pandas as pd
import pytest
from benchmarks.paper_ledger import beside
from foreign_samples import DATA
from synthetic_runs import as_frame, bilinear_runs

import evo
import replay
from replay.claims import paper as claims


def verdicts(table):
    return dict(zip(table["claim"], table["verdict"], strict=True))


def swept(best_by_size, seeds=10):
    """Runs of several N at a budget of 16 calls; what each N reaches."""
    rng, parts = np.random.default_rng(0), []
    for N, value in best_by_size.items():
        best = np.repeat(value + 0.01 * rng.normal(size=(seeds, 1)), 16 // N + 1, axis=1)
        parts.append(as_frame(best, children=N, seeds=range(seeds)))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize(
    ("high", "regime", "expected"),
    [(4, "interior", "greater"), (4, "corner", "less"), (1, "corner", "greater")],
)
def test_regimes_of_known_surfaces(high, regime, expected):
    frame = swept({N: 0.5 + 0.2 * (high == N) for N in (1, 2, 4, 8, 16)})
    table = claims.ledger({"toy": frame}, regimes={"toy": regime}, policies=())
    assert verdicts(table)[f"the best split is {regime}"] == expected
    row = table.iloc[0]
    assert abs(row["value"]) == pytest.approx(0.2, abs=0.03)
    assert row["n"] == 50


def test_an_envelope_rises_or_is_noise():
    found = verdicts(claims.ledger({"a": bilinear_runs(budget=64, run_noise=0.05)}, policies=()))
    assert found["the best in sweep rises with the budget"] == "greater"
    assert found["it follows a smooth curve"] == "greater"


def arms(rises, n=20, rounds=24):
    """Runs of which those in `rises` climb to 0.9 while the others stay near 0.1."""
    best = np.full((n, rounds + 1), 0.1)
    best[list(rises)] = np.linspace(0.1, 0.9, rounds + 1)
    best += 0.001 * np.random.default_rng(0).random((n, 1))
    return as_frame(best, children=1, seeds=range(n))


def test_a_policy_that_finds_the_good_arm_beats_random():
    frame = arms(range(0, 20, 2))
    table = claims.ledger({"arms": frame}, policies=("best_arm", "round_robin"))
    found = verdicts(table)
    assert found["best_arm beats random allocation"] == "greater"
    assert found["round_robin beats random allocation"] != "greater"
    assert found["the best in sweep rises with the budget"] in {"greater", "undetermined"}


def test_among_equals_a_pool_that_shares_its_pulls_does_not_beat_one_run():
    found = verdicts(claims.ledger({"arms": arms(range(20))}, policies=("ucb1",)))
    assert found["a pool beats one run"] != "greater"
    assert found["ucb1 beats one run"] != "greater"


def test_where_draws_tie_with_what_was_seen_no_claim_fails():
    """Runs that are all alike: the effect is 0, and so is every draw of its null."""
    frame = swept(dict.fromkeys((1, 2, 4, 8, 16), 0.5)).assign(best_fitness=0.5)
    table = claims.ledger({"toy": frame}, regimes={"toy": "interior"}, policies=("ucb1",))
    assert set(table["verdict"]) <= {"undetermined", "does not apply"}


def test_holm_asks_more_of_the_best_of_many():
    p = np.array([0.01, np.nan, 0.04, 0.03])
    np.testing.assert_allclose(claims.holm(p), [0.03, np.nan, 0.06, 0.06])
    assert claims.holm(np.array([0.02]))[0] == 0.02


def test_what_logs_do_not_hold_does_not_apply_and_is_said():
    few = as_frame(np.full((3, 5), 0.5), children=8, seeds=range(3))
    none = arms(range(0, 20, 3)).assign(best_fitness=np.nan)
    table = claims.ledger({"few": few, "none": none}, regimes={"toy": "corner"})
    assert (table["verdict"] == "does not apply").all()
    assert table[["value", "low", "high", "p"]].isna().all(axis=None)
    assert set(table["why"]) >= {
        "needs 10 runs of one N of 4 or more generations, has 3 of 4",
        "a pool found nothing ok, which has no mean",
        "needs 5 budgets of 5 runs each, has 0",
    }
    assert set(table["source"]) == {"few", "none"}


def test_runs_under_way_and_generations_that_others_had_a_part_in_do_not_count():
    frame = arms(range(0, 20, 2))
    late = arms(range(3), n=3).query("generation < 9").assign(run=lambda f: "late " + f["run"])
    one = claims.ledger({"arms": frame}, policies=())
    more = claims.ledger({"arms": pd.concat([frame, late])}, policies=())
    assert one["n"].iloc[-1] == more["n"].iloc[-1] == 20
    assert one["value"].iloc[-1] == more["value"].iloc[-1]
    mixed = claims.ledger({"arms": frame.assign(mixed=9.0)}, policies=())
    assert "8 pulls" in mixed["measure"].iloc[-1]


def test_sources_are_paths_as_well_and_a_claim_has_one_verdict_in_every_ledger(tmp_path):
    evo.run("circle_packing", generations=2, children=2, log=tmp_path / "one.jsonl")
    frame, policies = arms(range(0, 20, 2)), ("best_arm",)
    table = claims.ledger({"path": tmp_path, "arms": frame}, policies=policies)
    assert [*table["source"].unique()] == ["path", "arms"]
    alone = claims.ledger({"arms": frame}, policies=policies)
    known = table[table["source"] == "arms"].reset_index(drop=True)
    pd.testing.assert_frame_equal(known, alone)
    without = claims.ledger({"arms": frame}, policies=())
    pd.testing.assert_frame_equal(without, alone.iloc[: len(without)], check_dtype=False)
    for _, family in known.dropna(subset=["p"]).groupby("family"):
        assert family["p_holm"].tolist() == pytest.approx(claims.holm(family["p"]).tolist())


def test_a_claim_about_policies_has_the_verdict_of_judge():
    verdicts = []
    for rises in (range(0), range(6), range(10), [0], range(0, 12, 3)):
        frame = arms(rises, n=12)
        table = claims.ledger({"arms": frame}, policies=())
        [found] = table[table["family"] == "pool"].itertuples()
        judged = replay.judge(frame, "random", "single")
        assert (found.value, found.low) == (judged.effect, judged.interval.low)
        assert found.verdict == judged.verdict
        verdicts.append(found.verdict)
    assert {*verdicts} > {"undetermined"}


def test_real_logs_of_several_tools_make_one_ledger():
    found = beside(DATA)
    if len(found) < 4:
        pytest.skip(f"{DATA} lacks the Gemini table or the runs in the paper's layout")
    table = claims.ledger({name: frame for name, (frame, _) in found.items()}, policies=("ucb1",))
    assert set(table["source"]) == set(found)
    gemini = table[table["source"].str.startswith("Gemini") & (table["n"] == 10)]
    gemini = gemini[gemini["why"] == ""]
    assert gemini["measure"].str.contains("98 pulls").all()  # islands exchange at the last epoch
    qwen = table[(table["source"] == "Qwen, the paper's layout") & (table["why"] == "")]
    assert "C = 36" in qwen["measure"].iloc[0]
    assert (table["p_holm"].dropna() >= table["p"].dropna()).all()
