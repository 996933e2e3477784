"""A figure or a table of one's own joins every report by one registration."""

import base64
import json
import re
from pathlib import Path

import pandas as pd
import pytest

import replay
from replay import plots
from replay.cli.entry import main
from replay.plots import FIGURES, Chart
from replay.plots.marks import Line
from replay.plots.panel import Axis, Panel
from replay.plots.style import label_axes, prepare
from replay.reports import SECTIONS, estimate, stack
from replay.reports.forms import markdown
from replay.reports.tables import Section, exact

CORPUS = Path(__file__).resolve().parents[3] / "logs" / "corpus" / "local-tsp"


def tokens_by_generation(frame, *, ax, theme):
    ax = prepare(ax, theme)
    ax.plot(frame.groupby("generation")["completion_tokens"].mean())
    label_axes(ax, theme, x="generation", y="completion tokens")
    ax.set_title("Tokens by generation", loc="left")
    return ax


def tokens_of_runs(group, tau):
    if tau is not None and tau > 1:
        return None
    found = replay.interval(group.tables.runs["completion_tokens"].to_numpy(float))
    cells = {"all runs": [estimate("tokens of a run", found, "count")]}
    return group.section("Completion tokens", "runs", stack(cells), ["means over runs"])


def labels_of(page):
    """What the charts and the pictures of a page are called."""
    charts = (json.loads(base64.b64decode(e)) for e in re.findall(r'data-chart="([^"]*)"', page))
    pictures = re.findall(r'<img class="light" [^>]*alt="([^"]*)"', page)
    return "; ".join([*(chart["label"] for chart in charts), *pictures])


def calls_by_generation(frame):
    table = frame.groupby("generation")["n_calls"].mean()
    line = Line(x=table.index, y=table)
    axes = {"x": Axis(label="generation", whole=True), "y": Axis(label="calls")}
    return Chart(panels=[Panel(title="Calls by generation", **axes, marks=[line])])


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(FIGURES, "tokens", tokens_by_generation)
    monkeypatch.setitem(FIGURES, "calls", calls_by_generation)
    monkeypatch.setitem(SECTIONS, "tokens", tokens_of_runs)


@pytest.mark.usefixtures("registered")
def test_they_join_the_report_the_site_and_a_notebook(logs, tmp_path, capsys):
    page = tmp_path / "page.svg"
    assert main(["report", str(logs), "-o", str(page)]) == 0
    assert "Completion tokens" in capsys.readouterr().out
    site = replay.site(logs, tmp_path / "site").read_text()
    assert "Completion tokens" in site
    assert "Tokens by generation" in labels_of(site)
    assert "Calls by generation" in labels_of(site)
    figure = plots.overview(replay.load(logs))
    titles = [title for ax in figure.axes if (title := ax.get_title(loc="left"))]
    assert len(titles) == len(FIGURES)
    assert {"Tokens by generation", "Calls by generation"} <= set(titles)


@pytest.mark.usefixtures("registered")
def test_a_table_that_does_not_apply_is_left_out(logs, tmp_path, capsys):
    assert main(["report", str(logs), "-o", str(tmp_path / "page.png"), "--tau", "2"]) == 0
    assert "Completion tokens" not in capsys.readouterr().out


def test_what_a_table_does_to_the_runs_stays_its_own(logs):
    def spoiling(group, tau):
        for table in group.tables:
            table["task"] = "another"

    tables = replay.load_tables(logs)
    [group] = replay.reports.groups(tables)
    before = [table.copy() for table in group.tables]
    plain = replay.reports.sections(group)
    SECTIONS["mine"] = spoiling
    try:
        found = replay.reports.sections(group)
    finally:
        SECTIONS.pop("mine")
    assert [each.title for each in found] == [each.title for each in plain]
    for table, own in zip(group.tables, before, strict=True):
        pd.testing.assert_frame_equal(table, own)


@pytest.mark.usefixtures("registered")
def test_they_join_the_page_of_a_protocol(tmp_path):
    from replay.reports.protocol import write_findings

    tables = write_findings("local-tsp", CORPUS, tmp_path / "page.html")
    assert "Exploratory: completion tokens" in [table.title for table in tables]
    shown = labels_of((tmp_path / "page.html").read_text())
    assert "Tokens by generation" in shown
    assert "Calls by generation" in shown


def test_a_figure_that_cannot_be_drawn_says_why(logs, monkeypatch):
    def nothing(frame, *, ax, theme):
        raise ValueError("these runs have no dollars")

    monkeypatch.setitem(FIGURES, "dollars", nothing)
    figure = plots.overview(replay.load(logs))
    assert "Dollars: not drawn (these runs have no dollars)" in figure.get_supxlabel()

    def refused(frame):
        raise ValueError("these runs have no tokens")

    monkeypatch.setitem(FIGURES, "tokens", refused)
    figure = plots.overview(replay.load(logs))
    assert "Tokens: not drawn (these runs have no tokens)" in figure.get_supxlabel()
    assert len([ax for ax in figure.axes if ax.get_label() != "<colorbar>"]) == len(FIGURES) - 2


def test_a_bar_in_a_name_makes_no_column_of_a_markdown_table():
    section = Section(
        title="Runs", task="t", model="m", is_llm=True, heading="policy",
        cells=stack({"a|b": [exact("pulls", 3.0, 4, "count")]}),
    )  # fmt: skip
    assert "| a\\|b | 3 |" in markdown([section])
