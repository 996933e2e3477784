"""Filters within runs: what those that compare embeddings ask, log, cost and replay."""

import json
import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import openai
import pytest
from embedding_samples import answer_of, embedding_endpoint, grams, texts_of
from endpoints import Answer, Endpoint, say
from evo_runs import same_run, timeless

import evo
import replay
from evo.cli.entry import main
from evo.filters.near_embeddings import _here
from evo.logs.cost import TIMEOUT_RULES, cost_of_calls
from evo.models.client import EndpointDown, EndpointMissing, EndpointRefused
from evo.runs.bounds import cost_bound
from evo.runs.budget import BudgetError
from evo.runs.configuration import make_header
from evo.runs.screening import embedding_models, unembedded
from evo.runs.state import costs_of_log, state_of
from evo.runs.verification import verify
from evo.searches import Member

QUIET: dict[str, Any] = {"progress": False, "workers": 1}
SIZES: dict[str, Any] = {"generations": 3, "children": 4, **QUIET}
ALIKE = 0.9999


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with embedding_endpoint() as made:
        yield made


def by(server: Endpoint, threshold: float = ALIKE, **fields: Any) -> evo.filters.NearEmbeddings:
    """The filter that asks an endpoint."""
    model = evo.Model("vectors", **{"base_url": server.url, "input_price": 2.0, **fields})
    return evo.filters.NearEmbeddings(embed=model, threshold=threshold)


def by_grams(threshold: float = ALIKE) -> evo.filters.NearEmbeddings:
    return evo.filters.NearEmbeddings(embed=grams, threshold=threshold)


def found(log: evo.Log) -> list[tuple[Any, ...]]:
    """What became of the children."""
    kept = [(each.program, each.evaluation) for each in log.children]
    return [(program, each.status, each.fitness, each.error) for program, each in kept]


WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "one by one": {"max_concurrent": 1},
    "population": {"search": "population"},
    "islands": {"search": "islands"},
    "drafts": {"drafts": 2, "critic": "offline-2", "model": "offline-2"},
    "same_program first": {"filters": ["same_program", by_grams(0.998), "same_output"]},
    "asynchronous": {"asynchronous": True},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_compares_embeddings_is_played_again_without_asking(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"filters": by_grams(0.998), **SIZES, **WAYS[way]}
    log = evo.run("mmd", log=tmp_path / "a.jsonl", **options)
    assert log.rejections["near_embeddings"] > 0
    assert len({call.program for call in log.embedding_calls}) == len(log.embedding_calls)
    monkeypatch.setattr("evo.filters.near_embeddings._here", {})  # as in another process
    assert evo.rerun(log.path, log=tmp_path / "again.jsonl").same
    again = evo.read_log(tmp_path / "again.jsonl")
    assert found(again) == found(log)
    assert timeless(again.embedding_calls) == timeless(log.embedding_calls)
    assert not verify(log.path).faults


def test_an_endpoint_and_a_function_of_the_same_vectors_give_the_same_children(
    server: Endpoint, tmp_path: Path
) -> None:
    log = evo.run("mmd", filters=by(server), log=tmp_path / "a.jsonl", **SIZES)
    other = evo.run("mmd", filters=by_grams(), log=tmp_path / "b.jsonl", **SIZES)
    assert found(log) == found(other)
    assert len(set(texts_of(server))) == len(server.requests) == len(log.embedding_calls)
    programs = {child.program for child in log.children if child.program is not None}
    initial = log.header.task.files[log.header.task.program_file]
    assert set(texts_of(server)) == {*programs, initial}


def test_a_refused_child_is_similar_to_an_earlier_generation_and_no_other_is(
    tmp_path: Path,
) -> None:
    log = evo.run("mmd", filters=by_grams(), log=tmp_path / "a.jsonl", **SIZES)
    alike, passed = by_grams(), 0
    for child in log.children:
        if child.program is None:
            continue
        before = [
            member
            for members in state_of(log).members[: child.generation]
            for member in members
            if member.program is not None
        ]
        reason = alike.check(child.program, before)
        refused = child.evaluation.status == "rejected"
        assert child.evaluation.error == f"near_embeddings: {reason}" if refused else reason is None
        passed += not refused
    assert passed > 0


def test_a_run_goes_on_and_a_fork_begins_without_asking_for_what_is_logged(
    server: Endpoint, tmp_path: Path
) -> None:
    whole = evo.run("mmd", filters=by(server), log=tmp_path / "a.jsonl", **SIZES)
    asked = len(server.requests)
    short = {**SIZES, "generations": 1}
    begun = evo.run("mmd", filters=by(server), log=tmp_path / "b.jsonl", **short)
    log = evo.run("mmd", filters=by(server), log=begun.path, **SIZES)
    assert same_run(log, whole)
    assert len(server.requests) == 2 * asked
    (fork,) = evo.fork(
        whole.path, at=2, generations=3, filters=by(server), log_dir=tmp_path, **QUIET
    )
    assert found(fork) == found(whole)
    assert len(server.requests) < 2 * asked + asked / 2
    assert sum(each["dollars"] for each in costs_of_log(fork)[:3]) == 0
    assert evo.rerun(fork.path).same


def test_what_was_paid_for_before_a_kill_is_not_asked_for_again(
    server: Endpoint, tmp_path: Path
) -> None:
    whole = evo.run("mmd", filters=by(server), log=tmp_path / "a.jsonl", **SIZES)
    lines = whole.path.read_bytes().splitlines(keepends=True)
    embedded = [k for k, line in enumerate(lines) if b'"kind":"embedding_call"' in line[:60]]
    for k in (embedded[0], embedded[len(embedded) // 2], embedded[-1]):
        killed = tmp_path / f"{k}.jsonl"
        killed.write_bytes(b"".join(lines[: k + 1]))
        server.requests.clear()
        log = evo.run("mmd", filters=by(server), log=killed, **SIZES)
        assert found(log) == found(whole)
        assert len(server.requests) == len(embedded) - embedded.index(k) - 1


def test_embeddings_count_in_tokens_and_dollars_and_not_as_calls(
    server: Endpoint, tmp_path: Path
) -> None:
    log = evo.run("mmd", filters=by(server), log=tmp_path / "a.jsonl", **SIZES)
    bare = evo.run("mmd", filters=by_grams(), log=tmp_path / "b.jsonl", **SIZES)
    tokens = sum(answer_of([text])["usage"]["prompt_tokens"] for text in texts_of(server))
    assert tokens > 0
    cost, without = (cost_of_calls(each.calls, each.header) for each in (log, bare))
    assert (cost.calls, without.calls) == (12, 12)
    assert cost.tokens == (without.tokens or 0) + tokens
    assert cost.dollars == pytest.approx((without.dollars or 0) + tokens * 2.0 / 1e6)
    table = replay.load(log.path)
    assert table["n_calls"].tolist() == [0, 4, 4, 4]
    costs = costs_of_log(log)
    for unit in ("tokens", "dollars"):
        assert table[unit].tolist() == pytest.approx([each[unit] for each in costs])
    assert sum(each["calls"] for each in costs) == 12


def test_a_budget_in_tokens_holds_embeddings_too(server: Endpoint, tmp_path: Path) -> None:
    free = evo.run("mmd", filters=by_grams(), log=tmp_path / "a.jsonl", **SIZES)
    costs = costs_of_log(free)
    budget = {"tokens": costs[1]["tokens"] + costs[2]["tokens"] + 1}  # the third one begins
    paid = evo.run("mmd", filters=by(server), log=tmp_path / "b.jsonl", budget=budget, **SIZES)
    assert len(paid.generations) == 2
    assert found(paid) == found(free)[:8]


def test_dollars_of_a_model_without_a_price_are_refused_before_the_first_call(
    server: Endpoint, tmp_path: Path
) -> None:
    alike = by(server, input_price=None)
    options: dict[str, Any] = {"log": tmp_path / "a.jsonl", **SIZES}
    with pytest.raises(BudgetError, match="the model 'vectors' has no prices input_price"):
        evo.run("mmd", filters=alike, budget={"dollars": 1}, **options)
    log = evo.run("mmd", filters=alike, budget={"calls": 4}, **options)
    assert len(log.generations) == 1
    assert cost_of_calls(log.calls, log.header).dollars is None


def test_the_most_and_the_estimate_count_embeddings(server: Endpoint, tmp_path: Path) -> None:
    log = evo.run("mmd", filters=by(server, context=8000), log=tmp_path / "a.jsonl", **SIZES)
    bounds = [
        cost_bound(make_header("mmd", filters=each, children=4), 3, retries=0).total
        for each in ((), by_grams(), by(server, context=8000))
    ]
    assert bounds[0] == bounds[1]
    assert bounds[2]["calls"] == bounds[0]["calls"] == 12
    more = bounds[2]["tokens"] - bounds[0]["tokens"]
    spent = sum(cost_of_calls(log.embedding_calls, log.header).by_unit(0.0)["tokens"] for _ in "x")
    assert spent < more < math.inf
    sizes = {"generations": 3, "children": 4}
    plain, with_vectors = (
        evo.estimate("mmd", filters=each, **sizes) for each in ((), by(server, context=8000))
    )
    assert with_vectors.calls == plain.calls == 12
    assert with_vectors.prompt_tokens.low > plain.prompt_tokens.low
    assert with_vectors.completion_tokens == plain.completion_tokens


def test_a_program_that_cannot_be_embedded_is_refused_and_never_new(tmp_path: Path) -> None:
    plain = evo.run("mmd", log=tmp_path / "a.jsonl", **SIZES)
    lost = next(each.program for each in plain.children if each.evaluation.status == "ok")
    with embedding_endpoint(lambda text: 400 if text == lost else None) as server:
        log = evo.run("mmd", filters=by(server, 1.0), log=tmp_path / "b.jsonl", **SIZES)
    its = [each for each in log.children if each.program == lost]
    assert its
    for child in its:
        assert child.evaluation.fitness is None
        assert child.evaluation.status == "rejected"
        reason = "near_embeddings: there is no embedding of it: HTTP 400: not this text"
        assert child.evaluation.error == reason
    assert any(each.evaluation.status == "ok" for each in log.children)
    failed = [call for call in log.embedding_calls if call.reply is None]
    assert len(failed) == len(its)
    assert log.rejections["near_embeddings"] >= len(its)
    again = evo.rerun(log.path, log=tmp_path / "again.jsonl")
    assert again.same
    assert found(evo.read_log(tmp_path / "again.jsonl")) == found(log)


@pytest.mark.parametrize("way", ["plain", "asynchronous"])
def test_where_nothing_can_be_embedded_no_child_is_logged_and_the_run_goes_on_later(
    tmp_path: Path, way: str
) -> None:
    options = {"log": tmp_path / "a.jsonl", **SIZES, **WAYS[way]}
    broken = [True]
    with embedding_endpoint(lambda text: 400 if broken else None) as server:
        with pytest.raises(EndpointRefused, match=r"can be compared: .* embedding of it: HTTP 400"):
            evo.run("mmd", filters=by(server), **options)
        log = evo.read_log(tmp_path / "a.jsonl")
        assert {each.evaluation.status for each in log.outcomes} <= {"no_program"}
        assert any(call.reply for call in log.replies.values())
        broken.clear()
        done = evo.run("mmd", filters=by(server), **options)
    assert len(done.children) == 12
    assert cost_of_calls(done.calls, done.header).calls == 12  # no reply was asked for twice
    assert evo.rerun(done.path).same


@pytest.mark.parametrize(("status", "error"), [(401, EndpointRefused), (500, EndpointDown)])
def test_an_endpoint_that_fails_for_good_ends_the_run_resumably(
    tmp_path: Path, status: int, error: type[Exception]
) -> None:
    settings = evo.Settings(retries=0, progress=False, workers=1)
    options: dict[str, Any] = {"generations": 1, "children": 2, "settings": settings}
    failing = [True]
    with embedding_endpoint(lambda text: status if failing else None) as server:
        with pytest.raises(error):
            evo.run("mmd", filters=by(server), log=tmp_path / "a.jsonl", **options)
        log = evo.read_log(tmp_path / "a.jsonl")
        assert log.outcomes == []
        assert len(log.embedding_calls) == len(server.requests)
        failing.clear()
        done = evo.run("mmd", filters=by(server), log=tmp_path / "a.jsonl", **options)
    assert len(done.children) == 2
    assert len(done.embedding_calls) == len(server.requests)


def test_a_stop_gives_a_call_up_that_hangs_and_logs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evo.runs.handle.GRACE", 0.0)
    asked = threading.Event()

    def slow(number: int) -> Answer:
        asked.set()
        return Answer(wait=60.0)

    options: dict[str, Any] = {"generations": 1, "children": 2, "log": tmp_path / "a.jsonl"}
    with Endpoint() as server:
        server.script = slow
        handle = evo.start("mmd", filters=by(server), **options, **QUIET)
        asked.wait(60)
        handle.stop()
        log = handle.wait(30)
    assert log.outcomes == []
    attempts = [each for call in log.embedding_calls for each in call.attempts]
    assert attempts
    assert {(each.status, each.sent) for each in attempts} == {("error", True)}
    assert len(log.replies) == 2
    with embedding_endpoint() as mended:
        done = evo.run("mmd", filters=by(mended), **options, **QUIET)
    assert len(done.children) == 2


def test_the_cache_answers_for_the_same_texts(server: Endpoint, tmp_path: Path) -> None:
    options = {"cache": tmp_path / "cache.sqlite", "filters": by(server), **SIZES}
    first = evo.run("mmd", log=tmp_path / "a.jsonl", **options)
    asked = len(server.requests)
    second = evo.run("mmd", log=tmp_path / "b.jsonl", **options)
    assert found(first) == found(second)
    assert len(server.requests) == asked
    assert cost_of_calls(second.embedding_calls, second.header).tokens == 0


def test_a_name_is_asked_for_where_the_runs_model_is(server: Endpoint, tmp_path: Path) -> None:
    here = evo.Model("its", base_url=server.url, key_variable="A_KEY")
    named = evo.filters.NearEmbeddings(embed="vectors-1")
    (model,) = embedding_models(make_header("mmd", model=here, filters=named))
    assert (model.name, model.base_url, model.key_variable) == ("vectors-1", server.url, "A_KEY")
    assert model.output_price == 0


def test_a_name_is_asked_for_by_the_client_that_the_runs_model_has(tmp_path: Path) -> None:
    program = evo.load_task("mmd").initial_program
    message = {"message": {"content": f"```python\n{program}\n# it\n```"}, "finish_reason": "stop"}

    def handle(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        embeds = handler.path.endswith("/v1/embeddings")
        found = answer_of(body["input"]) if embeds else {"choices": [message]}
        say(handler, 200, json.dumps(found).encode())

    with Endpoint(handle) as server:
        client = openai.AsyncOpenAI(base_url=server.url, api_key="its-own-key")
        model = evo.Model("m", client=client)
        near = evo.filters.NearEmbeddings(embed="vectors", threshold=ALIKE)
        run = {"model": model, "filters": [near], "log": tmp_path / "a.jsonl", **SIZES}
        log = evo.run("mmd", **run)
    asked = [body for body in server.requests if "input" in body]
    assert {body["model"] for body in asked} == {"vectors"}
    assert len(asked) == len(log.embedding_calls)
    assert {each["authorization"] for each in server.headers} == {"Bearer its-own-key"}
    assert evo.rerun(log.path).same


def test_what_makes_no_embeddings_is_refused_before_a_log_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "LLM_API_BASE", "LLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    wrong = {"offline": ValueError, "nowhere-1": EndpointMissing}
    for name, error in wrong.items():
        alike = {"name": "near_embeddings", "embed": name}
        with pytest.raises(error, match=r"makes no embeddings|no endpoint is known"):
            evo.run("mmd", filters=alike, log=tmp_path / "a.jsonl", **SIZES)
        assert not (tmp_path / "a.jsonl").exists()


def test_a_log_of_a_function_that_is_not_here_says_how_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = evo.run("mmd", filters=by_grams(), log=tmp_path / "a.jsonl", **SIZES)
    for name in list(_here):
        monkeypatch.delitem(_here, name)
    with pytest.raises(ValueError, match="make the filter here as it was"):
        evo.resume(log.path, generations=4, **QUIET)
    by_grams()
    assert len(evo.resume(log.path, generations=4, **QUIET).generations) == 4


def test_vectors_of_another_length_end_the_run(tmp_path: Path) -> None:
    numbers = [1.0]

    def longer(texts: list[str]) -> list[list[float]]:
        numbers.append(1.0)
        return [numbers.copy()]

    alike = evo.filters.NearEmbeddings(embed=longer)
    with pytest.raises(
        ValueError, match="filter 'near_embeddings': expected embeddings of one len"
    ):
        evo.run("mmd", filters=alike, log=tmp_path / "a.jsonl", **SIZES)


def test_a_loop_of_ones_own_compares_embeddings(tmp_path: Path) -> None:
    searcher = evo.Searcher("mmd", filters=by_grams(), children=2, generations=1,
                            log=tmp_path / "a.jsonl", progress=False)  # fmt: skip
    initial = evo.load_task("mmd").initial_program
    first, second = searcher.ask()
    assert searcher.tell(first, program=initial).status == "rejected"
    assert searcher.tell(second, program="x = 1\n" * 9).status != "rejected"
    assert searcher.log.rejections == {"near_embeddings": 1}


@dataclass(frozen=True)
class Wordy:
    """Says of every program what another filter says of some."""

    name = "wordy"

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Returns why."""
        return "there is no embedding of it"


def test_only_what_could_not_be_compared_is_taken_from_a_log(tmp_path: Path) -> None:
    log = evo.run("mmd", filters=Wordy(), log=tmp_path / "a.jsonl", **SIZES)
    assert log.rejections["wordy"] > 0
    assert unembedded(log.outcomes, 4) == {}

    def none(texts: list[str]) -> None:
        return None

    alike = evo.filters.NearEmbeddings(embed=none)
    with pytest.raises(EndpointRefused, match="expected a list of one vector"):
        evo.run("mmd", filters=alike, log=tmp_path / "b.jsonl", **SIZES)
    assert unembedded(evo.read_log(tmp_path / "b.jsonl").outcomes, 4) == {}


def test_a_compact_log_holds_no_vectors(tmp_path: Path) -> None:
    log = evo.run("mmd", filters=by_grams(), log=tmp_path / "a.jsonl", **SIZES)
    small = evo.compact(log.path, tmp_path / "small.jsonl")
    assert [call.reply for call in small.embedding_calls] == [None] * len(log.embedding_calls)
    dropped = [msgspec.structs.replace(call, reply=None) for call in log.embedding_calls]
    assert small.embedding_calls == dropped


def test_ctrl_c_in_the_main_thread_leaves_a_line_of_the_call(tmp_path: Path) -> None:
    interrupting = True

    def embeds(texts: list[str]) -> list[list[float]]:
        if interrupting:
            raise KeyboardInterrupt
        return grams(texts)

    alike = evo.filters.NearEmbeddings(embed=evo.Model("mine", call=embeds, version="1"))
    options: dict[str, Any] = {"filters": alike, "log": tmp_path / "a.jsonl", "max_concurrent": 1}
    with pytest.raises(KeyboardInterrupt):
        evo.run("mmd", **options, **SIZES)
    log = evo.read_log(tmp_path / "a.jsonl")
    (call,) = log.embedding_calls
    assert [(each.status, each.sent) for each in call.attempts] == [("error", True)]
    assert log.outcomes == []
    interrupting = False
    done = evo.run("mmd", **options, **SIZES)
    assert len(done.children) == 12
    assert evo.rerun(done.path).same


def test_a_refused_text_is_tried_on_no_batch(tmp_path: Path) -> None:
    task = evo.load_task("word_problems", instances=8)
    options = {"model": "offline-2", "batches": 2, "filters": by_grams()}
    log = evo.run(task, log=tmp_path / "a.jsonl", **options, **SIZES)
    rejected = [each for each in log.children if each.evaluation.status == "rejected"]
    passed = {each.program for each in log.children if each.evaluation.instances}
    assert {each.program for each in rejected} - passed
    assert not any(each.evaluation.instances for each in rejected)
    tried = {each.program for each in log.instance_calls}
    assert len(tried) == len(passed | {task.initial_program})
    assert evo.rerun(log.path).same


def test_an_allocation_compares_within_each_arm(tmp_path: Path) -> None:
    alike = by_grams(0.998)
    made = evo.allocate_live("mmd", "round_robin", arms=2, rounds=4, children=4, filters=alike,
                             log_dir=tmp_path / "arms", **QUIET)  # fmt: skip
    for k, path in enumerate(sorted((tmp_path / "arms").glob("arm-*.jsonl"))):
        alone = evo.run("mmd", seed=40 + k, filters=alike, log=tmp_path / f"{k}.jsonl",
                        **{**SIZES, "generations": 2})  # fmt: skip
        assert found(evo.read_log(path)) == found(alone)
    assert made.pulls.tolist() == [0, 1, 0, 1]


def test_a_command_names_the_model_that_embeds(
    server: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    path = tmp_path / "a.jsonl"
    sizes = ["-T", "2", "-N", "4", "-q", "--log", str(path), "--filter", "near_embeddings"]
    fields = ["near_embeddings.embed=vectors-1", "near_embeddings.threshold=0.998"]
    given = [word for each in fields for word in ("--filter-set", each)]
    assert main(["run", "mmd", *sizes, *given]) == 0
    assert {body["model"] for body in server.requests} == {"vectors-1"}
    assert {each["authorization"] for each in server.headers} == {"Bearer a key"}
    assert evo.read_log(path).header.filters[0].fields == {"embed": "vectors-1", "threshold": 0.998}
    assert main(["stats", str(path)]) == 0
    assert "vectors-1" in capsys.readouterr().out
    asked = len(server.requests)
    assert main(["resume", str(path), "-T", "2", "-q"]) == main(["rerun", str(path)]) == 0
    assert len(server.requests) == asked
    assert main(["run", "mmd", *sizes]) == 2
    assert "--filter-set near_embeddings.embed=NAME" in capsys.readouterr().err


def test_embeddings_without_usage_count_alike_in_a_run_and_in_its_table(tmp_path: Path) -> None:
    def silent(texts: Sequence[str]) -> dict[str, Any]:
        return {"data": answer_of(texts)["data"]}

    with embedding_endpoint(answer=silent) as server:
        log = evo.run("mmd", filters=by(server), log=tmp_path / "a.jsonl", **SIZES)
    for rule in TIMEOUT_RULES:
        table, cost = (
            replay.load(log.path, timeouts=rule),
            cost_of_calls(log.calls, log.header, rule=rule),
        )
        for unit in ("tokens", "dollars", "flops"):
            amount = getattr(cost, unit)
            expected = pytest.approx(math.nan if amount is None else amount, nan_ok=True)
            assert table[unit].sum(skipna=False) == expected
        assert table["n_without_usage"].sum() == cost.without_usage == len(log.embedding_calls)
        assert (cost.tokens is None) == (rule == "exclude")
    assert [each["calls"] for each in costs_of_log(log)] == [0, 4, 4, 4]
