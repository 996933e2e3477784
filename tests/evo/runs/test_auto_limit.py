"""Runs that fix the time limit of evaluations by their initial program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from evo_runs import same_run

import evo
from evo.cli.entry import main
from evo.logs.inputs import limits_of
from evo.logs.journal import encode_line
from evo.logs.log import read_log
from evo.logs.timeouts import timeouts_of
from evo.runs.fork import fork
from evo.studies.sweep.fields import configure
from replay.logs.tables import load_tables
from replay.reports.report import groups, sections

QUIET: dict[str, Any] = {"progress": False, "workers": 1}
AUTO = evo.Limits(auto=True)
ENTRY = 'entry = ["pair"]\n'


def pair() -> list[float]:
    return [1.0, 2.0]


def spread(value: list[float]) -> float:
    return abs(value[0] - value[1])


def llm(messages: Any, seed: int) -> str:
    """Answers with a quick program, or with one that never ends, which is the same each time."""
    endless = "import time\n    time.sleep(600)"
    body = endless if seed % 3 == 0 else f"return [0.0, {seed % 97}.0]"
    return f"```python\ndef pair():\n    {body}\n```"


def task(**limits: Any) -> evo.Task:
    return evo.task("spread", initial_program=pair, evaluate=spread, statement="Two numbers.",
                    limits=limits or {"seconds": "auto"})  # fmt: skip


def without_auto(log: evo.Log) -> bytes:
    """The children as bytes, without times."""
    same = [
        msgspec.structs.replace(
            child,
            attempts=(),
            evaluation=msgspec.structs.replace(child.evaluation, seconds=0.0),
        )
        for child in log.children
    ]
    return msgspec.json.encode(same)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> evo.Log:
    path = tmp_path_factory.mktemp("auto") / "a.jsonl"
    return evo.run(task(), model=llm, generations=2, children=4, seed=1, log=path, **QUIET)


def test_a_program_that_never_ends_costs_seconds_and_not_the_tasks_limit(run: evo.Log) -> None:
    assert run.initial is not None
    assert run.header.limits == AUTO
    assert run.limits == evo.Limits(seconds=run.initial.limit)
    assert 2 <= run.limits.seconds < 60
    late = [child for child in run.children if child.evaluation.status == "timeout"]
    assert late
    for child in late:
        assert f"{run.limits.seconds:g} s" in (child.evaluation.error or "")
        assert (child.evaluation.seconds or 0.0) < run.limits.seconds + 10


def test_the_limit_is_logged_and_never_measured_again(run: evo.Log, tmp_path: Path) -> None:
    assert evo.rerun(run.path, log=tmp_path / "again.jsonl").same
    again = read_log(tmp_path / "again.jsonl")
    (copy,) = fork(run, at=1, model=llm, log_dir=tmp_path / "forks", **QUIET)
    rescored = evo.rescore(run.path, log=tmp_path / "rescored.jsonl", workers=1)
    for log in (again, copy, rescored):
        assert log.limits == run.limits
        assert log.header.limits == AUTO
    assert same_run(again, run)
    assert evo.rerun(copy.path).same


def test_a_run_that_goes_on_keeps_its_limit_and_one_without_measures_anew(
    run: evo.Log, tmp_path: Path
) -> None:
    lines = run.path.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    first = kinds.index("initial")
    assert "child" not in kinds[:first]
    for name, kept in (("after", first + 1), ("before", first)):
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(b"".join(lines[:kept]))
        if name == "after":  # a limit that no measurement gives
            initial = msgspec.structs.replace(read_log(path).initial, limit=2.7)
            path.write_bytes(b"".join(lines[:first]) + encode_line(initial))
        log = evo.run(task(), model=llm, generations=1, children=4, seed=1, log=path, **QUIET)
        assert log.initial is not None
        assert log.limits.seconds == (2.7 if name == "after" else log.initial.limit)
        assert without_auto(log)[:40] == without_auto(run)[:40]
        assert [c.evaluation.status for c in log.children] == [
            c.evaluation.status for c in run.children[:4]
        ]


def test_it_is_given_in_every_place_where_a_limit_is(tmp_path: Path) -> None:
    made = task()
    assert made.limits == AUTO
    assert "auto, at most 60" in made._repr_html_()
    folder = made.save(tmp_path / "saved")
    assert evo.load_task(folder).limits == AUTO
    assert evo.load_task(folder).record.hash == made.record.hash
    (folder / "task.toml").write_text(f'{ENTRY}[limits]\nseconds = "auto"\nmemory_mb = 512\n')
    assert evo.load_task(folder).limits == evo.Limits(memory_mb=512, auto=True)
    (folder / "task.toml").write_text(f"{ENTRY}[limits]\nseconds = 9\nauto = true\n")
    assert evo.load_task(folder).limits == evo.Limits(seconds=9, auto=True)
    header = evo.runs.configuration.make_header
    mmd = evo.load_task("mmd").limits
    expected = msgspec.structs.replace(mmd, auto=True)
    assert header("mmd", limits={"seconds": "auto"}).limits == expected
    assert header("mmd", evaluation_timeout="auto").limits == expected
    assert configure({"task": "mmd", "limits.seconds": "auto"}, {}).header.limits == expected
    assert header(made, evaluation_timeout=3).limits == evo.Limits(seconds=3)
    assert limits_of({"seconds": 3}, AUTO) == evo.Limits(seconds=3)
    assert limits_of({"memory_mb": 512}, AUTO) == evo.Limits(memory_mb=512, auto=True)
    log = tmp_path / "line.jsonl"
    command = ["run", "mmd", "-q", "-T", "1", "-N", "1", "--evaluation-timeout", "auto"]
    assert main([*command, "--log", str(log)]) == 0
    assert read_log(log).header.limits == expected


@pytest.mark.parametrize("seconds", ["soon", "", True, [2]])
def test_another_word_is_refused(seconds: object) -> None:
    with pytest.raises((ValueError, TypeError), match=r"seconds|number"):
        task(seconds=seconds)
    with pytest.raises((ValueError, TypeError), match=r"seconds|number"):
        evo.runs.configuration.make_header("mmd", evaluation_timeout=seconds)


def test_stages_with_limits_of_their_own_refuse_it() -> None:
    def staged(**more: Any) -> evo.Task:
        return evo.task("pairs", initial_program=pair, evaluate=[spread, wide], thresholds=[0.0],
                        statement="Two numbers.", **more)  # fmt: skip

    with pytest.raises(evo.TaskError, match="whole evaluation"):
        staged(limits=[{"seconds": "auto"}, {"seconds": 3}])
    with pytest.raises(ValueError, match="limits of their own"):
        evo.runs.configuration.make_header(
            staged(limits=[{"seconds": 2}, {"seconds": 3}]), evaluation_timeout="auto"
        )
    assert staged(limits={"seconds": "auto"}).limits == AUTO


def wide(value: list[float]) -> float:
    return max(value)


def test_where_it_is_off_nothing_of_it_is_logged(tmp_path: Path) -> None:
    log = evo.run("mmd", generations=1, children=2, log=tmp_path / "a.jsonl", **QUIET)
    header, *_ = log.path.read_bytes().splitlines()
    assert b'"auto"' not in header
    assert log.initial is not None
    assert b'"limit"' not in encode_line(log.initial)
    assert log.limits == log.header.limits


def test_a_run_says_what_timeouts_cost_it(
    run: evo.Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    late = {c.program: c for c in run.children if c.evaluation.status == "timeout"}
    programs = {c.program for c in run.children}
    seconds = sum(c.evaluation.seconds or 0.0 for c in late.values())
    words = (
        f"{len(late)} of {len(programs)} programs ran into the limit of {run.limits.seconds:g} s: "
        f"{seconds:.4g} s of evaluation"
    )
    assert timeouts_of([run]) == words
    twice = timeouts_of([run, run])
    assert twice.startswith(f"{2 * len(late)} of {2 * len(programs)} programs")
    assert main(["stats", str(run.path)]) == 0
    assert words in capsys.readouterr().out
    again = tmp_path / "again.jsonl"
    again.write_bytes(run.path.read_bytes())
    evo.resume(again, model=llm_model(), workers=1)
    assert words in capsys.readouterr().err
    (group,) = groups(load_tables(run.path))
    (cost,) = [each for each in sections(group) if each.title == "Cost"]
    assert any(note.startswith(f"{len(late)} of {len(programs)}") for note in cost.notes)
    quick = evo.run("mmd", generations=1, children=2, log=tmp_path / "q.jsonl", **QUIET)
    assert timeouts_of([quick]) == ""


def llm_model() -> evo.Model:
    return evo.Model("llm", call=llm)
