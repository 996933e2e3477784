"""Kills at random moments: nothing logged is asked again, nothing is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from evo_runs import write_task
from faulty_server import Fault, FaultyServer
from killing import kill_after, seen_by, serve_as_model, start, until_free
from tiers import thorough_after

import evo
from evo.cli.entry import main
from evo.gate.server import OfflineServer
from evo.runs.ask import child_seed
from evo.runs.dataset import instance_seed
from evo.sandbox import evaluator

pytestmark = pytest.mark.slow

TIMES = int(os.environ.get("EVO_TORTURE", "1"))
VERBS = {
    "run": ["run", "mmd", "--seeds", "3:5", "-T", "5", "-N", "3", "--resume"],
    "allocate": ["allocate", "mmd", "--policy", "ucb1", "--arms", "3", "--rounds", "9", "-N", "3"],
    "sweep": ["sweep", "{toml}"],
    "grid": ["grid", "mmd", "--calls", "12", "--seeds", "3:5"],
    "compare": ["compare", "mmd", "--engines", "ours", "--budget", "calls=12", "--runs", "2"],
    "select": ["select", "mmd", "--vary", "children=2,3", "-T", "4", "--seeds", "3:6"],
    # One run: calls on instances are keyed by the text alone.
    "texts": ["run", "wp", "--instances", "7", "--seeds", "3:4", "-T", "6", "-N", "2", "--resume"],
    "protocol": ["run", "--protocol", "{toml}"],
    "asynchronous": [
        *("run", "mmd", "--seeds", "3:5", "-T", "5", "-N", "3", "--resume"),
        *("--asynchronous", "--search", "population"),
    ],
}
FILES = {"sweep": """
task = "mmd"
seeds = [3, 4]
[base]
model = "served"
[space]
children = [2, 3]
generations = [3, 6]
""", "protocol": """
name = "small"
title = "deep"
detects = ["nothing"]
claims = []
measures = {final = "best fitness"}
tasks = {min_max_distance = "HASH"}
options = {model = "served"}
estimate = {prompt_tokens = 300, completion_tokens = 100}
conditions = [{name = "deep", task = "mmd", children = 2, generations = 6, seeds = "0:3"}]
""".replace("HASH", evo.load_task("mmd").record.hash)}  # fmt: skip


def outcomes(folder: Path) -> dict[tuple[str, int], object]:
    """What is logged of each call: by its log, without the clock and the place."""
    found = {}
    for path in folder.rglob("*.jsonl"):
        if path.read_bytes()[:40].count(b'"kind":"header"'):
            log = evo.read_log(path)
            assert not [fault for fault in evo.verify(path).faults if "torn" not in fault]
            for child in log.children:
                evaluation = msgspec.structs.replace(child.evaluation, seconds=0.0)
                found[path.name, child.seed] = (child.reply, child.program, evaluation)
            for call in log.instance_calls:
                found[path.name, instance_seed(call.program, call.index)] = call.reply
    return found


@pytest.mark.parametrize("verb", thorough_after(2, VERBS))
def test_kills_lose_nothing_and_repeat_nothing(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare_sandboxes: type
) -> None:
    monkeypatch.setattr(evaluator, "_Pool", spare_sandboxes)  # for what goes on in this process
    draws = random.Random(verb)
    (tmp_path / "s.toml").write_text(FILES.get(verb, ""))
    base = [part.format(toml=tmp_path / "s.toml") for part in VERBS[verb]]
    base += ["-q"] + (["--model", "served"] if verb not in FILES else [])
    base += ["--workers", "1"] if verb != "compare" else []
    folder, requests = tmp_path / "killed", tmp_path / "requests.jsonl"
    with OfflineServer(request_log=requests) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        logged: dict[tuple[str, int], object] = {}
        before = 0
        for _ in range(2 * TIMES):
            folder.mkdir(exist_ok=True)
            command = [*base, "--log-dir", str(folder)]
            ended = kill_after(command, folder, draws.randint(0, 30), draws.random() * 0.2)
            asked = seen_by(requests)[before:]
            now = outcomes(folder)
            assert now | logged == now, "what was logged is lost"
            again = Counter(asked) & Counter(seed for _, seed in logged)
            assert not again, "a logged call was made again"
            before, logged = before + len(asked), now
            if ended:
                break
        for place in (folder, tmp_path / "whole"):
            assert main([*base, "--log-dir", str(place)]) == 0
    assert outcomes(folder)
    if verb == "asynchronous":  # its children depend on the order of the answers, which is logged
        reruns = [evo.rerun(path) for path in folder.glob("*.jsonl")]
        assert len(reruns) == 2
        assert all(rerun.same for rerun in reruns)
        assert len(outcomes(folder)) == len(outcomes(tmp_path / "whole"))
    else:
        assert outcomes(folder) == outcomes(tmp_path / "whole")


MARGIN = 2.0
"""Seconds in which a reply is in the log after it was sent, on a machine that is busy."""

SLOW = """
import time

def score(value):
    time.sleep(0.4)
    return {"fitness": value}
"""
PROGRAM = "def value():\n    a = 1.5\n    b = 2.5\n    return a * b - a\n"


@pytest.mark.thorough
@pytest.mark.parametrize("options", [[], ["--asynchronous", "--search", "population"]])
def test_a_kill_loses_no_reply_that_waits_for_its_evaluation(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws, path = random.Random(len(options)), tmp_path / "logs" / "a.jsonl"
    task = write_task(tmp_path / "slow", PROGRAM, SLOW, 'entry = ["value"]\n')
    command = ["run", str(task), "-T", "3", "-N", "12", "--log", str(path), "-q", "--resume"]
    command += ["--model", "served", "--workers", "1", *options]
    requests, began = tmp_path / "requests.jsonl", time.monotonic()
    faults: dict[Fault, float] = {"server_error": 0.2, "drop": 0.1, "rate_limit": 0.1}
    with FaultyServer(faults, request_log=requests) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        kept = set[int]()
        for _ in range(4 * TIMES):
            with tempfile.NamedTemporaryFile("r") as output:
                process = start(command, output.name)
                before = len(answered(requests))
                while process.is_alive() and len(answered(requests)) == before:
                    time.sleep(0.01)
                process.join(MARGIN + 2 * draws.random())
                killed = time.monotonic() - began
                process.kill()
                process.join()
                assert process.exitcode in (0, -9), output.read()
            until_free(path.parent)
            again = kept & {seed for seed, _ in answered(requests)[before:]}
            assert not again, "a reply that was kept was paid for again"
            kept = seeds_of(evo.read_log(path))
            arrived = {seed for seed, at in answered(requests) if at < killed - MARGIN}
            assert arrived <= kept, "a reply that had arrived is lost"
        before = len(answered(requests))
        assert main(command) == 0
    assert not kept & {seed for seed, _ in answered(requests)[before:]}
    log = evo.read_log(path)
    assert len(log.children) == 36
    assert {seed for seed, _ in answered(requests)} >= seeds_of(log)
    assert evo.rerun(path).same


def answered(requests: Path) -> list[tuple[int, float]]:
    """Seeds of the requests that got a reply, and when, in seconds since the server began."""
    text = requests.read_text() if requests.exists() else ""
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [(line["seed"], line["answered"]) for line in lines if line["status"] == 200]


def seeds_of(log: evo.Log) -> set[int]:
    """Seeds of the calls of which the log holds a reply."""
    header = log.header
    places = {child.reply_key(header.children)[:2] for child in log.children}
    places |= {key[:2] for key, line in log.replies.items() if line.reply is not None}
    return {child_seed(header.seed, header.children, *place) for place in places}


@pytest.mark.parametrize("number", thorough_after(1, [signal.SIGINT, signal.SIGTERM]))
def test_signals_end_a_run_cleanly(number: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    command = ["run", "mmd", "-T", "500", "-N", "4", "--log", str(path), "-q"]
    with subprocess.Popen(
        [sys.executable, "-m", "evo", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if path.exists() and b'"kind":"generation"' in path.read_bytes():
                break
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert b"evo resume" in errors
    log = evo.read_log(path)
    assert log.ends[-1].reason == "interrupted"
    assert not evo.verify(path).faults
    goal = len(log.generations) + 1
    assert len(evo.resume(path, generations=goal, progress=False).generations) == goal
