"""A function in place of a model's name, wherever a model is taken."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

import evo
from evo.capture import capture
from evo.capture.running import short_hash
from evo.cli.entry import main
from evo.logs.journal import LogError
from evo.models.client import EndpointRefused
from evo.models.offline.endpoint import respond
from evo.models.registry import ModelError
from evo.runs.configuration import make_header
from evo.runs.identity import differences

QUIET: dict[str, Any] = {"progress": False, "max_concurrent": 2}


def complete(messages: object, **fields: object) -> Any:
    """A completion of the offline model."""
    body = {"model": "offline-2", "messages": messages, **fields}
    return json.loads(respond("POST", "/v1/chat/completions", json.dumps(body).encode()).content)


def llm(messages: Any, seed: int, temperature: float = 0.6) -> Any:
    return complete(messages, seed=seed, temperature=temperature)


async def slow_llm(messages: Any, seed: int) -> evo.Reply:
    await asyncio.sleep(0.001)
    made = complete(messages, seed=seed)
    choice = made["choices"][0]
    return evo.Reply(
        choice["message"]["content"], made["usage"], finish_reason=choice["finish_reason"]
    )


def replies(log: evo.Log) -> list[str | None]:
    return [child.reply for child in log.children]


@pytest.mark.parametrize("function", [llm, slow_llm])
def test_a_run_with_a_function_is_the_run_with_its_model(tmp_path: Path, function: Any) -> None:
    plain = evo.run("mmd", model="offline-2", generations=2, children=3,
                    log=tmp_path / "plain.jsonl", **QUIET)  # fmt: skip
    path = tmp_path / "own.jsonl"
    own = evo.run("mmd", model=function, generations=2, children=3, log=path, **QUIET)
    assert replies(own) == replies(plain)
    assert own.trajectory.tolist() == plain.trajectory.tolist()
    assert [c.attempts[0].usage for c in own.children] == [
        c.attempts[0].usage for c in plain.children
    ]
    read = evo.read_log(path)
    assert (read.header.model.name, read.header.model.way) == (function.__name__, "function")
    assert f"def {function.__name__}" in read.header.model.source
    again = evo.rerun(path)  # needs no function
    assert replies(again.log) == replies(own)


def test_going_on_asks_for_the_function_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    evo.run("mmd", model=llm, generations=1, children=2, log=path, **QUIET)
    for going_on in (
        lambda **how: evo.resume(path, generations=2, **how, **QUIET),
        lambda **how: evo.fork(path, at=1, generations=2, log_dir=tmp_path, **how, **QUIET)[0],
    ):
        with pytest.raises(ModelError, match=r"give it again, model=llm$"):
            going_on()
        assert len(going_on(model=llm).generations) == 2
    whole = evo.run("mmd", model=llm, generations=2, children=2, log=tmp_path / "w.jsonl", **QUIET)
    assert replies(evo.read_log(path)) == replies(whole)


def test_a_complete_log_is_returned_without_its_function(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    made = evo.run("mmd", model=llm, generations=2, children=2, log=path, **QUIET)
    before = path.read_bytes()
    assert replies(evo.resume(path, **QUIET)) == replies(made)
    assert evo.resume(path, generations=9, target=0.0, **QUIET).best == made.best  # reached, too
    assert path.read_bytes() == before
    with pytest.raises(ModelError, match=r"give it again, model=llm$"):
        evo.resume(path, generations=9, **QUIET)


CACHE: dict[int, Any] = {}
COUNT = [0]
SHIFT = 0


def caching(messages: Any, seed: int) -> Any:
    return CACHE.setdefault(seed, complete(messages, seed=seed))


def counting(messages: Any, seed: int) -> Any:
    COUNT[0] += 1
    return complete(messages, seed=seed + SHIFT)


class Counter:
    def __init__(self, shift: int) -> None:
        self.shift, self.calls = shift, 0

    def __call__(self, messages: Any, seed: int) -> Any:
        self.calls += 1
        return complete(messages, seed=seed + self.shift)


@dataclasses.dataclass
class Data:
    shift: int
    calls: int = 0

    def __call__(self, messages: Any, seed: int) -> Any:
        self.calls += 1
        return complete(messages, seed=seed + self.shift)


@pytest.mark.parametrize("model", [caching, counting, Counter(0), Data(0)], ids=range(4))
def test_a_model_with_state_goes_on_and_its_state_is_in_no_log(tmp_path: Path, model: Any) -> None:
    path = tmp_path / "a.jsonl"
    for T in (1, 2):
        log = evo.run("mmd", model=model, generations=T, children=2, log=path, **QUIET)
        assert len(log.generations) == T
    evo.run("mmd", model=model, generations=1, children=2, log=tmp_path / "b.jsonl", **QUIET)
    source = evo.read_log(tmp_path / "b.jsonl").header.model.source
    assert source == log.header.model.source
    assert "choices" not in source
    how: dict[str, Any] = {"arms": 2, "rounds": 3, "children": 1, "log_dir": tmp_path / "pool"}
    found = [evo.allocate_live("mmd", "ucb1", model=model, **how, **QUIET) for _ in range(2)]
    assert found[0].pulls.tolist() == found[1].pulls.tolist()


def test_a_log_of_an_earlier_version_goes_on_whose_model_has_its_state_in_its_version() -> None:
    now = make_header("mmd", model=counting)
    earlier = msgspec.structs.replace(
        now.model, version=short_hash(capture(counting).text), source=capture(counting).text
    )
    assert earlier.version != now.model.version
    assert differences(msgspec.structs.replace(now, model=earlier), now) == []


def test_what_changed_of_a_model_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "a.jsonl"
    for model, changed in ((counting, "SHIFT"), (Counter(0), r"self\.shift")):
        evo.run("mmd", model=model, generations=1, children=2, log=path, **QUIET)
        monkeypatch.setitem(globals(), "SHIFT", 1)
        again = Counter(1) if isinstance(model, Counter) else model
        with pytest.raises(LogError, match=rf"run: {changed}, which the model .*; evo\.resume\("):
            evo.run("mmd", model=again, generations=2, children=2, log=path, **QUIET)
        path = tmp_path / "b.jsonl"


def test_a_log_that_goes_on_with_another_model_warns_and_names_both(tmp_path: Path) -> None:
    path = evo.run(
        "mmd", model=llm, generations=1, children=1, log=tmp_path / "a.jsonl", **QUIET
    ).path
    evo.resume(path, model=llm, generations=2, **QUIET)  # without a warning
    with pytest.warns(UserWarning, match="made with the model 'llm' and goes on with 'offline'"):
        evo.resume(path, model="offline", generations=3, **QUIET)
    evo.resume(path, model="offline", generations=4, **QUIET)
    with pytest.warns(UserWarning, match="made with the model 'offline' and goes on with 'llm'"):
        evo.resume(path, model=llm, generations=5, **QUIET)

    def edited(messages: Any, seed: int) -> Any:
        return other(messages, seed)

    edited.__name__ = "llm"
    with pytest.warns(UserWarning, match=r"another version of the model 'llm' than before \("):
        evo.resume(path, model=edited, generations=6, **QUIET)


def test_a_price_makes_it_count_in_dollars(tmp_path: Path) -> None:
    model = evo.Model("mine", call=llm, input_price=1.0, output_price=2.0)
    log = evo.run("mmd", model=model, generations=8, children=2, budget={"dollars": 2e-3},
                  log=tmp_path / "a.jsonl", **QUIET)  # fmt: skip
    assert 1 <= len(log.generations) < 8
    with pytest.raises(ValueError, match="price"):
        evo.run("mmd", model=llm, budget={"dollars": 1.0}, log=tmp_path / "b.jsonl", **QUIET)


def test_replies_of_a_function_are_cached(tmp_path: Path) -> None:
    calls: list[int] = []

    def counted(messages: Any, seed: int) -> Any:
        calls.append(seed)
        return complete(messages, seed=seed)

    model = evo.Model("counted", call=counted)
    for name in "ab":
        how = {"cache": tmp_path / "c.sqlite", "log": tmp_path / f"{name}.jsonl", **QUIET}
        evo.run("mmd", model=model, generations=1, children=3, **how)
    assert len(calls) == 3


def test_an_error_of_the_function_ends_the_run_resumably(tmp_path: Path) -> None:
    broken = [True]

    def sometimes(messages: Any, seed: int) -> Any:
        if broken[0]:
            raise KeyError("no such model")
        return complete(messages, seed=seed)

    model, path = evo.Model("mine", call=sometimes), tmp_path / "a.jsonl"
    with pytest.raises(EndpointRefused, match="KeyError: 'no such model'") as refused:
        evo.run("mmd", model=model, generations=1, children=2, log=path, **QUIET)
    words = str(refused.value)
    assert words.startswith("the function of the model 'mine' raised an error in every call of")
    assert "in sometimes" in words
    assert "the same call goes on there, or evo.resume(LOG, model=mine)" in words
    assert "raise evo.TryAgain(seconds=2)" in words
    assert "endpoint" not in words
    broken[0] = False
    assert len(evo.resume(path, model=model, **QUIET).generations) == 1


def test_calls_that_a_stop_gives_up_are_in_the_log_and_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evo.runs.handle.GRACE", 0.0)
    goes_on, met = threading.Event(), threading.Barrier(3)

    def slow(messages: Any, seed: int) -> Any:
        if not goes_on.is_set():
            met.wait(60)
            goes_on.wait(60)
        return complete(messages, seed=seed)

    path, how = tmp_path / "a.jsonl", {"model": evo.Model("slow", call=slow), **QUIET}
    handle = evo.start("mmd", generations=1, children=2, log=path, **how)
    met.wait(60)
    handle.stop()
    stopped = handle.wait(30)
    assert not goes_on.is_set()
    attempts = [attempt for call in stopped.calls for attempt in call.attempts]
    assert [(each.status, each.sent) for each in attempts] == [("error", True)] * 2
    assert all("goes on by itself" in (each.error or "") for each in attempts)
    goes_on.set()
    log = evo.resume(path, **how)
    assert len(log.outcomes) == 2
    assert sum(len(call.attempts) for call in log.calls) == 4


@pytest.mark.parametrize("scored", [False, True])
def test_calls_of_evaluations_that_a_stop_gives_up_are_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scored: bool
) -> None:
    """Those on rows, and those of the critic that scores what came."""
    monkeypatch.setattr("evo.runs.handle.GRACE", 0.0)
    goes_on, met = threading.Event(), threading.Barrier(3)

    def slow(messages: Any) -> str:
        if not goes_on.is_set():
            met.wait(60)
            goes_on.wait(60)
        return "Score: 5"

    model, quick = (
        evo.Model("slow", call=slow),
        evo.Model("quick", call=lambda messages: "Score: 5"),
    )
    task = tmp_path / "task"
    task.mkdir()
    (task / "initial_program.txt").write_text("Say it.\n")
    (task / "instances.jsonl").write_text('{"prompt": "0?"}\n{"prompt": "1?"}\n')
    how_scored = 'score = "critic"\nrubric = "Is it short?"\n' if scored else ""
    (task / "task.toml").write_text(
        f'statement = "x"\nevolves = "text"\ninstances = "instances.jsonl"\n{how_scored}'
    )
    if not scored:
        (task / "evaluator.py").write_text("def score(reply, row):\n    return 0.5\n")
    how: dict[str, Any] = {"model": quick, "critic": model} if scored else {"model": model}
    how |= {"generations": 1, "children": 1, "log": tmp_path / "a.jsonl", **QUIET}
    handle = evo.start(task, **how)
    met.wait(60)
    handle.stop()
    stopped = handle.wait(30)
    lost = stopped.critic_calls if scored else stopped.instance_calls
    assert [call.reply for call in lost] == [None, None]
    attempts = [attempt for call in lost for attempt in call.attempts]
    assert [(each.status, each.sent) for each in attempts] == [("error", True)] * 2
    goes_on.set()
    log = evo.run(task, **how)
    assert len(log.outcomes) == 1
    again = log.critic_calls if scored else log.instance_calls
    first = [call.reply for call in again if call.program == lost[0].program or scored][:4]
    assert sorted(first, key=str) == [None, None, "Score: 5", "Score: 5"]


def silent(messages: object) -> None:
    """Never answers."""


def test_nothing_is_no_reply(tmp_path: Path) -> None:
    log = evo.run("mmd", model=silent, generations=1, children=2, log=tmp_path / "a.jsonl", **QUIET)
    found = [(child.evaluation.status, child.evaluation.error) for child in log.children]
    assert found == [("no_reply", "the reply is empty")] * 2


def other(messages: Any, seed: int) -> Any:
    return complete(messages, seed=seed + 1)


def test_a_function_that_asks_to_try_again_is_called_again_within_the_run(tmp_path: Path) -> None:
    calls: list[int] = []

    def flaky(messages: Any, seed: int) -> Any:
        calls.append(seed)
        if len(calls) == 1:
            raise evo.TryAgain(seconds=0)
        return complete(messages, seed=seed)

    log = evo.run("mmd", model=flaky, generations=1, children=1, log=tmp_path / "a.jsonl", **QUIET)
    assert [each.status for each in log.children[0].attempts] == ["error", "ok"]


def test_logs_of_a_function_are_arms_once_it_is_given_again(tmp_path: Path) -> None:
    logs = evo.run_many(
        "mmd", model=llm, seeds=[1, 2], generations=1, children=1, log_dir=tmp_path, **QUIET
    )
    arms = [logs[0].path, logs[1]]
    how: dict[str, Any] = {"arms": arms, "rounds": 3, "children": 1, **QUIET}
    with pytest.raises(ModelError, match="give it again, model=llm"):
        evo.allocate_live("mmd", "ucb1", log_dir=tmp_path / "none", **how)
    for _ in range(2):
        found = evo.allocate_live("mmd", "ucb1", model=llm, log_dir=tmp_path / "pool", **how)
        assert len(found.pulls) == 3
    assert sum(len(evo.read_log(each.path).generations) for each in logs) == 3


def score(messages: Any) -> str:
    return "Score: 7"


def test_critics_and_several_models_may_be_functions(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    log = evo.run(
        "mmd", models=[llm, other, "offline"][:2], critic=score, drafts=2, generations=1,
        children=2, log=path, **QUIET,
    )  # fmt: skip
    assert {child.model for child in log.children} <= {"llm", "other"}
    assert log.header.critic is not None
    assert log.header.critic.model.name == "score"
    with pytest.raises(ModelError, match="give it again"):
        evo.resume(path, generations=2, **QUIET)
    with pytest.raises(ModelError, match=r"'score' .* give it again"):
        evo.resume(path, generations=2, model=[llm, other], **QUIET)
    whole = evo.resume(path, generations=2, model=[llm, other, score], **QUIET)
    assert len(whole.generations) == 2
    assert evo.Critic(score).score("be brief", "2 + 2?", "4") == 0.7


def test_a_text_is_asked_under_a_function(tmp_path: Path) -> None:
    def answer(messages: Any) -> str:
        return "4" if "2" in messages[-1]["content"] else "0"

    task = evo.task(
        "sums", initial_program="Answer with a number.", evolves="text", statement="Add.",
        evaluate="def score(reply, row):\n    return float(reply == row['answer'])\n",
        instances=[{"input": "2 + 2", "answer": "4"}, {"input": "3 + 3", "answer": "6"}],
        prompt="input", asks=answer,
    )  # fmt: skip
    log = evo.run(task, model=llm, generations=1, children=2, log=tmp_path / "a.jsonl", **QUIET)
    assert log.initial is not None
    assert log.initial.evaluation.fitness == 0.5
    assert log.header.asks is not None
    assert log.header.asks.model.name == "answer"


def test_allocations_sweeps_and_selections_take_functions(tmp_path: Path) -> None:
    how = {"children": 2, "model": llm, "log_dir": tmp_path / "pool", **QUIET}
    found = evo.allocate_live("mmd", "ucb1", arms=2, rounds=3, **how)
    assert [arm.header.model.name for arm in found.arms] == ["llm"] * 2
    runs = evo.run_many(
        "mmd", seeds=range(2), generations=1, children=2, model=llm, log_dir=tmp_path / "many",
        **QUIET,
    )  # fmt: skip
    assert len(runs) == 2
    space = {"children": [1, 2], "model": [llm, evo.Model("named", call=slow_llm)]}
    sweep = {"task": "mmd", "generations": 1, "seeds": [1], "log_dir": tmp_path / "sweep", **QUIET}
    swept = evo.sweep(space, **sweep)
    logs = [evo.read_log(path) for path in sorted(swept.folder.rglob("*-s*.jsonl"))]
    assert sorted(log.header.model.name for log in logs) == ["llm", "llm", "named", "named"]
    again = evo.sweep(space, **sweep)  # the same sweep goes on
    assert (again.completed_runs, again.failed_runs) == (4, 0)
    with pytest.raises(ValueError, match="give it again"):
        evo.sweep(tmp_path / "sweep", **QUIET)


@pytest.mark.parametrize("samples", ["seeds", "problems"])
def test_a_selection_tells_functions_apart(samples: str, tmp_path: Path) -> None:
    how: dict[str, Any] = {"task": "mmd", "generations": 1, "children": 1, "seeds": [1, 2]}
    if samples == "problems":
        how = {"task": evo.load_task("wp", instances=6), "samples": samples, "batch": 3}
    how |= {"selector": "brute_force", "log_dir": tmp_path / "s", "progress": False}
    calls: list[int] = []

    def counted(messages: Any, seed: int) -> Any:
        calls.append(seed)
        return complete(messages, seed=seed)

    space = {"model": [llm, evo.Model("counted", call=counted), evo.Model("named", call=other)]}
    found = evo.select_best(space, **how)
    assert found.labels == ("model=llm", "model=counted", "model=named")
    assert len(calls) == found.samples[1] == len(set(calls))
    again = evo.select_best([{"model": each} for each in space["model"]], **how)
    assert again.outcomes.tolist() == found.outcomes.tolist()
    assert len(calls) == found.samples[1]  # none is made twice
    with pytest.raises(ValueError, match="holds a selection with configurations"):
        evo.select_best({"model": [llm, other]}, **how)


@pytest.mark.parametrize("stated", [True, False])
def test_tokens_that_an_endpoint_does_not_state_are_unknown_and_not_none(tmp_path, capsys, stated):
    usage = {"prompt_tokens": 5, "completion_tokens": 7} if stated else None
    log = evo.run(
        "mmd",
        model=lambda messages: evo.Reply("```python\nx = 1\n```", usage=usage),
        generations=1,
        children=2,
        log=tmp_path / "a.jsonl",
        progress=False,
    )
    words = "10 prompt and 14 completion tokens" if stated else "an unknown number of tokens"
    assert words in repr(log)
    assert log.ends[-1].stats.get("tokens") == (24 if stated else None)
    assert main(["stats", str(log.path)]) == 0
    row = capsys.readouterr().out.splitlines()[1]
    tokens, dollars = row.split()[4:6]
    assert (tokens, dollars) == ("24" if stated else "unknown", "unknown")
    assert ("24" in row.split()) is stated
