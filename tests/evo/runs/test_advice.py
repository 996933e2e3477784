"""Advice: what is asked, what prompts show, what it costs; rerun, resume, forks, budgets."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from endpoints import Endpoint, say
from evo_runs import QUIET, same_run, timeless
from hypothesis import strategies as st

import evo
import replay
from evo.cli.entry import main
from evo.logs.cost import cost_of_calls
from evo.logs.journal import encode_line, write_new
from evo.logs.maintenance import lines_through
from evo.logs.records import Advice, Model
from evo.models.client import EndpointRefused, ModelClient
from evo.models.limits import Slots
from evo.models.registry import find_model, resolve_sampling
from evo.prompt import placed, read_advice
from evo.runs.advice import advice_seed, prompt_for_advice
from evo.runs.bounds import cost_bound
from evo.runs.configuration import make_header
from evo.runs.planning import asked_in
from evo.runs.state import costs_of_log, state_of

SIZES: dict[str, Any] = {"generations": 5, "children": 3, "seed": 4, "advice": 2, **QUIET}
CONDITIONS: dict[str, dict[str, Any]] = {
    "greedy": {"feedback": True},
    "population": {"search": "population", "inspirations": 2, "edits": "diff"},
    "islands": {"search": "islands", "statement": "Spread the points."},
    "filters": {"filters": ["same_program", "same_output"]},
    "drafts": {"drafts": 2, "critic": "offline-2"},
    "models": {"models": ["offline-2", "offline"], "model_policy": "round_robin"},
    "confirmed": {"draws": 2, "confirm": 2},
}


def shown_in(log: evo.Log, generation: int) -> list[str]:
    """The prompts of a generation, each of which is what was sent."""
    prompts = asked_in(log, generation)
    children = [each for each in log.outcomes if each.generation == generation]
    assert [each.hash for each in prompts] == [each.prompt_hash for each in children]
    return [str(each.messages[-1]["content"]) for each in prompts]


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> evo.Log:
    path = tmp_path_factory.mktemp("advice") / "run.jsonl"
    return evo.run("mmd", log=path, search="population", feedback=True, **SIZES)


def test_prompts_show_the_latest_advice_and_none_before_the_first(advised: evo.Log) -> None:
    assert [generation for generation, _ in advised.advice] == [3, 5]
    texts = {generation: placed(read_advice(text)) for generation, text in advised.advice}
    assert texts[3] != texts[5]
    for generation, since in ((1, None), (2, None), (3, 3), (4, 3), (5, 5)):
        for prompt in shown_in(advised, generation):
            assert [text in prompt for text in texts.values()] == [since == 3, since == 5]
            assert ("Advice from a look" in prompt) == (since is not None)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_run_with_advice_reruns_is_sound_and_every_call_is_counted(
    condition: str, tmp_path: Path
) -> None:
    log = evo.run("mmd", log=tmp_path / "a.jsonl", **CONDITIONS[condition], **SIZES)
    assert [call.generation for call in log.advice_calls] == [3, 5]
    outcome = evo.rerun(log, log=tmp_path / "again.jsonl")
    assert outcome.same, str(outcome)
    assert same_run(evo.read_log(tmp_path / "again.jsonl"), log)
    assert not evo.verify(log.path).faults
    for generation in range(1, 6):
        shown_in(log, generation)
    calls = 15 * (2 if condition == "drafts" else 1) + 2 + len(log.critic_calls)
    assert cost_of_calls(log.calls, log.header).calls == calls
    assert replay.load(log)["n_calls"].sum() == log.ends[-1].stats["calls"] == calls
    assert sum(each["calls"] for each in costs_of_log(log)) == calls


def test_it_is_asked_of_the_first_of_several_models(tmp_path: Path) -> None:
    log = evo.run("mmd", log=tmp_path / "a.jsonl", **CONDITIONS["models"], **SIZES)
    for call in log.advice_calls:
        assert log.header.asked_of(call).model.name == "offline-2"
    state = state_of(log)
    assert sum(each.calls for each in state.returns.values()) == 15  # it is no gain of a model's


def test_a_kill_at_any_line_changes_nothing(advised: evo.Log, tmp_path: Path) -> None:
    lines = advised.path.read_bytes().splitlines(keepends=True)
    at = [number for number, line in enumerate(lines) if b'"kind":"advice"' in line]
    assert len(at) == 2
    for kept in {3, *at, *(number + 1 for number in at), at[1] + 3, len(lines) - 2}:
        path = tmp_path / f"{kept}.jsonl"
        path.write_bytes(b"".join(lines[:kept]) + b'{"crc":"torn')
        resumed = evo.resume(path, generations=5, **QUIET)
        assert same_run(resumed, advised)
        assert len(resumed.calls) == len(advised.calls)
        assert not evo.verify(path).faults


def test_a_shorter_run_is_a_prefix_and_can_be_extended(advised: evo.Log, tmp_path: Path) -> None:
    sizes = {**SIZES, "generations": 3}
    short = evo.run(
        "mmd", log=tmp_path / "a.jsonl", search="population", feedback=True, **sizes,
    )  # fmt: skip
    assert timeless(short.children) == timeless(advised.children[:9])
    assert short.advice == advised.advice[:1]
    assert same_run(evo.resume(short.path, generations=5, **QUIET), advised)


def test_a_stop_while_it_is_asked_loses_nothing(advised: evo.Log, tmp_path: Path) -> None:
    begun = threading.Event()
    offline = function_of(set())

    def slow(messages: list[dict[str, str]], seed: int) -> str | None:
        if messages[0]["content"].startswith("You advise") and not begun.is_set():
            begun.set()
            time.sleep(0.3)
        return offline(messages, seed)

    options = {**SIZES, "search": "population", "feedback": True, "model": slow}
    path = tmp_path / "a.jsonl"
    handle = evo.start("mmd", log=path, **options)
    assert begun.wait(60)
    handle.stop()
    stopped = handle.wait()
    assert len(stopped.generations) == 2
    log = evo.run("mmd", log=path, **options)
    assert log.advice == advised.advice
    assert [c.program for c in log.children] == [c.program for c in advised.children]
    assert evo.rerun(log).same


def test_with_other_numbers_of_calls_in_flight_the_run_is_the_same(
    advised: evo.Log, tmp_path: Path
) -> None:
    options = {"search": "population", "feedback": True, "max_concurrent": 1, **SIZES}
    assert same_run(evo.run("mmd", log=tmp_path / "a.jsonl", **options), advised)


def test_forks_keep_ask_anew_add_or_leave_it_out(advised: evo.Log, tmp_path: Path) -> None:
    options: dict[str, Any] = {"generations": 5, "log_dir": tmp_path, **QUIET}
    (same,) = evo.fork(advised, at=2, **options)
    assert timeless(same.children) == timeless(advised.children)
    assert same.advice == advised.advice
    (later,) = evo.fork(advised, at=3, **options)
    assert [call.inherited for call in later.advice_calls] == [True, False]
    assert {call.generation for call in later.calls} == {4, 5}
    (without,) = evo.fork(advised, at=3, advice=0, **options)
    assert not any("Advice from" in text for text in shown_in(without, 4))
    assert any("Advice from" in text for text in shown_in(without, 3))
    (often,) = evo.fork(advised, at=3, advice=1, **options)
    assert [number for number, _ in often.advice] == [3, 4, 5]
    plain = evo.run("mmd", generations=2, children=3, log=tmp_path / "plain.jsonl", **QUIET)
    (added,) = evo.fork(plain, at=2, advice=2, **options)
    assert [number for number, _ in added.advice] == [3, 5]
    for log in (same, later, without, often, added):
        assert evo.rerun(log).same
        assert not evo.verify(log.path).faults


def test_without_it_a_header_does_not_name_it(tmp_path: Path) -> None:
    log = evo.run("mmd", generations=1, children=1, log=tmp_path / "a.jsonl", **QUIET)
    assert b"advice" not in log.path.read_bytes()
    assert make_header("mmd", advice=0) == make_header("mmd")
    frame = replay.load(log)
    assert "advice" not in frame.attrs.get("runs", frame).to_string()


def function_of(fails: set[int]) -> Any:
    """A model that answers as the offline one does, but not when it is asked for that advice."""
    client = ModelClient(found := find_model("offline"), resolve_sampling(found), slots=Slots(8))
    asked = []

    def answer(messages: list[dict[str, str]], seed: int) -> str | None:
        if messages[0]["content"].startswith("You advise"):
            asked.append(seed)
            if len(asked) in fails:
                return None
        return client.call(messages, seed=seed, generation=0, index=0).reply

    return answer


def test_a_call_that_fails_is_a_line_and_the_earlier_advice_stays(tmp_path: Path) -> None:
    options = {**SIZES, "advice": 1, "model": function_of({1, 3}), "retries": 0}
    log = evo.run("mmd", log=tmp_path / "a.jsonl", **options)
    assert [call.reply is None for call in log.advice_calls] == [True, False, True, False]
    assert [number for number, _ in log.advice] == [3, 5]
    assert [("Advice from" in shown_in(log, number)[0]) for number in range(1, 6)] == [
        False, False, True, True, True,
    ]  # fmt: skip
    assert shown_in(log, 3)[0].partition("Advice from")[2] in shown_in(log, 4)[0]
    assert len(log.calls) == 19
    assert evo.rerun(log).same
    assert not evo.verify(log.path).faults


CHOICE = {"message": {"content": "```python\npass\n```"}, "finish_reason": "stop"}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


def test_a_refused_call_ends_the_run_and_is_made_again_when_it_goes_on(tmp_path: Path) -> None:
    refuses = True

    def handle(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        if refuses and body["messages"][0]["content"].startswith("You advise"):
            say(handler, 401, b'{"error": {"message": "no"}}')
        else:
            say(handler, 200, json.dumps({"choices": [CHOICE], "usage": USAGE}).encode())

    path = tmp_path / "a.jsonl"
    with Endpoint(handle) as server:
        model = Model(name="m", base_url=server.url)
        settings: dict[str, Any] = {"retries": 0, **QUIET}
        sizes = {"generations": 2, "children": 2, "advice": 1, "log": path}
        with pytest.raises(EndpointRefused):
            evo.run("cp", model=model, **sizes, **settings)
        log = evo.read_log(path)
        assert [call.again for call in log.advice_calls] == [True]
        assert len(log.generations) == 1
        refuses = False
        log = evo.resume(path, model=model, **settings)
        assert [call.again for call in log.advice_calls] == [True, False]
        assert len(log.calls) == len(server.requests) == 2 + 2 + 2
    assert replay.load(path)["n_calls"].sum() == 6
    assert evo.rerun(path).same
    assert not evo.verify(path).faults


def test_a_budget_counts_it_and_begins_no_generation_beyond(tmp_path: Path) -> None:
    for limit, made in ((3, 3), (4, 7), (7, 7), (8, 11)):
        log = evo.run(
            "mmd", log=tmp_path / f"{limit}.jsonl", budget={"calls": limit},
            **{**SIZES, "advice": 1},
        )  # fmt: skip
        assert len(log.calls) == made
        assert log.ends[-1].reason == "budget"
        assert len(log.advice_calls) == len(log.generations) - 1  # none for one that did not begin


@pytest.mark.parametrize("limit", [13, 22, 24, 33])
def test_runs_that_share_a_budget_pass_it_by_less_than_a_generation(
    limit: int, tmp_path: Path
) -> None:
    options = {**SIZES, "advice": 1, "seeds": [1, 2, 3, 4], "log_dir": tmp_path}
    del options["seed"]
    logs = evo.run_many("mmd", budget={"calls": limit}, **options)
    made = sum(len(log.calls) for log in logs)
    assert limit <= made < limit + 4
    lengths = [len(log.generations) for log in logs]
    assert max(lengths) - min(lengths) <= 1


def test_estimates_and_bounds_count_it(advised: evo.Log) -> None:
    bound = cost_bound(advised.header, 5, retries=0)
    assert bound.total["calls"] == 15 + 2
    assert [bound.of(number)["calls"] for number in range(6)] == [0, 3, 3, 4, 3, 4]
    known = evo.estimate("mmd", generations=5, children=3, advice=2)
    assert known.calls == 17


def test_an_allocation_and_a_sweep_pay_for_it(tmp_path: Path) -> None:
    done = evo.allocate_live(
        "mmd", "round_robin", arms=2, rounds=6, children=2, advice=1, budget={"calls": 100},
        log_dir=tmp_path / "a", **QUIET,
    )  # fmt: skip
    assert done.spent["calls"][-1] == replay.load(*done.arms)["n_calls"].sum() == 12 + 4
    swept = evo.sweep(
        {"advice": [0, 1]}, task="mmd", generations=2, children=2, seeds=[1],
        log_dir=tmp_path / "s", **QUIET,
    )  # fmt: skip
    logs = [evo.read_log(path) for path in (tmp_path / "s").rglob("*N2*.jsonl")]
    assert sorted(len(log.calls) for log in logs) == [4, 5]
    assert swept is not None


def by_hand(path: Path, rng: random.Random, stop: int | None = None) -> evo.Log:
    client = ModelClient(found := find_model("offline"), resolve_sampling(found), slots=Slots(8))
    options = {**SIZES, "search": "population", "feedback": True}
    with evo.Searcher("mmd", log=path, **options) as searcher:
        told = 0
        while not searcher.done and told != stop:
            prompts = searcher.ask()
            rng.shuffle(prompts)
            for prompt in prompts[: None if stop is None else stop - told]:
                told += 1
                call = client.call(prompt.messages, seed=prompt.seed, generation=0, index=0)
                found = searcher.tell(prompt, call.reply)
                assert (found is None) == prompt.advice
        return searcher.log


def test_a_loop_of_ones_own_is_asked_for_advice_like_for_any_reply(
    advised: evo.Log, tmp_path: Path
) -> None:
    whole = by_hand(tmp_path / "a.jsonl", random.Random(1))
    assert whole.advice == advised.advice
    assert [c.program for c in whole.children] == [c.program for c in advised.children]
    assert evo.rerun(whole.path).same
    for stop in (6, 7):  # before and after the first advice
        path = tmp_path / f"{stop}.jsonl"
        assert len(by_hand(path, random.Random(2), stop).calls) == stop
        assert by_hand(path, random.Random(3)).advice == advised.advice


def test_advice_is_no_program(tmp_path: Path) -> None:
    task = evo.load_task("mmd")
    with evo.Searcher(task, log=tmp_path / "a.jsonl", children=1, advice=1) as searcher:
        searcher.tell(None, program=task.initial_program)
        with pytest.raises(ValueError, match="before the advice"):
            searcher.tell(None, program=task.initial_program)
        (prompt,) = searcher.ask()
        assert (prompt.place, prompt.advice) == ((2, 1), True)
        assert prompt.seed == advice_seed(0, 1, 2)
        with pytest.raises(ValueError, match="asks for advice"):
            searcher.tell(prompt, program=task.initial_program)
        assert searcher.waiting == [prompt]
        assert searcher.tell(prompt, "- Be bold.") is None
        (child,) = searcher.ask()
        assert "- Be bold." in str(child.messages[-1]["content"])


def test_what_is_asked_tells_of_the_search_and_of_nothing_private(tmp_path: Path) -> None:
    def evaluate(value: float) -> dict[str, float]:
        return {"fitness": 1 - abs(value - 5) / 5, "private_gap": 0.12345, "check_x": 0.54321}

    task = evo.task(
        "near",
        initial_program="def value():\n    a = 1.5\n    return 2 * a\n",
        evaluate=evaluate,
        statement="value() returns a number near 5.",
    )
    log = evo.run(task, log=tmp_path / "a.jsonl", **SIZES)
    prompt = prompt_for_advice(state_of(log, through=4))
    system, user = (str(each["content"]) for each in prompt.messages)
    assert task.statement in system
    assert f"- generation 4: best fitness {log.trajectory[4]:.6f}, children: " in user
    assert log.generations[3].best is not None
    best = next(e.program for e in state_of(log, through=4).archive[log.generations[3].best[0]]
                if e.place == log.generations[3].best)  # fmt: skip
    assert best is not None
    assert best.strip() in user
    assert "The advice so far:" in user
    assert re.search(r"What was tried since:\n- fitness [\d.]+, from [\d.]+:\n", user)
    assert "0.12345" not in user
    assert "0.54321" not in user
    assert log.advice[0][1].splitlines()[0] in user


def test_the_stand_in_says_that_it_is_one(advised: evo.Log) -> None:
    for _, text in advised.advice:
        assert "a stand-in and not an LLM" in text


texts = st.text(st.sampled_from("ab`~ \n-<>/thinkpyo"), max_size=400)


def test_compact_and_rescored_logs_keep_its_cost(advised: evo.Log, tmp_path: Path) -> None:
    small = evo.compact(advised, tmp_path / "small.jsonl.gz")
    rescored = evo.rescore(advised, log=tmp_path / "r.jsonl")
    for log in (small, rescored):
        assert replay.load(log)["n_calls"].tolist()[-1] == 4 or log is rescored
        assert len(log.calls) == len(advised.calls)
    assert small.advice == []
    assert rescored.advice == advised.advice


def test_a_call_that_was_cut_out_of_a_log_is_missed(advised: evo.Log, tmp_path: Path) -> None:
    lines = [line for line in lines_through(advised, 5, advised.children)
             if not (isinstance(line, Advice) and line.generation == 3)]  # fmt: skip
    path = tmp_path / "a.jsonl"
    write_new(path, b"".join(map(encode_line, [advised.header, *advised.sessions, *lines])))
    assert any("advice before generation 3 is missing" in f for f in evo.verify(path).faults)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"advice": -1}, "advice: expected at least 0"),
        ({"advice": 2, "asynchronous": True}, "advice: needs whole generations"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_header("mmd", **options)


def test_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.jsonl")
    sizes = ["-T", "3", "-N", "2", "--advice", "1", "--log", path, "-q"]
    assert main(["run", "mmd", *sizes]) == 0
    assert main(["show", path]) == 0
    assert "advice from generation 2 on:\n- This advice is from the offline" in (
        capsys.readouterr().out
    )
    forks = str(tmp_path / "forks")
    fork = ["fork", path, "--at", "1", "--advice", "0", "--log-dir", forks, "-q"]
    assert main(fork) == 0
    (made,) = Path(forks).glob("*.jsonl")
    assert evo.read_log(made).advice == []
