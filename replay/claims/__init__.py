"""Claims judged on logs: the paper's, one comparison, and those of a protocol."""

from replay.claims.paper import REGIMES, ledger
from replay.statistics.resampling import holm

__all__ = ["REGIMES", "holm", "ledger"]
