"""What may be an arm, and when it is open."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import evo

SMALL = {"rounds": 12, "children": 2, "progress": False}


def test_logged_generations_cost_nothing(tmp_path: Path) -> None:
    logs = evo.run_many(
        "mmd", seeds=[40, 41], generations=3, children=2, log_dir=tmp_path / "runs", progress=False
    )
    allocation = evo.allocate_live(
        "mmd", "round_robin", arms=logs, log_dir=tmp_path / "a", **{**SMALL, "rounds": 8}
    )
    assert allocation.spent["calls"].tolist() == [0, 0, 0, 0, 0, 0, 2, 4]
    assert [len(log.generations) for log in allocation.arms] == [4, 4]


def test_a_log_is_one_arm(tmp_path: Path) -> None:
    log = evo.run("mmd", generations=1, children=1, log=tmp_path / "a.jsonl", progress=False)
    with pytest.raises(ValueError, match=r"a\.jsonl: expected each log as one arm"):
        evo.allocate_live("mmd", "ucb1", arms=[log, log.path], log_dir=tmp_path / "b", **SMALL)


def test_compact_logs_end_where_they_end(tmp_path: Path) -> None:
    log = evo.run(
        "mmd", generations=2, children=2, seed=40, log=tmp_path / "a.jsonl", progress=False
    )
    small = evo.compact(log, tmp_path / "small.jsonl.gz")
    allocation = evo.allocate_live(
        "mmd", "single", arms=[small, 41], log_dir=tmp_path / "a", **{**SMALL, "rounds": 4}
    )
    assert allocation.pulls.tolist() == [0, 0, 1, 1]


def test_arms_of_their_own_configuration(tmp_path: Path) -> None:
    allocation = evo.allocate_live(
        "mmd",
        "round_robin",
        arms=[{"children": 1}, {"children": 3, "temperature": 1.2}],
        log_dir=tmp_path,
        **{**SMALL, "rounds": 4},
    )
    assert [log.header.children for log in allocation.arms] == [1, 3]
    assert [log.header.seed for log in allocation.arms] == [40, 41]
    assert allocation.spent["calls"].tolist() == [1, 4, 5, 8]


def test_an_arm_may_have_its_own_statement(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(Path(evo.__file__).parent / "tasks" / "shipped" / "min_max_distance", other)
    config = (other / "task.toml").read_text()
    statement = evo.load_task("mmd").statement
    assert statement in config
    (other / "task.toml").write_text(config.replace(statement, "Try something new."))
    arguments = {**SMALL, "rounds": 2, "children": 1}
    live = evo.allocate_live(
        "mmd", "round_robin", arms=[{}, {"task": other}], log_dir=tmp_path / "a", **arguments
    )
    statements = [log.header.task.statement for log in live.arms]
    assert statements == [statement, "Try something new."]
    assert live.arms[0].outcomes[0].prompt_hash != live.arms[1].outcomes[0].prompt_hash
    with pytest.raises(ValueError, match="arm 0: its task may differ"):
        evo.allocate_live("mmd", "ucb1", arms=[{"task": "cp"}], log_dir=tmp_path / "b")
    with pytest.raises(TypeError, match="unknown argument 'colour'"):
        evo.allocate_live("mmd", "ucb1", arms=[{"colour": "red"}], log_dir=tmp_path / "b")


def test_cap_closes_an_arm(tmp_path: Path) -> None:
    live = evo.allocate_live("mmd", "single", arms=2, cap=3, log_dir=tmp_path, **SMALL)
    assert live.pulls.tolist() == [0, 0, 0, 1, 1, 1] + [-1] * 6


@pytest.mark.parametrize("arms", [[1, 1], [{"seed": 41}, {"children": 2}], [{}, 40]])
def test_arms_are_different_runs(arms: list[Any], tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"arm 0 and arm 1 have the same configuration and seed, \d+"
    ):
        evo.allocate_live("mmd", "ucb1", arms=arms, log_dir=tmp_path / "a", **SMALL)
    assert not (tmp_path / "a").exists()
