"""Earlier runs that a policy learns from: which are refused, and what is kept of them."""

import functools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from samples import sample_header, write_sample

from evo.logs.log import read_log
from evo.policies import POLICIES, UCB1
from evo.studies.allocation.earlier import taught

LEARNER = POLICIES["optimal_stopping"]
ARMS = [sample_header(seed=seed) for seed in (90, 91)]
RNG = np.random.default_rng(0)
CURVES = np.sort(RNG.random((6, 5)), axis=1)


def frame(seeds=range(6), **changed):
    rows = [
        {"run": f"r{seed}", "task": ARMS[0].task.name, "model": "sample", "children": 3,
         "seed": seed, "generation": t, "best_fitness": CURVES[k, t], "header": f"h{seed}"}
        for k, seed in enumerate(seeds) for t in range(5)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**changed)


def test_a_policy_that_learns_nothing_takes_no_earlier_runs():
    assert taught(UCB1, None, ARMS, 8, None) == (UCB1, {}, ())
    with pytest.raises(ValueError, match="earlier: expected a policy that learns"):
        taught(UCB1, CURVES, ARMS, 8, None)


def test_without_earlier_runs_a_policy_that_learns_knows_nothing():
    assert taught(LEARNER, None, ARMS, 8, None) == (LEARNER, {}, ())


def test_a_matrix_and_its_rows_as_a_table_in_any_order_teach_the_same():
    _, by_matrix, hashes = taught(LEARNER, CURVES, ARMS, 8, None)
    build, by_frame, headers = taught(
        LEARNER, frame().sample(frac=1, random_state=1), ARMS, 8, None
    )
    assert by_matrix.keys() == by_frame.keys()
    for name, value in by_matrix.items():
        np.testing.assert_allclose(np.sort(np.ravel(value)), np.sort(np.ravel(by_frame[name])))
    assert len(set(hashes)) == 6
    assert sorted(headers) == [f"h{seed}" for seed in range(6)]
    assert build.keywords == {"learned": by_frame}


def test_what_a_journal_holds_is_taken_over_without_the_runs():
    known = SimpleNamespace(learned={"a": 1.0}, learned_from=("x",))
    build, learned, hashes = taught(
        functools.partial(LEARNER, earlier=CURVES), None, ARMS, 8, known
    )
    assert (build.func, build.keywords) == (LEARNER, {"learned": {"a": 1.0}})
    assert (learned, hashes) == ({"a": 1.0}, ("x",))
    _, anew, _ = taught(LEARNER, CURVES, ARMS, 8, known)
    assert anew != {"a": 1.0}


@pytest.mark.parametrize(
    ("earlier", "message"),
    [
        (frame(task="other"), r"expected runs of the arms' task, model and N, .*got \[\('other'"),
        (frame(model="x"), "expected runs of the arms' task, model and N"),
        (frame(children=4), "expected runs of the arms' task, model and N"),
        (pd.concat([frame(), frame(range(10, 12), children=4)]), "expected runs of the arms' task"),
        (frame(range(88, 94)), r"they share the seeds \[90, 91\]; leave them out"),
        ("no/such/*.jsonl", r"found none in 'no/such/\*\.jsonl'"),
        ([], r"found none in \[\]"),
    ],
)
def test_runs_that_are_not_comparable_or_are_arms_are_refused(earlier, message):
    with pytest.raises(ValueError, match=f"earlier: .*{message}"):
        taught(LEARNER, earlier, ARMS, 8, None)


def test_logs_folders_and_patterns_are_the_same_runs_of_any_length(tmp_path):
    paths = [write_sample(tmp_path / f"{k}.jsonl", seed=k, generations=3 + k % 2) for k in range(5)]
    found = [
        taught(LEARNER, given, ARMS, 8, None)[1:]
        for given in (tmp_path, str(tmp_path / "*.jsonl"), paths, [read_log(p) for p in paths])
    ]
    assert all(repr(each) == repr(found[0]) for each in found)
    assert all(len(each) == 12 for each in found[0][1])


def test_the_journals_of_studies_in_a_folder_are_no_earlier_runs(tmp_path):
    for k in range(5):
        write_sample(tmp_path / "arms" / f"{k}.jsonl", seed=k, generations=3)
    alone = taught(LEARNER, tmp_path, ARMS, 8, None)[1:]
    for name in ("allocation.jsonl", "events.jsonl", "agent.jsonl"):
        (tmp_path / "arms" / name).write_text("a journal\n")
    assert repr(taught(LEARNER, tmp_path, ARMS, 8, None)[1:]) == repr(alone)
    assert repr(taught(LEARNER, str(tmp_path / "arms" / "*"), ARMS, 8, None)[1:]) == repr(alone)
