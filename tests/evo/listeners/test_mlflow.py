"""Runs in MLflow."""

import pytest

import evo
from evo.runs.delivery import deliver_rest

QUIET = {"generations": 2, "children": 2, "progress": False}


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
