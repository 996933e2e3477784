"""OpenEvolve: one iteration is one call, in its default mode of SEARCH/REPLACE blocks."""

from __future__ import annotations

import json

from evo.gate.engines.job import Job, Tool, in_block

_EVALUATOR = """\
from judging import judge


def evaluate(program_path):
    found = judge(program_path)
    if found["status"] == "ok":
        return {"combined_score": found["fitness"]}
    # As OpenEvolve itself records a failure, without trying the same program again.
    return {"error": 0.0} | ({"timeout": True} if found["status"] == "timeout" else {})
"""


def prepare(job: Job) -> list[str]:
    """Writes program, evaluator and configuration; returns the arguments of its Python."""
    every = next(n for n in range(max(1, job.calls // 8), 0, -1) if job.calls % n == 0)
    settings = {
        "random_seed": job.seed,
        "max_iterations": job.calls,
        "checkpoint_interval": every,  # the last checkpoint is that of the last iteration
        "evolution_trace": {"enabled": True, "include_code": True, "buffer_size": 1},
        "prompt": {"system_message": job.task.statement},
        "llm": {
            "api_base": job.endpoint,
            "api_key": f"openevolve-s{job.seed}",
            "primary_model": job.model,
        },
    }
    (job.folder / "initial_program.py").write_text(in_block(job.task.initial_program))
    (job.folder / "evaluator.py").write_text(_EVALUATOR)
    (job.folder / "config.yaml").write_text(json.dumps(settings, indent=1))  # JSON is YAML
    start = "import sys; from openevolve.cli import main; sys.exit(main())"
    files = ["initial_program.py", "evaluator.py", "--config", "config.yaml", "--output", "out"]
    return ["-c", start, *files]


TOOL = Tool("openevolve", "openevolve", "openevolve", prepare)
