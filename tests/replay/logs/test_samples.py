"""Sample logs and notebooks that the package brings along."""

import tomllib
from pathlib import Path

import pytest

import replay
from replay.cli.entry import main
from replay.logs.samples import copy_samples

LOGS = Path(__file__).parents[3] / "logs"


def test_the_samples_are_runs_that_can_be_loaded(tmp_path, capsys):
    assert main(["samples", str(tmp_path / "new")]) == 0
    assert "try `replay report" in capsys.readouterr().out
    frame = replay.load(tmp_path / "new")
    assert frame["run"].nunique() >= 5
    assert set(frame["model"]) == {"qwen2.5-coder-1.5b"}


def test_nothing_is_overwritten(tmp_path):
    paths = copy_samples(tmp_path)
    paths[0].write_text("mine")
    with pytest.raises(FileExistsError, match="exists already"):
        copy_samples(tmp_path)
    assert paths[0].read_text() == "mine"


def test_the_notebooks_come_with_the_logs_that_they_read(tmp_path, capsys):
    assert main(["notebooks", str(tmp_path / "new")]) == 0
    assert "try `jupyter lab " in capsys.readouterr().out
    books = {path.stem for path in (tmp_path / "new" / "notebooks").glob("*.ipynb")}
    assert len(books) >= 13
    opening = tmp_path / "new" / "notebooks" / "pictures" / "opening"
    assert {path.stem for path in opening.iterdir()} == books
    for folder in ("corpus", "samples"):
        copied = {
            path.relative_to(tmp_path / "new")
            for path in tmp_path.glob(f"new/logs/{folder}/**/*.gz")
        }
        assert copied == {
            Path("logs", folder, path.relative_to(LOGS / folder))
            for path in (LOGS / folder).glob("**/*.gz")
        }
    with pytest.raises(FileExistsError, match="name another folder"):
        replay.notebooks(tmp_path / "new")


def test_a_wheel_has_every_notebook():
    root = LOGS.parent
    told = tomllib.loads((root / "pyproject.toml").read_text())
    shared = told["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    books = {path.name for path in (root / "notebooks").glob("[0-9]*.ipynb")}
    assert {Path(path).name for path in shared if path.endswith(".ipynb")} == books
    assert all(place == f"share/evo-replay/{path}" for path, place in shared.items())
