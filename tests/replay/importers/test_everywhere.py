"""What any tool's runs were imported to goes through everything that reads our own logs."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from foreign_samples import write_codeevolve, write_openevolve, write_paper, write_shinka

import replay
from replay.cli.entry import main

SAMPLES = Path(__file__).parents[3] / "logs" / "samples"


def write_table(folder):
    """Eight runs of sixteen calls, one in five failed."""
    rng = np.random.default_rng(1)
    lines = ["run,order,fitness,status"]
    for run in range(8):
        for order, fitness in enumerate(np.maximum.accumulate(rng.random(16))):
            failed = rng.random() < 0.2
            lines.append(f"{run},{order},{'' if failed else fitness},{'error' if failed else 'ok'}")
    folder.mkdir(parents=True)
    (folder / "calls.csv").write_text("\n".join(lines))


WRITERS = {
    "table": write_table,
    "openevolve": write_openevolve,
    "shinka": write_shinka,
    "codeevolve": write_codeevolve,
    "paper": write_paper,
}


@pytest.fixture(params=[*WRITERS, "gepa"])
def imported(request, tmp_path):
    """A folder of logs that `replay import` made of a tool's own."""
    source = SAMPLES / "gepa-1"
    if request.param in WRITERS:
        source = tmp_path / "source"
        WRITERS[request.param](source)
        if request.param == "table":
            source = source / "calls.csv"
    target = tmp_path / "imported"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["import", "auto", str(source), "-o", str(target)]) == 0
    return target


def test_a_report_and_a_page_are_made(imported, tmp_path, capsys):
    picture = tmp_path / "report.png"
    assert main(["report", str(imported), "-o", str(picture)]) == 0
    assert "Children by status" in capsys.readouterr().out
    assert picture.stat().st_size > 1000
    assert main(["site", str(imported), "-o", str(tmp_path / "site")]) == 0
    assert (tmp_path / "site" / "index.html").exists()


@pytest.mark.filterwarnings("ignore")
def test_runs_are_judged_planned_and_explored(imported):
    frame = replay.load(imported, progress=False)
    verdicts = ("greater", "less", "within margin", "undetermined")

    decisions = [
        lambda: replay.judge(frame, "random", "single", arms=2).verdict in verdicts,
        lambda: len(replay.plan(frame, budget=16).options) > 0,
    ]
    for decide in decisions:
        if frame["run"].nunique() >= 5:
            assert decide()
            continue
        try:  # fewer may be refused, in words
            assert decide()
        except ValueError as error:
            words = str(error)
            assert words.count("run")
    explorer = replay.explore(frame)
    assert explorer._repr_mimebundle_()["text/plain"]
