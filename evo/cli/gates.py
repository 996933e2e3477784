"""The options of commands that open a gate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from evo.cli.options import FLAGS, Budget, Count, Seed
from evo.runs.concurrency import CALL_SECONDS

if TYPE_CHECKING:
    from evo.gate.gate import Gate
    from evo.logs.records import Model


@Parameter(name="*")
@dataclass(frozen=True)
class GateOptions:
    """What a gate counts, limits and keeps.

    Attributes:
        budget: Such as calls=512, tokens=1e6 or dollars=2; then a 429 that is final.
        requests_per_minute: Requests per minute before a 429.
        tokens_per_minute: Tokens per minute before a 429.
        log: File of all calls, which goes on if it exists (default: a new one below logs/local,
            where calls are watched or have a budget).
        cache: File of answers, or redis://host: the k-th time that a client sends a body it gets
            the k-th answer. The count goes on with the log; a new --log, or neither --log nor
            --budget, begins anew and is answered from here.
        timeout: Seconds for a whole request to the model's endpoint.
        seed: Gives every request a seed of its own, made of this one, in place of the client's.
    """

    budget: Budget = None
    requests_per_minute: Annotated[Count, Parameter(name="--rpm")] = None
    tokens_per_minute: Annotated[Count, Parameter(name="--tpm")] = None
    log: Path | None = None
    cache: str | None = None
    timeout: Annotated[float, Parameter(name=FLAGS["call_timeout"])] = CALL_SECONDS
    seed: Seed = None

    def gate(self, model: str | Model, **further: Any) -> Gate:
        """Returns a gate before a model; `further` arguments are those of `Gate`."""
        from evo.gate.gate import Gate

        return Gate(model, **vars(self), **further)


NO_GATE = GateOptions()
"""The defaults, with which nothing is counted."""
