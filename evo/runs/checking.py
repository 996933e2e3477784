"""What a task would do before any model is paid: its initial program and its prompt."""

from __future__ import annotations

import html
import warnings
from dataclasses import dataclass
from typing import Unpack

from evo.logs.records import Evaluation
from evo.prompt import Message
from evo.runs.configuration import make_header, settings_of
from evo.runs.first import first_of
from evo.runs.options import ConfigurationOptions
from evo.tasks.display import code
from evo.tasks.task import Task


@dataclass(frozen=True)
class Check:
    """What came of the initial program of a task, and what a model would be asked.

    Attributes:
        evaluation: That of the initial program.
        messages: What the model is sent for the first child of a run with these options.
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
    def of(cls, task: Task, **options: Unpack[ConfigurationOptions]) -> Check:
        """Evaluates the initial program of a run with some options and makes its first prompt."""
        header = make_header(task, **options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            first = first_of(header, settings_of({}))
        record, evaluation = header.task, first.evaluation
        said = [str(each.message) for each in caught]
        named = options.get("model") is not None or header.models
        if record.asks_model and task.asks is None and not named:
            said.append(
                "the rows were answered by the offline model, which is no LLM; check(model=...) "
                "asks another one, and a run asks its own unless the task has asks="
            )
        if evaluation.error:
            said.append(evaluation.error)
        if evaluation.notes and not header.feedback:
            said.append("evaluations bring notes; feedback=True shows them to the model")
        files = {"evaluator": record.evaluator_file, "harness": record.harness_file}
        captured = {what: record.files[file] for what, file in files.items() if file}
        return cls(evaluation, first.messages, captured, tuple(said))

    def __str__(self) -> str:
        found = self.evaluation
        fitness = "no fitness" if found.fitness is None else f"fitness {found.fitness:z.10g}"
        lines = [f"initial program: {found.status}, {fitness}"]
        lines += [f"{name} {value:.10g}" for name, value in found.metrics.items()]
        lines += [f"notes: {found.notes}"] if found.notes else []
        for message in self.messages:
            lines.append(f"\n--- {message['role']}\n{message['content']}")
        for what, text in self.captured.items():
            lines.append(f"\n--- {what}\n{text}")
        lines += [f"\nwarning: {each}" for each in self.warnings]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        found = self.evaluation
        fitness = "no fitness" if found.fitness is None else f"fitness {found.fitness:z.10g}"
        metrics = ", ".join(f"{name} {value:.6g}" for name, value in found.metrics.items())
        parts = [f"<b>Initial program: {found.status}, {fitness}</b>", html.escape(metrics)]
        parts += [f"<div>&#9888; {html.escape(each)}</div>" for each in self.warnings]
        for message in self.messages:
            asked = code(message["content"], python=False)
            parts.append(f"<details><summary>{message['role']} message</summary>{asked}</details>")
        for what, text in self.captured.items():
            parts.append(f"<details><summary>{what}</summary>{code(text)}</details>")
        return f"<div>{'<br>'.join(parts)}</div>"
