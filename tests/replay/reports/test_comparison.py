"""Configurations compared over the tasks of the logs: the last tables of a report."""

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from samples import write_sample

import replay
from replay.claims.verdict import NO_SPREAD
from replay.cli.entry import main
from replay.logs.tables import Tables, load_tables
from replay.reports.comparison import (
    MOST_COMPARED,
    comparison_sections,
    comparison_with_sections,
)
from replay.reports.report import groups
from replay.reports.site import comparison_of

CORPUS = Path(__file__).resolve().parents[3] / "logs" / "corpus" / "offline"
TASKS = ("circle_packing", "min_max_distance", "heilbronn_triangle")


def logs(tasks=TASKS[:2], sizes=(64, 256), seeds=range(40, 45)):
    found = [f"{task}/*-N{N}-s{seed}.*" for task in tasks for N in sizes for seed in seeds]
    return [path for pattern in found for path in CORPUS.glob(pattern)]


@pytest.fixture(scope="module")
def tables() -> Tables:
    return load_tables(*logs(TASKS), progress=False)


def cells_of(section):
    return {(row.row, row.quantity): row for row in section.cells.itertuples()}


def test_its_numbers_are_those_of_compare(tables):
    summary, pairs = comparison_sections(tables)
    found = replay.compare(tables.generations, by="children")
    assert summary.task == "3 tasks"
    for row in found.table.itertuples():
        cell = cells_of(summary)[f"N = {row.configuration}", "interquartile mean"]
        assert (cell.value, cell.low, cell.high) == (row.value, row.low, row.high)
        assert cells_of(summary)[f"N = {row.configuration}", "runs"].value == row.runs == 15
    [row] = found.verdicts.itertuples()
    pair = f"N = {row.a} less N = {row.b}"
    these, further = (cells_of(pairs)[pair, f"{name} tasks"] for name in ("these", "further"))
    assert (these.value, these.low, these.high) == (row.effect, row.low, row.high)
    assert (further.low, further.high) == (row.further_low, row.further_high)
    names = [f"N = {name}" for name in (row.a, row.b)]
    better = " is better than ".join(names if row.effect > 0 else names[::-1])
    assert any(better in note for note in pairs.notes) == (row.verdict != "undetermined")


def test_a_pair_without_spread_has_the_reason_why_there_is_no_interval(tables):
    generations = tables.generations
    alike = generations.assign(best_fitness=np.where(generations["children"] == 64, 0.2, 0.8))
    _, pairs = comparison_sections(tables._replace(generations=alike))
    cell = cells_of(pairs)["N = 64 less N = 256", "these tasks"]
    assert math.isnan(cell.low)
    assert cell.without == NO_SPREAD


def test_a_short_run_and_many_configurations_are_left_out_and_said(tables):
    cut = tables.runs["generations"].where(tables.runs["run"] != tables.runs["run"].iloc[0], 1)
    runs = tables.runs.assign(generations=cut.astype(int))
    summary, _ = comparison_sections(tables._replace(runs=runs))
    assert "1 run of less than half the usual calls is left out" in summary.notes
    several = load_tables(*logs(TASKS[:1], 2 ** np.arange(2, 9), range(40, 42)), progress=False)
    summary, pairs = comparison_sections(several)
    assert summary.task == TASKS[0]
    assert summary.cells["row"].nunique() == MOST_COMPARED
    assert any("of 7" in note for note in summary.notes)
    assert {*pairs.cells["quantity"]} == {"difference", "p alone", "p among 21 (Holm)"}
    assert all(math.isnan(low) for low in pairs.cells["low"])  # two runs a side: no interval


def test_the_configurations_compared_are_those_that_reached_most(tmp_path):
    """Of nine with equal counts the three that are far ahead stand last."""
    rows = ["run,model,generation,fitness"]
    for k in range(9):
        for seed in range(6):
            end = (0.9 if k > 5 else 0.2) + (7 * seed + 3 * k) % 11 / 100
            rows += [f"m{k}-{seed},m{k},{t},{end * t / 3:.4f}" for t in (1, 2, 3)]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, sections, _ = comparison_with_sections(load_tables(path, progress=False))
        whole = replay.compare(replay.load(path), by="model")
    ahead = found.table["configuration"]
    assert {*ahead[:3]} == {"m6", "m7", "m8"}
    assert [*ahead] == [*whole.table["configuration"]][: len(ahead)]
    assert found.family == 36
    assert "of the 6 of the highest values of 9 configurations" in replay.advise(found)
    assert any("the highest values of 9" in note for note in sections[0].notes)
    # The same pairs beside all others: the error is shared as widely.
    both = found.verdicts.merge(whole.verdicts, on=["a", "b"])
    assert len(both) == 15
    assert (both["p_holm_x"] >= both["p_holm_y"] - 1e-12).all()
    assert both["p_x"].tolist() == both["p_y"].tolist()


def test_limits_of_the_tasks_tell_no_configurations_apart(tables):
    seconds = dict(zip(TASKS, (60.0, 120.0, 60.0), strict=True))
    changed = [
        json.dumps(json.loads(text) | {"limits.seconds": seconds[task]})
        for text, task in zip(tables.runs["configuration"], tables.runs["task"], strict=True)
    ]
    summary, _ = comparison_sections(
        tables._replace(runs=tables.runs.assign(configuration=changed))
    )
    assert {*summary.cells["row"]} == {"N = 64", "N = 256"}
    assert summary.task == "3 tasks"


def test_a_site_shows_it_with_its_figure(tables):
    shown = comparison_of(tables, groups(tables))
    assert '<section id="compared">' in shown
    assert shown.count("data-chart=") == 1
    assert "Differences, in standard deviations within tasks" in shown
    assert "N = 64 less N = 256" in shown


def test_one_configuration_has_nothing_to_be_compared_with(tmp_path):
    for seed in range(3):
        write_sample(tmp_path / f"{seed}.jsonl", seed=seed)
    assert comparison_sections(load_tables(tmp_path)) == []


def test_replay_report_ends_with_it(tmp_path, capsys):
    paths = map(str, logs(seeds=range(40, 43)))
    assert main(["report", *paths, "-o", str(tmp_path / "page.png")]) == 0
    said = capsys.readouterr().out
    assert "Configurations at equal calls" in said
    assert said.index("Children by status") < said.index("N = 64 less N = 256")
