import json
import subprocess
import sys
import textwrap
import time
import warnings

import pytest

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


def test_mlflow_holds_parameters_fitness_cost_and_the_best_program(tmp_path, monkeypatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    place = (tmp_path / "runs").as_uri()
    listener = evo.listeners.MLflow("packing", tracking_uri=place)
    logs = evo.run_many(
        "mmd", seeds=[1, 2], log_dir=tmp_path / "logs", listeners=[listener], **QUIET
    )
    deliver_rest(60)
    client = mlflow.MlflowClient(tracking_uri=place)
    experiment = client.get_experiment_by_name("packing")
    runs = client.search_runs([experiment.experiment_id])
    assert {run.info.run_name for run in runs} == {log.path.stem for log in logs}
    for log in logs:
        (run,) = [run for run in runs if run.info.run_name == log.path.stem]
        assert run.info.status == "FINISHED"
        assert run.data.params["seed"] == str(log.header.seed)
        assert run.data.params["log"] == str(log.path)
        history = client.get_metric_history(run.info.run_id, "best_fitness")
        assert [each.value for each in history] == list(log.trajectory)
        assert [each.step for each in history] == [0, 1, 2]
        assert run.data.metrics["cost/calls"] == 4
        (artifact,) = client.list_artifacts(run.info.run_id)
        kept = mlflow.artifacts.download_artifacts(
            run_id=run.info.run_id, artifact_path=artifact.path, tracking_uri=place,
            dst_path=str(tmp_path / f"got-{log.header.seed}"),
        )  # fmt: skip
        with open(kept) as file:
            assert file.read() == log.best.program


def test_wandb_holds_them_too_offline(tmp_path) -> None:
    wandb = pytest.importorskip("wandb")
    seen = []

    class Watched(evo.listeners.WandB):
        def finish(self, run, numbers, program, failed):
            seen.append((run.name, dict(run.config), numbers, program, failed))
            super().finish(run, numbers, program, failed)

    listener = Watched("packing", mode="offline", dir=str(tmp_path))
    log = evo.run("mmd", log=tmp_path / "a.jsonl", listeners=[listener], **QUIET)
    deliver_rest(60)
    ((name, config, numbers, program, failed),) = seen
    assert (name, failed) == ("a", False)
    assert config["seed"] == log.header.seed
    assert numbers["best_fitness"] == log.best.fitness
    assert numbers["cost/calls"] == 4
    assert program == log.best.program
    assert wandb.run is None
    (kept,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    assert kept.stat().st_size > 0


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


def test_a_slow_and_a_failing_listener_change_nothing(tmp_path) -> None:
    taken = []

    def slow(event):
        time.sleep(0.3)
        taken.append(event.kind)

    def failing(event):
        raise RuntimeError("no such project")

    options = {"listeners": [slow, failing], **QUIET}
    with pytest.warns(UserWarning, match="failing: raised RuntimeError.'no such project'."):
        log = evo.run("mmd", log=tmp_path / "a.jsonl", **options)
    plain = evo.run("mmd", log=tmp_path / "b.jsonl", **QUIET)
    assert [c.program for c in log.children] == [c.program for c in plain.children]
    deliver_rest()
    assert len(taken) == 8


def test_what_is_not_delivered_at_exit_is_counted_in_one_warning(tmp_path) -> None:
    code = """
        import time, evo, evo.runs.delivery as delivery
        delivery.PATIENCE = 0.0
        delivery.deliver_rest.__defaults__ = (0.1,)

        def hung(event):
            time.sleep(1000)

        evo.run("mmd", generations=1, children=1, log="a.jsonl", progress=False, listeners=[hung])
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "events that no listener took in time: 4 to hung" in ran.stderr


def test_listeners_are_a_list_of_functions(tmp_path) -> None:
    for wrong in (print, [3]):
        with pytest.raises(TypeError, match="listeners: expected a list of functions"):
            evo.run("mmd", log=tmp_path / "a.jsonl", listeners=wrong, **QUIET)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evo.run("mmd", log=tmp_path / "b.jsonl", listeners=[], **QUIET)
