"""Small logs in other tools' layouts, as those tools write them."""

import contextlib
import json
import pickle
import sqlite3
import sys
import types
from pathlib import Path
from unittest import mock

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
"""Real logs beside the project, where they exist."""


def paper_attempt(status="ok", completion=20):
    cached = {"prompt_tokens_details": {"cached_tokens": 60}}
    usage = {"prompt_tokens": 100, "completion_tokens": completion, **cached}
    late = {"estimated_output_tokens": 900} if status == "timeout" else {}
    ok = {"usage": usage, "finish_reason": "stop"} if status == "ok" else {"usage": None}
    return {"attempt_idx": 0, "status": status, "latency_s": 1.5, **ok, **late}


def paper_child(idx, fitness, valid, attempts=None):
    attempts = [paper_attempt()] if attempts is None else attempts
    seed = 3_000_000_000 + idx
    return {"idx": idx, "seed": seed, "fitness": fitness, "valid": valid, "attempts": attempts}


def paper_run():
    """Two generations of three: failures of every kind, one legal zero, two improvements."""
    timeout = [paper_attempt("timeout"), paper_attempt("error:APIError")]
    first = [(0, 0.0, False), (1, 0.3, True), (2, 0.0, True)]
    second = [(0, 0.5, True), (1, None, False, timeout), (2, None, False)]
    return {
        "task": "mmd", "model": "small", "model_name": "small-1b", "C": 6, "T": 2, "N": 3,
        "seed": 41, "final_fitness": 0.5, "flops": {"params_active": 1_000_000},
        "trajectory": [
            {"generation": g, "best_fitness": best, "gen_time_s": seconds,
             "children": [paper_child(*child) for child in children]}
            for g, best, seconds, children in (
                (0, 0.1, 0.0, []), (1, 0.3, 9.5, first), (2, 0.5, 4.0, second)
            )
        ],
    }  # fmt: skip


def write_paper(folder):
    path = folder / "mmd" / "small" / "greedy_C6_T2_N3_seed41.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(paper_run()))
    return path


def openevolve_program(key, iteration, metrics, parent="root", **metadata):
    return {
        "id": key, "code": f"print({key!r})", "parent_id": parent, "metrics": metrics,
        "timestamp": 1000.0 + iteration, "iteration_found": iteration, "metadata": metadata,
        "prompts": None, "language": "python",
    }  # fmt: skip


TIMEOUT = {"error": 0.0, "timeout": True}
USED = {"prompt_tokens": 300, "completion_tokens": 40, "total_tokens": 340, "model": "m"}


def write_openevolve(folder, code="code"):
    """Iterations 1 to 8: 3 timed out, 4 only in the trace, 5 and 8 failed, 7 evicted."""
    root = openevolve_program("root", 0, {"combined_score": 0.1}, None)
    first = openevolve_program("a", 1, {"combined_score": 0.05}, token_usage=USED)
    best = openevolve_program("b", 2, {"combined_score": 0.4, "area": 2.0}, token_usage=USED)
    slow = openevolve_program("c", 3, TIMEOUT, "b", token_usage=USED)
    copy = openevolve_program("b-copy", 2, {"combined_score": 0.4}, "b", migrant=True)
    mean = openevolve_program("f", 6, {"x": 0.2, "y": 0.4, "flag": True}, "b")
    for number, programs in ((5, [root, first, best, slow]), (10, [root, best, copy, mean])):
        inside = folder / "checkpoints" / f"checkpoint_{number}"
        (inside / "programs").mkdir(parents=True)
        for program in programs:
            stored = {code if key == "code" else key: value for key, value in program.items()}
            (inside / "programs" / f"{program['id']}.json").write_text(json.dumps(stored))
        last = 5 if number == 5 else 8
        (inside / "metadata.json").write_text(json.dumps({"last_iteration": last}))
    trace = {
        "iteration": 4, "timestamp": 1004.0, "parent_id": "b", "child_id": "d",
        "parent_metrics": {"combined_score": 0.4}, "llm_response": "prose",
        "child_metrics": {"combined_score": float("nan")},
        "metadata": {"iteration_time": 2.5, "token_usage": USED},
    }  # fmt: skip
    (folder / "evolution_trace.jsonl").write_text(json.dumps(trace) + "\n")
    (folder / "logs").mkdir()
    (folder / "logs" / "openevolve_1.log").write_text(
        "2026 - INFO - Iteration 1: Program a (parent: root) completed in 0.08s | tokens: 340 "
        "(prompt: 300, completion: 40)\n"
        "2026 - WARNING - Iteration 5 error: No valid code found in response | tokens: 350 "
        "(prompt: 310, completion: 40)\n"
        "2026 - INFO - Iteration 7: Program g (parent: b) completed in 0.10s | tokens: 340 "
        "(prompt: 300, completion: 40)\n"
    )
    return folder


def execute(database, *statements):
    """Runs statements, each with its values, on a database."""
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        for statement, *values in statements:
            connection.execute(statement, values)


def write_shinka(folder, *, old=False):
    """Generations 0 to 5: 2 incorrect, 3 failed and told, 4 missing, 5 best."""
    folder.mkdir(parents=True, exist_ok=True)
    result = {"content": "reply", "input_tokens": 100, "output_tokens": 7, "thinking_tokens": 3}
    result |= {"system_msg": "Be good.", "msg": "Improve."}
    metadata = {
        "api_costs": 0.25, "embed_cost": None, "novelty_cost": 0.05, "compute_time": 1.25,
        "pipeline_seconds": 2.5, "model_name": "m", "temperature": 0.7, "max_tokens": 500,
        "llm_result": result,
    }  # fmt: skip
    initial = {"api_costs": 0.0, "compute_time": 1.0}
    rows = [
        ("r", None, 0, 0.1, 1, initial, ""),
        ("copy", None, 0, 0.1, 1, {"_is_island_copy": True}, ""),
        ("a", "r", 1, 0.2, 1, metadata, ""),
        ("b", "a", 2, 0.0, 0, metadata, "wrong shape"),
        ("e", "a", 5, 0.9, 1, metadata, ""),
    ]
    insert = f"INSERT INTO programs VALUES ({','.join('?' * 10)})"
    details = {"failure_class": "llm_output_invalid", "failure_reason": "no code"}
    execute(
        folder / ("evolution_db.sqlite" if old else "programs.sqlite"),
        ["CREATE TABLE programs (id TEXT, code TEXT, parent_id TEXT, generation INTEGER, timestamp "
         "REAL, combined_score REAL, correct BOOLEAN, public_metrics TEXT, text_feedback TEXT, "
         "metadata TEXT)"],
        *((insert, key, f"# {key}", parent, generation, 10.0 + generation, score, correct,
           json.dumps({"area": 2.0}), feedback, json.dumps(known))
          for key, parent, generation, score, correct, known, feedback in rows),
        ["CREATE TABLE attempt_log (id INTEGER, generation INTEGER, stage TEXT, status TEXT, "
         "details TEXT, created_at REAL)"],
        ["INSERT INTO attempt_log VALUES (1, 3, 'proposal', 'failed', ?, 0)", json.dumps(details)],
        *([f"ALTER TABLE programs DROP COLUMN {name}"]
          for name in ("public_metrics", "text_feedback", "metadata") if old),
        *([["DROP TABLE attempt_log"]] if old else []),
    )  # fmt: skip
    return folder


def codeevolve_module():
    """A module that pickles as `codeevolve.database`."""
    module = types.ModuleType("codeevolve.database")

    class Program(types.SimpleNamespace):
        pass

    class ProgramDatabase(types.SimpleNamespace):
        def random_selection(self):
            raise AssertionError("called while reading")

    for found in (Program, ProgramDatabase):
        found.__module__, found.__qualname__ = module.__name__, found.__name__
        setattr(module, found.__name__, found)
    return module


def codeevolve_program(module, key, epoch, fitness, *, code=0, error=None, island=0, parent=None):
    return module.Program(
        id=key, code=f"# {key}", returncode=code, error=error, fitness=fitness, parent_id=parent,
        eval_metrics={} if code else {"area": 2.0, "eval_time": 0.5}, iteration_found=epoch,
        generation=epoch, island_found=island, model_msg="reply",
    )  # fmt: skip


def write_codeevolve(folder):
    """Epochs 0 to 5: legal zero, failure, timeout, ok, no program, a migrant at the end."""
    import random

    import numpy as np

    module = codeevolve_module()
    make = codeevolve_program
    late = "TimeoutError: Evaluation time usage exceeded maximum"
    programs = [
        make(module, "r", 0, 0.0),
        make(module, "a", 1, 0, code=1, error="Traceback: boom"),
        make(module, "b", 2, 0, code=1, error=late, parent="a"),
        make(module, "c", 3, 0.7, parent="m"),
        make(module, "m", 2, 0.9, island=4),
    ]
    database = module.ProgramDatabase(
        id=0, programs={program.id: program for program in programs}, random_state=random.Random(1)
    )
    database._selection_methods = {"random": database.random_selection}
    history = [0.0, 0.0, 0.7, 0.7, 0.9]
    evolution = {
        "best_fit_hist": history, "avg_fit_hist": [np.float64(value) for value in history],
        "errors": [{"epoch": 4, "motive": "sr_evolve_prog", "error_msg": "no such block"}],
        "tok_usage": [
            {"epoch": e, "motive": "m", "prompt_tok": 10, "compl_tok": e, "model_name": "m"}
            for e in range(1, 6)
        ],
    }  # fmt: skip
    prompts = module.ProgramDatabase(id=0, programs={})
    checkpoint = {"prompt_db": prompts, "sol_db": database, "evolve_state": evolution}
    target = folder / "0" / "ckpt"
    target.mkdir(parents=True)
    with mock.patch.dict(sys.modules, {"codeevolve": module, module.__name__: module}):
        (target / "ckpt_5.pkl").write_bytes(pickle.dumps(checkpoint))
    return folder


def statuses(run):
    return [child.evaluation.status for child in run.children]


def trajectory(run):
    first = [] if run.initial is None else [run.initial.evaluation.fitness]
    return first + [generation.best_fitness for generation in run.generations]
