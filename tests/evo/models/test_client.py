"""The client against a real HTTP server that does as a script says."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from endpoints import Answer, Endpoint, closed_port, together

from evo.logs.records import Model, Sampling
from evo.models.answer import Exchange, retry_after
from evo.models.client import (
    CallCancelled,
    EndpointDown,
    EndpointMissing,
    EndpointRefused,
    ModelClient,
    find_endpoint,
)
from evo.models.limits import Slots

SAMPLING = Sampling(temperature=0.6, top_p=0.95, max_tokens=100)
MESSAGES = [{"role": "user", "content": "hello"}]
USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": None},
    "queue_time": 0.25,
}
KEY = "sk-very-secret-0123456789"
VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "LLM_API_BASE", "LLM_API_KEY")


def completion(text: str | None = "hi", **choice: object) -> dict[str, object]:
    message = {"role": "assistant", "content": text}
    return {"choices": [{"message": message, "finish_reason": "stop"} | choice], "usage": USAGE}


def in_turn(*answers: Answer) -> Callable[[int], Answer]:
    """A script of one answer after the other; the last is repeated."""
    return lambda number: answers[min(number, len(answers) - 1)]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        server.script = lambda number: Answer(body=completion())
        yield server


@pytest.fixture
def client(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., ModelClient]]:
    monkeypatch.setenv("TEST_KEY", KEY)
    made: list[ModelClient] = []

    def make(**settings: object) -> ModelClient:
        model = settings.pop(
            "model", Model(name="m", base_url=endpoint.url, key_variable="TEST_KEY")
        )
        settings = {"slots": Slots(50), "back_off": 0.01, "timeout": 10.0} | settings
        made.append(ModelClient(model, SAMPLING, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_call_is_one_request_with_the_settings_and_the_usage_verbatim(endpoint, client):
    call = client().call(MESSAGES, seed=5)
    request = {"model": "m", "messages": MESSAGES, "seed": 5, "temperature": 0.6, "top_p": 0.95}
    assert endpoint.requests == [request | {"max_tokens": 100}]
    assert (call.reply, call.finish_reason) == ("hi", "stop")
    assert call.reasoning is call.rejected is None
    (attempt,) = call.attempts
    assert (attempt.status, attempt.http_status, attempt.usage) == ("ok", 200, USAGE)
    assert 0 < attempt.latency < 60


def test_extra_fields_replace_add_and_leave_out(endpoint, client):
    extra = {"top_k": 20, "temperature": 1, "seed": None}
    model = Model(name="m", id="org/M", base_url=endpoint.url, extra_body=extra)
    client(model=model).call(MESSAGES, seed=5)
    (request,) = endpoint.requests
    assert request["model"] == "org/M"
    assert (request["top_k"], request["temperature"], "seed" in request) == (20, 1, False)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart(endpoint, client, name):
    message = {"content": None, name: "let me see"}
    endpoint.script = lambda _: Answer(body=completion(message=message))
    call = client().call(MESSAGES, seed=1)
    assert (call.reply, call.reasoning) == ("", "let me see")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_passing_errors_are_retried_and_all_recorded(endpoint, client, status):
    later = Answer(status, {"error": {"message": "later"}})
    endpoint.script = in_turn(later, Answer(body=b"<html>"), Answer(body=completion()))
    call = client().call(MESSAGES, seed=1)
    assert [a.http_status for a in call.attempts] == [status, 200, 200]
    assert [a.status for a in call.attempts] == ["error", "error", "ok"]
    assert call.attempts[0].error == f"HTTP {status}: later"
    assert "no chat completion" in (call.attempts[1].error or "")
    assert len(endpoint.requests) == 3
    assert call.reply == "hi"


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_will_never_do_is_rejected_at_once(endpoint, client, status):
    error = {"message": "too many\ud800 tokens", "code": "insufficient_quota"}
    endpoint.script = lambda _: Answer(status, {"error": error})
    call = client().call(MESSAGES, seed=1)
    assert (len(endpoint.requests), call.reply) == (1, None)
    assert call.rejected == f"HTTP {status}: too many? tokens"
    assert call.attempts[0].http_status == status


@pytest.mark.parametrize("status", [401, 402, 403, 404, 429])
def test_an_endpoint_that_refuses_everything_stops_the_run(endpoint, client, status):
    endpoint.script = lambda _: Answer(
        status, {"error": {"message": "no", "code": "insufficient_quota"}}
    )
    with pytest.raises(EndpointRefused, match=f"{endpoint.url} refuses: HTTP {status}: no"):
        client().call(MESSAGES, seed=1)
    assert len(endpoint.requests) == 1


def test_errors_stop_the_run_only_if_the_endpoint_never_answered_and_is_not_busy(endpoint, client):
    endpoint.script = in_turn(Answer(body=completion()), Answer(500))
    shared = client(retries=1)
    assert shared.call(MESSAGES, seed=1).reply == "hi"
    assert shared.call(MESSAGES, seed=2).reply is None
    with pytest.raises(EndpointDown, match=r"gives no reply: 2 attempts.* status 500"):
        client(retries=1).call(MESSAGES, seed=3)
    endpoint.script = lambda _: Answer(body={"choices": [], "usage": USAGE})
    with pytest.raises(EndpointDown) as raised:
        client(retries=1).call(MESSAGES, seed=3)
    assert [attempt.usage for attempt in raised.value.attempts] == [USAGE, USAGE]
    assert "answers with status 200" in str(raised.value)
    assert "is it running" not in str(raised.value)
    endpoint.script = lambda _: Answer(429, {"error": "slow down"})
    call = client(retries=3).call(MESSAGES, seed=1)
    assert (call.reply, call.rejected, len(call.attempts)) == (None, None, 4)


def test_no_connection_is_an_endpoint_that_is_down(client):
    url = closed_port()
    with pytest.raises(EndpointDown) as raised:
        client(model=Model(name="m", base_url=url), retries=2).call(MESSAGES, seed=1)
    for expected in (url, "3 attempts", "no connection", "is it running", "/v1"):
        assert expected in str(raised.value)


# --- time


def test_a_timeout_bounds_the_whole_attempt_against_a_trickling_server(endpoint, client):
    endpoint.script = lambda _: Answer(body=completion(), trickle=0.2)  # some 60 s in all
    call = client(timeout=0.4, retries=1).call(MESSAGES, seed=1)
    assert (call.reply, [a.status for a in call.attempts]) == (None, ["timeout", "timeout"])
    assert all(0.35 < a.latency < 30 for a in call.attempts)
    assert endpoint.dropped.wait(30)


def test_latency_leaves_out_waiting_for_a_slot_and_backing_off(endpoint, client):
    later = Answer(503, headers={"retry-after": "0.2"})
    endpoint.script = in_turn(later, Answer(body=completion(), wait=0.1))
    shared = client(slots=Slots(1))
    started = time.monotonic()
    calls = together(4, lambda seed: shared.call(MESSAGES, seed=seed))
    elapsed = time.monotonic() - started
    assert elapsed > 0.4  # four in a row, one at a time
    assert sum(a.latency for call in calls for a in call.attempts) <= elapsed


def test_the_time_to_wait_is_read_in_every_form():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    later = format_datetime(now + timedelta(seconds=90), usegmt=True)
    earlier = format_datetime(now - timedelta(seconds=90), usegmt=True)
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after({"retry-after": "9"}) == 9
    assert retry_after({"retry-after": later}, now=now) == 90
    assert retry_after({"retry-after": earlier}, now=now) == 0
    # The answer's own clock counts, whatever this machine's says.
    assert retry_after({"retry-after": later, "date": earlier}, now=now) > 90
    assert retry_after({"retry-after": later, "date": "what?"}, now=now) == 90
    for nonsense in ("soon", "-3", "nan", "inf", ""):
        assert retry_after({"retry-after": nonsense}, now=now) is None
    assert retry_after({}) is None


@pytest.mark.parametrize("asked", ["0", "Wed, 21 Oct 2015 07:28:00 GMT", "-1"])
def test_a_short_or_past_retry_after_does_not_end_the_back_off(
    client: Callable[..., ModelClient], endpoint: Endpoint, asked: str
) -> None:
    began, overloaded = time.monotonic(), 0.4
    late = Answer(503, headers={"retry-after": asked})

    def script(_: int) -> Answer:
        return Answer(body=completion()) if time.monotonic() - began > overloaded else late

    endpoint.script = script
    caller = client(back_off=0.1, retries=6)
    calls = together(16, lambda seed: caller.call(MESSAGES, seed=seed))
    assert [call.reply for call in calls] == ["hi"] * 16


def test_pauses_are_as_asked_or_double_at_most_and_keyed_by_the_seed(endpoint, client, monkeypatch):
    def pauses(back_off: float, seed: int = 1) -> list[float]:
        seen, made = list[float](), client(back_off=back_off)
        monkeypatch.setattr(made._cancelled, "wait", lambda seconds: bool(seen.append(seconds)))
        made.call(MESSAGES, seed=seed)
        return seen

    endpoint.script = lambda _: Answer(429)
    once, again, other = pauses(8.0), pauses(8.0), pauses(8.0, seed=2)
    assert once == again != other
    assert all(0 <= p <= bound for p, bound in zip(once, (8, 16, 30, 30, 30), strict=True))
    doubled = [low / high for low, high in zip(pauses(0.3), pauses(100.0), strict=True)]
    assert doubled == pytest.approx([0.01, 0.02, 0.04, 0.08, 0.16])
    endpoint.script = lambda _: Answer(429, headers={"retry-after-ms": "10"})
    assert all(0.01 <= pause <= 0.011 for pause in pauses(1e-4))
    assert pauses(8.0) == [max(0.01, pause) for pause in once]


# --- cancelling, threads


@pytest.mark.parametrize("phase", ["answering", "trickling", "backing off", "waiting for a slot"])
def test_cancel_ends_a_call_at_once_in_every_phase(endpoint, client, phase):
    endpoint.script = {
        "answering": lambda _: Answer(wait=100),
        "trickling": lambda _: Answer(body=completion(), trickle=0.5),
        "backing off": lambda _: Answer(503, headers={"retry-after": "100"}),
        "waiting for a slot": lambda _: Answer(wait=100),
    }[phase]
    shared = client(slots=Slots(1 if phase == "waiting for a slot" else 5), timeout=100)

    def work(number: int) -> None:
        if number < 3:
            with pytest.raises(CallCancelled):
                shared.call(MESSAGES, seed=1)
            return
        while not endpoint.requests:
            time.sleep(0.01)
        time.sleep(0.2)
        shared.cancel()

    together(4, work)
    if phase in ("answering", "trickling"):
        assert endpoint.dropped.wait(30)
    with pytest.raises(CallCancelled):
        shared.call(MESSAGES, seed=1)


def test_deadline_and_cancelling_reach_through_tls(tls_endpoint, client):
    tls_endpoint.script = lambda number: Answer(body=completion())
    model = Model(name="m", base_url=tls_endpoint.url)
    assert client(model=model).call(MESSAGES, seed=1).reply == "hi"
    tls_endpoint.script = in_turn(Answer(body=completion(), trickle=0.5))
    slow = client(model=model, timeout=0.4, retries=0).call(MESSAGES, seed=1)
    assert [a.status for a in slow.attempts] == ["timeout"]
    shared = client(model=model, timeout=100)
    timer = threading.Timer(0.3, shared.cancel)
    timer.start()
    started = time.monotonic()
    with pytest.raises(CallCancelled):
        shared.call(MESSAGES, seed=1)
    assert time.monotonic() - started < 30
    timer.join()


# --- the key, the configuration


def test_the_key_is_sent_and_appears_nowhere_else(endpoint, client, caplog):
    caplog.set_level(logging.DEBUG)
    endpoint.script = lambda n: Answer(500, {"error": f"bad {KEY} here"})
    shared = client(retries=0)
    with pytest.raises(EndpointDown) as down:
        shared.call(MESSAGES, seed=1)
    long = [Answer(400, b"x" * (480 + n) + KEY.encode()) for n in range(20)]
    endpoint.script = in_turn(*long)
    for _ in long:  # where it is cut, no part of the key is left
        assert KEY[:6] not in (shared.call(MESSAGES, seed=1).rejected or "")
    endpoint.script = lambda n: Answer(400, KEY.encode())
    call = shared.call(MESSAGES, seed=1)
    endpoint.script = lambda n: Answer(401, {"error": {"message": f"Incorrect API key: {KEY}"}})
    with pytest.raises(EndpointRefused) as refused:
        shared.call(MESSAGES, seed=1)
    assert {each["authorization"] for each in endpoint.headers} == {f"Bearer {KEY}"}
    shown = [repr(down.value), repr(refused.value), repr(call), repr(shared), caplog.text]
    shown += [repr(find_endpoint(shared.model)), repr(vars(shared))]
    assert all(KEY not in text for text in shown)
    assert "[key]" in (call.rejected or "")
    assert down.value.__cause__ is None
    assert refused.value.__cause__ is None


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def put(**variables: str) -> None:
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return put


def test_a_key_goes_only_to_the_host_it_belongs_to(environment):
    model = Model(name="m")
    openai = {"OPENAI_BASE_URL": "https://a.example/v1", "OPENAI_API_KEY": "ka"}
    other = {"LLM_API_BASE": "https://b.example/v1", "LLM_API_KEY": "kb"}
    for variables, base_url, key in [
        (openai, "https://a.example/v1", "ka"),
        (other, "https://b.example/v1", "kb"),
        (openai | other, "https://a.example/v1", "ka"),
        ({"OPENAI_API_KEY": "ka"}, "https://api.openai.com/v1", "ka"),
        (other | {"OPENAI_API_KEY": "ka"}, "https://b.example/v1", "kb"),
    ]:
        environment(**variables)
        found = find_endpoint(model)
        assert (found.base_url, found.key) == (base_url, key)
    environment(LLM_API_BASE="https://b.example/v1", OPENAI_API_KEY="ka")
    with pytest.raises(EndpointMissing, match=r"no key .* set LLM_API_KEY"):
        find_endpoint(model)


def test_what_is_missing_is_said_with_the_variables_to_set(environment):
    environment()
    with pytest.raises(EndpointMissing) as raised:
        ModelClient(Model(name="m"), SAMPLING, slots=Slots(1))
    assert all(name in str(raised.value) for name in VARIABLES)
    with pytest.raises(EndpointMissing, match="set MY_KEY"):
        find_endpoint(Model(name="m", base_url="https://a.example/v1", key_variable="MY_KEY"))
    with pytest.raises(EndpointMissing, match="looks like"):
        find_endpoint(Model(name="m", base_url="localhost:8000"))


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8", "10.2.3.4", "node17:80"])
def test_a_local_endpoint_needs_no_key(environment, host):
    environment()
    assert find_endpoint(Model(name="m", base_url=f"http://{host}/v1")).key == "none"


def test_a_key_that_a_local_endpoint_was_meant_to_get_is_missed(environment):
    environment()
    with pytest.warns(UserWarning, match="MY_KEY is not set: .* go without a key"):
        found = find_endpoint(
            Model(name="m", base_url="http://localhost/v1", key_variable="MY_KEY")
        )
    assert found.key == "none"


def test_openai_gets_the_limit_under_its_newer_name(environment, monkeypatch):
    environment(OPENAI_API_KEY="k")
    seen: list[dict[str, object]] = []

    class Wire:
        async def post(self, body: dict[str, object]) -> Exchange:
            seen.append(body)
            return Exchange(200, {}, json.dumps(completion()).encode())

        def close(self) -> None: ...

    ModelClient(Model(name="gpt"), SAMPLING, slots=Slots(1), wire=Wire()).call(MESSAGES, seed=1)
    assert (seen[0]["max_completion_tokens"], "max_tokens" in seen[0]) == (100, False)


def test_a_proxy_of_the_environment_is_used(endpoint, client, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", endpoint.url.removesuffix("/v1"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    away = Model(name="m", base_url="http://far.internal/v1")
    assert client(model=away).call(MESSAGES, seed=1).reply == "hi"
    near = Model(name="m", base_url=closed_port())
    with pytest.raises(EndpointDown):
        client(model=near, retries=0).call(MESSAGES, seed=1)
    assert len(endpoint.requests) == 1
