"""Imported runs that are written as logs, once and again."""

import os
from pathlib import Path

import pytest

import evo
import replay
from evo.logs.journal import LogError
from replay.cli.entry import main
from replay.importers.foreign import Imported
from replay.importers.keeping import log_paths


def imported(source: Path, *fitness: float, name: str = "run") -> Imported:
    """A run of another tool with these fitnesses, one a generation."""
    born = [
        replay.importers.born(k, evo.Evaluation(status="ok", fitness=each))
        for k, each in enumerate(fitness)
    ]
    return replay.importers.assemble(
        source, "theirs", name=name, initial=born[0], children=[[each] for each in born[1:]],
        lost=[], model=evo.Model("m"),
    )  # fmt: skip


def test_runs_are_kept_where_their_names_say_and_inside_the_folder(tmp_path: Path) -> None:
    names = ["a", "pool/arm-00", "../outside", "with space"]
    runs = [imported(tmp_path / "in", 0.1, 0.2, name=name) for name in names]
    kept = replay.importers.keep(runs, tmp_path / "out")
    assert kept == log_paths(runs, tmp_path / "out")
    assert sorted(kept) == sorted((tmp_path / "out").resolve().rglob("*.jsonl"))
    assert kept[1] == tmp_path / "out" / "pool" / "arm-00.jsonl"


def test_runs_are_kept_twice_as_once_and_others_are_refused_by_name(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    (path,) = replay.importers.keep([imported(source, 0.1, 0.2)], out)
    os.utime(path, (1, 1))
    written = path.read_bytes()
    both = [imported(source, 0.1, 0.2), imported(source, 0.1, 0.3, name="new")]
    assert replay.importers.keep(both, out)[0] == path
    assert path.stat().st_mtime == 1
    assert sorted(out.iterdir()) == log_paths(both[::-1], out)
    with pytest.raises(LogError, match=r"run\.jsonl: exists already and differs"):
        replay.importers.keep([imported(source, 0.1, 0.2, 0.3)], out)
    assert path.read_bytes() == written


def test_an_import_says_which_logs_were_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "calls.csv", tmp_path / "out"
    table.write_text("run,order,fitness\na,1,0.31\nb,1,0.3\n")
    command = ["import", "table", str(table), "-o", str(out)]
    assert main(command) == 0
    assert "unchanged" not in capsys.readouterr().out
    (out / "b.jsonl").unlink()
    assert main(command) == 0
    assert "there already, unchanged: 1 of 2 logs" in capsys.readouterr().out
    table.write_text("run,order,fitness\na,1,0.5\nb,1,0.3\n")
    assert main(command) == 2
    assert "a.jsonl: exists already and differs" in capsys.readouterr().err
