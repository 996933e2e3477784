"""The records in files of OpenEvolve and SkyDiscover, and what their metrics say."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from evo.logs.records import Evaluation
from replay.importers import foreign
from replay.importers.foreign import Failure
from replay.importers.openevolve_log import why


class StoredProgram(msgspec.Struct):
    """A program of a checkpoint; SkyDiscover calls its code `solution`."""

    id: str
    metrics: dict[str, object] | None
    iteration_found: int = 1
    code: str | None = None
    solution: str | None = None
    parent_id: str | None = None
    timestamp: float | None = None
    metadata: dict[str, object] | None = None
    prompts: dict[str, object] | None = None
    artifacts_json: object = None  # what the evaluator said, as text, or as a trace has it

    @property
    def is_initial(self) -> bool:
        """Whether a search began with it."""
        return self.parent_id is None and self.iteration_found == 0

    @property
    def known(self) -> dict[str, object]:
        """What the tool noted of it."""
        return self.metadata or {}

    @property
    def usage(self) -> Mapping[str, object]:
        """The tokens of its call."""
        return foreign.mapping(self.known.get("token_usage"))

    @property
    def asked(self) -> Mapping[str, object]:
        """The prompt by role."""
        prompts = (self.prompts or {}).values()
        return next((prompt for prompt in prompts if isinstance(prompt, Mapping)), {})

    @property
    def text(self) -> str | None:
        """Its code."""
        return self.code or self.solution

    @property
    def judged(self) -> Evaluation:
        """Its evaluation."""
        return evaluation(self.metrics, _cause(self.artifacts_json))

    @property
    def island(self) -> object:
        """The number of its island."""
        return self.known.get("island")

    @property
    def reply(self) -> object:
        """The reply of the model."""
        answers = self.asked.get("responses")
        return answers[-1] if isinstance(answers, list) and answers else None

    @property
    def when(self) -> tuple[float, str]:
        """A key that sorts programs by age."""
        return foreign.finite(self.timestamp) or 0.0, self.id


class StoredMetadata(msgspec.Struct):
    """What a checkpoint holds beside programs."""

    last_iteration: int = 0


class TracedChild(msgspec.Struct):
    """A child as a trace holds it."""

    iteration: int
    parent_id: str
    child_id: str
    parent_metrics: dict[str, object] | None
    child_metrics: dict[str, object] | None
    timestamp: float | None = None
    child_code: str | None = None
    parent_code: str | None = None
    prompt: object = None
    llm_response: str | None = None
    island_id: int | None = None
    metadata: dict[str, object] | None = None
    artifacts: object = None


class TracedFailure(msgspec.Struct):
    """A failed iteration in OpenEvolve's trace of failures, with its prompt and reply."""

    iteration: int
    error: str
    parent_id: str | None = None
    island: object = msgspec.field(name="island_id", default=None)
    token_usage: object = None
    prompt: object = None
    reply: object = msgspec.field(name="llm_response", default=None)

    @property
    def text(self) -> None:
        """Its code, which there is none of."""
        return None

    @property
    def judged(self) -> Evaluation:
        """Its evaluation."""
        status, error = why(self.error)
        return Evaluation(status=status, error=error, seconds=None)

    @property
    def usage(self) -> Mapping[str, object]:
        """The tokens of its call."""
        return foreign.mapping(self.token_usage)

    @property
    def asked(self) -> Mapping[str, object]:
        """The prompt by role."""
        return foreign.mapping(self.prompt)


class TraceFile(msgspec.Struct):
    """A trace in one JSON document."""

    traces: list[TracedChild]


class IterationResult(msgspec.Struct):
    """What one iteration of SkyDiscover gave."""

    error: str | None = None
    iteration_time_seconds: float | None = None
    child_program: StoredProgram | None = None


class IterationLine(msgspec.Struct):
    """A line of SkyDiscover's statistics."""

    iteration: int
    iteration_result: IterationResult


def _cause(artifacts: object) -> str:
    """Why a program failed, by its artifacts: the exception if they name it; else empty."""
    try:
        known = foreign.mapping(json.loads(artifacts) if isinstance(artifacts, str) else artifacts)
    except (ValueError, RecursionError):
        return ""
    texts = (foreign.text(known.get(name)) for name in ("stderr", "error_message", "traceback"))
    words = [text.strip() for text in texts if text and text.strip()] or [""]
    raised = words[-1].rpartition("\n")[2]  # a traceback ends in its exception
    return raised if words[0].rpartition("\n")[2] in raised else words[0]


def evaluation(metrics: Mapping[str, object] | None, cause: str = "") -> Evaluation:
    """An evaluation from a program's metrics, where failures are numbers as well.

    `cause` is why the program failed, where its metrics do not say.
    The fitness is `combined_score`, otherwise the mean of the numbers. A timeout is
    `{"error": 0.0, "timeout": true}`; an `error` that is text is one, too.
    """
    metrics = metrics or {}
    error = metrics.get("error")
    failure: Failure | None = None
    if metrics.get("timeout") is True:
        failure = ("timeout", "timed out")
    elif isinstance(error, str) and error:
        failure = (foreign.status_of(error) or "error", error)
    elif "combined_score" not in metrics and "error" in metrics:
        failure = ("error", cause or "the source does not say why")
    elif not metrics:
        failure = ("error" if cause else None, cause or "no metrics in the source")
    numbers = [v for v in metrics.values() if isinstance(v, int | float) and type(v) is not bool]
    known = [number for number in map(foreign.finite, numbers) if number is not None]
    mean = sum(known) / len(known) if known and len(known) == len(numbers) else None
    others = {key: value for key, value in metrics.items() if key != "combined_score"}
    return foreign.judged(metrics.get("combined_score", mean), failure=failure, metrics=others)
