"""GEPA's `optimize_anything`: an iteration is one call, whose reply is a whole program."""

from __future__ import annotations

import json

from evo.gate.engines.job import FOREVER, Engine, Job, known_sampling

_RUN = """\
import json
import urllib.error
import urllib.request
from pathlib import Path

from gepa.optimize_anything import EngineConfig, GEPAConfig, ReflectionConfig, optimize_anything
from judging import judge

settings = json.loads(Path("settings.json").read_text())


def ask(prompt):
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    body = {"model": settings["model"], "messages": messages, **settings["sampling"]}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + settings["key"]}
    request = urllib.request.Request(settings["url"], json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=settings["timeout"]) as answer:
            return json.load(answer)["choices"][0]["message"]["content"] or ""
    except urllib.error.HTTPError as error:
        if error.code < 500 and error.code != 429:
            raise
        return ""  # a call that failed gives no program


def evaluate(candidate):
    path = Path("program.py")
    path.write_text(candidate)
    found = judge(path)
    notes = {"status": found["status"], "fitness": found["fitness"]}
    if found["error"]:
        notes["Error"] = found["error"]
    return (found["fitness"] if found["status"] == "ok" else settings["lowest"]), notes


optimize_anything(
    seed_candidate=Path("initial.py").read_text(),
    evaluator=evaluate,
    objective=settings["statement"],
    config=GEPAConfig(
        engine=EngineConfig(
            run_dir="out",
            seed=settings["seed"],
            max_metric_calls=settings["evaluations"],
            parallel=False,
            cache_evaluation=True,
            display_progress_bar=False,
        ),
        reflection=ReflectionConfig(reflection_lm=ask),
    ),
)
"""

LOWEST = -1e9
"""What GEPA, which knows no failures, receives as the score of a program that has no fitness."""


def prepare(job: Job) -> list[str]:
    """Writes program and a script, which goes on from GEPA's own saved state, if any."""
    settings = {
        "url": f"{job.endpoint}/chat/completions",
        "key": f"gepa-s{job.seed}",
        "model": job.model,
        "sampling": known_sampling(job.sampling),
        "statement": job.task.statement,
        "seed": job.seed,
        "evaluations": 10 * job.calls + 10,  # the gate ends it: a call has up to three evaluations
        "timeout": FOREVER,
        "lowest": LOWEST,
    }
    (job.folder / "initial.py").write_text(job.task.initial_program)
    (job.folder / "settings.json").write_text(json.dumps(settings, indent=1))
    (job.folder / "run.py").write_text(_RUN)
    return [job.python, "run.py"]


ENGINE = Engine(
    name="gepa",
    package="gepa",
    module="gepa.optimize_anything",
    prepare=prepare,
    parent=r"The component being optimized:\s*```\n(.*?)\n```",
    resumes=True,
)
