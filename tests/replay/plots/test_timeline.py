"""The timeline of a run: what the slots did adds up to what the log holds."""

import itertools

import msgspec
import pytest
from samples import sample_child, sample_header, sample_lines, write_sample

from evo.logs.journal import encode_line
from evo.logs.log import read_log
from evo.logs.records import Generation, Session
from replay.plots import charts, timeline
from replay.plots.timeline import KINDS


def write(path, lines):
    path.write_bytes(b"".join(map(encode_line, lines)))
    return read_log(path)


def bars_of(chart):
    return {mark.label: mark for mark in chart.panels[0].marks if mark.kind == "bars"}


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
def test_no_slot_does_two_things_and_no_generation_passes_its_end(tmp_path, slots):
    lines = [
        msgspec.structs.replace(line, max_concurrent=slots)
        if isinstance(line, Session)
        else msgspec.structs.replace(line, seconds=100.0)
        if isinstance(line, Generation)
        else line
        for line in sample_lines(generations=4, children=5)
    ]
    log = write(tmp_path / "a.jsonl", lines)
    chart = charts.timeline(log)
    bars = bars_of(chart)
    every = sorted(
        (slot, a, b)
        for mark in bars.values()
        for slot, a, b in zip(mark.y, mark.x0, mark.x1, strict=True)
    )
    assert {slot for slot, _, _ in every} <= set(range(min(slots, 5)))
    for (one, _, end), (other, begin, _) in itertools.pairwise(every):
        assert one != other or end <= begin + 1e-9
    for _, a, b in every:
        assert a // 100 == min(b - 1e-9, b) // 100 or a == b
    latency = {"call": 0.0, "failed attempt": 0.0}
    for outcome in log.outcomes:
        for attempt in outcome.attempts:
            latency["call" if attempt.status == "ok" else "failed attempt"] += attempt.latency
    for kind, seconds in latency.items():
        drawn = sum(bars[kind].x1) - sum(bars[kind].x0)
        assert drawn == pytest.approx(seconds)
    assert set(bars) == set(KINDS)
    spent = chart.panels[1].marks[-1]
    assert spent.y[-1] == sum(len(outcome.attempts) for outcome in log.outcomes)
    assert len(timeline(log)) == 2


def test_a_run_without_a_goal_has_none_drawn_and_counts_of_one_have_their_singular(tmp_path):
    for goal in (1, None):
        lines = [
            msgspec.structs.replace(line, generations=goal, max_concurrent=1)
            if isinstance(line, Session)
            else msgspec.structs.replace(line, seconds=100.0)
            if isinstance(line, Generation)
            else line
            for line in sample_lines(generations=1, children=1)
        ]
        slots, spent = charts.timeline(write(tmp_path / f"{goal}.jsonl", lines)).panels
        assert slots.about.startswith("Generation 1 took 100 s on 1 slot: ")
        rules = [mark for mark in spent.marks if mark.kind == "rule"]
        assert len(rules) == (goal is not None)
        assert ("the goal of 1 generation is 1 call (dotted)" in spent.about) == (goal is not None)


def test_what_took_longer_than_its_generation_is_squeezed_and_said(tmp_path):
    log = read_log(write_sample(tmp_path / "a.jsonl", generations=3, children=6))
    assert sum(a.latency for a in log.outcomes[0].attempts) > log.generations[0].seconds
    chart = charts.timeline(log)
    whole = sum(each.seconds for each in log.generations)
    assert max(max(mark.x1) for mark in bars_of(chart).values()) <= whole + 1e-9
    assert "3 generations are squeezed" in chart.panels[0].about


def test_the_last_generations_are_shown(tmp_path):
    log = read_log(write_sample(tmp_path / "a.jsonl", generations=9))
    text = charts.timeline(log, generations=2).panels[0].about
    assert text.startswith("Generations 8 to 9 took 3 s on")


def test_a_run_without_times_has_no_timeline(tmp_path):
    first, *rest = sample_lines(generations=1)
    log = write(tmp_path / "a.jsonl", [first, *rest[:2], sample_child(1, 0, 0.2)])
    with pytest.raises(ValueError, match="a complete generation, got none"):
        charts.timeline(log)
    end = Generation(generation=1, best_fitness=0.2, best=(1, 0), improved=True, seconds=None)
    lines = [sample_header(1), *rest[:2], sample_child(1, 0, 0.2), end]
    with pytest.raises(ValueError, match="how long its generations took"):
        charts.timeline(write(tmp_path / "b.jsonl", lines))
