"""`evo serve` and `evo bench`: what they serve, what they ask, and which options go together."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import openai
import pytest
from commands import call, one_line
from endpoints import serving
from offline_requests import PARENTS, ask, showing

from evo.cli.entry import main
from evo.cli.gates import NO_GATE, GateOptions
from evo.cli.serving import COUNTS_ON, serve
from evo.gate.benchmarking import Level, Pass
from evo.gate.log import read_gate_log
from evo.gate.server import Latency, OfflineServer
from evo.models.serving import HttpServer

MESSAGES = showing(PARENTS["mmd"])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_evo_serve_gives_every_request_a_seed_if_asked() -> None:
    def replies(*options: str) -> list[str | None]:
        with (
            serving(*options) as (_, url),
            openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client,
        ):
            made = [
                client.chat.completions.create(model="offline", messages=MESSAGES, seed=2)
                for _ in range(4)
            ]
        return [completion.choices[0].message.content for completion in made]

    assert replies() == [ask(MESSAGES, seed=2).text] * 4
    assert len(set(first := replies("--seed", "7"))) > 1
    assert replies("--seed", "7") == first


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_evo_serve_without_a_traceback(number: int, tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    with (
        serving("--request-log", str(log), "--latency", "0.01,0.5") as (process, url),
        openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client,
    ):
        completion = client.chat.completions.create(model="offline", messages=MESSAGES, seed=2)
        assert completion.choices[0].message.content == ask(MESSAGES, seed=2).text
        process.send_signal(number)  # the client's connection is still open
        out, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 130)
    assert not out
    assert "Traceback" not in errors
    assert [line["seed"] for line in lines(log)] == [2]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--budget", "calls=0"], "finite number of calls, got 0"),
        (["--budget", "cals=5"], "got 'cals'"),
        (["--budget", "seconds=5"], "calls, tokens, flops, dollars"),
        (["--rpm", "0"], "at least 1"),
        (["--budget", "calls=5", "--timeout", "0"], "timeout"),
        (["--budget", "calls=5", "--call-timeout", "0"], "timeout"),
        (["--model", "qwen3-8b"], "no endpoint is known"),
        (["--model", "qwen3-8b", "--latency", "1,1"], "offline model alone"),
        (["--cache", "."], "response cache"),
        (["--latency", "fast"], "MEDIAN,SIGMA"),
        (["--request-log", "no/x"], "no/x"),
    ],
)
def test_a_mistake_of_serving_is_one_line(
    options: list[str], wanted: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    for name in ("OPENAI_BASE_URL", "LLM_API_BASE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert main(["serve", "--port", "0", *options]) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)
    assert wanted in said.err


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


def test_mistakes_of_a_measurement_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    offline = ["--model", "offline"]
    for arguments, text in (
        (["--endpoint", "http://localhost:1/v1"], "expected --model and its value, got none"),
        (["--model", "nobody"], "unknown model 'nobody'"),
        (["--endpoint", "localhost", "--model", "x"], "looks like https://host/v1"),
        ([*offline, "--compare", "--latency", "1;2"], "expected MEDIAN,SIGMA such as 2,1"),
        ([*offline, "--latency", "1,2"], "--latency goes with --compare"),
        (["--model", "qwen3-8b", "--compare", "--latency", "1,2"], "the offline model alone"),
        *(
            ([*offline, *how, f"--{name}", number], f"expected at least 1, got {number}")
            for how, names in (
                ((), ("calls", "max-tokens")),
                (("--compare",), ("population", "problems", "max-concurrent")),
            )
            for name in names
            for number in ("0", "-3")
        ),
    ):
        assert call("bench", *arguments) == 2, arguments
        assert text in one_line(capsys)


def test_an_endpoint_that_answers_nothing_has_no_best_concurrency(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    level = Level(1, 0.0, 0, 3, 0.0, float("nan"))
    monkeypatch.setattr("evo.gate.benchmarking.probe", lambda *_, **__: iter([level]))
    assert call("bench", "--model", "offline", "--calls", "3") == 1
    said = capsys.readouterr().out
    assert "3 x 429, 0 failed" in said
    assert "--max-concurrent" not in said


@pytest.mark.parametrize("same", [True, False])
def test_a_comparison_says_whether_concurrency_changed_a_result(
    same: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = [
        Pass(f"way {k}", 1, 6, 2.0 / (k + 1), 0, (0.5, float(k * (not same)))) for k in (0, 1)
    ]
    monkeypatch.setattr("evo.gate.benchmarking.compare", lambda *_, **__: iter(passes))
    assert call("bench", "--model", "offline", "--compare", "--population", "2") == 0
    head, first, second, last = capsys.readouterr().out.splitlines()
    assert head.startswith("2 prompts")
    assert " 1.0 x " in first
    assert " 2.0 x " in second  # against the first way
    assert ("the same fitness" in last) == same


class Served(Exception):  # noqa: N818
    """Raised in place of waiting for Ctrl-C."""


class NoEvent:
    def wait(self) -> None:
        raise Served


@pytest.mark.parametrize(
    ("options", "opened"),
    [
        ({}, ["OfflineServer"]),
        ({"options": GateOptions(timeout=5.0)}, ["OfflineServer"]),  # nothing is forwarded there
        ({"latency": "0.1,0"}, ["OfflineServer"]),
        ({"options": GateOptions(seed=5)}, ["Gate"]),
        ({"options": GateOptions(budget={"calls": 5.0})}, ["Gate"]),
        ({"options": GateOptions(requests_per_minute=5)}, ["Gate"]),
        ({"model": "offline-2"}, ["Gate"]),
        ({"model": "offline-2", "latency": "0.1,0"}, ["OfflineServer", "Gate"]),
    ],
)
def test_only_the_plain_offline_model_is_served_without_a_gate(
    options: dict[str, Any],
    opened: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    entered, urls, enter = list[HttpServer](), list[str](), HttpServer.__enter__

    def noted(self: HttpServer) -> HttpServer:
        entered.append(self)
        made = enter(self)
        urls.append(self.url)
        return made

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(HttpServer, "__enter__", noted)
    monkeypatch.setattr("evo.cli.serving.threading.Event", NoEvent)
    with pytest.raises(Served):
        serve(port=0, **options)
    assert [type(each).__name__ for each in entered] == opened
    said = capsys.readouterr().out
    assert "is the offline model (not an LLM); Ctrl-C ends it" in said
    assert ("\nlog: " in said) == (options.get("options", NO_GATE).budget is not None)
    if isinstance(first := entered[0], OfflineServer):
        assert first._latency == (Latency(0.1) if "latency" in options else None)
    if len(opened) == 2:  # the one behind it is slow
        assert entered[1].model.base_url == urls[0]  # type: ignore[attr-defined]


def test_a_log_that_goes_on_beside_a_cache_says_how_cached_answers_are_had(tmp_path: Path) -> None:
    def serve_once(log: str) -> tuple[str, ...]:
        options = ("--log", str(tmp_path / log), "--cache", str(tmp_path / "c.sqlite"))
        with (
            serving(*options, "--budget", "calls=9") as (process, url),
            openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client,
        ):
            client.chat.completions.create(model="offline", messages=MESSAGES)
            process.send_signal(signal.SIGTERM)
            assert process.stdout is not None
            return tuple(process.stdout.read().splitlines())  # what the first line left is there

    first, again, other = (serve_once(log) for log in ("a.jsonl", "a.jsonl", "b.jsonl"))
    assert COUNTS_ON in again
    assert COUNTS_ON not in first + other
    sent = [read_gate_log(tmp_path / log) for log in ("a.jsonl", "b.jsonl")]
    assert [(len(log.passed), len(log.kept)) for log in sent] == [(2, 0), (0, 1)]
