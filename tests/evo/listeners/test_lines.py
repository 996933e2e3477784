"""A line of JSON for each event."""

import json

import evo
from evo.runs.delivery import deliver_rest

QUIET = {"generations": 2, "children": 2, "progress": False}


def test_json_lines_hold_every_event_in_order(tmp_path) -> None:
    path = tmp_path / "events.jsonl"
    log = evo.run(
        "mmd", log=tmp_path / "a.jsonl", listeners=[evo.listeners.JSONLines(path)], **QUIET
    )
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = [line["kind"] for line in lines]
    assert kinds == ["start", "child", "child", "generation", "child", "child", "generation", "end"]
    assert lines[-1]["best_fitness"] == log.best.fitness
    assert [line["cost"]["calls"] for line in lines if line["kind"] == "generation"] == [2, 4]
    assert "program" not in lines[1]["record"]


def test_a_sweep_tells_its_listeners_of_its_runs_too(tmp_path) -> None:
    path = tmp_path / "events.jsonl"
    evo.sweep(
        {"children": [1, 2]}, task="mmd", generations=1, seeds=[1], log_dir=tmp_path / "sweep",
        listeners=[evo.listeners.JSONLines(path)], progress=False,
    )  # fmt: skip
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum(line.get("event") == "run_completed" for line in lines) == 2
    assert sum(line.get("kind") == "end" for line in lines) == 2


def test_allocations_and_selections_tell_them_of_their_runs(tmp_path) -> None:
    how = {"children": 1, "task": "mmd", "progress": False}
    allocated, selected = tmp_path / "allocated.jsonl", tmp_path / "selected.jsonl"
    found = evo.allocate_live(
        policy="ucb1", arms=2, rounds=3, log_dir=tmp_path / "arms",
        listeners=[evo.listeners.JSONLines(allocated)], **how,
    )  # fmt: skip
    chosen = evo.select_best(
        {"temperature": [0.4, 0.8]}, generations=1, seeds=[1, 2], selector="brute_force",
        log_dir=tmp_path / "choice", listeners=[evo.listeners.JSONLines(selected)], **how,
    )  # fmt: skip
    deliver_rest(60)
    logs = {allocated: found.arms, selected: [log for logs in chosen.logs for log in logs]}
    for path, made in logs.items():
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        children = [line for line in lines if line["kind"] == "child"]
        assert len(children) == sum(len(log.children) for log in made)
        assert {line["log"] for line in lines} == {str(log.path) for log in made}
        assert sum(line["kind"] == "end" for line in lines) >= len(made)
