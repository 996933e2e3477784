"""What tests of runs compare."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

import evo
from evo.logs.records import Advice, Child, InstanceCall
from evo.studies.allocation.loop import state_digest

QUIET = {"progress": False}
EVALUATOR = "def evaluate(program_path):\n    return {'combined_score': 1.0}\n"


def timeless(calls: Sequence[Child | InstanceCall | Advice]) -> list[bytes]:
    """Children and calls as bytes, without times, and whoever paid for them."""
    kept = []
    for call in calls:
        attempts = tuple(msgspec.structs.replace(a, latency=0.0) for a in call.attempts)
        same: dict[str, Any] = {"attempts": attempts, "inherited": False}
        if isinstance(call, Child):
            audit = call.evaluation.audit
            audit = audit and msgspec.structs.replace(audit, seconds=0.0)
            same["evaluation"] = msgspec.structs.replace(call.evaluation, seconds=0.0, audit=audit)
        kept.append(msgspec.json.encode(msgspec.structs.replace(call, **same)))
    return kept


def same_run(one: evo.Log, other: evo.Log) -> bool:
    """Whether two logs hold the same children and calls."""
    parts = ("children", "instance_calls", "critic_calls", "embedding_calls", "advice_calls")
    return all(timeless(getattr(one, part)) == timeless(getattr(other, part)) for part in parts)


def write_task(folder: Path, program: str, evaluator: str, toml: str = "") -> Path:
    """Writes the folder of a task."""
    folder.mkdir(exist_ok=True)
    files = {"initial_program.py": program, "evaluator.py": evaluator, "task.toml": toml}
    for name, text in files.items():
        if text:
            (folder / name).write_text(text)
    return folder


class Notes:
    """A watcher that keeps what it is told, in order, and the state of the policy then."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.rewards = policy, list[float]()
        self.lines: list[tuple[str, int, int, str]] = []

    def asked(self, round_index: int, arm: Any) -> None:
        self.lines.append(("asked", round_index, int(arm[0]), state_digest(self.policy)))

    def completed(self, round_index: int, reward: Any, outcome: Any) -> None:
        self.rewards.append(float(reward[0]))
        self.lines.append(("told", round_index, int(outcome.arm[0]), state_digest(self.policy)))


def folder_task(folder: Path, **files: str) -> Path:
    """A folder of a task whose program evaluates itself, with other files; `_dot_` is a dot."""
    folder.mkdir(exist_ok=True)
    contents = {"initial_program.py": "def f():\n    return 1\n", "evaluator.py": EVALUATOR}
    contents |= {
        name.replace("__", "/").replace("_dot_", "."): text for name, text in files.items()
    }
    for name, text in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if text:
            (folder / name).write_text(text)
    return folder
