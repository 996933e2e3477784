"""Importers against logs that the tools themselves write, made here against the offline model.

Each tool gets an environment of its own, since they pin other versions. Runs only where
EVO_TEST_OTHER_TOOLS is 1, or the folder to keep the environments in.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

import evo
import replay
from evo.llm.server import OfflineServer
from evo.upkeep import verify
from replay.importers import detect, read, write

WANTED = os.environ.get("EVO_TEST_OTHER_TOOLS", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not WANTED, reason="EVO_TEST_OTHER_TOOLS is not set"),
]

ITERATIONS = 20

INITIAL = """\
# EVOLVE-BLOCK-START
def height(x=0.5, steps=3):
    total = 0.1
    for k in range(steps):
        total += x * 0.1 / (k + 1)
    return total
# EVOLVE-BLOCK-END
"""

EVALUATOR = """\
import math
import runpy


def evaluate(program_path):
    height = runpy.run_path(program_path)["height"]()
    if not isinstance(height, float) or not math.isfinite(height):
        raise ValueError(f"expected a finite float, got {height!r}")
    return {"combined_score": math.tanh(height), "height": height}
"""


def environment(package):
    """Python of an environment with this package, made once."""
    root = Path(tempfile.gettempdir()) / "evo-other-tools" if WANTED == "1" else Path(WANTED)
    folder = root / package
    python = folder / "bin" / "python"
    installed = folder / "installed"
    if not installed.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", package]
        subprocess.run(pip, check=True, timeout=900)
        installed.touch()
    asked = f"from importlib.metadata import version; print(version({package!r}))"
    found = subprocess.run([str(python), "-c", asked], check=True, capture_output=True, text=True)
    print(f"{package} {found.stdout.strip()}")
    return python


def run(command, folder):
    """Runs a tool without any key but a made-up one; shows its output if it fails."""
    clean = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    keys = {"OPENAI_API_KEY": "none", "LOCAL_OPENAI_API_KEY": "none"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=clean | keys,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def seen(request_log):
    """Usage of every answered request."""
    lines = [json.loads(line) for line in request_log.read_text().splitlines()]
    return [line["usage"] for line in lines if line["status"] == 200]


def check(found, requests, folder):
    """One imported run against what the server saw and what our own sandbox finds."""
    assert len(found.children) == len(requests) == ITERATIONS
    counts = Counter(usage["completion_tokens"] for usage in requests)
    known = [a.usage["completion_tokens"] for c in found.children for a in c.attempts]
    assert Counter(known) <= counts
    ok = [child for child in found.children if child.evaluation.status == "ok"]
    assert ok, "no child succeeded"
    task = folder / "task"  # apart from what the tool wrote beside it
    task.mkdir(exist_ok=True)
    for name in ("initial_program.py", "evaluator.py"):
        shutil.copy(folder / name, task)
    for child in ok:
        ours = evo.evaluate(task, child.program)
        assert ours.fitness == pytest.approx(child.evaluation.fitness, rel=1e-12)
    for child in found.children:
        if child.evaluation.status == "error" and child.program:
            assert evo.evaluate(task, child.program).status != "ok"
    target = folder / "imported" / f"{found.name}.jsonl"
    write(found, target)
    assert verify(target).faults == ()
    frame = replay.load(target)
    assert len(frame) == ITERATIONS + 1
    assert frame["best_fitness"].iloc[0] == pytest.approx(
        evo.evaluate(task, INITIAL).fitness, rel=1e-12
    )
    assert frame["best_fitness"].iloc[-1] == max(
        frame["best_fitness"].iloc[0], *(child.evaluation.fitness for child in ok)
    )
    print(found.name, Counter(child.evaluation.status for child in found.children), found.lost)
    return len(known)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "initial_program.py").write_text(INITIAL)
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    return tmp_path


def test_openevolve(folder):
    python = environment("openevolve")
    with OfflineServer(request_log=folder / "requests.jsonl") as server:
        settings = {
            "max_iterations": ITERATIONS,
            "checkpoint_interval": 4,
            "diff_based_evolution": False,
            "llm": {
                "api_base": server.url,
                "api_key": "none",
                "models": [{"name": "offline", "weight": 1.0}],
                "max_tokens": 4000,
            },
            "database": {"population_size": 6, "archive_size": 3, "num_islands": 2},
            "evaluator": {
                "timeout": 60,
                "parallel_evaluations": 1,
                "cascade_evaluation": False,
                "max_retries": 0,
            },
            "evolution_trace": {"enabled": True, "include_code": True},
        }
        # JSON is YAML.
        (folder / "config.yaml").write_text(json.dumps(settings))
        command = [python.with_name("openevolve-run"), "initial_program.py", "evaluator.py"]
        run([*command, "--config", "config.yaml", "--output", "out"], folder)
    requests = seen(folder / "requests.jsonl")
    assert detect(folder / "out") == "openevolve"
    (found,) = read(folder / "out")
    # Its text log tells the tokens of failed calls as well.
    assert check(found, requests, folder) == ITERATIONS


SHINKA_EVALUATOR = """\
import argparse
import json
from pathlib import Path

from evaluator import evaluate

parser = argparse.ArgumentParser()
parser.add_argument("--program_path")
parser.add_argument("--results_dir")
options = parser.parse_args()
results = Path(options.results_dir)
results.mkdir(parents=True, exist_ok=True)
try:
    score, error = evaluate(options.program_path)["combined_score"], None
except Exception as problem:
    score, error = 0.0, repr(problem)
metrics = {"combined_score": score, "public": {}, "private": {}}
(results / "metrics.json").write_text(json.dumps(metrics))
(results / "correct.json").write_text(json.dumps({"correct": error is None, "error": error}))
"""

SHINKA_RUN = """\
import sys

from shinka.core import EvolutionConfig, ShinkaEvolveRunner
from shinka.database import DatabaseConfig
from shinka.launch import LocalJobConfig

url, generations = sys.argv[1:]
ShinkaEvolveRunner(
    evo_config=EvolutionConfig(
        num_generations=int(generations),
        patch_types=["full"],
        patch_type_probs=[1.0],
        max_patch_resamples=1,
        max_patch_attempts=1,
        max_novelty_attempts=1,
        llm_models=[f"local/offline@{url}"],
        llm_dynamic_selection=None,
        llm_kwargs={"temperatures": [0.6], "max_tokens": 4000},
        embedding_model=None,
        meta_rec_interval=None,
        init_program_path="initial_program.py",
        results_dir="results",
    ),
    job_config=LocalJobConfig(eval_program_path="shinka_evaluate.py", time="00:01:00"),
    db_config=DatabaseConfig(db_path="programs.sqlite", num_islands=2),
    max_evaluation_jobs=1,
    max_proposal_jobs=1,
).run()
"""


def test_shinkaevolve(folder):
    python = environment("shinka-evolve")
    (folder / "shinka_evaluate.py").write_text(SHINKA_EVALUATOR)
    (folder / "run.py").write_text(SHINKA_RUN)
    with OfflineServer(request_log=folder / "requests.jsonl") as server:
        run([python, "run.py", server.url, ITERATIONS + 1], folder)
    requests = seen(folder / "requests.jsonl")
    assert detect(folder / "results") == "shinkaevolve"
    (found,) = read(folder / "results")
    known = check(found, requests, folder)
    # Its database keeps tokens of those calls alone that gave a program.
    assert known == sum(child.program is not None for child in found.children)
    assert found.header.sampling.temperature == 0.6
