"""Waves: all runs get equally far, what is begun follows from costs, kills change nothing."""

import copy
import itertools
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from evo_runs import timeless
from hypothesis import given
from hypothesis import strategies as st
from tiers import thorough_after

import evo
from evo.runs.budget import Ledger
from evo.runs.configuration import make_header
from evo.runs.resources import open_resources
from evo.runs.session import RunJob, run_jobs
from evo.runs.settings import Goal, Settings
from evo.runs.state import costs_of_log
from evo.runs.waves import Payer, Turns, Waves, payable

QUIET: dict[str, Any] = {"progress": False}
SEEDS = [1, 2, 3, 4]
RUNS: dict[str, Any] = {"seeds": SEEDS, "generations": 3, "children": 3, **QUIET}

amounts = st.integers(0, 9).map(float)
tables = st.lists(st.lists(amounts, min_size=1, max_size=5), min_size=1, max_size=5)


def paying(costs: Sequence[Sequence[float]], logged: Sequence[int] = ()) -> list[Payer]:
    """Runs whose generations cost so much; of each so many are logged."""
    counts = logged or [0] * len(costs)
    return [
        Payer(name, "", len(run) - 1, costs=[{"calls": each} for each in run[:count]])
        for name, (run, count) in enumerate(zip(costs, counts, strict=True))
    ]


def generations_in(wave: dict[int, int], payers: Sequence[Payer]) -> list[tuple[int, int]]:
    """The generations of a wave as (run, generation), the earlier ones first."""
    made = [(k, len(payers[k].costs) + n) for k, number in wave.items() for n in range(number)]
    return sorted(made, key=lambda each: each[::-1])


def go_on(
    costs: Sequence[Sequence[float]], limit: float, payers: list[Payer], *, whole: bool = False
) -> list[list[tuple[int, int]]]:
    """Advances runs until no more may begin; returns (run, generation) of each wave."""
    ledger, made = Ledger({"calls": limit}), []
    waves = Waves(ledger, payers, whole=whole)
    while wave := waves.next():
        made.append(generations_in(wave, payers))
        for place, generation in made[-1]:
            payers[place].costs.append({"calls": costs[place][generation]})
    waves.close()
    assert ledger.total["calls"] == sum(cost["calls"] for run in payers for cost in run.costs)
    return made


@given(tables, st.integers(1, 60))
def test_what_is_begun_begins_the_list_by_generation_then_by_run(
    costs: list[list[float]], limit: int
) -> None:
    payers = paying(costs)
    waves = go_on(costs, limit, payers)
    begun = list(itertools.chain(*waves))
    every = [(place, number) for place, run in enumerate(costs) for number in range(len(run))]
    every.sort(key=lambda each: (each[1], each[0]))
    assert begun == every[: len(begun)]
    spent = 0.0
    dearest = {False: -math.inf, True: -math.inf}  # of generation 0, and of later ones
    for wave in waves:
        assert spent < limit
        prices = [dearest[number > 0] for _, number in wave]
        assert all(map(math.isfinite, prices[:-1]))  # of an unknown price is the last one alone
        known = [(each, place) for each, (place, _) in zip(prices, wave, strict=True) if each > -1]
        twice = len(known) > len({place for _, place in known})
        assert len(wave) == 1 or spent + (1 + twice) * sum(each for each, _ in known) < limit
        for place, number in wave:
            spent += costs[place][number]
            dearest[number > 0] = max(dearest[number > 0], costs[place][number])
    assert len(begun) == len(every) or spent >= limit


@given(tables, st.integers(1, 60), st.booleans(), st.data())
def test_a_kill_at_any_point_changes_nothing(
    costs: list[list[float]], limit: int, whole: bool, data: st.DataObject
) -> None:
    """Of the wave under way any part may be logged when the process dies."""
    done = paying(costs)
    waves = go_on(costs, limit, done, whole=whole)
    last = data.draw(st.integers(0, len(waves)))
    finished = list(itertools.chain(*waves[:last]))
    if last < len(waves):
        finished += data.draw(st.lists(st.sampled_from(waves[last]), unique=True))
    counts = [sum(place == run for place, _ in finished) for run in range(len(costs))]
    again = paying(costs, counts)
    go_on(costs, limit, again, whole=whole)
    assert [run.costs for run in again] == [run.costs for run in done]


@given(tables, st.integers(1, 40), st.integers(1, 40))
def test_a_larger_budget_goes_on_with_what_a_smaller_one_made(
    costs: list[list[float]], limit: int, more: int
) -> None:
    payers = paying(costs)
    go_on(costs, limit, payers)
    before = copy.deepcopy(payers)
    go_on(costs, limit + more, payers)
    assert all(b.costs == a.costs[: len(b.costs)] for a, b in zip(payers, before, strict=True))
    lengths = [len(run.costs) for run in payers]
    wanted = [len(run) for run in costs]
    open_ones = [n for n, want in zip(lengths, wanted, strict=True) if n < want]
    assert not open_ones or max(lengths) <= min(open_ones) + 1


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 60))
def test_a_call_for_advice_is_priced_before_the_first_one_is_made(
    runs: int, every: int, limit: int
) -> None:
    """Once a child was paid for, no wave of several generations reaches the limit."""

    def advised(number: int) -> bool:
        return number > 1 and (number - 1) % every == 0

    costs = [[0.0, *(2.0 + advised(number) for number in range(1, 6))]] * runs
    payers = paying(costs)
    for payer in payers:
        payer.children, payer.advised = 2, advised
    waves = go_on(costs, limit, payers)
    spent, priced = 0.0, False
    for wave in waves:
        made = sum(costs[place][number] for place, number in wave)
        assert len(wave) == 1 or not priced or spent + made < limit
        spent, priced = spent + made, priced or any(number for _, number in wave)


@given(tables, st.data())
def test_logs_that_were_not_made_in_waves_are_paid_for_and_caught_up_with(
    costs: list[list[float]], data: st.DataObject
) -> None:
    """Such as those of the version before, which served one run after another."""
    counts = [data.draw(st.integers(0, len(run))) for run in costs]
    limit = data.draw(st.integers(1, 60))
    payers = paying(costs, counts)
    paid = sum(sum(run[:count]) for run, count in zip(costs, counts, strict=True))
    waves = go_on(costs, limit, payers)
    if paid >= limit:
        by_waves = go_on(costs, limit, paying(costs))
        assert sum(map(len, waves)) <= sum(map(len, by_waves))
    for place, number in itertools.chain(*waves):
        assert number >= counts[place]


@given(tables, st.integers(1, 60))
def test_where_whole_runs_count_the_first_are_completed_first(
    costs: list[list[float]], limit: int
) -> None:
    payers = paying(costs)
    go_on(costs, limit, payers, whole=True)
    dear = max(itertools.chain(*costs))
    spent = 0.0
    for payer, run in zip(payers, costs, strict=True):
        if spent + dear * len(run) < limit:
            assert len(payer.costs) == len(run)
        spent += sum(run)
    begun = [len(payer.costs) for payer in payers]
    unfinished = [k for k, run in enumerate(costs) if begun[k] < len(run)]
    assert not unfinished or not any(begun[unfinished[0] + 1 :])


def test_the_first_of_a_kind_goes_ahead_and_children_count() -> None:
    payers = [
        *(Payer(("narrow", k), "cheap", 3, children=1) for k in range(2)),
        *(Payer(("wide", k), "cheap", 3, children=8) for k in range(2)),
        *(Payer(("dear", k), "dear", 3, children=1) for k in range(2)),
    ]
    waves, prices = Waves(Ledger({"dollars": 100.0}), payers), {"cheap": 1.0, "dear": 50.0}
    made = []
    while wave := waves.next():
        each = generations_in(wave, payers)
        made.append([(*payers[place].name, number) for place, number in each])
        for place, number in each:
            payer = payers[place]
            payer.costs.append({"dollars": (number > 0) * prices[payer.kind] * payer.children})
    assert made[0] == [("narrow", 0, 0)]
    first_dear = next(wave for wave in made if ("dear", 0, 1) in wave)
    assert first_dear[-1] == ("dear", 0, 1)  # nothing begins beside it that might be as dear
    assert sum(("dear", k, 1) in wave for k in range(2) for wave in made) == 2
    spent = sum(cost["dollars"] for payer in payers for cost in payer.costs)
    assert 100 <= spent < 150


def test_a_ledger_counts_a_run_once() -> None:
    ledger, costs = Ledger({"calls": 100}), [{"calls": 5.0}, {"calls": 2.0}, {"calls": 2.0}]
    for count in (2, 3, 3):
        waves = Waves(ledger, [Payer("a", "", 2, costs=[*costs[:count]], over=True)])
        assert waves.next() == {}
        waves.close()
    assert ledger.total["calls"] == 9


def test_the_test_at_the_end_is_reserved_and_then_counted() -> None:
    payer = Payer("a", "", 9, kept={"calls": 3.0})
    ledger = Ledger({"calls": 8})
    waves = Waves(ledger, [payer])
    while wave := waves.next():
        payer.costs += [{"calls": 1.0}] * wave[0]
    assert len(payer.costs) == 5  # 5 + 3 kept are 8
    payer.finish()
    payer.beside.append({"calls": 2.0})
    waves.close()
    assert ledger.total["calls"] == 7


def test_a_limit_in_seconds_ends_waves_and_makes_none_smaller() -> None:
    payers = [Payer(name, "", 2) for name in range(3)]
    waves = Waves(Ledger({"seconds": 600.0}), payers)
    assert waves.next() == {0: 3, 1: 3, 2: 3}
    late = Ledger({"seconds": 1.0})
    late.settle({"seconds": 1.0})
    assert Waves(late, payers).next() == {}


@given(tables, st.one_of(st.none(), st.integers(0, 20)), st.data())
def test_generations_that_cost_nothing_begin_as_those_do_that_are_priced_one_by_one(
    costs: list[list[float]], limit: int | None, data: st.DataObject
) -> None:
    free = data.draw(st.lists(st.booleans(), min_size=len(costs), max_size=len(costs)))
    costs = [[0.0 if none else each for each in run] for run, none in zip(costs, free, strict=True)]
    logged = [data.draw(st.integers(0, len(run))) for run in costs]
    over = data.draw(st.sets(st.integers(0, len(costs) - 1)))
    whole = data.draw(st.booleans())

    def begun(kind: type[Waves]) -> list[list[tuple[int, int]]]:
        limits = {"seconds": 600.0} if limit is None else {"calls": float(limit)}
        payers, made = paying(costs, logged), []
        for place in over:
            payers[place].finish()
        waves = kind(Ledger(limits), payers, whole=whole)
        while wave := waves.next():
            made.append([*wave.items()])
            for place, number in wave.items():
                payer = payers[place]
                for _ in range(number):
                    payer.costs.append({"calls": costs[place][len(payer.costs)]})
        return made

    assert begun(Waves) == begun(PricedOneByOne)


class PricedOneByOne(Waves):
    def _every_further(self) -> None:
        return None


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("limits", [{"seconds": 600.0}, {"calls": 100.0}, {"dollars": 1.0}])
def test_the_goal_of_a_run_makes_no_wave_slower(limits: dict[str, float], runs: int) -> None:
    def priced(generations: int) -> int:
        asked: list[int] = []

        def advised(number: int) -> bool:
            asked.append(number)
            return False

        cost = {"calls": 1.0, "dollars": 0.0}
        payers = [
            Payer(name, "", generations, advised=advised, costs=[cost] * (1 + (name == 0)))
            for name in range(runs)
        ]
        waves = Waves(Ledger(limits), payers)
        assert waves.next()
        assert waves.next()
        return len(asked)

    assert priced(10**9) == priced(10**4)


def test_nothing_begins_at_a_limit() -> None:
    assert payable([{"calls": 0.0}], {"calls": 4.0}, {"calls": 4.0}) == 0
    assert payable([{"calls": 9.0}] * 2, {"calls": 3.0}, {"calls": 4.0}) == 1
    assert payable([None] * 3, {}, {}) == 3
    assert payable([], {}, {"calls": 4.0}) == 0


# Runs


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[evo.Log]:
    """Runs without a budget."""
    return evo.run_many("mmd", log_dir=tmp_path_factory.mktemp("whole"), **RUNS)


def cost(logs: Sequence[evo.Log], unit: str) -> float:
    return sum(each[unit] for log in logs for each in costs_of_log(log))


def lengths(logs: Sequence[evo.Log]) -> dict[int, int]:
    return {log.header.seed: len(log.generations) for log in logs}


def part_of(amount: float, unit: str) -> float:
    """A limit that ends runs within what all of them cost; calls are whole."""
    return round(0.6 * amount) if unit == "calls" else 0.6 * amount


@pytest.mark.parametrize("unit", thorough_after(1, ["calls", "tokens", "dollars"]))
def test_every_seed_gets_equally_far_whatever_goes_on_at_once(
    unit: str, whole: list[evo.Log], tmp_path: Path
) -> None:
    limit = part_of(cost(whole, unit), unit)
    found = []
    for slots in (1, 8):
        folder = tmp_path / str(slots)
        logs = evo.run_many(
            "mmd", budget={unit: limit}, max_concurrent=slots, log_dir=folder, **RUNS
        )
        found.append(lengths(logs))
        depths = [*lengths(logs).values()]
        assert len(depths) == len(SEEDS)
        assert max(depths) - min(depths) <= 1
        dearest = max(each[unit] for log in whole for each in costs_of_log(log))
        assert limit <= cost(logs, unit) < limit + dearest
        for part, log in zip(logs, whole, strict=True):
            assert timeless(part.children) == timeless(log.children[: len(part.children)])
        assert {log.ends[-1].reason for log in logs} <= {"budget", "completed"}
    assert found[0] == found[1]
    more = evo.run_many("mmd", budget={unit: 2 * limit}, log_dir=folder, **RUNS)
    assert [log.path for log in more] == [log.path for log in logs]
    assert {*lengths(more).values()} == {3}


@pytest.mark.parametrize("unit", ["calls", "dollars"])
def test_runs_that_are_killed_anywhere_come_out_the_same(unit: str, tmp_path: Path) -> None:
    options = {**RUNS, "seeds": [1, 2, 3], "generations": 2, "children": 2, "max_concurrent": 1}
    everything = evo.run_many("mmd", log_dir=tmp_path / "whole", **options)
    limit = part_of(cost(everything, unit), unit)
    options |= {"budget": {unit: limit}, "log_dir": tmp_path / "s"}
    done = evo.run_many("mmd", **options)
    children = [timeless(log.children) for log in done]
    written = [
        (json.loads(line).get("generation", 0), place, line)
        for place, log in enumerate(done)
        for line in log.path.read_bytes().splitlines(keepends=True)[:-1]  # without the end
    ]
    written.sort(key=lambda each: each[:2])  # in the order of the waves
    for count in range(0, len(written), 9):
        for place, log in enumerate(done):
            log.path.unlink()
            if kept := b"".join(line for _, of, line in written[:count] if of == place):
                log.path.write_bytes(kept)
        again = evo.run_many("mmd", **options)
        assert [timeless(log.children) for log in again] == children


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5))
def test_turns_go_to_whoever_has_begun_the_fewest_generations(runs: list[tuple[int, int]]) -> None:
    begun = {place: number for place, (number, _) in enumerate(runs)}
    left = {place: number for place, (_, number) in enumerate(runs)}
    turns = Turns(begun, left)
    while (place := turns.take()) is not None:
        assert begun[place] == min(begun[other] for other in begun if left[other])
        begun[place] += 1
        left[place] -= 1
        turns.give_back(place)
    assert not any(left.values())
    over = Turns({0: 0, 1: 0}, {0: 3, 1: 1})
    assert over.take() == 0
    over.give_back(0, over=True)
    assert [over.take(), over.take()] == [1, None]


def test_runs_that_differ_in_pace_get_equally_far_in_a_limited_time(tmp_path: Path) -> None:
    jobs = [
        RunJob(tmp_path / f"{seed}.jsonl", make_header("mmd", children=1, seed=seed), Goal(99))
        for seed in range(4)
    ]

    def slowly(job: RunJob, _: object) -> None:
        time.sleep(0.03 * job.header.seed)

    with open_resources(Settings(progress=False, workers=1)) as resources:
        first = RunJob(jobs[0].path, jobs[0].header, Goal(3))
        run_jobs([first], resources)  # the others have to catch up
        for seconds in (1.0, 1.5):
            ledger = Ledger({"seconds": seconds})
            done = run_jobs(jobs, resources, ledger=ledger, on_generation=slowly)
            assert {each.end for each in done} == {"budget"}
            depths = [len(each.log.generations) for each in done if each.log]
            # A turn that was taken as the time ran out is not made, while another one's may be.
            assert max(depths) <= max(3, min(depths) + 2)
