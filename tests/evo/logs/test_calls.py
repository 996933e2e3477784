"""A call is a line of its own: written when its reply arrives, and joined with its child."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from evo_runs import QUIET, timeless

import evo
import replay
from evo.logs.calls import parted
from evo.logs.journal import Reader, encode_line
from evo.logs.log import line_decoder
from evo.logs.maintenance import compact, faults_of
from evo.logs.records import Child, Header, Line, ReplyLine
from evo.logs.stopping import stop
from evo.models.client import Call, CallCancelled, ModelClient
from evo.runs.configuration import make_header
from evo.runs.session import RunJob
from evo.runs.settings import Goal, Settings
from evo.runs.verbs import prepare_jobs

KILLED = """
import os, sys
import evo
from evo.sandbox import evaluator

sandboxed = evaluator.Evaluator.evaluate
counted = []

def evaluate(self, *given, **more):
    counted.append(None)
    if len(counted) > 2:  # the initial program on two draws, then the first child
        os._exit(9)
    return sandboxed(self, *given, **more)

evaluator.Evaluator.evaluate = evaluate
evo.run("mmd", generations=2, children=3, log=sys.argv[1], progress=False, max_concurrent=1)
"""


def lines_of(path: Path) -> list[Line]:
    return list(Reader(path, line_decoder, first=Header).follow())


def run_of_schema(schema: int, path: Path) -> evo.Log:
    header = msgspec.structs.replace(make_header("mmd", children=4, seed=3), schema=schema)
    how = Settings(progress=False)
    return prepare_jobs([RunJob(path, header, Goal(3))], how, None, "schemas").do()[0]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, evo.Log]:
    folder = tmp_path_factory.mktemp("schemas")
    return {schema: run_of_schema(schema, folder / f"{schema}.jsonl") for schema in (2, 3)}


def test_a_reply_is_in_the_log_before_its_program_is_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "killed.jsonl"
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False, env=os.environ)
    assert done.returncode == 9
    (reply,) = evo.read_log(path).replies.values()
    assert reply.reply
    went_on = evo.resume(path, **QUIET)
    assert went_on.child(1, 0).reply == reply.reply
    assert sum(isinstance(line, ReplyLine) for line in lines_of(path)) == 6


def test_the_line_of_a_child_says_nothing_of_its_call(logs: dict[int, evo.Log]) -> None:
    lines = lines_of(logs[3].path)
    children = [line for line in lines if isinstance(line, Child)]
    assert len(children) == 12
    assert not any(each.attempts or each.reply or each.reasoning for each in children)
    assert all(each.attempts and each.reply is not None for each in logs[3].children)
    assert not logs[3].replies


def test_both_schemas_read_alike(logs: dict[int, evo.Log]) -> None:
    assert (logs[2].header.schema, logs[3].header.schema) == (2, 3)
    assert timeless(logs[2].children) == timeless(logs[3].children)
    for log in logs.values():
        assert [each.attempts for each in log.outcomes] == [each.attempts for each in log.children]
        assert list(faults_of(log)) == []
    costs = replay.load([log.path for log in logs.values()], progress=False)
    assert costs.groupby("run")["completion_tokens"].sum().nunique() == 1
    assert costs.groupby("run")["n_calls"].sum().tolist() == [12, 12]


def test_the_lines_of_calls_make_a_log_longer_by_4_percent_at_most(
    logs: dict[int, evo.Log],
) -> None:
    for log in logs.values():
        whole = sum(len(encode_line(child)) for child in log.children)
        apart = sum(len(encode_line(line)) for child in log.children for line in parted(child, 1))
        rest = log.path.stat().st_size - (apart if log.header.schema == 3 else whole)
        assert (rest + apart) / (rest + whole) < 1.04


@pytest.mark.parametrize("schema", [2, 3])
def test_a_compact_log_keeps_the_attempts_without_the_texts(
    schema: int, logs: dict[int, evo.Log], tmp_path: Path
) -> None:
    log = logs[schema]
    small = compact(log.path, tmp_path / "small.jsonl.gz")
    assert [each.attempts for each in small.outcomes] == [each.attempts for each in log.outcomes]
    assert not any(each.reply or each.program for each in small.children)
    assert b"```" not in b"".join(map(encode_line, lines_of(small.path)[1:]))


@pytest.mark.parametrize("schema", [2, 3])
def test_a_fork_holds_its_parents_calls_once(
    schema: int, logs: dict[int, evo.Log], tmp_path: Path
) -> None:
    (fork,) = evo.fork(logs[schema], at=2, log_dir=tmp_path, **QUIET)
    assert timeless(fork.children) == timeless(logs[schema].children)
    assert len(fork.calls) == 4  # those of generation 3
    calls = [line for line in lines_of(fork.path) if isinstance(line, ReplyLine)]
    assert len(calls) == (12 if fork.header.schema == 3 else 0)


def test_a_call_that_ends_with_the_run_counts_and_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "stopped.jsonl"
    made = ModelClient.call
    with pytest.MonkeyPatch.context() as patch:

        def cancelled(self: ModelClient, messages: object, **how: int) -> Call:
            call = made(self, messages, **how)  # type: ignore[arg-type]
            if how["index"] == 1:
                stop(path)
                raise CallCancelled("the call was cancelled", call.attempts)
            return call

        patch.setattr(ModelClient, "call", cancelled)
        log = evo.run("mmd", generations=1, children=3, log=path, max_concurrent=1, **QUIET)
    assert [key for key in log.replies if key[2] < 0] == [(1, 1, -1)]
    went_on = evo.resume(path, **QUIET)
    assert len(went_on.children) == 3
    assert len(went_on.calls) == 4
