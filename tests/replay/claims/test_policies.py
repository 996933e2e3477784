"""Policy claims of a protocol: the stated estimator, the sequence of tests, incomplete runs."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats

from evo.logs.log import Log, read_log
from evo.studies.protocol import PolicyClaim, Protocol, load_protocol, run_protocol
from replay.claims.policies import judge_policies, policy_claims
from replay.logs.frames import fitness_matrix
from replay.logs.tables import load
from replay.simulation.simulate import simulate

CORPUS = Path(__file__).resolve().parents[3] / "logs" / "corpus" / "local-tsp"


@pytest.fixture(scope="module")
def deep() -> list[Log]:
    return [read_log(path) for path in sorted(CORPUS.glob("deep-*"))]


def shipped(name: str, replicates: int = 6000) -> PolicyClaim:
    claims = load_protocol("local-tsp-policies").policy_claims
    found = next(claim for claim in claims if claim.name == name)
    return msgspec.structs.replace(found, replicates=replicates)


def test_the_runs_that_suggested_the_claims_give_the_numbers_that_the_protocol_states(
    deep: list[Log],
) -> None:
    found = judge_policies(shipped("thompson-over-random"), deep)
    assert found["n"] == 24
    assert found["effect"] == pytest.approx(0.0262, abs=0.003)
    assert found["standard_error"] == pytest.approx(0.0088, abs=0.001)
    assert found["verdict"] == "greater"
    assert judge_policies(shipped("ucb1-over-random"), deep)["verdict"] == "undetermined"


def test_the_interval_follows_the_stated_formula(deep: list[Log]) -> None:
    claim = shipped("thompson-against-single")
    found = judge_policies(claim, deep)
    fitness = fitness_matrix(load([log.path for log in deep], progress=False))
    pools = [
        simulate(fitness, policy, arms=4, rounds=24, replicates=6000, seed=1, replace=False)
        for policy in ("thompson", "single")
    ]
    t = pools[0].best_fitness[:, -1] - pools[1].best_fitness[:, -1]
    n, K, B = 24, 4, 6000
    X = np.array([[i in row for i in range(n)] for row in pools[0].arms], dtype=float)
    covariances = [np.cov(X[:, i], t, bias=True)[0, 1] for i in range(n)]
    bracket = np.square(covariances).sum() - n * K / n * (1 - K / n) * t.var() / B
    error = np.sqrt((n - 1) / n * (n / (n - K)) ** 2 * bracket)
    half = stats.t.ppf(0.975, n - 1) * error
    assert found["effect"] == pytest.approx(t.mean())
    assert (found["low"], found["high"]) == pytest.approx((t.mean() - half, t.mean() + half))


def test_too_few_runs_decide_nothing(deep: list[Log]) -> None:
    found = judge_policies(shipped("thompson-over-random"), deep[:4])
    assert found["verdict"] == "undetermined"
    assert found["why"] == "needs more than 4 complete runs, got 4"


SMALL = """
name = "policies"
title = "policies on the offline model"
detects = ["nothing"]

[tasks]
min_max_distance = "{hash}"

[[conditions]]
name = "deep"
task = "mmd"
children = 1
generations = 3
seeds = "0:5"

[estimate]
prompt_tokens = 100
completion_tokens = 100

[measures]
"""

CLAIM = """
[[policy_claims]]
name = "{policy}"
text = "{policy} against random pulls."
condition = "deep"
policy = "{policy}"
against = "random"
arms = 2
pulls = 3
replicates = 200
role = "{role}"
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Protocol, Path]:
    import evo

    folder = tmp_path_factory.mktemp("policies")
    text = SMALL.format(hash=evo.load_task("mmd").record.hash) + "".join(
        CLAIM.format(policy=policy, role=role)
        for policy, role in (("random", "primary"), ("ucb1", "secondary"), ("single", "descriptive"))
    )
    (folder / "policies.toml").write_text(text)
    protocol = load_protocol(folder / "policies.toml")
    run_protocol(protocol, log_dir=folder / "logs", progress=False)
    return protocol, folder / "logs"


def test_a_secondary_claim_is_not_tested_after_one_that_was_not_accepted(
    small: tuple[Protocol, Path],
) -> None:
    table = policy_claims(*small).set_index("claim")
    assert table.loc["random", "effect"] == 0.0
    assert table.loc["random", "why"] == "the estimated variance over runs is not positive"
    assert table.loc["ucb1", "verdict"] == "undetermined"
    assert table.loc["ucb1", "why"] == "not tested, because 'random' was not accepted"
    assert table.loc["single", "verdict"] == "descriptive"


def test_only_the_longest_beginning_of_complete_runs_counts(
    small: tuple[Protocol, Path], tmp_path: Path
) -> None:
    protocol, logs = small
    for path in logs.glob("*.jsonl"):
        if "-s3" not in path.name:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    table = policy_claims(protocol, tmp_path)
    assert set(table["n"]) == {3}
    assert set(table["planned"]) == {5}
