"""How far the conditions of a protocol are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evo.logs.log import Log
from evo.studies.protocol import Protocol


def status_rows(
    protocol: Protocol, logs: Mapping[str, Sequence[Log]]
) -> list[tuple[str, str, str, int]]:
    """Returns how far each condition of a protocol is.

    Args:
        protocol: The protocol.
        logs: The logs of each condition, as `logs_of` returns them.

    Returns:
        For each condition: its name, the runs completed of those planned ("3 of 24"), the calls
        made of those planned, and the number of children with status `ok`.

    Example:
        >>> protocol = evo.protocols.load_protocol("local-tsp")
        >>> logs = evo.protocols.logs_of(protocol, new(""))
        >>> evo.protocols.status_rows(protocol, logs)[0]
        ('deep', '0 of 24', '0 of 576', 0)
    """
    rows = []
    for condition in protocol.conditions:
        own = logs[condition.name]
        complete = sum(len(log.generations) >= condition.generations for log in own)
        paid = [out for log in own for out in log.outcomes if not out.inherited]
        ok = sum(out.evaluation.status == "ok" for out in paid)
        runs = f"{complete} of {condition.runs}"
        rows.append((condition.name, runs, f"{len(paid)} of {condition.calls}", ok))
    return rows
