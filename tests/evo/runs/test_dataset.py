"""Tasks with a data set: what is asked, logged, scored, counted and played again."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from evo_runs import same_run, timeless, write_task
from killing import seen_by, serve_as_model

import evo
import replay
from evo.gate.server import OfflineServer
from evo.logs.calls import without_call
from evo.logs.journal import encode_line
from evo.logs.records import Attempt
from evo.models.client import Call, EndpointRefused, ModelClient
from evo.runs.dataset import instance_seed, text_key
from evo.tasks.instances import read_instances
from evo.tasks.task import TaskError, load_task

QUIET = {"progress": False}
COUNT = 5
WP = load_task("wp", instances=COUNT)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> evo.Log:
    path = tmp_path_factory.mktemp("instances") / "short.jsonl"
    return evo.run(WP, generations=3, children=4, seed=2, log=path, **QUIET)


def test_each_text_is_asked_each_instance_once(short: evo.Log) -> None:
    texts = {WP.initial_program, *(c.program for c in short.children if c.program)}
    asked = [(call.program, call.index) for call in short.instance_calls]
    assert sorted(asked) == sorted((text_key(t), k) for t in texts for k in range(COUNT))
    first = {text_key(c.program): c.generation for c in reversed(short.children) if c.program}
    first[text_key(WP.initial_program)] = 0
    assert all(call.generation == first[call.program] for call in short.instance_calls)
    assert not evo.verify(short.path).faults


def test_fitness_is_the_mean_score_and_a_function_of_the_text(short: evo.Log) -> None:
    for child in short.children[:3]:
        if child.program is None:
            continue
        scores = [each.score for each in child.evaluation.instances]
        assert [each.id for each in child.evaluation.instances] == [
            each["id"] for each in read_instances(WP.record)
        ]
        assert child.evaluation.fitness == sum(scores) / COUNT
        again = evo.evaluate(WP, child.program)
        assert again.instances == child.evaluation.instances
        assert again.fitness == child.evaluation.fitness


def test_an_evaluation_says_how_long_it_took() -> None:
    began = time.monotonic()
    evaluation = evo.evaluate(WP, WP.initial_program)
    assert 0 <= evaluation.seconds <= time.monotonic() - began


def test_one_call_at_a_time_gives_the_same_log(short: evo.Log, tmp_path: Path) -> None:
    one = evo.run(
        WP, generations=3, children=4, seed=2, log=tmp_path / "1.jsonl", max_concurrent=1, **QUIET
    )
    assert same_run(one, short)


def test_resume_from_any_line_repeats_no_call(short: evo.Log, tmp_path: Path) -> None:
    lines = short.path.read_bytes().splitlines(keepends=True)
    for kept in (2, 4, len(lines) // 2, len(lines) - 3):
        path = tmp_path / f"{kept}.jsonl"
        path.write_bytes(b"".join(lines[:kept]) + b'{"crc":"torn')
        resumed = evo.resume(path, generations=3, **QUIET)
        assert same_run(resumed, short)


def test_rerun_asks_nobody(short: evo.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ModelClient, "call")
    outcome = evo.rerun(short, log=tmp_path / "again.jsonl")
    assert outcome.same, str(outcome)
    again = evo.read_log(tmp_path / "again.jsonl")
    assert same_run(again, short)
    assert evo.rerun(again).same
    rescored = evo.rescore(short, metric="strict_fitness", log=tmp_path / "r.jsonl")
    assert rescored.trajectory.tolist() == short.trajectory.tolist()
    assert timeless(rescored.instance_calls) == timeless(short.instance_calls)


def test_compact_log_keeps_scores_and_costs(short: evo.Log, tmp_path: Path) -> None:
    small = evo.compact(short, tmp_path / "small.jsonl.gz")
    assert not any(call.reply for call in small.instance_calls)
    columns = ["n_calls", "tokens", "best_fitness"]
    assert replay.load(small)[columns].equals(replay.load(short)[columns])
    assert len(replay.instances(small)) == len(replay.instances(short))


Refuses = Callable[[int], bool]


def refuse(monkeypatch: pytest.MonkeyPatch, children: int, refuses: Refuses) -> None:
    """Lets the endpoint reject calls on some instances, by position."""
    call = ModelClient.call

    def one(self: ModelClient, messages: object, *, seed: int, generation: int, index: int) -> Call:
        if index >= children and refuses(index - children):
            failed = Attempt(status="error", latency=0.1, http_status=400, error="too long")
            return Call((failed,), rejected="too long")
        return call(self, messages, seed=seed, generation=generation, index=index)

    monkeypatch.setattr(ModelClient, "call", one)


def test_a_failed_call_is_a_status_and_counts_as_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = evo.evaluate(WP, WP.initial_program)
    refuse(monkeypatch, 2, lambda k: k == 1)
    with pytest.warns(UserWarning, match=f"no score on 1 of {COUNT} instances: 1 no_reply"):
        log = evo.run(WP, generations=1, children=2, log=tmp_path / "f.jsonl", **QUIET)
    instances = log.initial.evaluation.instances
    assert [each.status for each in instances] == ["ok", "no_reply", *["ok"] * (COUNT - 2)]
    assert instances[1].score is None
    scores = [each.score for each in whole.instances]
    scores[1] = 0.0
    assert log.initial.evaluation.fitness == sum(scores) / COUNT
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="no score on 1"):
        assert evo.rerun(log).same


def test_when_all_calls_are_refused_the_run_ends_resumably(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.jsonl"
    refuse(monkeypatch, 2, lambda _: True)
    with pytest.raises(EndpointRefused, match=r"no instance got a reply: too long.*can go on"):
        evo.run(WP, generations=1, children=2, log=path, **QUIET)
    assert evo.read_log(path).initial is None
    monkeypatch.undo()
    log = evo.resume(path, **QUIET)
    whole = evo.run(WP, generations=1, children=2, log=tmp_path / "w.jsonl", **QUIET)
    assert log.trajectory.tolist() == whole.trajectory.tolist()
    refuse(monkeypatch, 2, lambda _: True)
    with pytest.raises(EndpointRefused, match="refused every child of generation 2"):
        evo.resume(path, generations=2, **QUIET)
    monkeypatch.undo()
    assert len(evo.resume(path, generations=2, **QUIET).generations) == 2
    assert evo.rerun(path).same


def test_stop_loses_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request_log = tmp_path / "requests.jsonl"
    with OfflineServer(request_log=request_log) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        run = {"model": "served", "generations": 40, "children": 2, "log": tmp_path / "s.jsonl"}
        handle = evo.start(WP, max_concurrent=2, **run, **QUIET)
        while len(handle.log.instance_calls) < 3 * COUNT:
            time.sleep(0.02)
        handle.stop()
        stopped = handle.wait(60)
        goal = len(stopped.generations) + 1
        log = evo.resume(stopped, generations=goal, **QUIET)
    asked = seen_by(request_log)
    seeds = [instance_seed(call.program, call.index) for call in log.instance_calls]
    assert len(set(seeds)) == len(seeds)
    assert all(asked.count(seed) == 1 for seed in seeds)
    assert all(asked.count(child.seed) == 1 for child in log.outcomes)
    assert log.ends[0].reason == "interrupted"
    assert evo.rerun(log).same


ADDING = """
def add(numbers):
    if numbers[0] < 0:
        raise ValueError("negative")
    if numbers[0] == 7:
        return "seven"
    return sum(numbers)
"""
JUDGE = """
def score(value, instance):
    if not isinstance(value, (int, float)):
        raise ValueError("expected a number")
    return float(value == instance["sum"])
"""


def adding_task(folder: Path, program: str = ADDING, judge: str = JUDGE) -> Path:
    toml = "entry = ['add']\ninstances = 'sums.jsonl'\n[limits]\nseconds = 5\n"
    write_task(folder, program, judge, toml)
    rows = [([1, 2], 3), ([2, 2], 5), ([-1, 1], 0), ([7, 1], 8)]
    lines = [json.dumps({"input": numbers, "sum": total}) + "\n" for numbers, total in rows]
    (folder / "sums.jsonl").write_text("".join(lines) + "\n")
    return folder


def test_a_program_is_called_with_each_input(tmp_path: Path) -> None:
    folder = adding_task(tmp_path / "adding")
    evaluation = evo.evaluate(folder, ADDING)
    assert [(each.id, each.status, each.score) for each in evaluation.instances] == [
        ("1", "ok", 1.0),
        ("2", "ok", 0.0),
        ("3", "error", None),
        ("4", "invalid", None),
    ]
    assert evaluation.fitness == 0.25
    assert evaluation.metrics == {"objective": 1.0, "strict_fitness": 0.25}
    with pytest.warns(UserWarning, match="no score on 2 of 4 instances: 1 error, 1 invalid"):
        log = evo.run(folder, generations=1, children=2, log=tmp_path / "a.jsonl", **QUIET)
    assert not log.instance_calls
    with pytest.warns(UserWarning, match="no score on"):
        assert evo.rerun(log).same


@pytest.mark.parametrize(
    ("program", "status", "words"),
    [
        ("def other(x):\n    return x\n", "error", r"defines no function add"),
        ("def add(x):\n    return y\n", "error", r"program.py.*line 2.*name 'y' is not defined"),
        ("def add(x:\n", "error", "SyntaxError"),
        ("def add(x):\n    return None\n", "invalid", "4 invalid"),
        ("import time\ndef add(x):\n    time.sleep(600)\n", "timeout", "2"),
        ("import os\ndef add(x):\n    os._exit(3)\n", "error", "3"),
    ],
)
def test_a_program_that_fails_on_all_has_no_fitness(
    tmp_path: Path, program: str, status: str, words: str
) -> None:
    evaluation = evo.evaluate(adding_task(tmp_path / "adding"), program, timeout=2)
    assert evaluation.status == status
    assert evaluation.fitness is None
    assert re.search(words, evaluation.error, flags=re.DOTALL)


def test_a_program_does_not_see_the_answers(tmp_path: Path) -> None:
    peeking = """
def add(numbers):
    import gc, glob, os
    assert not [o for o in gc.get_objects() if isinstance(o, dict) and "sum" in o and "id" in o]
    for path in glob.glob("**", recursive=True):
        assert '"sum"' not in (open(path).read() if os.path.isfile(path) else "")
    return sum(numbers)
"""
    assert evo.evaluate(adding_task(tmp_path / "adding"), peeking).fitness == 0.75


@pytest.mark.parametrize("returned", ["2.0", "-0.1", "float('nan')", "None", "1 / 0"])
def test_an_evaluator_that_gives_no_share_is_an_error(tmp_path: Path, returned: str) -> None:
    judge = f"def score(value, instance):\n    return {returned}\n"
    evaluation = evo.evaluate(adding_task(tmp_path / "adding", judge=judge), ADDING)
    assert evaluation.status == "error"
    assert "the evaluator failed" in evaluation.error


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "expected at least one instance"),
        ("{", "sums.jsonl:1: not JSON"),
        ("[1]", "sums.jsonl:1: expected an object with a key 'input'"),
        ('{"sum": 3}', "sums.jsonl:1: expected an object with a key 'input'"),
        ('{"id": [3], "input": 3}', r"expected an id of its own, a text, got \[3\]"),
        ('{"id": "a", "input": 3}\n{"id": "a", "input": 4}', r"sums.jsonl:2: expected an id"),
    ],
)
def test_mistakes_in_a_data_set_are_named(tmp_path: Path, line: str, message: str) -> None:
    folder = adding_task(tmp_path / "adding")
    (folder / "sums.jsonl").write_text(f"{line}\n")
    with pytest.raises(TaskError, match=message):
        load_task(folder)


def test_a_fitness_that_is_not_the_mean_is_found(short: evo.Log, tmp_path: Path) -> None:
    child = next(each for each in short.children if each.evaluation.fitness)
    instances = list(child.evaluation.instances)
    first = next(k for k, each in enumerate(instances) if each.score == 1.0)
    instances[first] = msgspec.structs.replace(instances[first], score=0.5)
    changed = msgspec.structs.replace(child.evaluation, instances=tuple(instances))
    was, now = (encode_line(without_call(msgspec.structs.replace(child, evaluation=each)))
                for each in (child.evaluation, changed))  # fmt: skip
    path = tmp_path / "changed.jsonl"
    before = short.path.read_bytes()
    assert was in before
    path.write_bytes(before.replace(was, now))
    (fault,) = evo.verify(path).faults
    assert f"child {child.index} of generation {child.generation} has fitness" in fault


def test_mistakes_around_a_data_set_are_named(tmp_path: Path) -> None:
    folder = adding_task(tmp_path / "adding")
    with pytest.raises(TaskError, match="instances: expected 1 to 4, got 5"):
        load_task(folder, instances=5)
    with pytest.raises(TaskError, match="has no data set"):
        load_task("cp", instances=5)
    (folder / "evaluator.py").write_text("def evaluate(path):\n    return {}\n")
    with pytest.raises(TaskError, match=r"score\(value, instance\)"):
        load_task(folder)
    (folder / "sums.jsonl").unlink()
    with pytest.raises(TaskError, match=r"no data set: expected .*sums\.jsonl"):
        load_task(folder)


def test_the_first_instances_are_another_task(tmp_path: Path) -> None:
    folder = adding_task(tmp_path / "adding")
    whole, half = load_task(folder), load_task(folder, instances=2)
    assert load_task(folder, instances=slice(2)) == half
    unseen = load_task(folder, instances=slice(2, None)).record.files["sums.jsonl"]
    assert (
        half.record.files["sums.jsonl"] + unseen
        == whole.record.files["sums.jsonl"].rstrip("\n") + "\n"
    )
    with pytest.raises(TaskError, match="none of its"):
        load_task(folder, instances=slice(99, None))
    assert read_instances(half.record) == read_instances(whole.record)[:2]
    assert half.record.hash != whole.record.hash
    assert load_task(half, instances=2) == half


def echoing(instances: int) -> evo.Task:
    """A task whose program is to return what it is given, with so many instances."""
    return evo.task(
        "echo",
        statement="Return x.",
        initial_program="def echo(x):\n    return x\n",
        evaluate="def score(value, row):\n    return float(value == row['input'])\n",
        entry="echo",
        instances=[{"input": number} for number in range(instances)],
    )


def test_scores_of_many_instances_are_no_metrics() -> None:
    found = evo.evaluate(echoing(20_000), "def echo(x):\n    return x // 2 * 2\n")
    assert (found.status, found.fitness, len(found.instances)) == ("ok", 0.5, 20_000)
    assert not any(name.isdigit() for name in found.metrics)


def test_more_instances_than_a_line_of_a_log_holds_are_refused_before_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVO_MAX_ELEMENTS", "800")
    with pytest.raises(TaskError, match=r"101 instances, expected at most 100"):
        evo.run(echoing(101), generations=1, children=1, log=tmp_path / "a.jsonl", **QUIET)
    assert not (tmp_path / "a.jsonl").exists()
    log = evo.run(echoing(100), generations=1, children=1, log=tmp_path / "b.jsonl", **QUIET)
    assert not evo.verify(log.path).faults
