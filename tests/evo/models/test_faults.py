"""Endpoints that break HTTP, on raw sockets: no call gets the reply of another one."""

from __future__ import annotations

import contextlib
import json
import time
from urllib.parse import quote

import pytest
from faults import RIGHT, WRONG, faulty, second_late

from evo.logs.records import Model, Sampling
from evo.models.client import Call, Endpoint, EndpointError, ModelClient
from evo.models.limits import Slots

SAMPLING = Sampling(temperature=0.6, top_p=0.95, max_tokens=100)


def client_of(url: str, **how: float) -> ModelClient:
    model = Model(name="m", base_url=url)
    return ModelClient(model, SAMPLING, slots=Slots(8), back_off=0.01, **{"timeout": 3.0, **how})


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


UNMENDED = {
    "two lengths",
    "two lengths in one line",
    "a length and chunks",
    "a length with a sign",
    "a length below 0",
    "a chunk's size with 0x",
    "a header without a colon",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.xfail(strict=True)] if n in UNMENDED else [])
        for n in WRONG
    ],
)
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
