"""Engines as arms: exact counts at the gate, closed arms, kills, and replays of what was logged."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from endpoints import closed_port
from forked import PROCESSES
from toy_engine import MORTAL, allocate_until_killed, mortals, toy

import evo
import evo.gate.engines.arm
import replay
from evo.cli.entry import main
from evo.gate.engines.job import Job
from evo.gate.log import read_gate_log
from evo.models.client import EndpointDown
from evo.runs.verification import verify
from evo.studies.allocation.journal import read_journal

KILLS = [2, 1, 3] * min(2, int(os.environ.get("EVO_TORTURE", "1")))
QUIET: dict[str, Any] = {"progress": False, "max_concurrent": 1}


def calls_at(folder: Path, arm: int) -> int:
    """Calls that the gate of an arm has sent."""
    path = folder / f"arm-{arm:02}" / "gate.jsonl"
    return len(read_gate_log(path).passed) if path.exists() else 0


def check_logs(done: evo.Allocation, engines: set[int]) -> None:
    """Every log is sound, and an engine's holds one child for each call at its gate."""
    for k, log in enumerate(done.arms):
        assert verify(log.path).faults == ()
        if k in engines:
            assert len(log.outcomes) == calls_at(done.path, k)


def check_replay(done: evo.Allocation, policy: str) -> None:
    """The same policy over the finished logs makes the same pulls."""
    made = int((done.pulls >= 0).sum())
    over = [any(end.reason == "over" for end in log.ends) for log in done.arms]
    again = replay.simulate(
        replay.fitness_matrix(replay.load(*done.arms)),
        policy,
        rounds=made,
        replicates=1,
        missing=["close" if each else "stop" for each in over],
    )
    assert again.pulls[0].tolist() == done.pulls[:made].tolist()


@pytest.mark.parametrize(
    "policy",
    ["random", *(pytest.param(p, marks=pytest.mark.slow) for p in ("round_robin", "ucb1"))],
)
def test_one_budget_is_spent_over_engines_and_searches(policy: str, tmp_path: Path) -> None:
    toy()
    arms = [{"engine": "toy"}, {"search": "greedy"}, {"engine": "toy"}, {"search": "islands"}]
    done = evo.allocate_live(
        "mmd", policy, arms=arms, rounds=20, children=2, budget={"calls": 12}, log_dir=tmp_path,
        **QUIET,
    )  # fmt: skip
    assert (done.pulls >= 0).sum() == 6
    assert done.spent["calls"][-1] == 12
    counts = [len(log.outcomes) for log in done.arms]
    assert sum(counts) == 12
    assert counts == [2 * int((done.pulls == k).sum()) for k in range(4)]
    check_logs(done, {0, 2})
    check_replay(done, policy)
    played = done.arms[0]
    assert played.header.source == "toy"
    assert played.ends[-1].reason == "completed"
    places = {(0, 0), *((each.generation, each.index) for each in played.outcomes)}
    assert all(set(each.parents) <= places and each.parents for each in played.outcomes)
    best = played.best
    assert best.program is not None
    assert evo.evaluate("mmd", best.program).fitness == best.evaluation.fitness
    assert played.children[0].prompt[0][0] == "user"
    assert min(seeds := [child.seed for child in played.children]) >= 0
    assert len(set(seeds)) == len(seeds)  # though the engine sends none
    assert not (tmp_path / "arm-01").exists()  # only engines have a folder of their own
    (tmp_path / "arm-00" / "trace.jsonl").write_text("{}\n")  # what an engine leaves is no log
    assert set(replay.load(tmp_path)["search"]) == {"toy", "greedy", "islands"}
    # As arms of another allocation, logs of engines end where they end.
    finished = [done.arms[0].path, done.arms[2].path]
    made = len(done.arms[0].generations) + len(done.arms[2].generations)
    again = evo.allocate_live(
        "mmd", "round_robin", arms=finished, rounds=made + 2, log_dir=tmp_path / "again", **QUIET
    )
    assert (again.pulls >= 0).sum() == made
    assert again.spent["calls"].max() == 0


FAILURES = {
    "crash": "by signal 9",
    "raise": "the toy broke",
    "end": "exit code 0",
    "hang": "no sign of life",
    "flood": "more requests",
    "judge": "without a call",
}


def test_an_engine_that_fails_closes_its_arm_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evo.gate.engines.arm, "MOST_UNASKED", 4)
    monkeypatch.setattr(evo.gate.engines.arm, "MOST_WAITING", 4)
    for how in FAILURES:
        toy(how, how=how, at=3)
    arms: list[dict[str, Any]] = [{"engine": how} for how in FAILURES]
    arms[3]["patience"] = 1.0

    def allocate() -> evo.Allocation:
        return evo.allocate_live(
            "mmd", "round_robin", arms=[{}, *arms], rounds=22, children=2, log_dir=tmp_path,
            **QUIET,
        )  # fmt: skip

    done = allocate()
    assert (done.pulls >= 0).all()
    check_logs(done, {*range(1, 7)})
    assert done.spent["calls"][-1] == sum(len(log.outcomes) for log in done.arms)
    assert len(done.arms[0].generations) >= 9
    for k, (how, words) in enumerate(FAILURES.items(), start=1):
        broken = done.arms[k]
        if how != "flood":  # some of its requests may be granted before there are too many
            assert len(broken.outcomes) <= 3
            assert len(broken.generations) <= 2
        assert len(broken.generations) == (done.pulls == k).sum()
        assert [end.reason for end in broken.ends] == ["over"]
        assert words in str(broken.ends[0].message)
    check_replay(done, "round_robin")
    again = allocate()
    assert again.pulls.tolist() == done.pulls.tolist()
    for was, now in zip(done.arms, again.arms, strict=True):
        assert len(was.outcomes) == len(now.outcomes)


@pytest.mark.slow
def test_a_replay_closes_engines_that_were_over(tmp_path: Path) -> None:
    toy("end", how="end", at=3)
    toy("raise", how="raise", at=1)
    done = evo.allocate_live(
        "mmd", "random", arms=[{"engine": "end"}, {}, {"engine": "raise"}], rounds=12, children=2,
        log_dir=tmp_path, **QUIET,
    )  # fmt: skip
    check_replay(done, "random")


def test_engines_advance_side_by_side(tmp_path: Path) -> None:
    toy()
    done = evo.allocate_live(
        "mmd", "round_robin", arms=[{"engine": "toy"}, {"engine": "toy"}], rounds=6, children=2,
        in_flight=2, log_dir=tmp_path, progress=False,
    )  # fmt: skip
    assert sorted(set(done.pulls.tolist())) == [0, 1]
    assert [calls_at(tmp_path, k) for k in range(2)] == [
        2 * int((done.pulls == k).sum()) for k in range(2)
    ]
    check_logs(done, {0, 1})


def test_an_endpoint_that_is_gone_stops_the_allocation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GONE_KEY", "none")
    toy("patient", how="retry")
    gone = evo.Model(name="gone", base_url=closed_port(), key_variable="GONE_KEY")
    with pytest.raises(EndpointDown, match=r"no connection .* in 3 calls in a row"):
        evo.allocate_live(
            "mmd", "ucb1", arms=[{"engine": "patient"}], rounds=2, children=4, model=gone,
            log_dir=tmp_path, **QUIET,
        )  # fmt: skip
    assert read_journal(tmp_path / "allocation.jsonl").asked == {0: 0}
    assert calls_at(tmp_path, 0) == 3


def check_kills(folder: Path, moments: list[int]) -> None:
    """Kills an allocation at each moment, goes on, and checks what came of it."""
    counted = [0, 0, 0]
    for children in moments:
        process = PROCESSES.Process(target=allocate_until_killed, args=(str(folder), children))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        before, counted = counted, [calls_at(folder, arm) for arm in range(2)]
        assert counted[1] == before[1] or not before[1]  # it began once and never again
    asked = len(read_journal(folder / "allocation.jsonl").asked)
    mortals()
    done = evo.allocate_live("mmd", "random", log_dir=folder, **MORTAL)
    assert (done.pulls >= 0).all()
    check_logs(done, {0, 1})
    assert calls_at(folder, 0) == 2 * (done.pulls == 0).sum()
    assert [end.message for end in done.arms[0].ends if end.reason == "over"] == []
    if counted[1]:
        assert calls_at(folder, 1) == counted[1]
        assert not (done.pulls[asked:] == 1).any()
    left = {path: path.read_bytes() for path in folder.glob("arm-*/gate.jsonl")}
    again = evo.allocate_live("mmd", "random", log_dir=folder, **MORTAL)
    assert again.pulls.tolist() == done.pulls.tolist()
    assert left == {path: path.read_bytes() for path in folder.glob("arm-*/gate.jsonl")}


def test_a_killed_allocation_goes_on_where_its_engines_can(tmp_path: Path) -> None:
    check_kills(tmp_path, [7])


def test_no_compiled_copy_of_the_judge_outlives_its_session(tmp_path: Path) -> None:
    process = PROCESSES.Process(target=allocate_until_killed, args=(str(tmp_path), 1))
    process.start()
    process.join()
    assert [*tmp_path.glob("arm-00/__pycache__/judging.*")]
    mortals()

    def prepare(job: Job) -> list[str]:
        assert not [*job.folder.glob("__pycache__/judging.*")]
        raise KeyboardInterrupt

    engine = evo.ENGINES["immortal"]
    evo.ENGINES["immortal"] = dataclasses.replace(engine, prepare=prepare)
    with pytest.raises(KeyboardInterrupt):
        evo.allocate_live("mmd", "random", log_dir=tmp_path, **MORTAL)


@pytest.mark.thorough
@pytest.mark.slow
def test_an_allocation_goes_on_from_many_kills(tmp_path: Path) -> None:
    check_kills(tmp_path, KILLS)


def test_mistakes_are_said_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy()

    def arms(**fields: object) -> None:
        evo.allocate_live("mmd", "ucb1", arms=[fields], rounds=2, log_dir=tmp_path / "a")

    with pytest.raises(
        evo.EngineError, match=r"expected one of .*openevolve, shinka.*did you mean"
    ):
        arms(engine="shinkah")
    with pytest.raises(evo.EngineError, match="pip install openevolve"):
        arms(engine="openevolve")
    with pytest.raises(evo.EngineError, match="cannot be run"):
        arms(engine="openevolve", python=tmp_path / "python")
    with pytest.raises(ValueError, match="'feedback' means nothing for an engine"):
        arms(engine="toy", feedback=True)
    with pytest.raises(ValueError, match="patience: expected seconds above 0"):
        arms(engine="toy", patience=0)
    with pytest.raises(evo.EngineError, match="programs are one Python file"):
        evo.allocate_live("word_problems", "ucb1", arms=[{"engine": "toy"}], rounds=2)
    with pytest.raises(
        ValueError, match="none of evo, gepa, openevolve, ours, shinka, got 'shinka'"
    ):
        evo.register_engine(evo.Engine("shinka", lambda job: []))
    assert not (tmp_path / "a").exists()
    argv = ["allocate", "mmd", "--policy", "ucb1", "--arm", "engine=shinkah", "--arm", "seed=1"]
    assert main(argv) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_command_takes_engines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toy()
    done = main(
        ["allocate", "mmd", "--policy", "thompson", "--rounds", "2", "-N", "1", "-q",
         "--arm", f"engine=toy,python={sys.executable}", "--arm", "search=greedy",
         "--log-dir", str(tmp_path)]
    )  # fmt: skip
    assert done == 0
    assert "toy" in capsys.readouterr().out


def test_what_an_engine_leaves_is_not_verified_but_the_log_of_its_gate_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy("single")
    assert main(["drive", "single", "mmd", "--calls", "3", "-q", "--log-dir", str(tmp_path)]) == 0
    (gate,) = tmp_path.rglob("gate.jsonl")
    gate.with_name("trace.jsonl").write_text('{"iteration": 1}\n')
    capsys.readouterr()
    assert main(["verify", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3  # the arm, the journal and the gate
    lines = gate.read_bytes().splitlines(keepends=True)
    gate.write_bytes(
        b"".join([lines[0], lines[1].replace(b'"number":0', b'"number":7'), *lines[2:]])
    )
    assert main(["verify", str(tmp_path)]) == 1
    assert "gate.jsonl:2" in capsys.readouterr().err
