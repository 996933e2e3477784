"""OpenEvolve: one iteration is one call, by default for SEARCH/REPLACE blocks."""

from __future__ import annotations

import json
from pathlib import Path

from evo.gate.engines.job import FOREVER, Engine, Job, in_block, known_sampling

_EVALUATOR = """\
from judging import judge


def evaluate(program_path):
    found = judge(program_path)
    if found["status"] == "ok":
        return {"combined_score": found["fitness"]}
    # As OpenEvolve itself records a failure, without trying the same program again.
    return {"error": 0.0} | ({"timeout": True} if found["status"] == "timeout" else {})
"""

MOST_CHECKPOINTS = 64
"""Each holds all programs; as long as there are no more pulls than this, every pull has one."""


def prepare(job: Job) -> list[str]:
    """Writes program, evaluator and configuration; goes on from the latest checkpoint, if any."""
    settings = {
        "random_seed": job.seed,
        "max_iterations": job.calls,
        "checkpoint_interval": job.children * -(-job.calls // (job.children * MOST_CHECKPOINTS)),
        "evolution_trace": {"enabled": True, "include_code": True, "buffer_size": 1},
        "prompt": {"system_message": job.task.statement},
        "llm": {
            "api_base": job.endpoint,
            "api_key": f"openevolve-s{job.seed}",
            "primary_model": job.model,
            "timeout": FOREVER,
            **known_sampling(job.sampling),
        },
        "diff_based_evolution": not job.full_rewrites,
        "evaluator": {"timeout": FOREVER},
    }
    (job.folder / "initial_program.py").write_text(in_block(job.task.initial_program))
    (job.folder / "evaluator.py").write_text(_EVALUATOR)
    (job.folder / "config.yaml").write_text(json.dumps(settings, indent=1))  # JSON is YAML
    start = "import sys; from openevolve.cli import main; sys.exit(main())"
    files = ["initial_program.py", "evaluator.py", "--config", "config.yaml", "--output", "out"]
    found = _latest(job.folder / "out" / "checkpoints")
    goes_on = [] if found is None else ["--checkpoint", str(found)]
    return [job.python, "-c", start, *files, *goes_on]


def _latest(folder: Path) -> Path | None:
    """Returns the latest checkpoint that was written to its end: its best program comes last."""
    whole = [each.parent for each in folder.glob("checkpoint_*/best_program_info.json")]
    numbered = [each for each in whole if each.name.rpartition("_")[2].isdecimal()]
    return max(numbered, key=lambda each: int(each.name.rpartition("_")[2]), default=None)


ENGINE = Engine(
    name="openevolve",
    package="openevolve",
    module="openevolve",
    prepare=prepare,
    parent=r"# Current Program\n```\w*\n(.*?)\n```",
    resumes=True,
)
