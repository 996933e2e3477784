"""What tests of runs compare."""

from pathlib import Path
from typing import Any

import msgspec

from evo.allocation import state_digest
from evo.records import Child

QUIET = {"progress": False}


def timeless(children: list[Child]) -> list[bytes]:
    """Children as bytes, without times, and whoever paid for them."""
    kept = []
    for child in children:
        evaluation = msgspec.structs.replace(child.evaluation, seconds=0.0)
        attempts = tuple(msgspec.structs.replace(a, latency=0.0) for a in child.attempts)
        kept.append(
            msgspec.json.encode(
                msgspec.structs.replace(
                    child, evaluation=evaluation, attempts=attempts, inherited=False
                )
            )
        )
    return kept


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

    def told(self, round_index: int, reward: Any, outcome: Any) -> None:
        self.rewards.append(float(reward[0]))
        self.lines.append(("told", round_index, int(outcome.arm[0]), state_digest(self.policy)))
