"""Which way leads to a model."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import openai
import pytest
from model_calls import MESSAGES

import evo
from evo.models import background
from evo.models.functions import FunctionWire
from evo.models.library import LibraryWire
from evo.models.offline import OFFLINE_URL
from evo.models.offline.endpoint import respond
from evo.models.wire import OfflineWire, open_wire

SOMEWHERE = "http://127.0.0.1:1/v1"


def say(messages: object) -> str:
    return "hi"


@pytest.mark.parametrize(
    ("made", "url", "kind"),
    [
        ({"call": say}, SOMEWHERE, FunctionWire),
        ({"call": say}, OFFLINE_URL, FunctionWire),  # whatever address the model also has
        ({}, OFFLINE_URL, OfflineWire),
        ({}, SOMEWHERE, LibraryWire),
    ],
)
def test_a_function_comes_before_an_address(made: dict[str, Any], url: str, kind: type) -> None:
    with contextlib.closing(open_wire(evo.Model("m", **made), url, "key", 1.0)) as way:
        assert type(way) is kind


@pytest.mark.parametrize("share", [False, True])
def test_a_users_client_is_used_for_its_own_address(share: bool) -> None:
    with openai.OpenAI(base_url=SOMEWHERE, api_key="k") as client:
        model = evo.Model("m", client=client, share=share)
        way: Any = open_wire(model, SOMEWHERE, "key", 1.5)
        assert (way._client.api_key, way._client.max_retries) == ("k", 0)
        assert way._client.timeout == 1.5


@pytest.mark.parametrize("share", [False, True])
def test_an_async_client_keeps_its_own_connections_only_where_it_is_shared(share: bool) -> None:
    client = openai.AsyncOpenAI(base_url=SOMEWHERE, api_key="k")
    model = evo.Model("m", client=client, share=share)
    with contextlib.closing(open_wire(model, SOMEWHERE, "key", 1.5)) as way:
        assert (way._client._client is client._client) == share  # type: ignore[attr-defined]
    background.wait(client.close())


@pytest.mark.parametrize("fields", [{}, {"max_tokens": 3}, {"temperature": 9}, {"model": "other"}])
def test_the_offline_model_answers_here_as_its_endpoint_does(fields: dict[str, Any]) -> None:
    body = {"model": "offline", "messages": MESSAGES, "seed": 1, **fields}
    found = OfflineWire().post(body)
    expected = respond("POST", "/v1/chat/completions", msgspec.json.encode(body))
    assert (found.status, found.content) == (expected.status, expected.content)
