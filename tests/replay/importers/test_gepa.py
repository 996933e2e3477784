"""Runs of GEPA: a real one, and damaged ones."""

import json
import pickle
from pathlib import Path

import pytest

import replay
from replay.importers import LogFormatError, detect, gepa, read

SAMPLE = Path(__file__).parents[3] / "logs" / "samples" / "gepa-1"
STATE = {
    "program_candidates": [{"a": "x", "b": "y"}, {"a": "x1", "b": "y"}, {"a": "x", "b": "y2"}],
    "prog_candidate_val_subscores": [{0: 0.0, 1: 3.0}, {0: 1.0, 1: 3.0}, {0: 2.0, 1: 3.0}],
    "parent_program_for_candidate": [[None], [0], [0, 1]],
    "full_program_trace": [
        {"i": 0, "tasks": [{"parent_idx": 0}, {"parent_idx": 0}], "new_program_idx": 1},
        {"i": 1},
        {"i": 2, "merged": True, "new_program_idx": 2, "new_program_indices": [2]},
    ],
    "other": {1, 2},
}


def written(folder: Path, state: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "gepa_state.bin").write_bytes(pickle.dumps(state))
    return folder


def test_a_real_run() -> None:
    assert detect(SAMPLE) == "gepa"
    (run,) = read(SAMPLE)
    candidates = json.loads((SAMPLE / "candidates.json").read_text())
    accepted = [child for child in run.children if child.evaluation.status == "ok"]
    assert [child.program for child in accepted] == [c["instruction"] for c in candidates[1:]]
    assert [child.evaluation.fitness for child in accepted] == [
        0.125, 0.25, 0.375, 0.5, 0.625, 0.75,
    ]  # fmt: skip
    dropped = [child for child in run.children if child.evaluation.status == "partial"]
    assert len(run.children) == 25
    unknown = [child.generation for child in run.children if child.evaluation.status is None]
    assert unknown == [22]  # its minibatch was perfect, so nothing was proposed
    assert "what 1 of 25 calls proposed, if they were made at all" in run.lost
    assert len(accepted) + len(dropped) == 24
    assert dropped[0].evaluation.error == (
        "dropped after 3 instances: 0 gained, its parent gained 0"
    )
    assert run.program == "Solve the problem"
    assert all(len(child.evaluation.instances) == 8 for child in accepted)


def test_it_is_loaded_like_any_other_folder() -> None:
    with pytest.warns(UserWarning, match="read 1 run of gepa"):
        frame = replay.load(SAMPLE, progress=False)
    assert set(frame["search"]) == {"GEPA"}
    assert frame["best_fitness"].tolist()[-1] == 0.75
    assert frame["best_fitness"].is_monotonic_increasing


def test_several_proposals_components_and_merges(tmp_path: Path) -> None:
    (run,) = read(written(tmp_path / "run", STATE))
    assert run.header.children == 2
    assert [child.evaluation.status for child in run.children] == [
        "ok",
        None,
        None,
        None,
        "ok",
        None,
    ]
    merged = run.children[4]
    assert (merged.operator, merged.parents) == ("cross", ((0, 0), (1, 0)))
    assert json.loads(merged.program or "") == {"a": "x", "b": "y2"}
    assert merged.evaluation.fitness == 2.5
    assert merged.evaluation.instances == ()  # its scores are no shares


def test_of_proposals_for_one_parent_those_that_gained_most_are_the_accepted_ones(
    tmp_path: Path,
) -> None:
    gains = [([0.0], [0.0]), ([1.0], [0.0]), ([0.0], [1.0]), None]
    scores = [
        {} if gain is None else {"subsample_scores": gain[0], "new_subsample_scores": gain[1]}
        for gain in gains
    ]
    entry = {"i": 0, "tasks": [{"parent_idx": 0, **each} for each in scores]}
    trace = [entry | {"new_program_indices": [1]}, {"i": 1, "new_program_idx": 2}]
    (run,) = read(written(tmp_path / "run", {**STATE, "full_program_trace": trace}))
    first = [child for child in run.children if child.generation == 1]
    assert [child.evaluation.status for child in first] == ["ok", "partial", "partial", None]
    assert [child.evaluation.error for child in first[1:3]] == [
        "dropped after 1 instance: 0 gained, its parent gained 0",
        "dropped after 1 instance: 0 gained, its parent gained 1",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"program_candidates": []}, "scores and parents of each candidate"),
        ({"parent_program_for_candidate": [[None]]}, "scores and parents of each candidate"),
        ({"full_program_trace": [{"i": 0, "new_program_idx": 9}]}, "a candidate that is not there"),
        ({"full_program_trace": [{"i": "a"}]}, "Expected `int`"),
        ({"program_candidates": Path("x")}, "refused: the pickle asks for pathlib"),
    ],
)
def test_damage_is_named(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(LogFormatError, match=message):
        read(written(tmp_path / "run", {**STATE, **changes}))


def test_scores_that_are_no_shares_make_no_instances() -> None:
    """A log's instances have scores in [0, 1]; the mean holds the others too."""
    shares, others = (
        gepa._evaluation([0.5, 1.0], ["a", "b"]),
        gepa._evaluation([0.5, 3], ["a", "b"]),
    )
    assert [(each.id, each.score) for each in shares.instances] == [("a", 0.5), ("b", 1.0)]
    assert (others.fitness, others.instances) == (1.75, ())
