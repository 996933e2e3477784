"""What OpenEvolve makes of evaluators in stages, beside what is made of them here.

    python tests/benchmarks/openevolve_cascades.py PYTHON

PYTHON is an interpreter that has OpenEvolve. Prints its metrics of each program of
`tests/cascades.py`, as that file holds them, and whether `evo.evaluate` gives the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cascades import CASCADES, NUMBERS, program

import evo

THEIRS = """
import asyncio, json, logging, sys
from openevolve.config import load_config
from openevolve.evaluator import Evaluator

logging.disable(logging.CRITICAL)
folder, programs = sys.argv[1], json.loads(sys.argv[2])
try:
    config = load_config(folder + "/config.yaml").evaluator
except FileNotFoundError:
    config = load_config(None).evaluator
evaluator = Evaluator(config, folder + "/evaluator.py")
print(json.dumps([asyncio.run(evaluator.evaluate_program(each)) for each in programs]))
"""


def main() -> None:
    warnings.simplefilter("ignore")  # of metrics without combined_score
    for name, cascade in CASCADES.items():
        with tempfile.TemporaryDirectory() as place:
            folder = cascade.write(Path(place) / "task")
            programs = [program(number) for number in NUMBERS]
            command = [sys.argv[1], "-c", THEIRS, str(folder), json.dumps(programs)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            theirs = json.loads(done.stdout.splitlines()[-1])
            task = evo.load_task(folder)
            found = [evo.evaluate(task, each) for each in programs]
        print(f"{name!r}:")
        for number, metrics, ours in zip(NUMBERS, theirs, found, strict=True):
            score = ours.stages[-1] if ours.stages else ours.fitness
            mine = ours.metrics | ({"combined_score": score} if "combined_score" in metrics else {})
            print(f"    {number}: {metrics},  # {ours.status}, same: {mine == metrics}")


if __name__ == "__main__":
    main()
