"""What is printed where runs ended early goes on with them, at the endpoint where they were."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from commands import call
from endpoints import Endpoint, say
from tiers import thorough_after

import evo
from evo.models.registry import ModelError

NAMES = ["somebodys-model", "offline"]
RUN = ("run", "mmd", "-T", "3", "-N", "2", "-q", "--max-concurrent", "1")
QUIET: dict[str, Any] = {"progress": False}


def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
    message = {"content": f"```python\nx = {number}\n```"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    choice = {"message": message, "finish_reason": "stop"}
    say(handler, 200, json.dumps({"choices": [choice], "usage": usage}).encode())


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Endpoint]:
    for name in ("OPENAI_BASE_URL", "LLM_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    with Endpoint(answer) as server:
        yield server


def command_in(text: str) -> list[str]:
    """The words of the command that a message names, after the program's."""
    found = re.search(r"`evo (resume [^`]*)`", text)
    assert found, text
    return shlex.split(found[1])


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_its_budget_ended_goes_on_by_the_command_that_is_printed(
    name: str, endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--model", name, "--base-url", endpoint.url, "--log", "a b.jsonl")
    call(*RUN, *at, "--budget", "calls=2")
    assert len(endpoint.requests) == 2
    *command, option, limit = command_in(capsys.readouterr().out)
    assert command[:2] == ["resume", "a b.jsonl"]
    assert (option, limit) == ("--budget", "calls=NUMBER")
    assert call("resume", "a b.jsonl") == 2  # a log does not decide where calls go
    resume, path, *where = command_in(capsys.readouterr().err)
    assert [resume, Path(path).name, *where] == command
    call(*command, option, "calls=4", "-q")
    assert len(endpoint.requests) == 4
    call(*command, "-q")
    assert len(endpoint.requests) == 6
    assert len(evo.read_log("a b.jsonl").outcomes) == 6


@pytest.mark.parametrize("name", thorough_after(1, NAMES))
def test_ctrl_c_names_the_command_that_goes_on(name: str, tmp_path: Path) -> None:
    work: subprocess.Popen[str]

    def stop_at_the_third(handler: BaseHTTPRequestHandler, body: Any, number: int) -> None:
        if number == 3:
            work.send_signal(signal.SIGINT)
        answer(handler, body, number)

    with Endpoint(stop_at_the_third) as server:
        program = [sys.executable, "-m", "evo"]
        at = ["--model", name, "--base-url", server.url, "--log", "a.jsonl"]
        how: dict[str, Any] = {"cwd": tmp_path, "text": True, "stderr": subprocess.PIPE}
        given = [*RUN, *at, "--budget", "calls=6"]
        with subprocess.Popen([*program, *given], **how) as work:
            _, said = work.communicate(timeout=60)
        assert work.returncode == 130
        words = command_in(said.splitlines()[-1])
        assert words[-2:] == ["--budget", "calls=6"]
        again = [*program, *words, "-q"]
        subprocess.run(again, cwd=tmp_path, check=False, capture_output=True)
        assert len(evo.read_log(tmp_path / "a.jsonl").outcomes) == 6
        assert len(server.requests) in (6, 7)  # one may have been cut off


def test_a_run_at_an_endpoint_goes_on_with_no_built_in_model_of_its_name_unsaid(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"children": 2, "log": tmp_path / "a.jsonl", **QUIET}
    run = evo.run("mmd", base_url=endpoint.url, generations=1, **given)
    words = f"'offline' at {endpoint.url} there, 'offline' that is built in here"
    with pytest.raises(evo.LogError, match=re.escape(words)):
        evo.run("mmd", generations=2, **given)
    with pytest.warns(UserWarning, match="goes on with 'offline' that is built in"):
        evo.resume(run.path, model="offline", generations=2, **QUIET)


def test_verbs_take_the_address_of_the_model(endpoint: Endpoint, tmp_path: Path) -> None:
    at: dict[str, Any] = {"base_url": endpoint.url, **QUIET}
    run = evo.run(
        "mmd", model="m", generations=1, children=1, log=tmp_path / "a.jsonl", **at
    )  # fmt: skip
    with pytest.raises(ModelError, match="--base-url"):
        evo.fork(run, at=0)
    [fork] = evo.fork(run, at=0, generations=2, log_dir=tmp_path, **at)
    assert len(evo.resume(run.path, generations=2, **at).generations) == 2
    assert len(evo.resume_many([fork.path], generations=3, **at).pop().generations) == 3
    assert len(endpoint.requests) == 1 + 2 + 1 + 1


def test_several_models_have_addresses_of_their_own(tmp_path: Path) -> None:
    run = evo.run(
        "mmd", models=["offline", "offline-2"], generations=1, children=1,
        log=tmp_path / "a.jsonl", **QUIET,
    )  # fmt: skip
    with pytest.raises(ModelError, match="each at an address of its own"):
        evo.resume(run.path, base_url="http://127.0.0.1:9/v1")
