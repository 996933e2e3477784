"""Forks: what they share, what they cost, and that they are what a run would have been."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from evo_runs import QUIET, timeless

import evo
import replay
from evo.cli.entry import main
from evo.logs.journal import LogError, encode_line
from evo.logs.maintenance import lines_through
from evo.logs.records import Child
from evo.runs.fork import fork_seed
from evo.runs.session import RunJob
from evo.runs.settings import Goal
from evo.runs.state import costs_of_log
from evo.runs.verbs import prepare_jobs
from replay.logs.frames import ReplayWarning


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> evo.Log:
    path = tmp_path_factory.mktemp("fork") / "run.jsonl"
    options: dict[str, Any] = {"generations": 5, "children": 3, "seed": 4, "log": path, **QUIET}
    return evo.run("mmd", search=evo.searches.Population(size=4), feedback=True, **options)


def made_anew(log: evo.Log, path: Path) -> evo.Log:
    """The run of a fork's header, made from its first generation on."""
    job = RunJob(path, log.header, Goal(len(log.generations)))
    return prepare_jobs([job], evo.Settings(progress=False), None, "anew").do()[0]


def test_a_fork_keeps_the_model_that_scores_its_texts(tmp_path: Path) -> None:
    log = evo.run(evo.load_task("wp", instances=2), generations=1, children=1,
                  log=tmp_path / "a.jsonl", **QUIET)  # fmt: skip
    with pytest.raises(ValueError, match="model: it scores the texts of this task, too"):
        evo.fork(log, at=1, generations=2, model="offline-2", log_dir=tmp_path, **QUIET)
    (copy,) = evo.fork(log, at=1, generations=2, copies=1, log_dir=tmp_path / "forks", **QUIET)
    assert copy.header.model == log.header.model


def test_copy_0_is_the_continuation_and_copies_differ(run: evo.Log, tmp_path: Path) -> None:
    forks = evo.fork(run, at=2, copies=3, log_dir=tmp_path, **QUIET)
    assert timeless(forks[0].children) == timeless(run.children)
    assert [log.header.seed for log in forks] == [4, fork_seed(4, 2, 1), fork_seed(4, 2, 2)]
    assert len({fork_seed(s, at, k) for s in (4, 5) for at in (1, 2) for k in (1, 2)}) == 8
    assert timeless(forks[1].children[6:]) != timeless(forks[2].children[6:])
    for log in forks:
        assert timeless(log.children[:6]) == timeless(run.children[:6])
        assert not evo.verify(log).faults
        assert evo.rerun(log).same
        assert {c.generation for c in log.calls} == {3, 4, 5}  # what is shared is paid for once
        costs = costs_of_log(log)
        assert [cost["calls"] for cost in costs] == [0, 0, 0, 3, 3, 3]
        assert costs[1]["tokens"] == costs[1]["seconds"] == 0


def test_forks_have_a_folder_of_their_own_and_analyses_of_the_runs_leave_them_out(
    tmp_path: Path,
) -> None:
    runs = evo.run_many("mmd", seeds=range(6), generations=2, children=2, log_dir=tmp_path, **QUIET)
    before = replay.depth_breadth(replay.load(tmp_path))
    forks = evo.fork(runs[0], at=1, copies=3, **QUIET)
    stem = runs[0].path.name.removesuffix(".jsonl")
    assert {log.path.parent for log in forks} == {tmp_path / f"{stem}-forks"}
    frame = replay.load(tmp_path)
    assert frame["run"].nunique() == 9
    with pytest.warns(ReplayWarning, match="3 of 9 runs are forks"):
        after = replay.depth_breadth(frame)
    pd.testing.assert_frame_equal(after.cells, before.cells)
    pd.testing.assert_frame_equal(after.best, before.best)
    with pytest.warns(ReplayWarning, match="are left out"):
        assert replay.simulate(frame, "random", rounds=2, replicates=5).arms.shape == (5, 6)
    with pytest.warns(ReplayWarning, match="are left out"):
        assert replay.time_to_threshold(frame, 0.0).n == 6
    with pytest.warns(ReplayWarning, match="are left out"):
        replay.envelope(frame)
    with pytest.warns(ReplayWarning, match="all 3 runs are forks of 1 state:"):
        alone = replay.depth_breadth(frame[frame["forked_from"] != ""])
    assert set(alone.cells["n"]) == {3}


@pytest.mark.parametrize(
    "changes",
    [
        {"search": "greedy", "inspirations": 2, "feedback": False, "temperature": 0.1},
        {"search": {"name": "islands", "islands": 2}, "statement": "Spread the points."},
    ],
)
def test_a_copy_is_what_a_run_under_its_segments_is(
    run: evo.Log, tmp_path: Path, changes: dict[str, Any]
) -> None:
    log = evo.fork(run, at=2, copies=2, log_dir=tmp_path, **changes, **QUIET)[1]
    anew = made_anew(log, tmp_path / "anew.jsonl")
    assert timeless(anew.children) == timeless(log.children)
    assert [g.best_fitness for g in anew.generations] == [g.best_fitness for g in log.generations]
    assert [p.requests for p in anew.plans.values()] == [p.requests for p in log.plans.values()]
    assert [cost["calls"] for cost in costs_of_log(anew)] == [0, 3, 3, 3, 3, 3]
    assert evo.rerun(log).same
    assert evo.rerun(anew).same


@pytest.mark.slow
def test_copies_pair_across_conditions_and_forks_fork(run: evo.Log, tmp_path: Path) -> None:
    one = evo.fork(run, at=2, copies=2, log_dir=tmp_path / "a", **QUIET)
    two = evo.fork(run, at=2, copies=2, feedback=False, log_dir=tmp_path / "b", **QUIET)
    for a, b in zip(one, two, strict=True):
        assert a.header.seed == b.header.seed
        assert a.header.fork
        assert b.header.fork
        assert a.header.fork.through == b.header.fork.through
    again = evo.fork(two[1], at=4, generations=6, log_dir=tmp_path / "c", **QUIET)[0]
    longer = evo.resume(two[1], generations=6, **QUIET)
    assert timeless(again.children) == timeless(longer.children)
    assert again.header.fork
    assert two[1].header.fork
    assert again.header.fork.root == two[1].header.fork.root == two[1].header.fork.parent
    assert [s.first for s in again.header.segments] == [0, 3]
    early = evo.fork(two[1], at=1, generations=2, log_dir=tmp_path / "d", **QUIET)[0]
    assert timeless(early.children) == timeless(run.children[:6])


@pytest.mark.slow
def test_a_killed_fork_goes_on_from_any_line(run: evo.Log, tmp_path: Path) -> None:
    whole = evo.fork(run, at=2, copies=2, log_dir=tmp_path, **QUIET)[1]
    lines = whole.path.read_bytes().splitlines(keepends=True)
    begun = next(i for i, line in enumerate(lines) if b'"session"' in line)
    for kept in range(begun, len(lines), 3):
        path = tmp_path / f"{kept}.jsonl"
        path.write_bytes(b"".join(lines[: kept + 1]) + b'{"crc":"torn')
        gone_on = evo.resume(path, generations=5, **QUIET)
        assert timeless(gone_on.children) == timeless(whole.children)
        assert not evo.verify(path).faults


def test_equal_forks_are_found_again_and_share_a_budget(run: evo.Log, tmp_path: Path) -> None:
    some = evo.fork(run, at=2, copies=3, log_dir=tmp_path, budget={"calls": 12}, **QUIET)
    assert [len(log.generations) for log in some] == [4, 3, 3]
    more = evo.fork(run, at=2, copies=3, log_dir=tmp_path, resume=True, **QUIET)
    assert [len(log.generations) for log in more] == [5, 5, 5]
    assert len(list(tmp_path.glob("*.jsonl"))) == 3


def test_what_a_fork_inherits_is_checked(run: evo.Log, tmp_path: Path) -> None:
    log = evo.fork(run, at=2, log_dir=tmp_path, **QUIET)[0]
    assert log.header.fork
    forged = msgspec.structs.replace(log.header.fork, through="0" * 64)
    header = msgspec.structs.replace(log.header, fork=forged)
    rest = log.path.read_bytes().split(b"\n", 1)[1]
    log.path.write_bytes(encode_line(header) + rest)
    assert "is not what it left" in evo.verify(log).faults[0]
    small = evo.compact(run, tmp_path / "small.jsonl.gz")
    with pytest.raises(LogError, match="compact"):
        evo.fork(small, at=2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--at", "9"], "cannot be forked at 9"),
        (["--at", "5"], "expected more than the 5 that are shared"),
        (["--at", "2", "--search", "own"], "unknown search 'own'"),
        (["--at", "2", "--task", "mmd"], "the log has its own"),
        (["--at", "2", "--copies", "0"], "expected at least 1"),
        (["--at", "-1"], "expected at least 0"),
    ],
)
def test_mistakes_are_one_line(
    run: evo.Log, capsys: pytest.CaptureFixture[str], given: list[str], message: str
) -> None:
    assert main(["fork", str(run.path), *given]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_command_forks(run: evo.Log, tmp_path: Path) -> None:
    path = shutil.copy(run.path, tmp_path / "run.jsonl")
    given = ["--at", "4", "--copies", "2", "--search", "best_of_n", "-q"]
    assert main(["fork", str(path), *given]) == 0
    forks = sorted((tmp_path / "run-forks").glob("*.jsonl"))
    assert len(forks) == 2
    assert {evo.read_log(each).header.search.name for each in forks} == {"best_of_n"}  # type: ignore[union-attr]
    assert main(["rerun", *map(str, forks)]) == 0


def imported(run: evo.Log, path: Path, unknown_from: int = 6, files: bool = False) -> Path:
    """The run as an import of another tool's log states it, without programs of late children."""
    task = run.header.task
    if not files:
        task = msgspec.structs.replace(task, files={}, program_file="", evaluator_file="")
    unknown = msgspec.structs.replace(run.header.sampling, temperature=None, top_p=None)
    header = msgspec.structs.replace(
        run.header, task=task, sampling=unknown, seed=-1, prompt_version=0, source="openevolve"
    )
    header = msgspec.structs.replace(header, search=None, feedback=False)
    lines: list[Any] = [
        msgspec.structs.replace(line, program=None)
        if isinstance(line, Child) and line.generation >= unknown_from
        else line
        for line in [header, *lines_through(run, 5, run.children)]
    ]
    path.write_bytes(b"".join(map(encode_line, lines)))
    return path


def test_children_whose_programs_were_not_imported_are_neither_shared_nor_scored_again(
    run: evo.Log, tmp_path: Path
) -> None:
    path = imported(run, tmp_path / "theirs.jsonl", unknown_from=4)
    options: dict[str, Any] = {"task": "mmd", "model": "offline", "log_dir": tmp_path, **QUIET}
    log = evo.fork(path, at=3, generations=4, **options)[0]
    assert [child.program for child in log.children[:9]] == [c.program for c in run.children[:9]]
    with pytest.raises(LogError, match="no program of generation 4, so nothing can go on from"):
        evo.fork(path, at=5, generations=6, **options)
    path = imported(run, tmp_path / "ours.jsonl", unknown_from=4, files=True)
    again = evo.rescore(path, metric="strict_fitness")
    before = evo.read_log(path)
    for was, now in zip(before.children, again.children, strict=True):
        unknown = was.program is None and was.evaluation.status == "ok"
        assert now.evaluation.status == (None if unknown else was.evaluation.status)
        assert (now.evaluation.fitness is None) or not unknown
    assert again.best.generation < 4


def test_what_was_imported_forks_on_a_task(run: evo.Log, tmp_path: Path) -> None:
    path = imported(run, tmp_path / "theirs.jsonl")
    with pytest.raises(ValueError, match="imported from openevolve: give the task"):
        evo.fork(path, at=2, **QUIET)
    options: dict[str, Any] = {"task": "mmd", "model": "offline", "log_dir": tmp_path, **QUIET}
    log = evo.fork(path, at=2, generations=4, feedback=True, **options)[0]
    assert [c.evaluation.fitness for c in log.children[:6]] == [
        c.evaluation.fitness for c in run.children[:6]
    ]
    assert len(log.generations) == 4
    assert {call.generation for call in log.calls} == {3, 4}
    assert evo.rerun(log).same
    assert not evo.verify(log).faults
