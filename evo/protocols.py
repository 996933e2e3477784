"""Protocols: what was fixed before the first call, what was made of it, and what it cost.

    protocol = evo.protocols.load_protocol("local-tsp")            # a shipped one, or a file
    made = evo.protocols.logs_of(protocol, "logs/corpus/local-tsp")
    print(evo.protocols.state_cost(protocol, made))

`replay.protocol_runs` and `replay.protocol_claims` judge the runs.
"""

from __future__ import annotations

from evo.studies.protocol import (
    Protocol,
    ProtocolError,
    load_protocol,
    logs_of,
    state_cost,
)
from evo.studies.protocol_status import status_rows

__all__ = [
    "Protocol",
    "ProtocolError",
    "load_protocol",
    "logs_of",
    "state_cost",
    "status_rows",
]
