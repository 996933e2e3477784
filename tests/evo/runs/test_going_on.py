"""What resuming must not forget, and what names and paths runs get."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from evo_runs import timeless

import evo
from evo.cli.entry import main
from evo.logs.constructions import kept_value
from evo.logs.journal import LogBusyError, LogError, Writer, encode_line, write_new
from evo.logs.log import read_log
from evo.logs.records import Child, Evaluation, Generation, Initial, Model, Tick
from evo.logs.stopping import POLL, stop_file
from evo.models.client import Call, EndpointMissing, ModelClient
from evo.runs.configuration import default_path, find_run, make_header
from evo.runs.identity import differences
from evo.runs.playback import keep_best_value
from evo.studies.allocation.journal import read_journal
from evo.studies.folders import ALLOCATION

QUIET = {"progress": False, "workers": 1}


def test_a_generation_counts_the_time_of_earlier_sessions(tmp_path: Path) -> None:
    done = evo.run("mmd", generations=1, children=2, log=tmp_path / "a.jsonl", **QUIET)
    assert done.initial is not None
    child = done.children[0]
    lines = [done.header, done.sessions[0], done.initial, child, Tick(generation=1, seconds=11.4)]
    write_new(tmp_path / "killed.jsonl", b"".join(map(encode_line, lines)))
    assert read_log(tmp_path / "killed.jsonl").seconds_under_way == 11.4
    again = evo.resume(tmp_path / "killed.jsonl", **QUIET)
    assert again.children[0] == child
    assert 11.4 < (again.generations[0].seconds or 0.0) < 60
    assert again.seconds_under_way == 0.0


@pytest.mark.parametrize("options", [{"model": "gpt-4.1"}, {"drafts": 2, "critic": "gpt-4.1"}])
def test_an_endpoint_that_nobody_named_is_said_before_a_log_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "LLM_API_BASE", "LLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EndpointMissing, match="no endpoint is known"):
        evo.run("mmd", log=tmp_path / "a.jsonl", **options, **QUIET)
    assert not (tmp_path / "a.jsonl").exists()


def test_improving_children_keep_their_constructions(tmp_path: Path) -> None:
    log = evo.run("mmd", generations=3, children=6, seed=1, log=tmp_path / "a.jsonl", **QUIET)
    assert log.initial is not None
    assert len(log.initial.value) == 16
    assert any(generation.improved for generation in log.generations)
    assert log.best.value is not None
    parents = [log.initial.evaluation.fitness, *(g.best_fitness for g in log.generations)]
    for child in log.children:
        fitness, parent = child.evaluation.fitness, parents[child.generation - 1]
        better = fitness is not None and parent is not None and fitness > parent
        assert (child.value is not None) == better
        assert child.evaluation.value is None
    bare = [msgspec.structs.replace(child, value=None) for child in log.children]
    lines = [log.header, log.initial, *bare, *log.generations]
    old = tmp_path / "old.jsonl"
    write_new(old, b"".join(map(encode_line, lines)))
    assert read_log(old).best.value is None
    assert keep_best_value(old).name == "old.jsonl.value.json"
    assert read_log(old).best.value == log.best.value
    assert kept_value(old, "another program") is None


def test_the_construction_of_a_program_that_a_harness_calls_is_what_the_harness_returns(
    tmp_path: Path,
) -> None:
    def base() -> float:
        return 3.0

    def harness(function: Callable[[], float]) -> list[float]:
        return [function(), 1.0]

    def first(value: list[float]) -> float:
        return value[0]

    made = evo.task("h", initial_program=base, evaluate=first, harness=harness, statement="x")
    reply = "```python\ndef base():\n    return 4.0\n```"
    log = evo.run(made, model=lambda messages: reply, generations=1, children=1,
                  log=tmp_path / "a.jsonl", progress=False)  # fmt: skip
    assert log.best.fitness == 4
    assert json.loads(keep_best_value(log.path).read_text())["value"] == [4.0, 1.0]


def test_the_best_child_and_the_parent_are_told_apart(tmp_path: Path) -> None:
    header = make_header("mmd", children=2, min_improvement=0.1)

    def child(index: int, fitness: float) -> Child:
        found = Evaluation(status="ok", fitness=fitness)
        return Child(
            generation=1, index=index, seed=0, prompt_hash="", attempts=(), evaluation=found
        )

    first = Initial(evaluation=Evaluation(status="ok", fitness=0.5))
    generation = Generation(
        generation=1, best_fitness=0.5, best=(0, 0), improved=False, seconds=1.0
    )
    lines = [header, first, child(0, 0.52), child(1, 0.55), generation]
    write_new(tmp_path / "a.jsonl", b"".join(map(encode_line, lines)))
    log = read_log(tmp_path / "a.jsonl")
    assert (log.best.generation, log.best.index, log.best.evaluation.fitness) == (1, 1, 0.55)
    assert (log.parent.generation, log.parent.evaluation.fitness) == (0, 0.5)


def test_no_two_runs_of_a_process_are_promised_one_path(tmp_path: Path) -> None:
    header = make_header("mmd", seed=3)
    paths = [default_path(header, tmp_path) for _ in range(3)]
    assert [path.name for path in paths] == [
        "min_max_distance-offline-N16-s3.jsonl",
        "min_max_distance-offline-N16-s3-2.jsonl",
        "min_max_distance-offline-N16-s3-3.jsonl",
    ]
    evil = msgspec.structs.replace(header, task=msgspec.structs.replace(header.task, name="../x"))
    assert default_path(evil, tmp_path).parent == tmp_path


def test_a_batch_goes_on_past_other_seeds_and_empty_logs(tmp_path: Path) -> None:
    stem = "min_max_distance-offline-N16"
    (tmp_path / f"{stem}-s4.jsonl").touch()
    (tmp_path / f"{stem}-s40.jsonl").write_text("damaged\n")
    header = make_header("mmd", seed=4)
    assert find_run(header, tmp_path) is None
    sized = msgspec.structs.replace(header.model, active_parameters=7, input_price=1.0)
    known = msgspec.structs.replace(header, model=sized)
    write_new(tmp_path / f"{stem}-s4-2.jsonl", encode_line(known))
    assert find_run(header, tmp_path) == tmp_path / f"{stem}-s4-2.jsonl"
    (tmp_path / f"{stem}-s4-3.jsonl").write_text("damaged\n")
    with pytest.warns(UserWarning, match=r"s4-3\.jsonl:1: .*passed over"):
        assert find_run(header, tmp_path) == tmp_path / f"{stem}-s4-2.jsonl"


def test_what_a_model_is_asked_identifies_a_run() -> None:
    plain = make_header("mmd", model=Model(name="m"))
    for change, differ in [
        ({"id": "m"}, False),
        ({"active_parameters": 3, "context": 9000, "input_price": 2.0}, False),
        ({"base_url": "http://h/v1", "key_variable": "K"}, False),
        ({"id": "other"}, True),
        ({"extra_body": {"top_k": 1}}, True),
    ]:
        other = msgspec.structs.replace(plain, model=msgspec.structs.replace(plain.model, **change))
        assert differences(plain, other) == (["model"] if differ else [])


def test_a_run_heeds_a_request_to_pause_and_its_calls_finish(tmp_path: Path) -> None:
    asked = threading.Event()

    def slow(messages: object) -> str:
        asked.set()
        time.sleep(2 * POLL)
        return "no program"

    path = tmp_path / "a.jsonl"
    handle = evo.start("mmd", model=slow, generations=99, children=2, log=path, **QUIET)
    assert asked.wait(60)
    evo.stop(path, "pause")
    log = handle.wait(60)
    assert 0 < len(log.outcomes) < 99
    assert {each.evaluation.status for each in log.outcomes} == {"no_program"}  # none was ended
    assert not stop_file(path, "pause").exists()
    assert (log.ends[-1].reason, log.ends[-1].message) == ("interrupted", "paused")


def test_a_request_beside_a_busy_log_is_left_to_the_session_that_writes_it(tmp_path: Path) -> None:
    log = evo.run("mmd", generations=1, children=1, log=tmp_path / "a.jsonl", **QUIET)
    with Writer.claim(log.path):
        stop_file(log.path).touch()
        with pytest.raises(LogBusyError):
            evo.resume(log, generations=2, **QUIET)
        with pytest.raises(LogBusyError):
            evo.allocate_live("mmd", "ucb1", arms=[log.path], log_dir=tmp_path / "b", **QUIET)
        assert stop_file(log.path).exists()


@pytest.mark.parametrize("task", ["mmd", "wp"])
def test_a_run_that_is_stopped_at_once_returns_a_log_that_goes_on(
    task: str, tmp_path: Path
) -> None:
    known = evo.load_task(task, instances=3 if task == "wp" else None)
    handle = evo.start(known, generations=1, children=1, log=tmp_path / "a.jsonl", **QUIET)
    handle.stop()
    log = handle.wait(60)
    assert (len(log.generations), handle.log.path) == (0, log.path)
    assert len(evo.resume(log, **QUIET).generations) == 1


def test_the_journal_is_checked_against_the_arms_logs(tmp_path: Path) -> None:
    def allocate() -> evo.Allocation:
        return evo.allocate_live(
            "mmd", "ucb1", arms=2, rounds=4, children=2, log_dir=tmp_path, **QUIET
        )

    whole = allocate()
    assert (allocate().rewards == whole.rewards).all()
    rounds = read_journal(tmp_path / "allocation.jsonl")
    journal, told = tmp_path / "allocation.jsonl", rounds.told[0]
    sound, dear = journal.read_bytes(), {**told.costs, "calls": 3.0}
    line = encode_line(msgspec.structs.replace(told, costs=dear))
    journal.write_bytes(sound.replace(encode_line(told), line))
    with pytest.raises(ValueError, match=r"round 0 .*states calls 3\.0, but .* gives 2\.0"):
        allocate()
    journal.write_bytes(sound)
    log = read_log(tmp_path / "arm-01.jsonl")
    changed = [
        msgspec.structs.replace(g, best_fitness=(g.best_fitness or 0.0) + 0.01)
        for g in log.generations
    ]
    lines = [log.header, *log.sessions[:1], log.initial, *log.children, *changed]
    log.path.unlink()
    write_new(log.path, b"".join(encode_line(line) for line in lines if line is not None))
    first = min(k for k, told in rounds.told.items() if told.arm == 1)
    with pytest.raises(ValueError, match=rf"round {first} \(arm 1, arm-01\.jsonl\): states"):
        allocate()


def test_a_resumed_run_works_as_it_did_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    evo.run("mmd", generations=1, children=2, max_concurrent=3, tokens_per_minute=10**6,
            preset="conservative", log=path, **QUIET)  # fmt: skip

    def worked(**told: Any) -> tuple[object, ...]:
        log = evo.resume(path, generations=len(evo.read_log(path).generations) + 1, **told, **QUIET)
        last = log.sessions[-1]
        rates = (last.requests_per_minute, last.tokens_per_minute)
        return last.max_concurrent, *rates, last.preset

    assert worked() == (3, 2000, 10**6, "conservative")
    assert worked(max_concurrent=4) == (4, 2000, 10**6, "conservative")
    assert worked() == (4, 2000, 10**6, "conservative")
    assert worked(preset="balanced") == (10, 3500, None, "balanced")
    whole = evo.Settings(max_concurrent=2, progress=False, workers=1)
    log = evo.resume(path, generations=8, settings=whole)
    assert (log.sessions[-1].max_concurrent, log.sessions[-1].preset) == (2, None)


def test_logs_that_are_resumed_together_keep_to_the_smallest_of_their_numbers(
    tmp_path: Path,
) -> None:
    paths = [tmp_path / f"{seed}.jsonl" for seed in range(3)]
    for seed, path in enumerate(paths):
        evo.run("mmd", generations=1, children=2, max_concurrent=3 + seed, seed=seed, log=path,
                requests_per_minute=None if seed == 0 else 900 + seed, **QUIET)  # fmt: skip
    command = ["resume", *map(str, paths), "-T", "2", "-q"]
    assert main(command) == 0
    for path in paths:
        last = evo.read_log(path).sessions[-1]
        assert (last.max_concurrent, last.requests_per_minute) == (3, 901)


def replaced(path: Path) -> None:
    """What an editor does: another file takes the name."""
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere.jsonl"))


def deleted(path: Path) -> None:
    path.unlink()


def begun_anew(path: Path) -> None:
    shutil.copy(path.parent.parent / "another.jsonl", path.with_name("other"))
    path.with_name("other").replace(path)


@pytest.mark.parametrize("change", [replaced, moved, deleted, begun_anew])
@pytest.mark.parametrize("last", [False, True])
def test_a_log_that_is_replaced_ends_its_run_and_loses_nothing(
    change: Callable[[Path], None], last: bool, tmp_path: Path
) -> None:
    path, calls = tmp_path / "run" / "a.jsonl", itertools.count(1)
    whole = evo.run("mmd", generations=4, children=2, seed=3, log=tmp_path / "whole.jsonl", **QUIET)
    evo.run("mmd", generations=1, children=1, seed=9, log=tmp_path / "another.jsonl", **QUIET)

    def changing(client: ModelClient, *arguments: Any, **named: Any) -> Call:
        if next(calls) == (8 if last else 3):
            change(path)
        return ask(client, *arguments, **named)

    ask = ModelClient.call
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModelClient, "call", changing)
        with pytest.raises(LogError, match="was moved, deleted or replaced") as raised:
            evo.run("mmd", generations=4, children=2, seed=3, log=path, max_concurrent=1, **QUIET)
    assert next(calls) == (9 if last else 5)  # nothing is asked beyond the generation
    where = re.search(r"has logged is in (.*?): move", str(raised.value))
    assert where is not None
    kept = evo.resume(where[1], **QUIET)
    assert timeless(kept.children) == timeless(whole.children)


@pytest.mark.parametrize("left", [0, 100])
def test_a_log_that_is_cut_ends_its_run_before_the_next_generation(
    left: int, tmp_path: Path
) -> None:
    path, asked = tmp_path / "a.jsonl", []

    def model(messages: Sequence[Mapping[str, str]], seed: int) -> str:
        asked.append(seed)
        if len(asked) == 3:
            os.truncate(path, left)
        return "```python\n# nothing\n```"

    with pytest.raises(LogError, match=r"was cut by another program.* --salvage -o NEW"):
        evo.run("mmd", model=model, generations=4, children=2, log=path, max_concurrent=1, **QUIET)
    assert len(asked) == 4


def test_a_journal_that_is_replaced_ends_its_allocation(tmp_path: Path) -> None:
    def replace(event: evo.Event) -> None:
        if event.kind == "generation":
            replaced(tmp_path / ALLOCATION)

    with pytest.raises(LogError, match=f"{ALLOCATION}: was moved, deleted or replaced"):
        evo.allocate_live("mmd", "random", arms=2, rounds=500, children=1, log_dir=tmp_path,
                          on_event=replace, max_concurrent=1, **QUIET)  # fmt: skip


def test_cancelling_what_awaits_a_handle_stops_its_run_resumably(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"

    async def work() -> None:
        handle = evo.start("mmd", generations=5000, children=1, log=path, **QUIET)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handle, 0.5)
        await asyncio.to_thread(handle.wait, 60)

    asyncio.run(work())
    log = evo.read_log(path)
    assert log.ends[-1].reason == "interrupted"
    assert evo.resume(path, generations=len(log.generations) + 1, **QUIET).finished


@pytest.mark.parametrize("gone", ["sys.stderr = None", "sys.stderr.close()"])
def test_a_run_needs_no_standard_error(gone: str, tmp_path: Path) -> None:
    code = f"""
import sys, evo
{gone}
evo.run("mmd", generations=1, children=2, log={str(tmp_path / "a.jsonl")!r}, workers=1)
evo.parallel.map(abs, [1, 2], progress=True)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("done\n", 0)


def test_a_path_that_is_a_link_to_nothing_is_refused_in_words(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    one.symlink_to(other)
    for _ in range(2):  # to a file that does not exist, and in a loop
        with pytest.raises(LogError, match="a link that leads to no file"):
            evo.run("mmd", generations=1, children=1, log=one, **QUIET)
        with pytest.raises(LogError):
            evo.resume(one, **QUIET)
        other.unlink(missing_ok=True)
        other.symlink_to(one)
