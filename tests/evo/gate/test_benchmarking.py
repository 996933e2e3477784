"""The search for an endpoint's best concurrency: what it asks, what it recommends."""

import itertools
import json
from pathlib import Path

import pytest

from evo.cli.entry import main
from evo.gate.benchmarking import Level, knee, probe
from evo.gate.server import Latency, OfflineServer
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


def test_a_probe_asks_no_more_than_it_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = tmp_path / "requests.jsonl"
    latency = Latency(0.1)
    with OfflineServer(request_log=requests, latency=latency) as server:
        assert main(["bench", "--endpoint", server.url, "--model", "offline", "--calls", "4"]) == 0
    first, *levels, last = capsys.readouterr().out.splitlines()
    assert "At most 12 calls to offline: 4 each with 1, 2, 4 in flight" in first
    asked = [json.loads(line) for line in requests.read_text().splitlines()]
    assert len(asked) == 4 * len(levels) <= 12
    assert len({each["seed"] for each in asked}) == len(asked)
    assert max(each["in_flight"] for each in asked) <= 2 ** (len(levels) - 1)
    assert last.removeprefix("--max-concurrent ") in ("1", "2", "4")


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


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, text in (
        (["--endpoint", "http://localhost:1/v1"], "--model requires an argument"),
        (["--model", "nobody"], "unknown model 'nobody'"),
        (["--endpoint", "localhost", "--model", "x"], "looks like https://host/v1"),
    ):
        assert main(["bench", *arguments]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert text in line
    with pytest.raises(EndpointDown):
        list(probe(Model(name="x", base_url="http://127.0.0.1:1/v1"), calls=1, max_tokens=10))
