"""Claims of a protocol about allocation policies: the stated formula, its runs, their sequence."""

import copy
import math
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from scipy import stats
from scipy.stats import t

import evo
import replay.claims.policies
from evo.studies.protocol import Condition, PolicyClaim, load_protocol
from replay.claims.policies import _estimated, first_complete, policy_claim_rows
from replay.simulation.sizes import pool_kind
from replay.statistics.intervals import measured


def of_old_runs(replicates, count=24):
    """Protocol local-tsp-policies, with the runs of local-tsp in place of its own."""
    stated = load_protocol("local-tsp-policies")
    replace = msgspec.structs.replace
    claims = tuple(replace(each, replicates=replicates) for each in stated.policy_claims)
    deep = replace(stated.conditions[0], seeds=f"1000:{1000 + count}")
    return replace(stated, policy_claims=claims, conditions=(deep,))


def test_claims_about_policies_follow_the_stated_formula_and_sequence() -> None:
    folder = Path(__file__).resolve().parents[3] / "logs" / "corpus" / "local-tsp"
    logs = {"deep": [evo.read_log(path) for path in sorted(folder.glob("deep-s*"))]}
    stated = of_old_runs(6_000)
    rows = {row["claim"]: row for row in policy_claim_rows(stated, logs, {"deep": 48})}
    first = rows["thompson-over-random"]
    assert first["effect"] == pytest.approx(0.026, abs=0.003)
    assert (first["high"] - first["low"]) / 2 == pytest.approx(0.018, rel=0.15)
    error = (first["high"] - first["low"]) / 2 / t.ppf(0.975, 23)
    assert first["p"] == pytest.approx(t.sf(first["effect"] / error, 23))  # one-sided
    assert (first["n_a"], first["planned_a"], first["level"]) == (24, 48, 0.95)
    verdicts = [row["verdict"] for row in rows.values()]
    assert verdicts == ["greater", "undetermined", "undetermined", "descriptive"]
    assert rows["ucb1-over-random"]["why"] == ""
    assert "before it was not accepted" in rows["exp3p-over-random"]["why"]
    few = policy_claim_rows(stated, {"deep": logs["deep"][:4]}, {"deep": 48})
    assert all("pools of 4 need more" in row["why"] for row in few)


def test_claims_about_policies_rest_on_the_first_complete_runs_in_the_written_order() -> None:
    """A run after a gap, a partial run and one of another seed change nothing but the note."""
    folder = Path(__file__).resolve().parents[3] / "logs" / "corpus" / "local-tsp"
    logs = [evo.read_log(path) for path in sorted(folder.glob("deep-s*"))][:12]
    stated = of_old_runs(400, count=12)
    first = policy_claim_rows(stated, {"deep": logs[:8]}, {"deep": 12})
    partial = copy.copy(logs[8])
    partial.generations = partial.generations[:23]
    other = copy.copy(logs[9])
    other.header = msgspec.structs.replace(other.header, seed=7)
    late = [logs[10], other, partial, *reversed(logs[:8])]
    found = policy_claim_rows(stated, {"deep": late}, {"deep": 12})
    assert [row["n_a"] for row in found] == [8, 8, 8, 8]
    for claim, row in zip(stated.policy_claims, first, strict=True):
        known = measured(pool_kind("effect", 8, claim.arms), 8, row["level"])
        assert ("as measured" in row["interval"]) == math.isfinite(known)
        limits = "" if "not positive" in row["why"] else f"{100 * row['level']:g} % interval"
        assert row["interval"].startswith(limits)
    assert all("2 complete runs do not enter" in row["why"] for row in found)
    for one, again in zip(first, found, strict=True):
        assert repr({**one, "why": ""}) == repr({**again, "why": ""})
    whole = policy_claim_rows(stated, {"deep": logs[::-1]}, {"deep": 12})
    assert [row["n_a"] for row in whole] == [12, 12, 12, 12]
    none = policy_claim_rows(stated, {"deep": logs[1:]}, {"deep": 12})
    assert all(row["n_a"] == 0 and "need more" in row["why"] for row in none)


def claim(**changes) -> PolicyClaim:
    stated = PolicyClaim(
        name="c", text="One is better.", condition="deep", policy="one", against="other",
        arms=1, pulls=2, replicates=8,
    )  # fmt: skip
    return msgspec.structs.replace(stated, **changes)


def row_of(gains, **changes):
    """The row of a claim whose pools are the single runs, so that the gains are those of runs."""
    n = len(gains)
    arms = np.tile(np.arange(n), 500)[:, None]

    def replayed(condition, policy, parameters, setting):
        ends = np.tile(gains, 500) if policy == "one" else np.zeros(500 * n)
        return SimpleNamespace(
            best_fitness=np.column_stack([np.full(500 * n, 9.0), ends]), arms=arms
        )

    return _estimated(claim(**changes), np.zeros((n, 3)), replayed, planned=2 * n)


GAINS = np.array([0.3, -0.1, 0.5, 0.2, 0.4, 0.1])


def test_pools_of_single_runs_give_students_t_over_these_runs() -> None:
    row = row_of(GAINS)
    theirs = stats.ttest_1samp(GAINS, 0, alternative="greater")
    assert row["effect"] == pytest.approx(GAINS.mean())
    assert row["p"] == pytest.approx(theirs.pvalue, rel=0.02)  # 500 draws of each run, not all
    half = t.ppf(0.975, 5) * stats.sem(GAINS)
    assert row["high"] - row["effect"] == pytest.approx(half, rel=0.01)
    assert row["effect"] - row["low"] == pytest.approx(half, rel=0.01)
    assert (row["n_a"], row["n_b"], row["planned_a"], row["planned_b"]) == (6, 6, 12, 12)
    assert row["null"].endswith("with 5 degrees of freedom")


@pytest.mark.parametrize("sign", [1, -1])
def test_a_claim_without_a_direction_is_found_on_either_side(sign) -> None:
    row = row_of(sign * GAINS, alternative="two-sided", alpha=0.1)
    theirs = stats.ttest_1samp(sign * GAINS, 0)
    assert row["p"] == pytest.approx(theirs.pvalue, rel=0.02)
    assert row["level"] == pytest.approx(0.9)
    assert row["verdict"] == ("greater" if sign > 0 else "less")
    assert (row["low"] > 0) == (sign > 0)
    assert row_of(sign * GAINS, alternative="two-sided", alpha=0.01)["verdict"] == "undetermined"


def test_a_claim_of_one_direction_is_never_met_by_the_opposite() -> None:
    """However many runs show that the other policy is better, and the power says so."""
    row = row_of(-GAINS)
    assert row["p"] > 0.95
    assert row["verdict"] == "undetermined"
    assert row["runs_needed"] == math.inf
    away = -GAINS.mean() / stats.sem(GAINS)
    assert row["power"] == pytest.approx(stats.nct.sf(t.ppf(0.975, 5), 5, away), abs=1e-4)
    assert math.isnan(row["power_low"])
    ahead = row_of(0.4 * GAINS - 0.03)
    assert (ahead["verdict"], 0 < ahead["runs_needed"] < math.inf) == ("undetermined", True)
    assert ahead["power_low"] < 0.8 < ahead["power_high"]


def test_a_descriptive_claim_has_an_interval_and_no_verdict() -> None:
    row = row_of(GAINS + 5, role="descriptive")
    assert (row["kind"], row["verdict"]) == ("descriptive", "descriptive")
    assert 0 < row["low"] < row["effect"] < row["high"]


def test_without_variance_over_runs_nothing_is_decided() -> None:
    row = row_of(np.full(6, 0.5))
    assert row["effect"] == 0.5
    assert math.isnan(row["p"])
    assert row["why"] == "the estimated variance over runs is not positive: nothing is decided"
    few = row_of(GAINS[:1])
    assert few["why"] == "1 complete runs, pools of 1 need more"


def fake_log(seed, generations=3, copy=None):
    fork = None if copy is None else SimpleNamespace(copy=copy)
    return SimpleNamespace(
        header=SimpleNamespace(seed=seed, fork=fork), generations=[None] * generations,
        trajectory=np.array([0.1, 0.2, 0.3, 0.4, 0.5][: generations + 1]),
    )  # fmt: skip


CONDITION = Condition(name="deep", task="t", children=1, generations=3, seeds="5:9")


def test_runs_enter_up_to_the_first_that_is_missing_or_incomplete() -> None:
    logs = [fake_log(seed) for seed in (8, 5, 7, 6)]
    assert [log.header.seed for log in first_complete(CONDITION, logs)] == [5, 6, 7, 8]
    assert first_complete(CONDITION, logs[:1]) == []
    assert [log.header.seed for log in first_complete(CONDITION, logs[:2])] == [5]
    logs[3] = fake_log(6, generations=2)
    assert [log.header.seed for log in first_complete(CONDITION, logs)] == [5]
    logs[3] = fake_log(6, generations=4)  # more than was asked for is complete
    assert len(first_complete(CONDITION, logs)) == 4


def test_copies_of_forks_enter_run_by_run_and_then_copy_by_copy() -> None:
    forks = msgspec.structs.replace(CONDITION, seeds="5:7", forks="a/b", copies=2)
    logs = [fake_log(seed, copy=copy) for copy in (1, 0) for seed in (6, 5)]
    found = first_complete(forks, [*logs, fake_log(5)])
    assert [(log.header.seed, log.header.fork.copy) for log in found] == [
        *((5, 0), (5, 1), (6, 0), (6, 1))
    ]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["greater", "less", "greater"], ["greater", "less", "greater"]),
        (["undetermined", "greater", "greater"], ["undetermined"] * 3),
        (["greater", "undetermined", "less"], ["greater", "undetermined", "undetermined"]),
        (["greater", "descriptive", "less"], ["greater", "descriptive", "less"]),
    ],
)
def test_a_claim_is_tested_only_if_all_before_it_were_accepted(
    monkeypatch, verdicts, expected
) -> None:
    roles = ["descriptive" if each == "descriptive" else "secondary" for each in verdicts]
    claims = tuple(claim(name=str(k), role=role) for k, role in enumerate(roles))
    rows = iter([{"verdict": each, "why": ""} for each in verdicts])
    monkeypatch.setattr(replay.claims.policies, "_estimated", lambda *_: next(rows))
    protocol = SimpleNamespace(policy_claims=claims, conditions=(CONDITION,))
    logs = {"deep": [fake_log(seed) for seed in (5, 6, 8)]}
    found = policy_claim_rows(protocol, logs, {"deep": 4})
    assert [row["verdict"] for row in found] == expected
    assert all(row["why"].startswith("not tested: ") for row in found[2:]) == (
        "undetermined" in verdicts[:2]
    )
    assert all("1 complete runs do not enter" in row["why"] for row in found)  # the one after 7
