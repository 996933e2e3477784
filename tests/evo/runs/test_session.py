"""A session brings logs to their goals."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import sample_header, sample_lines, write_sample

import evo
from evo.logs.journal import LogError, encode_line
from evo.logs.log import read_log
from evo.runs.configuration import make_header
from evo.runs.resources import open_resources
from evo.runs.session import JobResult, RunJob, all_logs, only_log, run_jobs
from evo.runs.settings import Goal, Settings

HEADER = sample_header()
QUIET = Settings(workers=1, progress=False)


def job(path: Path, generations: int = 3) -> RunJob:
    return RunJob(path, HEADER, Goal(generations=generations))


def test_a_run_at_its_goal_is_not_touched(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.jsonl", generations=3)
    before = path.read_bytes()
    with open_resources(QUIET) as resources:
        for goal in (1, 3):
            [done] = run_jobs([job(path, goal)], resources)
            assert (done.end, done.error) == ("completed", None)
            assert only_log([done]).children == read_log(path).children
        target = RunJob(path, HEADER, Goal(generations=9, target=0.1))
        assert run_jobs([target], resources)[0].end == "target"
    assert path.read_bytes() == before


def test_each_log_is_given_once(tmp_path: Path) -> None:
    one = job(tmp_path / "a.jsonl")
    with (
        open_resources(QUIET) as resources,
        pytest.raises(ValueError, match="expected each log once"),
    ):
        run_jobs([one, one], resources)
    assert [*tmp_path.iterdir()] == []


def test_jobs_that_were_stopped_before_they_began_leave_no_log(tmp_path: Path) -> None:
    jobs = [job(tmp_path / f"{name}.jsonl") for name in "ab"]
    with open_resources(QUIET) as resources:
        resources.control.stop()
        done = run_jobs(jobs, resources)
    assert [(each.log, each.end, each.error) for each in done] == [(None, "interrupted", None)] * 2
    assert [*tmp_path.iterdir()] == []
    assert [*all_logs(done)] == []
    assert all_logs(done).not_begun == tuple(each.path for each in jobs)
    with pytest.raises(RuntimeError, match=r"stopped before the log .*a\.jsonl was begun"):
        only_log(done[:1])


def test_a_damaged_log_is_an_error_of_its_own_where_runs_are_apart(tmp_path: Path) -> None:
    good, bad = write_sample(tmp_path / "a.jsonl"), tmp_path / "b.jsonl"
    lines = [encode_line(each) for each in sample_lines()]
    bad.write_bytes(b"".join([*lines[:3], b"{}\n", *lines[3:]]))
    with open_resources(QUIET, isolated=True) as resources:
        done = run_jobs([job(bad), job(good)], resources)
        assert not resources.control.stopping.is_set()
    assert isinstance(done[0].error, LogError)
    assert done[0].log is None
    assert (done[1].end, done[1].error) == ("completed", None)
    with open_resources(QUIET) as resources:
        with pytest.raises(LogError, match=r"b\.jsonl"):
            run_jobs([job(bad), job(good)], resources)
        assert resources.control.stopping.is_set()


def test_one_result_has_one_log(tmp_path: Path) -> None:
    log = read_log(write_sample(tmp_path / "a.jsonl"))
    done = JobResult(job(tmp_path / "a.jsonl"), log, "completed")
    assert only_log([done]) is log
    with pytest.raises(ValueError, match="unpack"):
        only_log([done, done])


def test_a_log_that_cannot_be_written_is_said_before_any_other_is_begun(tmp_path: Path) -> None:
    header = make_header(evo.load_task("mmd"), children=1)
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "nothing.jsonl")
    jobs = [RunJob(path, header, Goal(generations=1)) for path in (tmp_path / "a.jsonl", link)]
    settings = Settings(progress=False, max_concurrent=1)
    with open_resources(settings) as resources, pytest.raises(LogError, match="leads to no file"):
        run_jobs(jobs, resources)
    assert sorted(tmp_path.iterdir()) == [link]
    with open_resources(settings) as resources:
        with pytest.raises(ValueError, match="expected each log once"):
            run_jobs([jobs[0]] * 2, resources)
        (done,) = run_jobs(jobs[:1], resources)
    assert done.log is not None
    assert (done.end, len(done.log.generations)) == ("completed", 1)
