"""The table of a sweep, read from its folder alone."""

import shutil

import pytest
from evo_runs import write_task

import evo
import replay
from evo.models.client import EndpointDown


def test_a_frame_needs_neither_the_models_nor_the_task_of_its_sweep(tmp_path, monkeypatch) -> None:
    judge = "def evaluate(path):\n    return {'combined_score': 0.5}\n"
    task = write_task(tmp_path / "toy", "def solve():\n    return [0.5]\n", judge)
    models = tmp_path / "models.toml"
    models.write_text('["mine"]\nid = "offline"\nbase_url = "http://127.0.0.1:9/v1"\n')
    monkeypatch.setenv("EVO_MODELS", str(models))
    with pytest.raises(EndpointDown):
        evo.sweep(
            {"children": [1, 2]}, task=task, model="mine", generations=1, seeds=[1], retries=0,
            log_dir=tmp_path / "s", progress=False,
        )  # fmt: skip
    monkeypatch.delenv("EVO_MODELS")
    shutil.rmtree(task)
    frame = replay.load_sweep(tmp_path / "s")
    assert frame["status"].tolist() == ["pending", "pending"]
    assert frame["model"].tolist() == ["mine", "mine"]


def test_a_row_states_how_far_a_run_went_that_its_patience_ended(tmp_path) -> None:
    settings = {"task": "mmd", "seeds": [1, 2], "children": 1, "progress": False}
    made = evo.sweep({"patience": [1, 2]}, generations=9, log_dir=tmp_path / "s", **settings)
    frame = replay.load_sweep(made)
    assert set(frame["status"]) == {"completed"}
    assert (frame["generations"] == 9).all()
    for _, row in frame.iterrows():
        run = replay.load(row["log"])
        assert run.loc[run["generation"] == row["done"], "best_fitness"].item() == row["fitness"]
        assert row["n_calls"] == row["done"]
    by_seed = frame.pivot(index="seed", columns="patience", values="done")
    assert (by_seed[1] <= by_seed[2]).all()
