"""OpenEvolve, ShinkaEvolve, GEPA as arms: the gate counts their calls; programs are their own.

They run where EVO_TEST_OTHER_TOOLS is 1, or the folder to keep their environments in.
"""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import evo
from evo.gate.engines.job import plain_lines
from evo.gate.log import read_gate_log
from evo.runs.verification import verify

WANTED = os.environ.get("EVO_TEST_OTHER_TOOLS", "")
VERSIONS = {"openevolve": "0.4.1", "shinka-evolve": "0.0.7", "gepa": "0.1.4"}
CALLS = 64
INSTALL = Path(__file__).parents[4] / ".ci" / "install"


def environment(package):
    """Python of an environment with this package, made once, where it can be had."""
    root = Path(tempfile.gettempdir()) / "evo-other-tools" if WANTED == "1" else Path(WANTED)
    folder = root / package
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        wanted = f"{package}=={VERSIONS[package]}"
        install = [str(INSTALL), str(python), wanted]
        try:
            subprocess.run(install, check=True, timeout=400)
        except subprocess.SubprocessError as error:
            pytest.skip(f"{wanted} cannot be installed here: {error}")
        (folder / "installed").touch()
    return python


@pytest.mark.skipif(not WANTED, reason="EVO_TEST_OTHER_TOOLS is not set: 1 or a folder")
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_bandit_spends_one_budget_over_other_tools_and_ours(tmp_path):
    arms = [
        {"engine": "openevolve", "python": environment("openevolve")},
        {"engine": "shinka", "python": environment("shinka-evolve")},
        {"engine": "gepa", "python": environment("gepa")},
        {"search": "greedy"},
        {"search": "islands"},
    ]
    done = evo.allocate_live(
        "mmd", "ucb1", arms=arms, rounds=CALLS, children=4, budget={"calls": CALLS},
        log_dir=tmp_path, progress=False,
    )  # fmt: skip
    counts = [len(log.outcomes) for log in done.arms]
    assert sum(counts) == done.spent["calls"][-1] == CALLS
    for k, log in enumerate(done.arms):
        assert verify(log.path).faults == ()
        assert counts[k] == 4 * (done.pulls == k).sum()
        assert log.ends[-1].reason == "completed"
        if k < 3:
            sent = read_gate_log(tmp_path / f"arm-{k:02}" / "gate.jsonl").passed
            assert [each.sent.number for each in sent] == list(range(counts[k]))
            assert any(child.evaluation.status == "ok" for child in log.children)
            assert any(child.parents for child in log.children)
    check_openevolve(done.arms[0], tmp_path / "arm-00" / "out")
    check_shinka(done.arms[1], tmp_path / "arm-01" / "out")


def check_openevolve(log, out):
    """Its trace has the same programs, with the same parents and fitness."""
    lines = (out / "evolution_trace.jsonl").read_text().splitlines()
    texts = {(child.generation, child.index): child.program for child in log.children}
    texts[0, 0] = log.header.task.files[log.header.task.program_file]
    for line in map(json.loads, lines):
        same = [child for child in log.children if child.program == line["child_code"]]
        for child in same:
            if child.evaluation.status == "ok":
                assert line["child_metrics"]["combined_score"] == child.evaluation.fitness
        parents = {plain_lines(texts[place]) for child in same for place in child.parents}
        assert plain_lines(line["parent_code"]) in parents
    assert len(lines) >= sum(child.evaluation.status == "ok" for child in log.children) - 1


def check_shinka(log, out):
    """Its database has the same programs, with the same fitness."""
    place = f"file:{out}/programs.sqlite?mode=ro"
    with contextlib.closing(sqlite3.connect(place, uri=True)) as database:
        rows = database.execute(
            "SELECT generation, combined_score, correct, metadata, code, id, parent_id "
            "FROM programs"
        ).fetchall()
    codes = {row[5]: row[4] for row in rows}
    texts = {(child.generation, child.index): child.program for child in log.children}
    texts[0, 0] = log.header.task.files[log.header.task.program_file]
    own = [row for row in rows if row[0] > 0 and not json.loads(row[3]).get("_is_island_copy")]
    assert own
    for _, score, correct, _, code, _, parent_id in own:
        same = [child for child in log.children if child.program == code]
        for child in same:
            assert bool(correct) == (child.evaluation.status == "ok")
            assert not correct or score == child.evaluation.fitness
        parents = {plain_lines(texts[place]) for child in same for place in child.parents}
        assert plain_lines(codes[parent_id]) in parents
