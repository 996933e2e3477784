"""Other tools at a budget: the gate's count is their own, and what is imported is what they found.

The runs of the tools themselves are made where EVO_TEST_OTHER_TOOLS is 1, or the folder to keep
their environments in; EVO_TEST_CALLS is their budget, 64 calls by default.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import urllib.request
from pathlib import Path

import pytest

import evo
import replay
import replay.importers.drivers
from evo.cli.entry import main
from evo.gate.engines.job import Judge, in_block
from evo.runs.verification import verify
from replay.importers import read
from replay.importers.drivers import TOOLS, DriverError, drive

WANTED = os.environ.get("EVO_TEST_OTHER_TOOLS", "")
CALLS = int(os.environ.get("EVO_TEST_CALLS", "64"))
tools = pytest.mark.skipif(not WANTED, reason="EVO_TEST_OTHER_TOOLS is not set: 1 or a folder")


VERSIONS = {"openevolve": "0.4.0", "shinka-evolve": "0.0.7"}


def environment(package):
    """Python of an environment with this package, made once, where it can be had."""
    root = Path(tempfile.gettempdir()) / "evo-other-tools" if WANTED == "1" else Path(WANTED)
    folder = root / package
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        wanted = f"{package}=={VERSIONS[package]}"
        pip = [str(python), "-m", "pip", "install", "--quiet", wanted]
        try:
            subprocess.run(pip, check=True, timeout=400)
        except subprocess.SubprocessError as error:
            pytest.skip(f"{wanted} cannot be installed here: {error}")
        (folder / "installed").touch()
    return python


def test_the_judge_tells_what_is_public_and_our_sandbox_found():
    task = evo.load_task("tsp_construct")
    with Judge(task) as judge:

        def ask(program):
            request = urllib.request.Request(judge.url, program.encode())
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)

        known = evo.evaluate(task, task.initial_program)
        found = ask(task.initial_program)
        assert found == {"status": "ok", "fitness": known.fitness, "error": None}
        assert task.record.private  # and of those nothing is told
        assert ask("import os")["status"] in ("error", "invalid")


def test_a_program_is_marked_once():
    marked = in_block("x = 1\n")
    assert marked.splitlines() == ["# EVOLVE-BLOCK-START", "x = 1", "# EVOLVE-BLOCK-END"]
    assert in_block(f"import math\n{marked}") == f"import math\n{marked}"


def test_what_is_missing_is_said_before_anything_is_made(tmp_path, capsys):
    for tool in TOOLS.values():
        with pytest.raises(DriverError, match=f"pip install {tool.package}"):
            replay.importers.drivers.check_installed(Path(sys.executable), tool)
    absent = str(tmp_path / "python")
    with pytest.raises(DriverError, match="cannot be run"):
        drive("openevolve", "mmd", calls=4, python=absent, log_dir=tmp_path)
    with pytest.raises(DriverError, match="openevolve, shinka, got 'levi'"):
        drive("levi", "mmd", calls=4)
    with pytest.raises(DriverError, match="programs are Python"):
        drive("openevolve", "word_problems", calls=4)
    assert list(tmp_path.iterdir()) == []
    assert main(["drive", "openevolve", "mmd", "--calls", "4", "--python", absent]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


STUBBORN = """\
    import json, os, signal, sys, time, urllib.error, urllib.request
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    out = os.path.join("out", "checkpoints", "checkpoint_3", "programs")
    os.makedirs(out)
    program = open("initial_program.py").read()
    settings = json.load(open("config.yaml"))
    def ask(url, body):
        headers = {"authorization": "Bearer " + settings["llm"]["api_key"]}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            return json.load(answer)
    shown = "```python\\n" + program + "```"
    body = {"model": "x", "messages": [{"role": "user", "content": shown}]}
    sys.path.insert(0, ".")
    from evaluator import evaluate
    def save(number, parent):
        found = {"id": str(number), "code": program, "metrics": evaluate("initial_program.py"),
                 "iteration_found": number, "parent_id": parent, "timestamp": number}
        json.dump(found, open(os.path.join(out, f"{number}.json"), "w"))
    save(0, None)
    for number in range(1, 100):
        try:
            ask(settings["llm"]["api_base"] + "/chat/completions", json.dumps(body).encode())
            save(number, "0")
        except urllib.error.HTTPError as error:
            assert error.code == 429
            time.sleep(0.05)
    assert "SECRET_KEY" not in os.environ
    time.sleep(600)
"""
"""A tool that does not heed its budget, nor the wish to end."""


@pytest.fixture
def stubborn(tmp_path, monkeypatch):
    """A Python whose OpenEvolve is the stubborn tool."""
    package = tmp_path / "site" / "openevolve"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(
        "def main():\n" + textwrap.dedent(STUBBORN).replace("\n", "\n    ").join(["    ", ""])
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{package.parent}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(replay.importers.drivers, "PATIENCE", 1.0)
    monkeypatch.setattr(replay.importers.drivers, "GRACE", 0.5)
    return python


def test_a_tool_that_does_not_end_is_ended_and_a_run_that_is_there_is_kept(
    tmp_path, stubborn, monkeypatch
):
    monkeypatch.setenv("SECRET_KEY", "sk-of-the-user")
    folder = tmp_path / "logs"
    (folder / "openevolve-min_max_distance-s7").mkdir(parents=True)  # as a kill leaves it
    with pytest.warns(UserWarning, match="interrupted run is set aside"):
        frame = drive("openevolve", "mmd", calls=3, python=stubborn, seeds=[7], log_dir=folder)
    log = evo.read_log(folder / "openevolve-min_max_distance-s7.jsonl")
    assert len(log.children) == 3
    assert (log.header.seed, log.header.task) == (7, evo.load_task("mmd").record)
    initial = evo.evaluate("mmd", evo.load_task("mmd").initial_program)
    assert frame["best_fitness"].tolist() == pytest.approx([initial.fitness] * 4)
    gate = (folder / "openevolve-min_max_distance-s7" / "gate.jsonl").read_text()
    assert gate.count('"kind":"sent"') == gate.count('"kind":"settled"') == 3
    assert gate.count('"client":"openevolve-s7"') == 3
    before = sorted(p.stat().st_mtime_ns for p in folder.rglob("*"))
    again = drive("openevolve", "mmd", calls=3, python=stubborn, seeds=[7], log_dir=folder)
    assert again.equals(frame)
    assert before == sorted(p.stat().st_mtime_ns for p in folder.rglob("*"))


def check(tool, folder):
    """One run of a tool at its budget; returns the log, the tool's folder and what it sent."""
    python = environment(TOOLS[tool].package)
    frame = drive(tool, "mmd", calls=CALLS, python=python, seeds=[41], log_dir=folder)
    path = folder / f"{tool}-min_max_distance-s41.jsonl"
    lines = [json.loads(x) for x in (path.with_suffix("") / "gate.jsonl").read_text().splitlines()]
    assert [x["number"] for x in lines if x["kind"] == "sent"] == list(range(CALLS))
    assert sum(x["kind"] == "settled" for x in lines) == CALLS
    assert verify(path).faults == ()
    log = evo.read_log(path)
    ok = [child for child in log.children if child.evaluation.status == "ok"]
    assert ok, "no child succeeded"
    for child in ok:
        ours = evo.evaluate("mmd", child.program)
        assert ours.fitness == pytest.approx(child.evaluation.fitness, rel=1e-12)
    assert frame["best_fitness"].iloc[-1] == max(
        frame["best_fitness"].iloc[0], *(child.evaluation.fitness for child in ok)
    )
    return log, path.with_suffix(""), lines


@tools
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_openevolve_counts_as_the_gate_does(tmp_path):
    log, folder, _ = check("openevolve", tmp_path)
    said = (folder / "output.txt").read_text()
    assert f"({CALLS} calls)" in said
    iterations = re.findall(r"Iteration (\d+)(?: error|: Program)", said)
    assert sorted(map(int, iterations)) == list(range(1, CALLS + 1))
    assert len(log.generations) == CALLS
    best = json.loads((folder / "out" / "best" / "best_program_info.json").read_text())
    assert best["metrics"]["combined_score"] == log.best.evaluation.fitness
    assert (folder / "out" / "best" / "best_program.py").read_text() == log.best.program


@tools
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_shinka_counts_as_the_gate_does(tmp_path):
    log, folder, _ = check("shinka", tmp_path)
    with sqlite3.connect(f"file:{folder}/out/programs.sqlite?mode=ro", uri=True) as database:
        rows = database.execute(
            "SELECT generation, combined_score, correct, metadata, code FROM programs"
        ).fetchall()
    own = [row for row in rows if row[0] > 0 and not json.loads(row[3]).get("_is_island_copy")]
    attempts = sum(json.loads(row[3])["resample_attempt"] for row in own)
    assert CALLS - 3 <= attempts <= CALLS  # those of a proposal that the budget cut off left no row
    assert len(log.generations) == max(row[0] for row in own)
    best = max((row for row in rows if row[2]), key=lambda row: row[1])
    assert best[1] == log.best.evaluation.fitness
    assert {row[4] for row in own} == {child.program for child in log.children if child.program}
    (found,) = read(folder / "out", "shinkaevolve")
    assert found.header.source == log.header.source
