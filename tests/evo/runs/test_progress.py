"""Figures of sessions and logs: they agree with what the attempts say."""

import re
import shutil
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import evo
from evo.cli.entry import main
from evo.logs.cost import cost_of_calls
from evo.logs.records import Attempt
from evo.models.limits import Load, Slots
from evo.runs.progress import Tally, counted, short, watch

USAGE = {"prompt_tokens": 70, "completion_tokens": 30}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[evo.Log]:
    folder = tmp_path_factory.mktemp("logs")
    return evo.run_many(
        "mmd", seeds=[1, 2], generations=2, children=3, log_dir=folder, progress=False
    )


@pytest.fixture
def header(logs):
    model = msgspec.structs.replace(logs[0].header.model, is_llm=True)
    return msgspec.structs.replace(logs[0].header, model=model)


def tally_of(header, *calls: tuple[Attempt, ...]) -> Tally:
    tally = Tally()
    for attempts in calls:
        tally.add(attempts, header)
    return tally


ok = Attempt(status="ok", latency=1.0, usage=USAGE, http_status=200)
busy = Attempt(status="error", latency=0.1, http_status=429)
late = Attempt(status="timeout", latency=9.0)
hit = Attempt(status="ok", latency=0.0, usage=USAGE, http_status=200, cached=True)


def test_a_count_of_one_has_its_singular():
    assert [counted(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]


def test_a_tally_adds_up_and_hits_cost_nothing(header):
    tally = tally_of(header, (ok,), (busy, busy, ok), (late, ok), (hit,))
    assert (tally.calls, tally.attempts, tally.retries, tally.cached) == (4, 6, 3, 1)
    assert tally.failures == {"429": 2, "timeout": 1}
    assert tally.tokens == 300
    once = tally_of(header, (ok,))
    assert tally.dollars == pytest.approx(3 * once.dollars)


def test_what_another_tool_does_not_say_of_a_call_is_unknown(header):
    theirs = msgspec.structs.replace(header, source="table")
    tally = tally_of(theirs, (), ())
    assert (tally.calls, tally.silent, tally.tokens, tally.dollars) == (2, 2, None, None)
    assert tally_of(theirs, (ok,)).silent == tally_of(header, ()).silent == 0
    assert tally_of(header, ()).dollars == 0.0


@pytest.mark.parametrize("lacks", [{"input_price": None}, {"is_llm": False}])
def test_dollars_are_unknown_without_prices_and_of_the_stand_in(header, lacks):
    model = msgspec.structs.replace(header.model, **lacks)
    tally = tally_of(msgspec.structs.replace(header, model=model), (ok,))
    assert tally.dollars is None
    assert "dollars" not in tally.stats(Load(slots=1))
    assert "100 of about 300 tokens" in watch(tally, Load(slots=1), done=1, left=2)


def test_the_line_to_watch_names_only_what_happened(header):
    quiet = watch(tally_of(header, (ok,)), Load(slots=2), done=1, left=0)
    assert not re.search("retries|limited|cached", quiet)
    load = Load(slots=2, open=10.0, busy=19.0, limited=3.0)
    busy_line = watch(tally_of(header, (busy, ok), (hit,)), load, done=2, left=2)
    for part in ("slots 95%", "1 retries", "limited 3 s", "1 cached", "of about $"):
        assert part in busy_line


def test_the_closing_line_holds_the_whole_sessions_figures(logs):
    last = max((log.ends[-1].stats for log in logs), key=lambda stats: stats["seconds"])
    assert last["generations"] == 2
    assert last["calls"] == last["attempts"] == 12
    attempts = [a for log in logs for o in log.outcomes for a in o.attempts]
    assert last["tokens"] == sum(a.usage["total_tokens"] for a in attempts)
    assert 0 < last["utilisation"] <= 1
    assert last["calls_per_second"] == pytest.approx(12 / last["seconds"], rel=1e-3)
    assert all(type(value) in (float, int) for value in last.values())


def test_stats_has_a_row_for_each_log_and_a_total(logs, tmp_path, capsys):
    assert main(["stats", str(logs[0].path), str(logs[1].path)]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()[1:4]]
    assert [row[0] for row in rows] == [str(logs[0].path), str(logs[1].path), "total"]
    assert [row[1:3] for row in rows] == [["6", "6"], ["6", "6"], ["12", "12"]]
    folder = logs[0].path.parent
    assert main(["stats", str(folder)]) == 0
    assert capsys.readouterr().out == out
    shutil.copytree(folder, tmp_path / "runs")  # as in a sweep
    for other in ("events.jsonl", "agent.jsonl"):
        (tmp_path / other).touch()
    assert main(["stats", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split()[-40:] == out.split()[-40:]


def test_a_critics_calls_are_stats_at_its_own_prices(tmp_path, monkeypatch, capsys):
    log = evo.run(
        "mmd", model="offline-2", drafts=2, critic="offline-2", generations=1, children=1,
        log=tmp_path / "a.jsonl", progress=False,
    )  # fmt: skip
    model, critic = (
        evo.Model(name=name, input_price=price, output_price=price)
        for name, price in (("cheap", 1.0), ("dear", 1000.0))
    )
    judge = msgspec.structs.replace(log.header.critic, model=critic)
    log.header = msgspec.structs.replace(log.header, model=model, critic=judge)
    monkeypatch.setattr("evo.logs.log.read_log", lambda path: log)
    assert main(["stats", str(log.path)]) == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    assert float(row[5]) == pytest.approx(cost_of_calls(log.calls, log.header).dollars, abs=1e-4)


def test_settings_of_the_command_line_reach_the_slots(tmp_path, monkeypatch, capsys):
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        "evo.runs.resources.Slots", lambda *a, **b: made.append((*a, b)) or Slots(*a, **b)
    )
    arguments = ["run", "mmd", "-T", "1", "-N", "2", "-q", "--log", str(tmp_path / "a.jsonl")]
    assert main([*arguments, "--preset", "conservative", "--rpm", "600", "--tpm", "90000"]) == 0
    limits = {"requests_per_minute": 600, "tokens_per_minute": 90000}
    assert made == [(5, limits)]
    assert re.search(r"\.jsonl", capsys.readouterr().out)


@given(st.floats(1e-3, 999e9))
@example(999.6)
@example(999_501.0)
@example(999.6e6)
def test_a_short_number_is_near_the_number_and_has_no_power_of_ten(number: float) -> None:
    text = short(number)
    size = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1.0)
    assert float(text.rstrip("kMG")) * size == pytest.approx(number, rel=0.0051)
    assert "e" not in text
    assert len(text.lstrip("0.")) <= len("1.23k")
