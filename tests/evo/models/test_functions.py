"""Functions as models: what they are passed, what they may answer."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import msgspec
import openai
import pytest
from endpoints import Answer, Endpoint
from model_calls import COMPLETION, MESSAGES, USAGE, ask

import evo
from evo.logs.records import Model, Sampling
from evo.models.client import (
    LONGEST_ERROR,
    CallCancelled,
    EndpointDown,
    EndpointMissing,
    ModelClient,
)
from evo.models.functions import model_of
from evo.models.limits import Slots
from evo.models.registry import ModelError, find_model, resolve_sampling


def say(messages: object) -> str:
    return "hi"


def answering(answer: object) -> list[Callable[..., object]]:
    """A plain and an async function that give an answer."""

    async def waits(messages: object) -> object:
        await asyncio.sleep(0)
        return answer

    return [lambda messages: answer, waits]


def test_a_text_a_reply_and_a_completion_are_replies() -> None:
    completion = openai.types.chat.ChatCompletion.model_validate(COMPLETION)
    whole = evo.Reply("hi", usage=USAGE, reasoning="so", finish_reason="stop")
    for answer in ("hi", whole, completion, COMPLETION):
        for function in answering(answer):
            call = ask(function)
            assert call.reply == "hi"
            (attempt,) = call.attempts
            assert (attempt.status, attempt.http_status) == ("ok", None)
            if answer != "hi":
                assert attempt.finish_reason == "stop"
                assert {n: (attempt.usage or {})[n] for n in USAGE} == USAGE
    assert ask(answering(whole)[0]).reasoning == "so"


def test_nothing_is_no_reply_and_anything_else_says_so() -> None:
    for answer in (None, "", evo.Reply(None)):
        for function in answering(answer):
            call = ask(function)
            assert (call.reply, call.rejected, call.attempts[0].status) == (None, None, "ok")
    for function in answering(7):
        assert "expected a str, None, evo.Reply or a chat completion, got 7" in str(
            ask(function).rejected
        )


def test_a_reply_that_a_log_cannot_hold_is_final_and_says_what_is_expected() -> None:
    """Asking again would give the same; only objects within a dict of counts are left out."""
    wrong = {
        "usage: expected a dict such as": evo.Reply("hi", usage=[1]),  # type: ignore[arg-type]
        "JSON cannot hold: .*evo.Reply": {"choices": [{"message": {"content": object()}}]},
    }
    for words, answer in wrong.items():
        for function in answering(answer):
            call = ask(function)
            [attempt] = call.attempts
            assert (call.reply, attempt.status) == (None, "error")
            assert re.search(words, attempt.error or "")
    [attempt] = ask(lambda _: evo.Reply("hi", usage={**USAGE, "about": object()})).attempts
    assert attempt.usage == {**USAGE, "about": "[cut: an object of type object]"}


def test_it_is_passed_what_it_has_parameters_for() -> None:
    seen: list[dict[str, object]] = []

    def takes(messages, seed, temperature, top_p=0.5, max_tokens=9, other=1):  # type: ignore[no-untyped-def]
        seen.append({"seed": seed, "temperature": temperature, "top_p": top_p, "max": max_tokens})
        return "hi"

    ask(takes)
    ask(takes, sampling={"top_p": 0.25, "max_tokens": 100, "temperature": 1.0})
    assert seen == [
        {"seed": 7, "temperature": 0.6, "top_p": 0.5, "max": 9},
        {"seed": 7, "temperature": 1.0, "top_p": 0.25, "max": 100},
    ]
    model = model_of(takes)
    assert resolve_sampling(model) == Sampling(temperature=0.6, top_p=None, max_tokens=None)
    with pytest.raises(ValueError, match="temperature"):
        resolve_sampling(model, temperature=9)


def error_of(status: int) -> Exception:
    error = RuntimeError(f"status {status}")
    error.status_code = status  # type: ignore[attr-defined]
    return error


REQUEST = httpx2.Request("POST", "http://localhost/")
RETRIED = [
    evo.TryAgain(),
    evo.TryAgain(0.01),
    ConnectionResetError("gone"),
    TimeoutError(),
    openai.APIConnectionError(request=REQUEST),
    openai.APITimeoutError(request=REQUEST),
    httpx2.ReadError("gone"),
    *(error_of(status) for status in (408, 409, 429, 500, 503)),
]


@pytest.mark.parametrize("error", RETRIED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("waits", [False, True])
def test_errors_of_the_connection_are_tried_again(error: Exception, waits: bool) -> None:
    raised = []

    def once(messages: object) -> str:
        if not raised:
            raised.append(1)
            raise error
        return "hi"

    async def once_async(messages: object) -> str:
        return once(messages)

    call = ask(once_async if waits else once)
    assert call.reply == "hi"
    assert [attempt.status == "ok" for attempt in call.attempts] == [False, True]
    assert call.attempts[0].error
    assert call.attempts[0].http_status == getattr(error, "status_code", None)


def test_it_waits_as_long_as_is_asked() -> None:
    times: list[float] = []

    def busy(messages: object) -> str:
        times.append(time.monotonic())
        if len(times) < 2:
            raise evo.TryAgain(0.3)
        return "hi"

    ask(busy)
    assert times[1] - times[0] >= 0.3


def test_any_other_error_is_final_in_its_own_words_and_nobody_answering_is_said() -> None:
    def wrong(messages: object) -> str:
        raise KeyError("oops")

    call = ask(wrong)
    assert len(call.attempts) == 1
    assert (call.rejected or "").startswith("KeyError: 'oops' (line ")

    def never(messages: object) -> str:
        raise ConnectionRefusedError("nobody there")

    with pytest.raises(EndpointDown, match=r"function of the model 'never' .* nobody there"):
        ask(never, retries=1)


def test_an_error_says_where_in_the_users_own_code_it_arose_and_shows_no_key() -> None:
    def choose(table: dict[str, str]) -> str:
        return table["reply"]

    def wrong(messages: object) -> str:
        return choose({})

    async def waits(messages: object) -> str:
        return wrong(messages)

    def in_a_library(messages: object) -> str:
        return str(msgspec.json.decode(b"{"))

    def deep(messages: object, left: int = 30) -> str:
        return deep(messages, left - 1) if left else choose({"why": "x" * 999})

    def with_key(messages: object) -> str:
        raise RuntimeError("refused", len("sk-a1a1a1a1a1a1a1a1a1a1"))

    for function in (wrong, waits):
        error = ask(function).attempts[0].error or ""
        assert re.match(
            r"KeyError: 'reply' \(line \d+ of test_functions.py, in choose: return table"
            r'\["reply"\]; called from line \d+ of test_functions.py, in wrong: return choose',
            error,
        )
        assert "functions.py, in post" not in error
    error = ask(in_a_library).attempts[0].error or ""
    assert "in in_a_library: return str(msgspec.json.decode" in error
    error = ask(deep).attempts[0].error or ""
    assert error.count("called from") == 2
    assert len(error) <= LONGEST_ERROR
    error = ask(with_key).attempts[0].error or ""
    assert "in with_key)" in error
    assert "sk-" not in error


def test_an_async_function_ends_at_the_deadline_and_when_it_is_cancelled() -> None:
    ended: list[str] = []

    async def slow(messages: object) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "late"

    started = time.monotonic()
    call = ask(slow, timeout=0.2, retries=0)
    assert call.attempts[0].status == "timeout"
    client = ModelClient(model_of(slow), Sampling(temperature=1.0, top_p=1.0, max_tokens=9),
                         slots=Slots(1))  # fmt: skip
    threading.Timer(0.2, client.cancel).start()
    with pytest.raises(CallCancelled):
        client.call(MESSAGES, seed=1)
    assert time.monotonic() - started < 30
    deadline = time.monotonic() + 30
    while len(ended) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_in_the_main_thread_a_plain_function_that_is_late_is_a_timeout_once_it_returns() -> None:
    threads: list[threading.Thread] = []

    def slow(messages: object) -> str:
        threads.append(threading.current_thread())
        time.sleep(0.3)
        return "late"

    slots = Slots(1)
    call = ask(slow, timeout=0.1, retries=0, slots=slots)
    assert (call.reply, call.attempts[0].status, slots.in_flight) == (None, "timeout", 0)
    assert re.fullmatch(
        r"the answer came after 0\.\d s, the limit is 0\.1 s", call.attempts[0].error or ""
    )
    assert threads == [threading.main_thread()]


def in_a_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_elsewhere_it_is_given_up_at_the_deadline_and_holds_its_slot_until_it_returns() -> None:
    goes_on, slots = threading.Event(), Slots(2)

    def slow(messages: object) -> str:
        goes_on.wait(60)
        return "late"

    began = time.monotonic()
    with pytest.warns(UserWarning, match=r"'slow' did not return .* holds its slot") as warned:
        call = in_a_thread(lambda: ask(slow, timeout=0.2, retries=1, slots=slots))
    assert 0.4 <= time.monotonic() - began < 30
    assert (call.reply, len(warned)) == (None, 1)
    assert [(attempt.status, attempt.sent) for attempt in call.attempts] == [("timeout", True)] * 2
    assert call.attempts[0].error == (
        "no answer within 0.2 s; the function goes on by itself, and what it returns is dropped"
    )
    assert slots.in_flight == 2
    goes_on.set()
    deadline = time.monotonic() + 30
    while slots.in_flight:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_elsewhere_cancelling_gives_it_up_at_once_and_it_counts_as_sent() -> None:
    goes_on, slots = threading.Event(), Slots(1)

    def slow(messages: object) -> str:
        client.cancel()
        goes_on.wait(60)
        raise ValueError("nobody hears it")

    sampling = Sampling(temperature=1.0, top_p=1.0, max_tokens=9)
    client = ModelClient(model_of(slow), sampling, slots=slots)
    with contextlib.closing(client), pytest.raises(CallCancelled) as cancelled:
        in_a_thread(lambda: client.call(MESSAGES, seed=1))
    (attempt,) = cancelled.value.attempts
    assert (attempt.status, attempt.sent, slots.in_flight) == ("error", True, 1)
    assert attempt.error == (
        "the call was cancelled; the function goes on by itself, and what it returns is dropped"
    )
    goes_on.set()


def test_what_a_plain_function_gives_in_a_thread_is_what_it_gives_here() -> None:
    def late(messages: object) -> str:
        raise TimeoutError("of its own")

    async def waits(messages: object) -> str:
        return "hi"

    def passes_on(messages: object) -> object:
        return waits(messages)

    def wrong(messages: object) -> str:
        raise KeyError("oops")

    for function in (say, late, passes_on, wrong):
        here, there = ask(function, retries=1), in_a_thread(lambda f=function: ask(f, retries=1))
        assert (here.reply, here.rejected) == (there.reply, there.rejected)
        for one, other in zip(here.attempts, there.attempts, strict=True):
            took = [re.sub(r"\d\.\d s$", "", each.error or "") for each in (one, other)]
            assert (one.status, took[0]) == (other.status, took[1])


# --- what identifies it


def test_its_name_and_its_source_identify_it_and_only_the_source_is_logged() -> None:
    factor = 2

    def mine(messages: object) -> str:
        return "x" * factor

    model = find_model(mine)
    assert (model.name, model.way, model.function) == ("mine", "function", mine)
    assert "def mine" in model.source
    assert find_model(mine) == model
    logged = msgspec.json.decode(msgspec.json.encode(model), type=Model)
    assert (logged, logged.function) == (model, None)
    with pytest.raises(EndpointMissing, match=r"does not hold it: .* give it again, model=mine"):
        ModelClient(logged, Sampling(temperature=1.0, top_p=1.0, max_tokens=9), slots=Slots(1))
    factor = 3
    assert find_model(mine).version != model.version

    named = find_model(evo.Model("other", call=mine, input_price=1.0))
    assert (named.name, named.version, named.input_price) == ("other", None, 1.0)
    assert (named.function, "def mine" in named.source) == (mine, True)
    assert named.but(temperature=0.1).function is mine


def test_without_a_source_it_is_like_no_other() -> None:
    scope: dict[str, Any] = {}
    exec("def nowhere(messages): return 'hi'", scope)
    first, second = find_model(scope["nowhere"]), find_model(scope["nowhere"])
    assert first.source == ""
    assert first.version != second.version
    assert ask(scope["nowhere"]).reply == "hi"


def test_a_source_that_seems_to_hold_a_key_is_not_logged() -> None:
    def keyed(messages: object) -> str:
        return f"key {'sk-abcdefghijklmnopqrstuvwx'}"

    assert "sk-abc" not in repr(find_model(keyed))
    assert find_model(keyed).version


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: evo.Model("m", call=3), "call: expected a function, got 3"),
        (lambda: evo.Model("m", client=3), "client: expected a client object of openai, got 3"),
        (lambda: find_model(3), r"expected a name, evo\.Model\(\.\.\.\) or a function"),
        (lambda: find_model(int), r"expected a name, evo\.Model\(\.\.\.\) or a function"),
        (
            lambda: find_model(openai.OpenAI(api_key="none", base_url="http://localhost/v1")),
            r"a client object is passed as evo\.Model\('its model', client=\.\.\.\)",
        ),
        (lambda: find_model(len, "http://localhost/v1"), "base_url: the model 'len' is a function"),
    ],
)
def test_a_mistake_is_said(given: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        given()


# --- names, addresses and prices


def test_a_name_goes_wherever_the_user_points(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "LLM_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match="unknown model 'some-llm'"):
        find_model("some-llm")
    assert find_model(evo.Model("some-llm")).name == "some-llm"
    assert find_model("some-llm", "http://localhost/v1").base_url == "http://localhost/v1"
    assert find_model("qwen3-8b", "http://localhost/v1").active_parameters
    with Endpoint() as endpoint:
        endpoint.script = lambda _: Answer(body=COMPLETION)
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        assert ask("some-llm").reply == "hi"
    assert endpoint.requests[0]["model"] == "some-llm"


def test_prices_come_from_the_data_for_the_provider_or_the_maker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("genai_prices")
    for name in ("OPENAI_BASE_URL", "LLM_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    made = find_model(evo.Model("gpt-4o"))
    assert (made.input_price, made.cached_price, made.output_price) == (2.5, 1.25, 10.0)
    assert made.context == 128_000
    assert "genai-prices" in made.filled
    assert find_model(evo.Model("gpt-4o", base_url="https://api.openai.com/v1")) == made.but(
        base_url="https://api.openai.com/v1"
    )
    for elsewhere in ("http://localhost/v1", "https://nobody.example/v1"):
        assert find_model(evo.Model("gpt-4o", base_url=elsewhere)).input_price is None
    own = find_model(evo.Model("gpt-4o", input_price=1.0, output_price=2.0))
    assert (own.input_price, own.cached_price, own.output_price) == (1.0, None, 2.0)
    tiers = find_model(evo.Model("gemini-2.5-pro"))
    assert tiers.input_price == 1.25
    assert "short prompts" in tiers.filled
    assert find_model(evo.Model("gpt-4o", call=len)).input_price is None
