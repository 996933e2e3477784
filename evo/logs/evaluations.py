"""Frozen records of how one program did; see `evo.logs.records`."""

from __future__ import annotations

from evo.logs import inputs, literals

Int = inputs.Int
Record = inputs.Record
Status = literals.Status


class Instance(Record, frozen=True, kw_only=True):
    """Outcome on one instance of a data set.

    The `score` is in [0, 1] unless the task says otherwise. Where it is None it counts as 0; one
    that is not `ok` and has a score has what the task counts for it.
    """

    id: str
    status: Status
    score: float | None = None


class Evaluation(Record, frozen=True, kw_only=True):
    """Status, fitness and metrics of one program.

    Attributes:
        status: The fitness is None unless this is `ok`; None: an import does not say.
        fitness: Higher is better, 1.0 is the best published construction; the mean over `draws`.
        metrics: Named finite numbers besides the fitness, for instance `objective`.
        error: Why it is not `ok`, with captured output; or a warning if it is.
        seconds: Wall time; None where an imported log does not say.
        value: What the program returned, as nested lists, on request for pictures; never in a log.
        notes: The evaluator's remarks on the program, for the model to read; see
            `evo.prompt.feedback`.
        stages: The score in each stage that was run, of an evaluation in stages.
        audit: What a program that a stage refused would have had, where that was tried; no search
            sees it.

    Example:
        >>> found = evo.Evaluation(status="ok", fitness=0.5, metrics={"radius": 2.0})
        >>> found.metrics["radius"]
        2.0
    """

    status: Status | None
    fitness: float | None = None
    metrics: dict[str, float] = {}
    error: str | None = None
    seconds: float | None = 0.0
    instances: tuple[Instance, ...] = ()
    draws: Int = 1
    fitness_sd: float | None = None
    value: object = None
    notes: str = ""
    stages: tuple[float, ...] = ()
    audit: Evaluation | None = None

    def __post_init__(self) -> None:
        if (self.status == "ok") != (self.fitness is not None):
            raise ValueError(
                f"an evaluation has a fitness if and only if its status is 'ok', "
                f"got status {self.status!r} and fitness {self.fitness!r}"
            )
