"""What a task would do before any model is paid: its initial program and its prompt."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from evo.logs.records import Evaluation
from evo.prompt import Message, build_messages
from evo.tasks.display import code
from evo.tasks.task import Task


@dataclass(frozen=True)
class Check:
    """What came of the initial program of a task, and what a model would be asked.

    Attributes:
        evaluation: That of the initial program.
        messages: What the model is sent for a first child.
        captured: What was captured beside the functions that were given, by file.
        warnings: What was warned of meanwhile.

    Example:
        >>> check = evo.load_task("mmd").check()
        >>> check.evaluation.status
        'ok'
        >>> check.messages[0]["role"]
        'system'
    """

    evaluation: Evaluation
    messages: tuple[Message, ...]
    captured: dict[str, str]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, task: Task, evaluation: Evaluation, warnings: Sequence[str] = ()) -> Check:
        """Returns what is known of a task once its initial program is evaluated."""
        record = task.record
        messages = build_messages(record, task.initial_program, evaluation.fitness)
        files = {"evaluator": record.evaluator_file, "harness": record.harness_file}
        captured = {what: record.files[file] for what, file in files.items() if file}
        said = [*warnings]
        if evaluation.error:
            said.append(evaluation.error)
        if evaluation.notes:
            said.append("evaluations bring notes; feedback=True shows them to the model")
        return cls(evaluation, tuple(messages), captured, tuple(said))

    def __str__(self) -> str:
        found = self.evaluation
        fitness = "no fitness" if found.fitness is None else f"fitness {found.fitness:.10g}"
        lines = [f"initial program: {found.status}, {fitness}"]
        lines += [f"{name} {value:.10g}" for name, value in found.metrics.items()]
        lines += [f"notes: {found.notes}"] if found.notes else []
        for message in self.messages:
            lines.append(f"\n--- {message['role']}\n{message['content']}")
        for what, text in self.captured.items():
            lines.append(f"\n--- {what}\n{text}")
        lines += [f"\nwarning: {each}" for each in self.warnings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        found = self.evaluation
        fitness = "no fitness" if found.fitness is None else f"fitness {found.fitness:.10g}"
        metrics = ", ".join(f"{name} {value:.6g}" for name, value in found.metrics.items())
        parts = [f"<b>Initial program: {found.status}, {fitness}</b>", html.escape(metrics)]
        parts += [f"<div>&#9888; {html.escape(each)}</div>" for each in self.warnings]
        for message in self.messages:
            asked = code(message["content"], python=False)
            parts.append(f"<details><summary>{message['role']} message</summary>{asked}</details>")
        for what, text in self.captured.items():
            parts.append(f"<details><summary>{what}</summary>{code(text)}</details>")
        return f"<div>{'<br>'.join(parts)}</div>"
