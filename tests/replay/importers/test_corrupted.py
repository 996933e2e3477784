"""Logs of other tools with a few values, lines or files changed: an import, or one error.

Each sample is a tree of plain values that is corrupted and then written as the tool writes it.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import pickle
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from foreign_samples import (
    codeevolve_module,
    codeevolve_program,
    openevolve_program,
    paper_run,
    write_openevolve,
)
from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.logs.journal import LogError
from replay.importers import Imported, read, write

STRANGE: list[Any] = [
    *(None, True, False, math.nan, math.inf, -math.inf, -1, 0, 3, 0.5, 1001, 10**30, 2**63, 1e300),
    *("", "x", "nan", "1e999", "\ud800", "\u2028", "é" * 50, [], [1, 2], {}, {"a": 1}, [[[]]]),
]
TABLE = [
    {"run": "a", "generation": g, "fitness": g / 10, "status": "ok" if g != 2 else "error",
     "prompt_tokens": 3, "seconds": 1.0, "program": "x", "island": 1, "seed": 3}
    for g in range(4)
]  # fmt: skip
CSV = "\n".join([",".join(TABLE[0]), *(",".join(map(str, row.values())) for row in TABLE), ""])
STATE = {
    "program_candidates": [{"a": "x"}, {"a": "y"}, {"a": "z"}],
    "prog_candidate_val_subscores": [{0: 0.0, 1: 3.0}, {0: 1.0, 1: 3.0}, {0: 0.5, 1: 1.0}],
    "parent_program_for_candidate": [[None], [0], [0, 1]],
    "full_program_trace": [
        {"i": 0, "tasks": [{"parent_idx": 0}], "new_program_idx": 1},
        {"i": 1, "tasks": [{"parent_idx": 0, "new_subsample_scores": [0.0, 1.0]}]},
        {"i": 2, "new_program_idx": 2, "new_program_indices": [2]},
    ],
}
DATE = "2025-01-01 10:00"
TEXT_LOG = f"""\
[island 0] {DATE}:00,000 | INFO | 1 | Starting from epoch 0 with evolve_config = {{}}
[island 0] {DATE}:00,500 | INFO | 1 | (0): Model(model_name=m,temp=0.7,top_p=0.95)
[island 0] {DATE}:01,000 | INFO | 1 | ========= EPOCH 1 =========
[island 0] {DATE}:02,000 | INFO | 1 | using 10 prompt tokens and 20 completion tokens
[island 0] {DATE}:03,000 | INFO | 1 | Child solution Program(id=a,fitness=0.5,island_found=0,\
iteration_found=1,returncode=0,eval_metrics={{'area': 0.5}})
[island 0] {DATE}:04,000 | INFO | 1 | ========= EPOCH 2 =========
[island 0] {DATE}:05,000 | INFO | 1 | Error with SEARCH/REPLACE: none
[island 0] {DATE}:06,000 | INFO | 1 | Migration finished
[island 0] {DATE}:07,000 | INFO | 1 | Starting from epoch 1 with evolve_config = {{}}
[island 0] {DATE}:08,000 | INFO | 1 | ========= EPOCH 2 =========
"""
ITERATIONS = [
    {"iteration": 9, "iteration_result": {"error": "No valid code"}},
    {"iteration": 10, "iteration_result": {
        "child_program": openevolve_program("z", 10, {"combined_score": 0.7})}},
]  # fmt: skip


def places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields where something stands in a tree."""
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield (*at, key)
        yield from places(tree[key], (*at, key))


def corrupted(tree: Any, rng: random.Random) -> Any:
    """Returns a tree in which some values are replaced, left out, doubled or under other names."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice([1, 1, 2, 4])):
        *above, key = rng.choice([*places(tree)] or [("",)])
        parent = tree
        for each in above:
            parent = parent[each]
        change = rng.choice(["replace", "replace", "leave out", "double", "rename"])
        if change == "leave out":
            parent.pop(key, None) if isinstance(parent, dict) else parent.pop(key)
        elif change == "double" and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[key]))
        elif change == "rename" and isinstance(parent, dict) and key in parent:
            parent[rng.choice(["", "x", "-1", *map(str, parent)])] = parent.pop(key)
        else:
            parent[key] = copy.deepcopy(rng.choice(STRANGE))
    return tree


def scrambled(text: str, rng: random.Random) -> str:
    """Returns a text that was cut, or of which lines or characters were changed."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        lines, at = text.split("\n"), rng.randrange(len(text) + 1)
        change, line = rng.choice(["cut", "double", "leave out", "put in"]), rng.choice(lines)
        if change == "cut":
            text = text[:at]
        elif change == "double":
            lines.insert(rng.randrange(len(lines) + 1), line)
            text = "\n".join(lines)
        elif change == "leave out":
            lines.remove(line)
            text = "\n".join(lines)
        else:
            put = rng.choice(
                [*"\0é\u2028\x85,\"'{}()[]:-9=\\ \t\r٣²", "1e400", "nan", "-1", "9" * 25]
            )
            text = text[:at] + put + text[at + rng.choice([0, 1]) :]
    return text


def put(file: Path, trees: list[Any], rng: random.Random) -> Path:
    """Writes corrupted trees as lines of JSON, or as they are with a scrambled text."""
    file.parent.mkdir(parents=True, exist_ok=True)
    as_lines = rng.random() < 0.5
    text = "\n".join(json.dumps(corrupted(tree, rng) if as_lines else tree) for tree in trees)
    file.write_text(text if as_lines else scrambled(text, rng))
    return file


def paper(folder: Path, rng: random.Random) -> Path:
    return put(folder / "greedy_C6_T2_N3_seed41.json", [paper_run()], rng)


def openevolve(folder: Path, rng: random.Random) -> Path:
    """Some files of a run are changed, others missing."""
    write_openevolve(folder / "run")
    files = sorted(file for file in (folder / "run").rglob("*") if file.is_file())
    for file in rng.sample(files, rng.choice([1, 2, 5])):
        if rng.random() < 0.2:
            file.unlink()
        elif file.suffix == ".log":
            file.write_text(scrambled(file.read_text(), rng))
        else:
            put(file, [json.loads(file.read_text())], rng)
    return folder / "run"


def skydiscover(folder: Path, rng: random.Random) -> Path:
    write_openevolve(folder / "run", code="solution")
    put(folder / "run" / "adaevolve_iteration_stats_1.jsonl", ITERATIONS, rng)
    return folder / "run"


def codeevolve(folder: Path, rng: random.Random) -> Path:
    """A checkpoint, the text log, or both."""
    (folder / "0" / "ckpt").mkdir(parents=True)
    kinds = rng.choice([("log",), ("checkpoint",), ("log", "checkpoint")])
    if "log" in kinds:
        (folder / "0" / "results.log").write_text(scrambled(TEXT_LOG, rng))
    if "checkpoint" in kinds:
        module = codeevolve_module()
        programs = [
            codeevolve_program(module, "r", 0, 0.0),
            codeevolve_program(module, "a", 1, 0, code=1, error="boom"),
            codeevolve_program(module, "b", 2, 0.5, parent="a"),
            codeevolve_program(module, "m", 2, 0.9, island=4),
        ]
        evolution = {
            "best_fit_hist": [0.0, 0.5], "errors": [{"epoch": 4, "error_msg": "no"}],
            "tok_usage": [{"epoch": 1, "prompt_tok": 10, "compl_tok": 5, "model_name": "m"}],
        }  # fmt: skip
        tree = {"id": 0, "programs": {p.id: vars(p) for p in programs}, "evolution": evolution}
        tree = corrupted(tree, rng)
        stored = tree.get("programs")
        if isinstance(stored, dict):
            stored = {
                key: module.Program(**{str(k): v for k, v in value.items()})
                if isinstance(value, dict) else value
                for key, value in stored.items()
            }  # fmt: skip
        base = module.ProgramDatabase(id=tree.get("id"), programs=stored)
        with mock.patch.dict(sys.modules, {"codeevolve": module, module.__name__: module}):
            data = pickle.dumps({"sol_db": base, "evolve_state": tree.get("evolution")})
        (folder / "0" / "ckpt" / "ckpt_5.pkl").write_bytes(data)
    return folder / "0"


def gepa(folder: Path, rng: random.Random) -> Path:
    (folder / "run").mkdir()
    (folder / "run" / "gepa_state.bin").write_bytes(pickle.dumps(corrupted(STATE, rng)))
    return folder / "run"


def table(folder: Path, rng: random.Random) -> Path:
    if rng.random() < 0.5:
        return put(folder / "table.jsonl", TABLE, rng)
    (folder / "table.csv").write_text(scrambled(CSV, rng))
    return folder / "table.csv"


SAMPLES: dict[str, Callable[[Path, random.Random], Path]] = {
    each.__name__: each for each in (paper, openevolve, skydiscover, codeevolve, gepa, table)
}


@contextlib.contextmanager
def an_error_at_most(path: Path) -> Iterator[None]:
    """Lets through one of our errors, if it names the file in one line."""
    try:
        yield
    except LogError as error:
        if str(path) not in str(error) or "\n" in str(error):
            raise


def check(runs: list[Imported], folder: Path) -> None:
    """Runs can be written and read, and only what is ok has a fitness; what is not says why."""
    for number, run in enumerate(runs):
        target = folder / f"out{number}.jsonl"
        write(run, target, compact=False)
        log = evo.read_log(target)
        assert len(log.children) == len(run.children)
        first = [] if log.initial is None else [log.initial.evaluation]
        for evaluation in [*first, *(child.evaluation for child in log.children)]:
            fitness = evaluation.fitness
            assert (evaluation.status == "ok") == (fitness is not None)
            assert fitness is None or math.isfinite(fitness)
            assert fitness is not None or evaluation.error


@pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # of what was found odd, and imported all the same
@pytest.mark.parametrize("format", SAMPLES)
@given(rng=st.randoms(use_true_random=True))
def test_a_corrupted_log_is_an_import_or_one_error_that_names_it(
    format: str,  # noqa: A002
    rng: random.Random,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = SAMPLES[format](Path(name), rng)
        with an_error_at_most(path):
            check(read(path, format), Path(name))


def test_lost_files_are_lost_children_and_never_new_ones(tmp_path: Path) -> None:
    whole = write_openevolve(tmp_path / "whole")
    (known,) = read(whole, "openevolve")
    fitness = [child.evaluation.fitness for child in known.children]
    files = sorted(file for file in whole.rglob("*") if file.is_file())
    for missing in files:
        content = missing.read_bytes()
        missing.unlink()
        runs = list[Imported]()
        with an_error_at_most(missing):
            runs = read(whole, "openevolve")
        missing.write_bytes(content)
        if not runs:
            continue
        (run,) = runs
        found = [child.evaluation.fitness for child in run.children]
        assert all(one is None or one == other for one, other in zip(found, fitness, strict=False))
        if found != fitness[: len(found)]:
            assert run.lost != known.lost, missing


def test_a_status_that_is_no_text_is_a_failure(tmp_path: Path) -> None:
    rows = [*TABLE, {**TABLE[0], "generation": 4, "fitness": 0.9, "status": ["ok"]}]
    path = tmp_path / "table.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.warns(UserWarning, match="1 row with a fitness has the status"):
        (run,) = read(path, "table")
    last = run.children[-1].evaluation
    assert (last.status, last.fitness, last.error) == (None, None, "status ['ok']")
