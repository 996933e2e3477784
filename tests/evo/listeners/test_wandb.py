"""Runs in Weights & Biases."""

import pytest

import evo
from evo.runs.delivery import deliver_rest

QUIET = {"generations": 2, "children": 2, "progress": False}


@pytest.mark.thorough
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
