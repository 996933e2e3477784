"""Minimal valid files, which a message shows where it refuses a file of their kind.

A message has one line, so the lines of a file are separated by ` | `.
"""

from __future__ import annotations

from collections.abc import Sequence

SEPARATOR = " | "

SWEEP = ('task = "min_max_distance"', "space = { children = [1, 4] }")
"""A sweep file, TOML."""

PROTOCOL = (
    'name = "deep-or-broad"',
    'title = "24 generations of 1 child, or 6 of 4"',
    "tasks = { min_max_distance = 'HASH' }",
    "detects = []",
    "measures = { final = 'best fitness at the end' }",
    "estimate = { prompt_tokens = 900, completion_tokens = 700 }",
    "conditions = [{ name = 'deep', task = 'min_max_distance', children = 1, generations = 24, "
    "seeds = '40:50' }]",
)
"""A protocol file, TOML; HASH is the task's, which `evo run --protocol` states."""

TABLE = ("run,generation,fitness", "a,1,0.31", "a,2,0.42")
"""A table of calls, CSV."""

MODELS = (
    '["my-model-8b"]',
    'base_url = "http://localhost:8000/v1"',
)
"""A file of models, TOML."""

INSTANCES = {
    "input": ('{"input": 2, "want": 4}', '{"input": 3, "want": 6}'),
    "prompt": ('{"prompt": "What is 2 + 2?", "want": "4"}',),
}
"""The data set of a task, JSONL, by the key that it needs; all other keys are for the evaluator."""

LOG = "`evo run mmd -T 1 -N 1 --log FILE` writes a minimal valid log"
"""How to get a log, whose lines carry checksums."""

SELECTION = "`evo select mmd --vary children=1,4 --log-dir FOLDER` writes a minimal valid one"
"""How to get the folder of a selection."""

PROGRAM = ("def solve():", "    return 0.5")
EVALUATOR = ("def score(value):", "    return {'fitness': value}")
TASK_TOML = ("entry = ['solve']",)


def minimal(lines: Sequence[str]) -> str:
    """Returns the words that show a file: its lines in one line."""
    shown = SEPARATOR.join(lines)
    return f"a minimal valid file, its lines separated by {SEPARATOR.strip()!r}: {shown}"


def minimal_task() -> str:
    """Returns the words that show the three files of a task's folder."""
    files = {
        "initial_program.py": PROGRAM,
        "evaluator.py": EVALUATOR,
        "task.toml": TASK_TOML,
    }
    shown = "; ".join(f"{name}: {SEPARATOR.join(lines)}" for name, lines in files.items())
    return f"a minimal valid folder, its lines separated by {SEPARATOR.strip()!r}: {shown}"
