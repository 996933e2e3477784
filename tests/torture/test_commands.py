"""Command lines and files at random: one line and an exit code, no traceback, no silence."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
from pathlib import Path

import pytest
from samples import make_log_bytes

from evo.cli.entry import main as evo_main
from replay.cli.entry import main as replay_main

pytestmark = pytest.mark.slow

TIMES = int(os.environ.get("EVO_TORTURE", "1"))
BAD = ["", "-1", "nan", "1e30", "x", "0:100000000000", "a=b=c", "=", "/dev/null/x", "é", "[1"]
LINES = """
evo run cp --seeds; evo run cp --seed; evo run cp -T; evo run cp --temperature
evo run cp --max-tokens; evo run cp --model; evo run cp --timeout; evo run cp --preset; evo run
evo resume; evo rerun; evo rescore; evo show; evo best; evo verify; evo compact; evo stats
evo stop; evo pause; evo sweep; evo allocate cp --policy; evo allocate cp --policy ucb1 --set
evo allocate cp --policy ucb1 --budget; evo grid cp --budget; evo select cp --vary
evo serve --latency; evo serve --port; evo serve --budget; evo serve --rpm; evo serve --model
evo drive; evo drive shinka; evo drive openevolve mmd --calls; evo; replay report; replay plan
replay import; replay
"""


def called(line: list[str]) -> int:
    main = evo_main if line[0] == "evo" else replay_main
    try:
        return main(line[1:])
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 2


def test_command_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    draws = random.Random(7)
    starts = [line.split() for line in LINES.replace("\n", ";").split(";") if line]
    lines = [[*start, bad] for start, bad in itertools.product(starts, BAD)]
    for line in draws.sample(lines, min(len(lines), 60 * TIMES)):
        code = called(line)
        said = capsys.readouterr()
        assert code in (1, 2), line
        assert said.err.strip(), line
        assert "Traceback" not in said.err, line
    assert not list(tmp_path.rglob("*.jsonl"))


FILES = {
    "task/task.toml": b"name = 'x'\nentry = ['solve']\n[limits]\nseconds = 5\n",
    "models.toml": b"['m']\nbase_url = 'http://h/v1'\n[m.extra_body]\na = 1\n",
    "sweep.toml": b"task = 'mmd'\nseeds = [1]\n[base]\ngenerations = 1\n[space]\nchildren = [1]\n",
    "log.jsonl": make_log_bytes(generations=1, children=2),
}
READERS = {
    "task/task.toml": "evo run task -T 1 -N 1 -q",
    "models.toml": "evo models",
    "sweep.toml": "evo sweep sweep.toml -q",
    "log.jsonl": "evo show log.jsonl",
}
JUNK = [bytes([code]) for code in b"\x00\xff[]{\"=\n'"] + [b"-1", b"1e999", b"nan", b"null"]


def test_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task").mkdir()
    (tmp_path / "task/evaluator.py").write_text("def score(value):\n    return {'fitness': 1.0}\n")
    (tmp_path / "task/initial_program.py").write_text("def solve():\n    raise SystemExit\n")
    draws = random.Random(13)
    for number in range(40 * TIMES):
        name = list(FILES)[number % len(FILES)]
        made = bytearray(FILES[name])
        for _ in range(draws.randint(1, 4)):
            at = draws.randrange(len(made))
            made[at : at + draws.randint(0, 3)] = draws.choice(JUNK)
        (tmp_path / name).write_bytes(made)
        monkeypatch.setenv("EVO_MODELS", str(tmp_path / "models.toml"))
        if name != "models.toml":
            monkeypatch.delenv("EVO_MODELS")
        with contextlib.suppress(UserWarning):
            code = called(READERS[name].split())
        said = capsys.readouterr()
        assert code in (0, 1, 2), (name, made)
        assert code == 0 or said.err.strip(), (name, made)
        assert "Traceback" not in said.err, (name, made)
