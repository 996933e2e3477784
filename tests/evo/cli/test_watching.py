"""Another program behind a gate, in one command."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from evo.cli import main
from evo.gate.log import read_gate_log

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")

TOOL = """
import json, os, sys, urllib.error, urllib.request
for k in range(int(sys.argv[1])):
    message = {"role": "user", "content": f"```python\\nx = {k}\\n```"}
    body = {"model": "gpt-4o", "messages": [message]}
    address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    asked = urllib.request.Request(address, json.dumps(body).encode(), headers)
    try:
        print(json.load(urllib.request.urlopen(asked))["model"])
    except urllib.error.HTTPError as error:
        print(error.code)
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tool.py").write_text(TOOL)
    return [sys.executable, "tool.py"]


def test_its_calls_are_limited_and_logged_and_its_exit_code_is_kept(tool, capfd) -> None:
    assert main(["watch", "--budget", "calls=2", "--log", "a.jsonl", "--", *tool, "3", "5"]) == 5
    shown = capfd.readouterr().out
    assert shown.split()[:3] == ["offline", "offline", "429"]
    assert "2 calls were sent" in shown
    assert main(["watch", "--log", "one.jsonl", "--", *tool, "1", "0"]) == 0
    assert "1 call was sent" in capfd.readouterr().out
    assert len(read_gate_log(Path("a.jsonl")).passed) == 2
    assert main(["watch", "--budget", "calls=3", "--log", "a.jsonl", "--", *tool, "3", "0"]) == 0
    assert capfd.readouterr().out.split()[:3] == ["offline", "429", "429"]


def test_without_a_budget_there_is_a_log_all_the_same(tool, tmp_path, capfd) -> None:
    assert main(["watch", "--", *tool, "1", "0"]) == 0
    [log] = tmp_path.glob("logs/local/*.jsonl")
    assert len(read_gate_log(log).passed) == 1
    assert str(log.relative_to(tmp_path)) in capfd.readouterr().err


def test_a_program_that_made_no_call_behind_the_gate_is_said_to(tool, capfd) -> None:
    for options in ([], ["--budget", "tokens=1"]):
        for calls in ("0", "1", "0"):  # of the last, the log has calls of the session before
            assert main(["watch", "--log", "a.jsonl", *options, "--", *tool, calls, "0"]) == 0
            assert ("no call passed the gate" in capfd.readouterr().err) == (calls == "0")


@pytest.mark.parametrize("command", [[], ["no-such-program"]])
def test_a_mistake_is_one_line_and_leaves_nothing(command, tool, tmp_path, capfd) -> None:
    assert main(["watch", "--", *command]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["tool.py"]


def test_an_interrupt_is_the_programs_own(tmp_path) -> None:
    (tmp_path / "tool.py").write_text(
        "import sys, time\n"
        "try:\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    sys.exit(7)\n"
    )
    command = [sys.executable, "-m", "evo", "watch", "--", sys.executable, "tool.py"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        shown, _ = process.communicate(timeout=30)
    assert process.returncode == 7
    assert "0 calls were sent" in shown


def test_its_live_page_is_served_while_the_program_runs(tmp_path) -> None:
    command = [sys.executable, "-m", "evo", "watch", "--view", "--log", "a.jsonl", "--"]
    process = subprocess.Popen(
        [*command, sys.executable, "-c", "input()"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={key: value for key, value in os.environ.items() if key not in SCREENS},
    )
    with process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline().startswith("log: a.jsonl")
            said = process.stderr.readline()
            assert said.startswith("page: ")
            link = said.removeprefix("page: ").strip()
            with urllib.request.urlopen(link, timeout=30) as page:
                assert "a.jsonl" in page.read().decode()
        finally:
            process.communicate("\n", timeout=30)
    assert process.returncode == 0
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(link, timeout=30)


@pytest.mark.parametrize("asked", [[], ["--no-view"]])
def test_without_a_terminal_or_a_wish_there_is_no_page(asked, tool, capfd) -> None:
    assert main(["watch", *asked, "--", *tool, "0", "0"]) == 0
    assert "page:" not in capfd.readouterr().err


def test_a_page_that_cannot_be_served_says_why_and_the_program_runs(
    tool, tmp_path, monkeypatch, capfd
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho Traceback\necho no port is free\nexit 1\n")
    broken.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(broken))
    assert main(["watch", "--view", "--", *tool, "1", "3"]) == 3
    assert "no page: no port is free" in capfd.readouterr().err
