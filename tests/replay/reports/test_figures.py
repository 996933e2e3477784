"""The page of figures of a report, and its best construction."""

import msgspec
import numpy as np
import pytest
from samples import sample_child, sample_header, sample_lines, write_sample
from test_tables import write_lines

import replay
from evo.logs.records import Evaluation, Generation
from replay.cli.entry import main
from replay.logs.tables import load_tables
from replay.plots import FIGURES
from replay.reports.figures import GroupPanel, best_construction, draw_page
from replay.reports.report import (
    groups,
)
from replay.simulation.contest import compete, named_policies


def pool(folder, *, runs=6, generations=5, children=3):
    for seed in range(runs):
        path = folder / f"{children}-{seed}.jsonl"
        write_sample(path, generations=generations, children=children, seed=seed)
    return folder


def only_group(*paths):
    [group] = groups(load_tables(*paths))
    return group


def test_the_page_holds_a_picture_and_four_figures_per_contest(tmp_path):
    group = only_group(pool(tmp_path))
    made = compete(group.tables.generations, named_policies(["ucb1"]), replicates=50, arms=2)
    figure = draw_page([GroupPanel(group, None, [("heading", made)])])
    titles = [title for ax in figure.axes if (title := ax.get_title(loc="left"))]
    assert len(titles) == 4 + len(FIGURES)
    assert "Pulls per arm" in titles


def test_a_page_whose_headings_are_wrapped_has_room_for_each_picture(tmp_path):
    """A layout that collapses is a warning, and so an error here."""
    group = only_group(pool(tmp_path))
    made = compete(group.tables.generations, named_policies(["ucb1"]), replicates=50, arms=2)
    page = draw_page([GroupPanel(group, None, [("heading", made)])])
    assert replay.plots.save(page, tmp_path / "page.png").stat().st_size > 10_000


def log_of(folder, *, program="", value=None):
    """A log whose only child is its best."""
    good = Evaluation(status="ok", fitness=0.5)
    child = msgspec.structs.replace(
        sample_child(1, 0, 0.5), program=program, evaluation=good, value=value
    )
    end = Generation(generation=1, best_fitness=0.5, best=(1, 0), improved=True, seconds=1.0)
    return write_lines(folder / "a.jsonl", [sample_header(1, 3), sample_lines()[2], child, end])


@pytest.mark.parametrize("value", [np.random.default_rng(0).random((16, 2)).tolist(), "<b>"])
def test_the_best_construction_is_what_the_log_keeps(tmp_path, value):
    group = only_group(log_of(tmp_path, value=value))
    construction, reason = best_construction(group)
    assert reason is None
    if value != "<b>":
        assert construction.chart.panels[0].marks[-1].x.tolist() == [x for x, _ in value]
    assert "seed 3, generation 1, fitness 0.500000" in construction.caption
    figure = draw_page([GroupPanel(group, construction)])
    figure.draw_without_rendering()
    assert figure.axes[1].get_title(loc="left").startswith("Distance ratio") == (value != "<b>")


def test_without_a_construction_nothing_is_run_and_the_reason_is_given(
    tmp_path, monkeypatch, capsys
):
    trace = tmp_path / "trace"
    path = log_of(tmp_path, program=f"open({str(trace)!r}, 'w').close()\n")
    construction, reason = best_construction(only_group(path))
    assert construction is None
    assert f"`evo best --value {path}`" in reason
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(path)]) == 0
    assert "keeps none" in capsys.readouterr().err
    assert not trace.exists()
