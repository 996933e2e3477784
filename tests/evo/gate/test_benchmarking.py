"""The search for an endpoint's best concurrency: what it asks, what it recommends."""

import itertools

import pytest

from evo.gate.benchmarking import Level, knee, probe
from evo.gate.server import OfflineServer
from evo.logs.records import Model
from evo.models.client import EndpointDown
from evo.models.responses import HttpRequest, Response, error_response


def level(concurrency: int, rate: float, limited: int = 0) -> Level:
    return Level(concurrency, rate, 10 - limited, limited, 0.0, 1.0)


def test_the_knee_is_the_least_that_gives_nearly_the_most() -> None:
    assert knee([level(1, 1.0), level(2, 2.0), level(4, 3.9), level(8, 4.0)]) == 4
    assert knee([level(1, 1.0), level(2, 2.0), level(4, 4.0, limited=1)]) == 2
    assert knee([level(1, 1.0, limited=3)]) == 1
    assert knee([level(1, 1.0), level(2, 1.0)]) == 1


def test_a_probe_ends_where_the_endpoint_limits() -> None:
    class Limited(OfflineServer):
        """Turns away all requests after six."""

        numbers = itertools.count()

        async def respond(self, request: HttpRequest) -> Response | None:
            if next(self.numbers) < 6:
                return await super().respond(request)
            return error_response(429, "slow down", "rate_limit_exceeded")

    with Limited() as server:
        model = Model(name="x", id="offline", base_url=server.url)
        levels = list(probe(model, calls=4, max_tokens=100))
    assert not levels[0].limited
    assert levels[-1].limited
    assert sum(level.replies for level in levels) == 6
    assert knee(levels) == 1


def test_an_endpoint_that_is_not_there_ends_a_probe() -> None:
    with pytest.raises(EndpointDown):
        list(probe(Model(name="x", base_url="http://127.0.0.1:1/v1"), calls=1, max_tokens=10))
