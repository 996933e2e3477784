"""ShinkaEvolve: a proposal takes one call or several; embeddings are off."""

from __future__ import annotations

import json

from evo.gate.engines.job import FOREVER, Engine, Job, in_block, known_sampling

_EVALUATE = """\
import argparse
import json
from pathlib import Path

from judging import judge


def main(program_path, results_dir):
    found = judge(program_path)
    correct = found["status"] == "ok"
    metrics = {"combined_score": found["fitness"] if correct else 0.0, "public": {}, "private": {}}
    folder = Path(results_dir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.json").write_text(json.dumps(metrics))
    reason = None if correct else f"{found['status']}: {found['error']}"
    (folder / "correct.json").write_text(json.dumps({"correct": correct, "error": reason}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program_path", default="initial.py")
    parser.add_argument("--results_dir", default="results")
    main(**vars(parser.parse_args()))
"""

_RUN = """\
import json
import random
from pathlib import Path

import numpy
import shinka.llm.client
from shinka.core import EvolutionConfig, ShinkaEvolveRunner
from shinka.database import DatabaseConfig
from shinka.launch import LocalJobConfig

settings = json.loads(Path("settings.json").read_text())
random.seed(settings["seed"])
numpy.random.seed(settings["seed"])
shinka.llm.client.TIMEOUT = settings["timeout"]
runner = ShinkaEvolveRunner(
    evo_config=EvolutionConfig(**settings["evolution"]),
    job_config=LocalJobConfig(eval_program_path="evaluate.py"),
    db_config=DatabaseConfig(db_path="programs.sqlite"),
    max_evaluation_jobs=1,
    max_proposal_jobs=1,
)
runner.stuck_detection_timeout = settings["timeout"]
runner.run()
"""


def prepare(job: Job) -> list[str]:
    """Writes program, evaluator and a script, which goes on from its own database, if any."""
    evolution: dict[str, object] = {
        "num_generations": job.calls + 1,  # the gate ends it: a generation takes a call or more
        "llm_models": [f"local/{job.model}@{job.endpoint}"],
        "embedding_model": None,
        "init_program_path": "initial.py",
        "task_sys_msg": job.task.statement,
        "results_dir": "out",
    }
    known = known_sampling(job.sampling)
    asked = {"temperature": "temperatures", "max_tokens": "max_tokens"}
    if chosen := {asked[name]: value for name, value in known.items() if name in asked}:
        evolution["llm_kwargs"] = {"temperatures": [0.0, 0.5, 1.0], "max_tokens": 16384, **chosen}
    if job.full_rewrites:
        evolution |= {"patch_types": ["full"], "patch_type_probs": [1.0]}
    settings = {"seed": job.seed, "timeout": FOREVER, "evolution": evolution}
    (job.folder / "initial.py").write_text(in_block(job.task.initial_program))
    (job.folder / "evaluate.py").write_text(_EVALUATE)
    (job.folder / "settings.json").write_text(json.dumps(settings, indent=1))
    (job.folder / "run.py").write_text(_RUN)
    return [job.python, "run.py"]


ENGINE = Engine(
    name="shinka",
    package="shinka-evolve",
    module="shinka",
    prepare=prepare,
    parent=r"# Current program\n.*?```\w*\n(.*?)\n```",
    resumes=True,
    overlaps=True,
)
