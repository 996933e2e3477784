"""The chart of a run: every child is a point at its generation and fitness, or in a row."""

import msgspec
import numpy as np
import pytest
from odd_logs import write
from samples import sample_child, sample_header, sample_lines

from evo.logs.log import read_log
from evo.logs.records import STATUSES, Child, Evaluation, Generation, Initial
from replay.explorers import run_chart as module
from replay.explorers.run_chart import LONGEST, LOOKS, run_chart
from replay.explorers.run_data import UNKNOWN, RunData


def statuses(tmp_path, *statuses, error=None):
    """A run of one generation whose children ended so."""
    children = [
        msgspec.structs.replace(
            sample_child(1, k, None),
            evaluation=Evaluation(
                status=status, fitness=0.05 if status == "ok" else None, error=error
            ),
        )
        for k, status in enumerate(statuses)
    ]
    end = Generation(generation=1, best_fitness=0.1, best=(0, 0), improved=False, seconds=1.0)
    lines = [sample_header(len(children)), sample_lines()[2], *children, end]
    return RunData(read_log(write(tmp_path / "a.jsonl", *lines)))


def programs(chart):
    """The panel, place and text of each program, by its number."""
    return {
        k: (p, *values)
        for (p, m), keys in chart.keys().items()
        for k, *values in zip(
            keys, *(getattr(chart.panels[p].marks[m], name) for name in ("x", "y", "texts")),
            strict=True,
        )
    }  # fmt: skip


def test_every_program_lies_at_its_generation_and_fitness_or_among_its_failures(log):
    data = RunData(log)
    found = programs(run_chart(data))
    assert sorted(found) == list(range(len(data.places)))
    ok = data.status == STATUSES.index("ok")
    x = np.array([found[k][1] for k in range(len(found))])
    assert [found[k][2] for k in np.flatnonzero(ok)] == data.fitness[ok].tolist()
    assert [found[k][0] == 0 for k in range(len(found))] == ok.tolist()
    assert x[0] == 0
    assert (np.abs(x - data.generation) < module.SPREAD / 2).all()
    for generation in range(1, 7):  # spread around it, and never into the next
        members = x[data.generation == generation]
        assert (np.diff(members) > 0).all()
        assert members.mean() == pytest.approx(generation, abs=1e-4)


def test_the_best_so_far_is_that_of_the_log(log):
    [line] = [mark for mark in run_chart(RunData(log)).panels[0].marks if mark.kind == "line"]
    assert list(line.y[:-1]) == log.trajectory.tolist()
    assert line.texts[-1].endswith(f"generation {len(log.generations)}: {log.trajectory[-1]:.6g}")


def test_very_low_values_do_not_squeeze_the_rest(tmp_path):
    lines = sample_lines(generations=12, children=5)
    low = Evaluation(status="ok", fitness=-1e9)
    position = next(k for k, line in enumerate(lines) if isinstance(line, Child))
    lines[position] = msgspec.structs.replace(lines[position], evaluation=low)
    panel = run_chart(RunData(read_log(write(tmp_path / "a.jsonl", *lines)))).panels[0]
    assert panel.y.domain[0] > -1
    [below] = [mark for mark in panel.marks if getattr(mark, "label", "") == "below the axis"]
    assert (below.shape, len(below.x)) == ("below", 1)
    assert below.y[0] >= panel.y.domain[0]
    assert "fitness -1e+09" in below.texts[0]


def test_the_axis_of_a_constant_fitness_stays_near_it(tmp_path):
    lines = [
        msgspec.structs.replace(line, evaluation=Evaluation(status="ok", fitness=0.5))
        if isinstance(line, Child | Initial)
        else line
        for line in sample_lines(generations=3, children=2)
    ]
    panel = run_chart(RunData(read_log(write(tmp_path / "a.jsonl", *lines)))).panels[0]
    assert panel.y.domain == pytest.approx((0.475, 0.525))


def test_every_failure_stands_in_the_row_of_its_status_and_an_unknown_one_too(tmp_path):
    def rows(*given):
        chart = run_chart(statuses(tmp_path, *given))
        found, names = programs(chart), dict(chart.panels[1].y.ticks)
        in_rows = [names[y] for panel, _, y, _ in found.values() if panel == 1]
        return {name: in_rows.count(name) for name in names.values()}

    assert rows("timeout", None, "error", "ok", None) == {"error": 1, "timeout": 1, "unknown": 2}
    assert rows("ok", "ok") == {"no failures": 0}


def test_every_status_but_ok_has_a_look_of_its_own():
    assert {*LOOKS} == {*STATUSES} - {"ok"} | {UNKNOWN}
    assert len({shape for shape, _ in LOOKS.values()}) == len(LOOKS)


def test_a_failure_says_what_went_wrong_in_a_bearable_length(tmp_path):
    found = programs(run_chart(statuses(tmp_path, "error", error="boom " * 99)))
    head, error, parent = found[1][3].splitlines()
    assert head == "child 0 of generation 1: error"
    assert error == ("boom " * 99)[:LONGEST]
    assert parent == "rewrites the initial program, fitness 0.1"


def test_the_shown_program_wears_a_ring_and_its_parent_a_frame_joined_over_both_panels(tmp_path):
    data = statuses(tmp_path, "ok", "error")

    def signs(place):
        found = [panel.marks[-3:] for panel in run_chart(data, place).panels]
        return [(len(line.x0), len(frame.x), len(ring.x)) for line, frame, ring in found]

    assert signs((1, 0)) == [(1, 1, 1), (0, 0, 0)]
    assert signs((1, 1)) == [(1, 1, 0), (1, 0, 1)]
    assert signs((0, 0)) == [(0, 0, 1), (0, 0, 0)]
    assert signs(None) == [(0, 0, 0)] * 2
    (above, *_), (below, *_) = (panel.marks[-3:] for panel in run_chart(data, (1, 1)).panels)
    assert above.x1 == below.x0 == below.x1  # straight down to the failure
    assert above.y1 == [run_chart(data).panels[0].y.domain[0]]


def test_a_run_of_which_nothing_is_ok_says_so(tmp_path):
    data = statuses(tmp_path, "error", "error")

    def said():
        marks = run_chart(data).panels[0].marks
        legend = [mark.label for mark in marks if mark.kind == "line"]
        return [mark.text for mark in marks if mark.kind == "label"], legend

    assert said() == ([], ["best so far"])
    data.fitness[:] = np.nan
    assert said() == (["nothing is ok yet"], [""])
