"""Answers of a server as the clients of OpenAI's endpoints read them."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from evo.models.answer import retry_after
from evo.models.responses import Response, error_response, list_models


@given(st.floats(0, 1e6))
def test_who_waits_as_long_as_it_is_told_never_comes_too_early(seconds: float) -> None:
    headers = error_response(429, "slow down", "limit", retry_after=seconds).all_headers()
    lower = {name.lower(): value for name, value in headers.items()}
    exact = retry_after(lower)
    rounded = retry_after({"retry-after": lower["retry-after"]})  # all that some clients read
    assert exact is not None
    assert rounded is not None
    assert seconds <= exact + 1e-9 <= seconds + 0.0011
    assert seconds <= rounded <= seconds + 1


def test_only_who_may_try_again_is_told_when_and_only_who_may_not_that() -> None:
    plain = Response(200, b"").all_headers()
    assert plain == {"Content-Type": "application/json", "Server": "evo"}
    final = error_response(429, "spent", "budget", final=True).all_headers()
    assert final == {**plain, "x-should-retry": "false"}
    again = error_response(429, "later", "limit", retry_after=0.0).all_headers()
    assert again.keys() - plain.keys() == {"Retry-After", "retry-after-ms"}


def test_further_headers_come_last() -> None:
    made = Response(200, b"", kind="text/html", headers={"Server": "other", "X": "1"})
    assert made.all_headers() == {"Content-Type": "text/html", "Server": "other", "X": "1"}


def test_an_error_has_the_form_that_clients_look_for() -> None:
    made = error_response(404, 'no "such" model', "model_not_found")
    assert (made.status, made.kind) == (404, "application/json")
    assert msgspec.json.decode(made.content) == {
        "error": {
            "message": 'no "such" model',
            "type": "model_not_found",
            "code": "model_not_found",
            "param": None,
        }
    }


def test_models_are_listed_in_their_order() -> None:
    listed = msgspec.json.decode(list_models(iter("ba"), "me").content)
    assert listed["object"] == "list"
    assert [(each["id"], each["owned_by"]) for each in listed["data"]] == [("b", "me"), ("a", "me")]
    assert {each["object"] for each in listed["data"]} == {"model"}
