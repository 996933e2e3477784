"""Evaluate hostile programs and print, a JSON object a line, what came of each.

Usage: python attack.py TOKEN SHARE OF [--nothing]: every OF-th program from number SHARE on. The
process starts as a user's would: with a key in its environment, a log, and local servers.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import tempfile
import time
import warnings
from pathlib import Path

from hostile_programs import ALL, GOOD
from toy import HURRY, LIMITS, Remnants, make_task

from evo.sandbox import LAYERS, Evaluator
from evo.sandbox import evaluator as driver

BENIGN = f"def construct():\n    return {GOOD}"


def attack(evaluator: Evaluator, remnants: Remnants, program: str) -> dict[str, object]:
    """Evaluate a hostile program between two benign ones."""
    before = evaluator.evaluate(make_task(), BENIGN, LIMITS)
    there = remnants.count()
    began = time.monotonic()
    evaluation = evaluator.evaluate(make_task(), program, HURRY)
    elapsed = time.monotonic() - began
    after = evaluator.evaluate(make_task(), BENIGN, LIMITS)
    left = remnants.settled(there, 10.0)
    return {
        "status": evaluation.status,
        "fitness": evaluation.fitness,
        "error": evaluation.error or "",
        "elapsed": elapsed,
        "benign": [before.fitness, after.fitness],
        "left": {name: (there[name], left[name]) for name in there if left[name] != there[name]},
    }


def main() -> None:
    """Attack with a share of the programs."""
    token, share, of = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    without = tuple(LAYERS) if "--nothing" in sys.argv else ()
    warnings.simplefilter("ignore")
    secret = secrets.token_hex()
    os.environ["OPENAI_API_KEY"] = secret
    with (
        tempfile.TemporaryDirectory() as home,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as local,
    ):
        local.bind(f"{home}/socket")
        local.listen()
        log = Path(home, "run.jsonl")
        link = Path(home, token)  # in the command line of all that the sandbox starts
        link.symlink_to(driver._PARENT)
        driver._PARENT = str(link)
        fields = {
            "home": home,
            "log": log,
            "pid": os.getpid(),
            "port": server.getsockname()[1],
            "root": Path(__file__).resolve().parents[2],
            "secret": secret,
            "socket": f"{home}/socket",
            "token": token,
        }
        with Evaluator(1, without=without) as evaluator:
            print(json.dumps({"protections": evaluator.protections}))
            for hostile in ALL[share::of]:
                log.write_text("the log")
                found = attack(evaluator, Remnants(token), hostile.program(**fields))
                found["log"] = log.exists() and log.read_text() == "the log"
                print(json.dumps({"name": hostile.name, **found}), flush=True)


if __name__ == "__main__":
    main()
