"""Commands that take a folder of logs in place of a log."""

import shutil

import pytest

import evo
from evo.cli.entry import main
from evo.logs.maintenance import compact
from replay.importers.foreign import write
from replay.importers.table import read as read_table


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    evo.run_many("mmd", seeds=[1, 2, 3], generations=1, children=2, log_dir=folder, progress=False)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(made, tmp_path / "runs")


def logs_in(folder):
    return [evo.read_log(path) for path in sorted(folder.glob("*.jsonl"))]


def test_the_best_of_a_folder_is_the_best_over_its_runs(folder, capsys):
    first = max(logs_in(folder), key=lambda log: log.best_fitness)
    compact(first.path, folder / "a.jsonl.gz")  # of equals, the one with its programs
    assert main(["best", "runs"]) == 0
    said = capsys.readouterr()
    assert said.out == first.best.program
    place = f"generation {first.best.generation}, child {first.best.index}"
    assert f"the best of 4 logs is runs/{first.path.name}, {place}" in said.err
    assert main(["best", *(f"runs/{log.path.name}" for log in logs_in(folder))]) == 0
    assert capsys.readouterr().out == first.best.program
    assert main(["best", str(first.path)]) == 0
    assert "best of" not in capsys.readouterr().err
    first.path.unlink()
    assert main(["best", "runs"]) == 2
    assert "runs/a.jsonl.gz: a compact log holds no programs" in capsys.readouterr().err


def test_the_best_is_not_chosen_over_tasks_or_metrics(folder, capsys):
    settings = {"generations": 1, "children": 1, "log_dir": folder / "cp", "progress": False}
    logs = evo.run_many("cp", seeds=[1, 2], **settings)
    assert main(["rescore", "runs/cp", "--metric", "objective"]) == 0
    raised = [evo.read_log(path) for path in (folder / "cp").glob("*.rescored.jsonl")]
    assert max(log.best_fitness for log in raised) > max(log.best_fitness for log in logs)
    capsys.readouterr()
    assert main(["best", "runs/cp"]) == 0
    first = max(logs, key=lambda log: log.best_fitness)
    assert f"the best of 2 logs is runs/cp/{first.path.name}" in capsys.readouterr().err
    assert main(["best", "runs", "runs/cp"]) == 2
    assert "cannot be compared (circle_packing, min_max_distance)" in capsys.readouterr().err


def test_resume_of_a_folder_continues_what_is_unfinished(folder, capsys):
    one, two, three = logs_in(folder)
    lines = one.path.read_bytes().splitlines(keepends=True)
    one.path.write_bytes(b"".join(lines[:4]))  # as a kill leaves it
    compact(two.path, folder / "small.jsonl.gz")
    bare = folder / "theirs.csv"
    bare.write_text("generation,fitness\n0,0.1\n1,0.3\n")
    write(read_table(bare)[0], folder / "theirs.jsonl")
    before = {log.path: log.path.read_bytes() for log in (two, three)}
    assert main(["resume", "runs", "-q"]) == 0
    said = capsys.readouterr()
    assert evo.read_log(one.path).finished
    assert one.path.name in said.out
    assert two.path.name not in said.out
    assert {path: path.read_bytes() for path in before} == before
    assert "2 logs are left as they are: finished; -T extends" in said.err
    assert "small.jsonl.gz is left as it is: compact" in said.err
    assert "theirs.jsonl is left as it is: written by table" in said.err
    assert main(["resume", "runs", "-q", "-T", "2"]) == 0
    assert [len(log.generations) for log in logs_in(folder)][:3] == [2, 2, 2]


def test_nothing_to_continue_is_said(folder, capsys):
    assert main(["resume", "runs"]) == 0
    assert "no run to continue in runs" in capsys.readouterr().out
    for log in logs_in(folder):
        compact(log.path, log.path.with_name(f"{log.path.stem}.compact.jsonl.gz"))
        log.path.unlink()
    assert main(["resume", "runs", "-T", "3"]) == 2
    assert "no run to continue" in capsys.readouterr().err
    for verb in ("rerun", "rescore"):
        assert main([verb, "runs"]) == 2
        assert "no log with programs" in capsys.readouterr().err


def test_a_budget_of_a_folder_counts_its_finished_runs(folder, capsys):
    assert main(["resume", "runs", "-q", "-T", "4", "--budget", "calls=8"]) == 0
    assert sum(len(log.outcomes) for log in logs_in(folder)) == 8
    assert main(["resume", "runs", "-q", "--budget", "calls=8"]) == 0
    assert sum(len(log.outcomes) for log in logs_in(folder)) == 8


def test_the_runs_of_a_study_are_left_to_its_verb(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ("allocate", "mmd", "--policy", "ucb1", "--arms", "2", "-N", "1", "-q")
    assert main([*arguments, "--rounds", "2", "--log-dir", "study"]) == 0
    arms = sorted((tmp_path / "study").glob("arm*"))
    before = {path: path.read_bytes() for path in arms}
    assert len(before) == 2
    assert main(["resume", "study", "-T", "9"]) == 2
    said = capsys.readouterr().err
    assert "`evo allocate` with the same arguments and --log-dir study continues" in said
    assert {path: path.read_bytes() for path in arms} == before


def test_rerun_and_rescore_take_a_folder(folder, capsys):
    compact(logs_in(folder)[0].path, folder / "small.jsonl.gz")
    assert main(["rerun", "runs"]) == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 3
    assert "small.jsonl.gz is left as it is" in said.err
    assert main(["rescore", "runs"]) == 0
    assert len(list(folder.glob("*.rescored.jsonl"))) == 3
