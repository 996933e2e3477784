"""Simulated latency: how long an endpoint would take, seeded per request."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from statistics import NormalDist

from evo.keyed import KeyedStream


@dataclass(frozen=True)
class Latency:
    """Lognormal latency.

    Attributes:
        median: Median, seconds, at least 0.
        sigma: Standard deviation of the logarithm; 0 gives the median always.
    """

    median: float
    sigma: float = 0.0

    def __post_init__(self) -> None:
        for name in ("median", "sigma"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} must be finite and at least 0, got {value!r}")

    def seconds(self, body: bytes) -> float:
        """Returns the latency of a request, seconds: the same for the same body."""
        uniform = KeyedStream("latency", body.decode("utf-8", "replace")).uniform(1e-9, 1 - 1e-9)
        return self.median * exp(self.sigma * NormalDist().inv_cdf(uniform))
