"""The table of runs: what it lists, and what its rows open."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from matplotlib.colors import to_hex

import evo
import replay
from evo.logs.log import read_log
from evo.logs.maintenance import compact
from replay.explorers import Runs
from replay.explorers.chosen_runs import _programs
from replay.explorers.run_browser import RunBrowser
from replay.explorers.run_data import RunData
from replay.explorers.scripts import script


@pytest.fixture
def runs(logged):
    made = Runs(logged)
    yield made
    made.close()


def test_a_row_is_a_run_with_its_counts(runs, logged):
    assert runs.table["run"].tolist() == logged["run"].unique().tolist()
    for row in runs.table.to_dict("records"):
        rows = logged[logged["run"] == row["run"]]
        assert row["calls"] == rows["n_calls"].sum() == row["ok"] + row["failed"]
        outcomes = read_log(Path(rows["source"].iloc[0])).outcomes
        assert row["ok"] == sum(each.evaluation.status == "ok" for each in outcomes)
        assert row["best_fitness"] == pytest.approx(rows["best_fitness"].max(), abs=1e-6)


@pytest.mark.parametrize("listed", [True, False])
def test_a_row_opens_two_compare_more_overlay(logged, monkeypatch, listed):
    if not listed:
        monkeypatch.setitem(__import__("sys").modules, "itables.widget", None)
    runs = Runs(logged)
    trait = "selected_rows" if listed else "value"
    setattr(runs._rows, trait, [1] if listed else (1,))
    assert isinstance(runs.chosen.shown, RunBrowser)
    assert runs.chosen.shown.settings["log"].endswith("r1.jsonl")
    setattr(runs._rows, trait, [0, 1] if listed else (0, 1))
    assert "They differ in" in runs.chosen.shown.words
    assert " added, " in runs.chosen.below.children[1].value
    ax = eval(runs.chosen.shown.code, {"replay": replay, "frame": logged})
    assert len(ax.lines) >= 2
    setattr(runs._rows, trait, [0, 1, 2] if listed else (0, 1, 2))
    assert runs.chosen.shown.words.count("best fitness") == 3
    assert len(runs.chosen.below.children) == 1
    setattr(runs._rows, trait, [] if listed else ())
    assert runs.chosen.shown is None
    runs.close()


def test_logs_without_programs_are_not_said_to_be_alike(logged, tmp_path):
    """Two compact logs hold nothing to compare, which is not the same as no difference."""
    folder = Path(logged["source"].iloc[0]).parent
    bare = [compact(read_log(folder / f"r{seed}.jsonl"), tmp_path / f"c{seed}.jsonl")
            for seed in (0, 1)]  # fmt: skip
    paths = [Path(log.path) for log in bare]
    runs = Runs(replay.load(*paths))
    runs._rows.selected_rows = [0, 1]
    said = runs.chosen.below.children[1].value
    assert " added, " not in said
    assert "c0.jsonl and c1.jsonl" in said
    assert " added, " in _programs(folder / "r0.jsonl", folder / "r1.jsonl")
    mixed = _programs(paths[0], folder / "r1.jsonl")
    assert "c0.jsonl" in mixed
    assert " added, " not in mixed
    runs.close()


def test_runs_whose_logs_are_gone_are_drawn(logged):
    runs = Runs(logged.assign(source="gone.jsonl"))
    runs.show([0])
    assert "best fitness" in runs.chosen.shown.words
    runs.close()


def test_complete_logs_are_shipped():
    folder = Path(__file__).resolve().parents[3] / "logs" / "samples" / "searches"
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    listed = dict(line.split("  ")[::-1] for line in lines)
    found = {path.name: path for path in folder.glob("*.jsonl.gz")}
    assert len(found) == 12
    assert {n: hashlib.sha256(p.read_bytes()).hexdigest() for n, p in found.items()} == listed
    logs = [evo.read_log(path) for path in found.values()]
    assert len({log.header.task.name for log in logs}) == 3
    assert len({log.header.search and log.header.search.name for log in logs}) == 2
    for log in logs:
        assert log.finished
        assert all(child.reply for child in log.children)
    data = RunData(next(log for log in logs if log.header.search))
    assert {data.parent(place) for place in data.places[1:]} - {None, (0, 0)}


def test_what_all_runs_share_takes_no_column_of_the_page(logged):
    pytest.importorskip("itables", reason="needs the extra [notebook]")
    other = logged.assign(model=logged["model"].where(logged["run"] != "r1", "other"))
    columns = [set(Runs(each)._rows.df.columns) for each in (logged, other)]
    assert columns[1] - columns[0] == {"model"}
    assert {"run", "task", "best_fitness"} <= columns[0]


def test_runs_wear_the_colours_of_the_budget_explorer_in_the_order_of_choice(runs):
    [colours] = re.findall(r"RUN_COLOURS = (\[.*?\]);", script("view"))
    runs.chosen.choose(["r2", "r0"])
    lines = runs.chosen.shown.figure().axes[0].lines
    ends = {to_hex(line.get_color()): line.get_ydata()[-1] for line in lines}
    best = runs.table.set_index("run")["best_fitness"]
    for run, colour in zip(("r2", "r0"), json.loads(colours)[:2], strict=True):
        assert ends[colour] == pytest.approx(best[run], abs=1e-6)
