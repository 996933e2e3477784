"""The record of one HTTP request; a call has several where it was tried again."""

from __future__ import annotations

from typing import Literal

from evo.logs.inputs import Int, Record
from evo.logs.types import JsonObject


class Attempt(Record, frozen=True, kw_only=True):
    """One HTTP request of a call; `usage` and `finish_reason` are the endpoint's, verbatim.

    Only where a gate's client left early, `usage` may be an estimate, which then says `estimated`.

    `timeout`: the client gave up waiting; `latency` in seconds is without queueing, None where an
    import does not say; `cached`: it cost nothing; not `sent`: there was no connection. `rates` are
    the fields of the model by which its cost is counted, where they were not the header's.
    """

    status: Literal["ok", "timeout", "error"]
    latency: float | None
    usage: JsonObject | None = None
    finish_reason: str | None = None
    http_status: Int | None = None
    error: str | None = None
    cached: bool = False
    sent: bool = True
    rates: dict[str, float | None] = {}
