"""Claims judged on logs: the paper's, one comparison, and those of a protocol."""

from replay.claims.paper import (
    REGIMES,
    budgets_of,
    envelope_test,
    halves,
    held_out,
    holm,
    ledger,
    regime_test,
)

__all__ = [
    "REGIMES",
    "budgets_of",
    "envelope_test",
    "halves",
    "held_out",
    "holm",
    "ledger",
    "regime_test",
]
