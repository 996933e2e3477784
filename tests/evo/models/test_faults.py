"""Endpoints that break HTTP, on raw sockets: no call gets the reply of another one."""

from __future__ import annotations

import contextlib
import importlib
import json
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import openai
import pytest
from endpoints import together
from faults import ENDLESS, PHASES, RIGHT, WRONG, Send, faulty, second_late, stuck_in, text_of

from evo.logs.records import Model, Sampling
from evo.models.client import Call, CallCancelled, Endpoint, EndpointError, ModelClient
from evo.models.limits import Slots

SAMPLING = Sampling(temperature=0.6, top_p=0.95, max_tokens=100)


LATE = 2.0
"""Seconds by which an end may be late here, where other tests run; a benchmark measures it."""


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    """The first call of a process loads libraries, which takes longer than some deadlines."""
    importlib.import_module("evo.models.library")


def client_of(given: str | Model, **how: Any) -> ModelClient:
    model = Model(name="m", base_url=given) if isinstance(given, str) else given
    return ModelClient(
        model, SAMPLING, **{"slots": Slots(8), "back_off": 0.01, "timeout": 3.0, **how}
    )


def ask(client: ModelClient, text: str) -> Call:
    try:
        return client.call([{"role": "user", "content": text}], seed=1)
    except EndpointError as error:
        return Call(error.attempts)


TEXTS = [f"child {number}" for number in range(6)]


@pytest.mark.parametrize("name", RIGHT)
def test_an_odd_answer_is_read_and_the_next_ones_are_their_own(name: str) -> None:
    with (
        faulty(RIGHT[name], *TEXTS[1::2]) as server,
        contextlib.closing(client_of(server.url, retries=0)) as client,
    ):
        assert [ask(client, text).reply for text in TEXTS] == TEXTS


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_a_failed_attempt_and_no_other_call_has_it(name: str) -> None:
    with (
        faulty(WRONG[name], *TEXTS[1::2]) as server,
        contextlib.closing(client_of(server.url, retries=2)) as client,
    ):
        calls = [ask(client, text) for text in TEXTS]
    assert [call.reply for call in calls] == TEXTS
    assert [len(call.attempts) for call in calls] == [1, 2] * 3
    for call in calls[1::2]:
        assert call.attempts[0].status == "error"
        assert call.attempts[0].error
        assert call.attempts[0].sent


def test_an_answer_that_nobody_asked_for_is_not_read() -> None:
    with (
        faulty(second_late, *TEXTS) as server,
        contextlib.closing(client_of(server.url, retries=2)) as client,
    ):
        replies = []
        for text in TEXTS:
            replies.append(ask(client, text).reply)
            time.sleep(0.15)  # the answer that is too much has arrived
    assert replies == TEXTS


ODD_KEY = 'sk-"a/b\\c+d&e'


def spelt(key: str) -> list[str]:
    """The key as JSON may write it."""
    plain = json.dumps(key)[1:-1]
    escaped = "".join(f"\\u{ord(c):04x}" for c in key)
    mixed = "".join(f"\\u{ord(c):04X}" if k % 3 else json.dumps(c)[1:-1] for k, c in enumerate(key))
    forms = [plain, plain.replace("/", "\\/"), escaped, mixed]
    return [*forms, *(json.dumps(form)[1:-1] for form in forms), quote(key, safe="")]


@pytest.mark.parametrize("key", ["sk-gate/0123", ODD_KEY])
def test_no_spelling_of_the_key_leaves_an_endpoint(key: str) -> None:
    endpoint = Endpoint("http://127.0.0.1:1/v1", key)
    for form in spelt(key):
        assert endpoint.hide(f'{{"error": "bad {form} here"}}'.encode()) == (
            b'{"error": "bad [key] here"}'
        )
    for coding in ("utf-8", "utf-16-le", "utf-16-be"):
        assert endpoint.hide(key.encode(coding)) == b"[key]"
    harmless = rb'{"a": "\u0073\u006b %73 \\/ x"}' * 100
    assert endpoint.hide(harmless) == harmless
    assert Endpoint("http://127.0.0.1:1/v1", "none").hide(b"none") == b"none"


# --- deadlines and cancelling


SYNC_PHASES = ("connecting", "TLS", *ENDLESS)
"""Those in which a sync client, with connections of its own, is stuck as ours is."""


@contextlib.contextmanager
def reached(kind: str, url: str, **how: Any) -> Iterator[ModelClient]:
    """A client of ours at an address, or through a user's sync client."""
    with openai.OpenAI(api_key="k", base_url=url) as own:
        given = Model(name="m", client=own) if kind == "sync" else url
        with contextlib.closing(client_of(given, **how)) as client:
            yield client


@pytest.mark.parametrize(
    ("kind", "phase"),
    [
        *(("address", phase) for phase in PHASES),
        *(("sync", phase) for phase in SYNC_PHASES),
    ],
)
def test_the_deadline_and_cancelling_hold_in_every_phase(kind: str, phase: str) -> None:
    text = text_of(phase)
    with stuck_in(phase) as url, reached(kind, url, retries=0, timeout=0.5) as client:
        began = time.monotonic()
        call = ask(client, text)
        assert 0.5 <= time.monotonic() - began < 0.5 + LATE
        (attempt,) = call.attempts
        ends_itself = kind == "sync" and phase in ("connecting", "TLS")
        assert attempt.status == "timeout" or (ends_itself and not attempt.sent)
    with stuck_in(phase) as url, reached(kind, url, timeout=30.0) as client:
        cancelled: list[float] = []

        def cancel() -> None:
            cancelled.append(time.monotonic())
            client.cancel()

        threading.Timer(0.3, cancel).start()
        with pytest.raises(CallCancelled) as raised:
            client.call([{"role": "user", "content": text}], seed=1)
        assert time.monotonic() - cancelled[0] < LATE
        assert [(each.status, each.sent) for each in raised.value.attempts] == [("error", True)]


def test_a_neighbour_of_an_unasked_101_keeps_its_reply() -> None:
    def answer(text: str, send: Send) -> None:
        time.sleep(0.3)
        WRONG["101 unasked, the answer later"](text, send)

    texts = [f"call {number}" for number in range(64)]
    with (
        faulty(answer, *texts[::4]) as server,
        contextlib.closing(client_of(server.url, retries=1, slots=Slots(64))) as client,
    ):
        for _ in range(3):
            calls = together(64, lambda number: ask(client, texts[number]))
            assert [call.reply for call in calls] == texts
