"""Simulated latency: how long an endpoint would take, seeded per request."""

from __future__ import annotations

from math import exp, inf
from statistics import NormalDist

from evo.keyed import KeyedStream


class Latency:
    """Lognormal latency: its median, seconds, and the standard deviation of its logarithm."""

    def __init__(self, median: float, sigma: float = 0.0) -> None:
        if not (0 <= median < inf and 0 <= sigma < inf):
            raise ValueError(f"latency: expected numbers of at least 0, got {median!r}, {sigma!r}")
        self.median, self.sigma = median, sigma

    def seconds(self, body: bytes) -> float:
        """Returns the latency of a request, seconds: the same for the same body."""
        uniform = KeyedStream("latency", body.decode("utf-8", "replace")).uniform(1e-9, 1 - 1e-9)
        return self.median * exp(self.sigma * NormalDist().inv_cdf(uniform))
