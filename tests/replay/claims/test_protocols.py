"""What a protocol's runs say: measures, claims judged, and best of n."""

import itertools
import math
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import evo
from evo.studies.protocol import Protocol, load_protocol, run_protocol
from replay.claims.judging import shares_apart
from replay.claims.protocols import (
    _expected_best,
    _measured,
    _share_error,
    best_of,
    protocol_claims,
    protocol_runs,
)
from replay.logs.tables import load_tables
from replay.reports.report import groups, sections
from replay.statistics.sequential import e_holm

STATED = """
name = "small"
title = "deep against broad"
detects = ["5 runs against 5: hardly anything"]

[tasks]
circle_packing = "{hash}"

[[conditions]]
name = "deep"
task = "cp"
children = 1
generations = 4
seeds = "0:5"

[[conditions]]
name = "broad"
task = "cp"
children = 4
generations = 1
seeds = "10:15"

[measures]
final_fitness = "best fitness after all calls of a run"
reach = "1 if it is at least the reference"
taste = "nothing that a log knows"

[[claims]]
name = "differ"
text = "Deep and broad differ."
measure = "final_fitness"
a = "deep"
b = "broad"
margin = 0.01

[[claims]]
name = "unknown"
text = "They taste differently."
measure = "taste"
a = "deep"
b = "broad"

[[claims]]
name = "described"
text = "How often they reach .1."
measure = "reach"
a = "deep"
b = "broad"
kind = "descriptive"

[estimate]
prompt_tokens = 300
completion_tokens = 200
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Protocol, Path]:
    folder = tmp_path_factory.mktemp("evidence")
    stated = STATED.format(hash=evo.load_task("cp").record.hash)
    (folder / "small.toml").write_text(stated)
    protocol = load_protocol(folder / "small.toml")
    run_protocol(protocol, log_dir=folder / "logs", progress=False)
    return protocol, folder / "logs"


def test_measures_are_those_of_the_logs(made: tuple[Protocol, Path]) -> None:
    runs = protocol_runs(*made, reach=0.1)
    assert runs["condition"].value_counts().to_dict() == {"deep": 5, "broad": 5}
    assert (runs["calls"] == 4).all()
    for row in runs.itertuples():
        log = evo.read_log(made[1] / row.run)
        assert row.final_fitness == log.trajectory[-1]
        assert row.reach == float(log.trajectory[-1] >= 0.1)
        rises = np.diff(log.trajectory) > 1e-9
        assert row.improving == pytest.approx(rises.sum() / 4)
        assert row.improves == float(rises.any())
        ok = [child.evaluation.status == "ok" for child in log.outcomes]
        assert (row.ok, row.works) == (sum(ok) / 4, float(any(ok)))
    assert (runs["copy"] == -1).all()  # none is a fork


def itself(value: float) -> float:
    """A large number is good."""
    return value


def test_a_run_in_which_nothing_works_is_worse_than_any(tmp_path: Path) -> None:
    text = "def broken():\n    raise ValueError\n"
    task = evo.task("broken", initial_program=text, evaluate=itself)
    with pytest.warns(UserWarning, match="begins without a fitness"):
        log = evo.run(
            task, model=lambda messages: "no program", children=2, generations=1,
            log=tmp_path / "a.jsonl", progress=False,
        )  # fmt: skip
    row = _measured(log, -1e9)
    assert (row["final_fitness"], row["reach"], row["works"]) == (-math.inf, 0.0, 0.0)


def test_claims_are_judged_on_both_sides(made: tuple[Protocol, Path]) -> None:
    table = protocol_claims(*made, reach=0.1).set_index("claim")
    runs = protocol_runs(*made).groupby("condition")["final_fitness"].mean()
    differ = table.loc["differ"]
    assert differ["effect"] == pytest.approx(runs["deep"] - runs["broad"])
    assert differ["low"] < differ["effect"] < differ["high"]
    assert (differ["n_a"], differ["n_b"], differ["planned_a"]) == (5, 5, 5)
    assert differ["p_holm"] >= differ["p"]
    assert (differ["verdict"] in ("greater", "less")) == (differ["p_holm"] <= 0.05)
    assert (differ["level"], table.loc["described", "level"]) == (0.95, 0.95)
    assert table.loc["unknown", "verdict"] == "undetermined"
    assert "taste" in table.loc["unknown", "why"]
    assert table.loc["described", "verdict"] == "descriptive"
    assert -1 <= table.loc["described", "low"] <= table.loc["described", "high"] <= 1


def test_what_was_not_made_is_undetermined(made: tuple[Protocol, Path], tmp_path: Path) -> None:
    table = protocol_claims(made[0], tmp_path)
    assert (table["n_a"] == 0).all()
    assert set(table["verdict"]) == {"undetermined", "descriptive"}
    assert best_of(made[0], tmp_path).empty


def test_a_begun_run_counts_for_its_first_generation_alone(
    made: tuple[Protocol, Path], tmp_path: Path
) -> None:
    protocol, logs = made
    lines = (logs / "deep-s0.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "deep-s0.jsonl").write_bytes(b"".join(lines[:7]))
    assert protocol_runs(protocol, tmp_path).empty
    assert best_of(protocol, tmp_path)["children"].unique().tolist() == [1]


def test_best_of_n_is_the_mean_over_all_choices(made: tuple[Protocol, Path]) -> None:
    protocol, logs = made
    table = best_of(protocol, logs, most=3)
    first: list[float] = []
    for path in logs.glob("*.jsonl"):
        log = evo.read_log(path)
        floor = float(log.trajectory[0])
        found = [c.evaluation.fitness for c in log.outcomes if c.generation == 1]
        first += [floor if fitness is None else max(floor, fitness) for fitness in found]
    assert table["children"].unique().tolist() == [len(first)] == [25]
    for n, value in zip(table["n"], table["value"], strict=True):
        every = [max(chosen) for chosen in itertools.combinations(first, n)]
        assert value == pytest.approx(np.mean(every))
    assert (table["low"] <= table["value"] + 1e-12).all()
    assert (table["high"] >= table["value"] - 1e-12).all()


@pytest.mark.parametrize(("runs", "known"), [(4, False), (5, True)])
def test_five_runs_give_a_range_of_the_best_of_n(
    made: tuple[Protocol, Path], tmp_path: Path, runs: int, known: bool
) -> None:
    protocol, logs = made
    for path in sorted(logs.glob("broad*.jsonl"))[:runs]:
        shutil.copy(path, tmp_path)
    table = best_of(protocol, tmp_path, most=4)
    assert (table["runs"] == runs).all()
    assert (table[["low", "high"]].notna() == known).all(axis=None)


def test_the_range_of_the_best_of_one_is_that_of_resampled_means(
    made: tuple[Protocol, Path],
) -> None:
    protocol, logs = made
    found: list[list[float]] = []
    for path in logs.glob("*.jsonl"):
        log = evo.read_log(path)
        floor = float(log.trajectory[0])
        first = [c.evaluation.fitness for c in log.outcomes if c.generation == 1]
        found.append([floor if each is None else max(floor, each) for each in first])
    sums, counts = np.array([sum(each) for each in found]), np.array([*map(len, found)])
    rows = np.random.default_rng(1).integers(0, len(found), (20_000, len(found)))
    means = sums[rows].sum(axis=1) / counts[rows].sum(axis=1)
    [one] = best_of(protocol, logs, most=1).to_dict("records")
    assert [one["low"], one["high"]] == pytest.approx(
        np.quantile(means, [0.025, 0.975]), abs=0.2 * means.std()
    )


def test_difference_of_shares_holds_its_level() -> None:
    """Exactly, over all outcomes, at n = 5 against 7."""
    sides = [np.arange(n + 1) for n in (5, 7)]
    limits = {
        (i, j): shares_apart(
            np.repeat([1.0, 0.0], [i, 5 - i]), np.repeat([1.0, 0.0], [j, 7 - j]), 0.95
        )
        for i, j in itertools.product(*sides)
    }
    for p, q in itertools.product((0.1, 0.3, 0.5, 0.8), repeat=2):
        chance = np.outer(binom.pmf(sides[0], 5, p), binom.pmf(sides[1], 7, q))
        held = sum(chance[ij] for ij, (low, high) in limits.items() if low <= p - q <= high)
        assert held >= 0.95


def test_the_best_of_programs_that_failed_has_no_fitness() -> None:
    """Of four children two failed, as did the initial program: three always hold a good one."""
    best = _expected_best(np.array([-np.inf, -np.inf, 0.2, 0.6]), np.arange(1, 5))
    assert best.tolist() == [-np.inf, -np.inf, pytest.approx(0.5), pytest.approx(0.6)]


def test_local_protocol_is_read_as_far_as_it_came() -> None:
    folder = Path(__file__).resolve().parents[3] / "logs" / "corpus" / "local-tsp"
    runs, claims = protocol_runs("local-tsp", folder), protocol_claims("local-tsp", folder)
    assert isinstance(runs, pd.DataFrame)
    assert (runs["calls"] == 24).all()
    assert ((runs["final_fitness"] >= 0.83007) == (runs["reach"] == 1)).all()
    assert runs["check_fitness"].notna().all()
    assert (claims["n_a"] == (runs["condition"] == "deep").sum()).all()


def test_copies_of_forks_pair_and_count_by_the_run_they_left(
    made: tuple[Protocol, Path], tmp_path: Path
) -> None:
    stated = STATED.format(hash=evo.load_task("cp").record.hash)
    head, claims = stated.partition("[[conditions]]")[0], stated[stated.index("[measures]") :]
    side = (
        '[[conditions]]\nname = "{}"\ntask = "cp"\nchildren = 1\ngenerations = 3\nseeds = "0:5"\n'
        'forks = "logs/deep"\nat = 2\ncopies = 2\n'
    )
    sides = side.format("broad") + side.format("deep") + "options = { feedback = true }\n"
    claims = claims.replace("final_fitness", "improves")
    file = tmp_path / "forks.toml"
    file.write_text(head.replace("small", "forks") + sides + claims)
    folder = made[1].parent / "forks"
    run_protocol(file, log_dir=folder, progress=False)
    runs = protocol_runs(file, folder)
    assert (runs["calls"] == 1).all()
    assert runs.groupby("condition")["root"].nunique().tolist() == [5, 5]
    for row in runs.itertuples():
        log = evo.read_log(folder / row.run)
        assert row.improves == float(log.generations[-1].improved)
        assert row.works == float(log.children[-1].evaluation.status == "ok")
    found = protocol_claims(file, folder).set_index("claim").loc["differ"]
    means = runs.groupby(["condition", "root"])["improves"].mean()
    assert found["effect"] == pytest.approx(means["deep"].mean() - means["broad"].mean())
    assert (found["n_a"], found["planned_a"]) == (10, 10)
    # What they inherited is no child of theirs, and an interval is over what they left.
    assert best_of(file, folder).empty
    apart = groups(load_tables(folder))
    assert sorted(group.setting for group in apart) == ["feedback False", "feedback True"]
    for group in apart:
        fitness, statuses, *_ = sections(group)
        assert any("10 of 10 runs are forks of 5" in note for note in fitness.notes)
        sizes = fitness.cells.set_index("quantity")["n"]
        assert (sizes["runs"], sizes["final, mean"]) == (10, 5)
        assert statuses.cells.set_index("quantity")["value"]["children"] == 10


@pytest.fixture
def judged(made: tuple[Protocol, Path], monkeypatch: pytest.MonkeyPatch):
    """Judges the first claim, or claims like it, where deep is ahead of broad by so much."""
    runs = protocol_runs(*made).sort_values("condition", ascending=False)
    (claim, *_) = made[0].claims

    def judge(ends: np.ndarray, shift: float, *changes: dict) -> pd.DataFrame:
        found = runs.assign(final_fitness=np.tile(ends, 2) + np.repeat([shift, 0.0], 5))
        monkeypatch.setattr("replay.claims.protocols._complete_runs", lambda *_, **__: found)
        claims = tuple(msgspec.structs.replace(claim, **change) for change in changes)
        return protocol_claims(msgspec.structs.replace(made[0], claims=claims))

    return judge


APART = np.array([0.3, 0.4, 0.5, 0.6, 0.7])


def test_sides_that_are_equal_differ_in_no_claim(judged) -> None:
    """Every exchange does as well: p is 1 on both sides, and never 0."""
    found = judged(np.full(5, 0.5), 0.0, {}).iloc[0]
    assert found["effect"] == 0
    assert found["p"] == found["p_holm"] == 1
    assert found["verdict"] == "undetermined"


def test_a_claim_is_called_by_what_holms_correction_leaves(judged) -> None:
    lost = 0
    for shift in np.linspace(0.1, 0.5, 21):
        table = judged(APART, shift, {}, {})
        assert (table["p_holm"] == np.minimum(2 * table["p"], 1)).all()
        assert ((table["verdict"] == "greater") == (table["p_holm"] <= 0.05)).all()
        lost += (table["p"] < 0.05).all() and (table["verdict"] != "greater").all()
    assert lost


def test_a_margin_is_claimed_together_with_the_others(judged) -> None:
    """The two nulls of a claim cannot both be true, so its own margin costs a claim nothing."""
    near = APART[2] + (APART - APART[2]) / 100
    alone = judged(near, 0.001, {"margin": 0.01}).iloc[0]
    assert alone["verdict"] == "within margin"
    assert judged(near, 0.001, {}).iloc[0]["p"] == alone["p"] == alone["p_holm"]
    assert judged(near, 0.02, {"margin": 0.01}).iloc[0]["verdict"] == "greater"
    wide = judged(near, 0.004, {"margin": 0.01}).iloc[0]
    assert wide["verdict"] == "within margin"
    many = judged(near, 0.004, *[{"margin": 0.01}] * 8)
    assert set(many["verdict"]) == {"undetermined"}


def confirmatory(name: str, apart: list[float], inside: list[float]) -> list[dict[str, Any]]:
    """Rows of claims with what speaks against each of their two nulls, and an interval above 0."""
    shared = {"kind": "confirmatory", "low": 0.1, "high": 0.2, "verdict": "greater"}
    within = {"p": "p_within", "e_value": "e_within"}[name]
    return [{**shared, name: p, within: q} for p, q in zip(apart, inside, strict=True)]


def test_a_claim_shares_its_error_with_the_weaker_null_of_each_other_claim() -> None:
    rows = confirmatory("p", [0.01, 0.2, 0.003], [0.9, 0.015, 0.02])
    rows[1]["verdict"] = "within margin"
    _share_error(rows, follow=False)
    # By Holm's correction; the weaker nulls of the others are .2 and .02, .9 and .02, .9 and .2.
    assert [row["p_holm"] for row in rows] == pytest.approx([0.03, 0.4, 0.009])
    # The second claims its margin, as one of .015, .9 and .02: 3 x .015 = .045.
    assert [row["verdict"] for row in rows] == ["greater", "within margin", "greater"]
    rows[1] |= {"p_within": 0.018, "verdict": "within margin"}
    _share_error(rows, follow=False)
    assert rows[1]["verdict"] == "undetermined"


def test_evidence_is_shared_with_the_weaker_null_of_each_other_claim() -> None:
    rows = confirmatory("e_value", [90.0, 200.0, 30.0], [1.0, 70.0, 50.0])
    _share_error(rows, follow=True)
    families = [[90.0, 70.0, 30.0], [1.0, 200.0, 30.0], [1.0, 70.0, 30.0]]
    found = [float(e_holm(np.array(family))[k]) for k, family in enumerate(families)]
    assert [row["p_holm"] for row in rows] == pytest.approx([1 / max(each, 1) for each in found])


def test_runs_for_a_verdict_are_single_runs_whichever_side_is_first(judged) -> None:
    """As many more runs as lower what can be detected to the effect; within the margin, to that."""
    for margin, away in ((0.0, 0.05), (0.01, 0.05), (0.2, 0.15)):
        found = judged(
            APART, 0.05, {"margin": margin}, {"a": "broad", "b": "deep", "margin": margin}
        )
        assert set(found["verdict"]) == {"undetermined"}
        total = 10 * (found["detectable"].iloc[0] / away) ** 2
        needed, same = found["runs_needed"]
        assert needed == same
        # With more runs Student's quantiles come nearer to the normal ones: 2.8 for 3.2 at 8.
        assert 0.76 * total < 10 + needed <= total + 1
    decided = judged(APART, 9.0, {}).iloc[0]
    assert (decided["verdict"], decided["runs_needed"]) == ("greater", 0)


def test_a_protocol_that_stops_when_settled_is_judged_by_e_values(made, tmp_path) -> None:
    protocol, logs = made
    assert protocol.stop == ""
    settled = msgspec.structs.replace(protocol, stop="settled")
    assert settled.digest != protocol.digest
    table = protocol_claims(settled, tmp_path)
    assert set(table["verdict"]) == {"undetermined", "descriptive"}
    assert protocol_claims(protocol, logs)["e_value"].isna().all()


def test_evidence_of_a_sequence_is_shared_among_claims(judged, made) -> None:
    rng = np.random.default_rng(0)
    protocol = msgspec.structs.replace(made[0], stop="settled")
    claim = protocol.claims[0]
    rows = [
        {"condition": name, "run": f"{name}{k}", "seed": k, "root": f"{name}{k}", "copy": -1,
         "task": "t", "model": "m", "children": 1, "generation": 1, "calls": 1, "ok": 1.0,
         "final_fitness": 0.5 + 0.05 * (name == "deep") + 0.05 * rng.normal()}
        for k in range(30) for name in ("deep", "broad")
    ]  # fmt: skip

    def claimed(count: int) -> pd.DataFrame:
        own = msgspec.structs.replace(protocol, claims=(claim,) * count)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("replay.claims.protocols._complete_runs", lambda *_: pd.DataFrame(rows))
            return protocol_claims(own)

    one = claimed(1).iloc[0]
    assert one["e_value"] > 20
    assert one["verdict"] == "greater"
    assert one["p_holm"] == pytest.approx(1 / one["e_value"])
