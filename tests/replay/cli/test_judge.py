"""`replay judge`: one question, asked alone."""

import re
import shutil

import pytest
from test_report import pool

import replay
from evo.policies import POLICIES
from replay.cli.entry import main


@pytest.fixture
def logs(tmp_path, monkeypatch):
    for children in (2, 4):
        (tmp_path / f"N{children}").mkdir()
        pool(tmp_path / f"N{children}", children=children, runs=6, generations=12 // children)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_values_of_columns_policies_and_sets_of_logs_are_sides(logs, capsys):
    frame = replay.load("N2", "N4")
    found = replay.judge(frame, {"children": 2}, {"children": 4})
    assert main(["judge", "children=2", "children=4", "N2", "N4"]) == 0
    assert capsys.readouterr().out.strip() == str(found)
    assert main(["judge", "N2", "N4"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(str(found).partition(":")[0])
    assert f"p = {found.p:.3g} for this comparison alone" in said
    assert main(["judge", "ucb1", "single", "N2", "--arms", "2"]) == 0
    alone = replay.judge(replay.load("N2"), "ucb1", "single", arms=2)
    assert capsys.readouterr().out.strip() == str(alone)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["N2", "N2"], "expected two different sets of logs"),
        (["ucb1", "single"], "expected LOGS after the two policies"),
        (["children=2", "children=4"], "or LOGS after the two sides"),
        (["N2/*", "N2"], "on both"),
        (["children=two", "children=4", "N2", "N4"], "children: expected a number, got 'two'"),
        (["children=2,x", "children=4", "N2", "N4"], "children: expected a number, got '2,x'"),
        (["=2", "children=4", "N2", "N4"], "expected columns among"),
        (["ucb1", "children=4", "N2", "N4"], "COLUMN=VALUE on the command line"),
        (["nowhere", "N2"], "nowhere: no such file or folder"),
        (
            ["N2", "N4", "N2", "N4"],
            "got 4 arguments, of which 'N2' is a path; a pattern needs quotes",
        ),
    ],
)
def test_what_is_no_side_is_answered_with_what_is(logs, capsys, given, says):
    assert main(["judge", *given]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert says in said


def test_a_run_and_its_copy_are_no_two_sides_and_on_one_side_they_count_once(logs, capsys):
    assert main(["judge", "N2", "N4"]) == 0
    alone = capsys.readouterr().out
    shutil.copytree(logs / "N2", logs / "copied")
    assert main(["judge", "N2", "copied"]) == 2
    assert re.search(r"got '.*' on both, .* \(6 of 6 runs are on both\)", capsys.readouterr().err)
    first = min((logs / "N2").glob("*.jsonl"))
    shutil.copy(first, logs / "N2" / "again.jsonl")
    assert main(["judge", "N2", "N4"]) == 0
    said = capsys.readouterr()
    assert said.out == alone
    assert "1 of 13 runs repeats another here" in said.err


def test_a_policy_of_ones_own_is_a_class_in_a_file(logs, capsys):
    (logs / "mine.py").write_text(
        "import numpy as np\nfrom evo.policies import IndexPolicy\n\n\n"
        "class Stay(IndexPolicy):\n"
        "    def index(self):\n        return np.zeros(self.pulls.shape)\n"
    )
    try:
        assert main(["judge", "mine.py:Stay", "single", "N2", "--arms", "2"]) == 0
        assert "Stay less single" in capsys.readouterr().out
        assert main(["report", "N2", "--policies", "mine.py:Stay,ucb1", "--arms", "2"]) == 0
        assert "Stay" in capsys.readouterr().out
    finally:
        del POLICIES["Stay"]


def test_a_report_says_how_to_ask_one_of_its_pairs_alone(logs, capsys):
    pool(logs / "N2", children=3, runs=6, generations=4)
    assert main(["report", "N2", "N4"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    [command] = re.findall(r"`replay (judge children=\d children=\d) LOGS`", said)
    pair = " less ".join(f"N = {size}" for size in re.findall(r"\d", command))
    assert main([*command.split(), "N2", "N4"]) == 0
    [p] = re.findall(r"p = (\S+) for this comparison alone", capsys.readouterr().out)
    [(alone, shared)] = re.findall(rf"{pair} \S+(?: \[[^]]*\])? (\S+) (\S+)", said)
    assert alone == p
    assert float(shared) >= float(p)
