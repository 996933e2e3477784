import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evo
import replay
from evo.cli import main
from evo.records import Evaluation, Instance
from evo.selectors.race import Selection

COMMON: dict[str, Any] = {"task": "mmd", "generations": 1, "children": 1, "progress": False}
PAIR = [{"children": 1}, {"children": 2, "generations": 2}, {"children": 2}]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Selection:
    folder = tmp_path_factory.mktemp("selection")
    return evo.select_best(PAIR, **COMMON, seeds=range(40, 44), log_dir=folder)


def test_samples_are_the_runs_of_paired_seeds(found: Selection) -> None:
    assert found.end == "exhausted"
    assert found.labels == tuple(
        f"generations={T}, children={N}" for T, N in [(1, 1), (2, 2), (1, 2)]
    )
    for k, logs in enumerate(found.logs):
        assert [log.header.seed for log in logs] == [40, 41, 42, 43]
        T = 2 if k == 1 else 1
        assert found.outcomes[k].tolist() == [log.trajectory[T] for log in logs]
    # Configurations that differ in generations alone share their logs.
    assert [log.path for log in found.logs[1]] == [log.path for log in found.logs[2]]
    # ... and are paid once.
    paths = found.path.glob("*.jsonl")
    assert found.spent["calls"].sum() == sum(len(evo.read_log(path).calls) for path in paths) == 20
    assert found.winner == int(np.nanargmax(found.mean))
    assert found.frame().iloc[0]["configuration"] == found.labels[found.winner]


def test_going_on_repeats_no_call(found: Selection) -> None:
    before = {path: path.read_bytes() for path in found.path.iterdir()}
    again = evo.select_best(PAIR, **COMMON, seeds=range(40, 44), log_dir=found.path)
    assert {path: path.read_bytes() for path in found.path.iterdir()} == before
    assert again.outcomes.tolist() == found.outcomes.tolist()
    assert repr(again) == repr(found)
    with pytest.raises(ValueError, match=r"a selection with delta 0\.05, not 0\.1"):
        evo.select_best(PAIR, **COMMON, seeds=range(40, 44), log_dir=found.path, delta=0.1)


def test_live_equals_post_hoc(found: Selection) -> None:
    again = replay.select(found.outcomes)
    assert again.winner == found.winner
    assert again.survivors == found.survivors
    assert again.samples.tolist() == found.samples.tolist()
    assert again.lower.tolist() == found.lower.tolist()


def test_a_killed_selection_goes_on(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {**COMMON, "seeds": [7, 8], "selector": "random_search"}
    whole = evo.select_best(PAIR, **arguments, log_dir=tmp_path / "whole")
    part = tmp_path / "part"
    part.mkdir()
    for path in sorted(whole.path.iterdir())[1:]:
        data = path.read_bytes()
        (part / path.name).write_bytes(data if path.suffix == ".json" else data[:-30])
    again = evo.select_best(PAIR, **arguments, log_dir=part)
    assert again.outcomes.tolist() == whole.outcomes.tolist()
    assert again.samples.tolist() == whole.samples.tolist()


@pytest.mark.filterwarnings("ignore:.*the search begins without a fitness")
def test_a_run_without_fitness_counts_as_a_failure(tmp_path: Path) -> None:
    task = tmp_path / "task"
    task.mkdir()
    (task / "task.toml").write_text('statement = "Return a number."\nentry = ["make"]\n')
    (task / "initial_program.py").write_text("def make():\n    raise ValueError\n")
    (task / "evaluator.py").write_text("def score(value):\n    return {'fitness': value}\n")
    arguments: dict[str, Any] = {**COMMON, "task": task, "seeds": [1, 2]}
    found = evo.select_best(
        [{"children": 1}, {"children": 2}], **arguments, failure_value=0.25, log_dir=tmp_path / "a"
    )
    assert found.failures.tolist() == [2, 2]
    assert found.mean.tolist() == [0.25, 0.25]
    assert found.winner == 0  # equal, and it made fewer calls
    assert "4 failed" in repr(found)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"choices": []}, "at least one"),
        ({"choices": [{"childen": 2}]}, "did you mean 'children'"),
        ({"choices": [{"children": 2}, {"children": 2}]}, "0 and 1 are the same"),
        ({"seeds": [1, 1]}, "all different"),
        ({"selector": "ucb"}, "expected a selector out of"),
        ({"failure_value": 2.0}, "failure_value"),
        ({"budget": {"hours": 1}}, "expected a unit out of"),
        ({"task": None}, "task: expected one"),
        ({"bounds": (1.0, 0.0)}, "bounds"),
    ],
)
def test_mistakes_are_named(arguments: dict[str, Any], said: str, tmp_path: Path) -> None:
    given = {"choices": [{"children": 1}], **COMMON, "log_dir": tmp_path, **arguments}
    with pytest.raises(ValueError, match=said):
        evo.select_best(**given)
    assert not list(tmp_path.iterdir())


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"select mmd --vary children=1,2 -T 1 --seeds 3:5 -q --log-dir {tmp_path / 'a'}"
    assert main(command.split()) == 0
    said = capsys.readouterr().out
    assert "winner: children=" in said
    assert "4 of 4 runs" in said
    assert main(["select", "mmd", "--vary", "children", "-q"]) == 2
    assert "--vary: expected each field once" in capsys.readouterr().err


def instance(id_: str, score: float | None) -> Instance:
    return Instance(id=id_, status="error" if score is None else "ok", score=score)


def test_instances_are_samples() -> None:
    one = Evaluation(status="ok", fitness=0.5, instances=(instance("a", 1.0), instance("b", None)))
    other = Evaluation(status="ok", fitness=0.5, instances=(instance("b", 0.5), instance("a", 1.0)))
    matrix = evo.instance_matrix([one, other])
    assert np.nan_to_num(matrix, nan=-1).tolist() == [[1.0, -1.0], [1.0, 0.5]]
    chosen: Selection = replay.select(matrix)
    assert chosen.winner == 1
    assert chosen.failures.tolist() == [1, 0]
    with pytest.raises(ValueError, match="source 1: expected scores on the 2 instances"):
        evo.instance_matrix([one, Evaluation(status="ok", fitness=1.0)])


def test_folders_of_earlier_versions_go_on_and_repeat_no_call(tmp_path: Path) -> None:
    """Made by the version before the one session: a sweep cut by a budget, a whole selection."""
    with tarfile.open(Path(__file__).parent / "data" / "folders_of_schema_1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    logs = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    assert replay.load_sweep(tmp_path / "sweep")["done"].tolist() == [1, 1]
    sweep = evo.sweep(tmp_path / "sweep", budget={"calls": 100}, progress=False)
    assert (sweep.summary.ended, sweep.summary.completed) == ("completed", 2)
    choices, seeds = [{"children": 1}, {"children": 2}], [1, 2]
    found = evo.select_best(
        choices, task="mmd", generations=1, seeds=seeds, log_dir=tmp_path / "selection",
        progress=False,
    )  # fmt: skip
    assert found.spent["calls"].tolist() == [2, 4]
    for path, before in logs.items():
        assert path.read_bytes().startswith(before)
    assert set(tmp_path.rglob("*.jsonl")) == {*logs}
