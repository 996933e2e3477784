"""Calls for embeddings: what is sent, how each is logged, and that none is made twice."""

import threading
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from embedding_samples import answer_of, embedding_endpoint, grams, texts_of
from endpoints import Answer, Endpoint, closed_port, together

import evo
from evo.logs.cost import cost_of_attempts
from evo.logs.records import NO_REPLY, EmbeddingCall, Model
from evo.logs.vectors import decode_vector, encode_vector
from evo.models.client import CallCancelled, EndpointDown, EndpointRefused
from evo.models.critics import Known, known_of
from evo.models.embeddings import Embedder, EmbeddingClient, NoEmbedding
from evo.models.limits import Slots


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with embedding_endpoint() as made:
        yield made


def client(model: Model, **how: Any) -> EmbeddingClient:
    how = {"slots": Slots(4), "timeout": 20.0, "retries": 0, "back_off": 0.01, **how}
    return EmbeddingClient(model, NO_REPLY, **how)


def embedder(model: Model, calls: list[EmbeddingCall], known: Known | None = None) -> Embedder:
    return Embedder("m", model, client(model), calls.append, {} if known is None else known)


async def later(texts: list[str]) -> Any:
    """Embeds as the others do, and is awaited."""
    return grams(texts)


@pytest.mark.parametrize("way", ["address", "sync", "async", "function", "coroutine"])
def test_a_text_has_one_vector_by_every_way_to_a_model(server: Endpoint, way: str) -> None:
    keys = {"base_url": server.url, "api_key": "a key", "max_retries": 0}
    model = {
        "address": lambda: Model("m", base_url=server.url),
        "sync": lambda: Model("m", client=openai.OpenAI(**keys)),
        "async": lambda: Model("m", client=openai.AsyncOpenAI(**keys)),
        "function": lambda: Model("m", call=grams),
        "coroutine": lambda: Model("m", call=later),
    }[way]()
    calls: list[EmbeddingCall] = []
    found = embedder(model, calls).embed("a = 1\n", generation=2, index=1)
    (expected,) = grams(["a = 1\n"])
    assert found.tolist() == decode_vector(encode_vector(expected)).tolist()
    (call,) = calls
    assert (call.generation, call.model, call.reply) == (2, "m", encode_vector(expected))
    assert call.attempts[-1].status == "ok"
    if way in ("address", "sync", "async"):
        assert server.requests[0].items() >= {"model": "m", "input": ["a = 1\n"]}.items()
        assert call.attempts[-1].usage == {"completion_tokens": 0} | answer_of(["a = 1\n"])["usage"]


def test_a_text_is_asked_for_once_whoever_asks(server: Endpoint) -> None:
    calls, known = list[EmbeddingCall](), Known()
    model = Model("m", base_url=server.url)
    first = embedder(model, calls, known)
    together(8, lambda k: first.embed(f"text {k % 2}"))
    assert sorted(texts_of(server)) == ["text 0", "text 1"]
    again = embedder(model, calls, known_of(calls))
    assert again.embed("text 0").tolist() == first.embed("text 0").tolist()
    assert len(server.requests) == len(calls) == 2
    other = Embedder("other", model, client(model), calls.append, known)
    other.embed("text 0")
    assert len(server.requests) == 3


def test_a_call_keeps_its_prices_and_counts_as_none(server: Endpoint) -> None:
    calls: list[EmbeddingCall] = []
    model = Model("m", base_url=server.url, input_price=2.0, output_price=0.0)
    embedder(model, calls).embed("x" * 4000)
    cost = cost_of_attempts(calls[0].attempts, Model("of the run"), NO_REPLY)
    assert (cost.calls, cost.attempts, cost.tokens) == (0, 1, 1000)
    assert cost.dollars == pytest.approx(1000 * 2.0 / 1e6)


def test_what_a_model_does_not_embed_has_no_vector_and_may_get_one_later() -> None:
    calls: list[EmbeddingCall] = []
    statuses = [400, None]
    with embedding_endpoint(lambda text: statuses.pop(0)) as server:
        asked = embedder(Model("m", base_url=server.url), calls)
        with pytest.raises(NoEmbedding, match="HTTP 400: not this text"):
            asked.embed("a")
        asked.embed("a")
    assert [call.reply is None for call in calls] == [True, False]


@pytest.mark.parametrize(
    "body",
    [
        {"data": [{"embedding": [0.0, 0.0]}]},
        {"data": [{"embedding": [None]}]},
        {"data": [{"embedding": []}]},
        {"data": [{"embedding": "AAAA"}]},
        {"data": []},
        {"data": [{"embedding": [1.0]}, {"embedding": [1.0]}]},
        {"choices": [{"message": {"content": "a reply"}}]},
        [],
        b'{"data": [{"embedding": [NaN]}]}',
    ],
    ids=str,
)
def test_an_answer_without_one_vector_is_an_attempt_that_failed(body: object) -> None:
    calls: list[EmbeddingCall] = []
    with Endpoint() as server:
        server.script = lambda number: Answer(body=answer_of(["a"]) if number == 0 else body)
        asked = embedder(Model("m", base_url=server.url), calls)
        asked.embed("a")  # so that the endpoint is known to answer
        with pytest.raises(NoEmbedding, match="the answer is no embedding"):
            asked.embed("b")
    assert [call.attempts[-1].status for call in calls] == ["ok", "error"]


@pytest.mark.parametrize("returned", [None, [[0.0]], [[1.0], [1.0]], [["a"]], "text", [1.0]])
def test_a_function_that_returns_no_vector_is_not_called_again(returned: object) -> None:
    calls, texts = list[EmbeddingCall](), list[str]()

    def embeds(given: list[str]) -> object:
        texts.extend(given)
        return returned

    model = Model("mine", call=embeds)
    asked = Embedder("mine", model, client(model, retries=3), calls.append, {})
    with pytest.raises(NoEmbedding, match="expected"):
        asked.embed("a")
    assert texts == ["a"]
    assert calls[0].reply is None


def test_an_endpoint_that_is_down_or_refuses_is_an_error_and_what_was_sent_is_logged() -> None:
    calls: list[EmbeddingCall] = []
    nobody = embedder(Model("m", base_url=closed_port()), calls)
    with pytest.raises(EndpointDown):
        nobody.embed("a")
    assert calls == []
    with Endpoint() as server:
        server.script = lambda number: Answer(status=401, body={"error": {"message": "no"}})
        with pytest.raises(EndpointRefused, match="check the key"):
            embedder(Model("m", base_url=server.url), calls).embed("a")
        server.script = lambda number: Answer(body={"choices": []})
        with pytest.raises(EndpointDown, match="whether it serves embeddings of a model named 'm'"):
            embedder(Model("m", base_url=server.url), calls).embed("a")
    assert [call.reply for call in calls] == [None, None]


def test_a_stop_ends_a_call_and_lets_none_begin() -> None:
    calls, stopping = list[EmbeddingCall](), threading.Event()
    with Endpoint() as server:
        server.script = lambda number: Answer(wait=30.0)
        model = Model("m", base_url=server.url)
        caller = client(model)
        asked = Embedder("m", model, caller, calls.append, {}, stopping)
        threading.Timer(0.5, caller.cancel).start()
        with pytest.raises(CallCancelled):
            asked.embed("a")
        assert [attempt.sent for attempt in calls[0].attempts] == [True]
        stopping.set()
        with pytest.raises(CallCancelled, match="a stop was asked for"):
            asked.embed("b")
    assert len(calls) == len(server.requests) == 1


def test_a_log_that_is_played_again_asks_nobody() -> None:
    played = Embedder("m", evo.Model("m"), None, lambda call: None, {})
    with pytest.raises(NoEmbedding, match="the log holds none of this program"):
        played.embed("a")
