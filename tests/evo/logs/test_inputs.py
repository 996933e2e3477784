"""What a run is given: limits, models, and options of two names; no log becomes unreadable."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.logs.inputs import (
    MOST_INT,
    Limits,
    Model,
    TaskRecord,
    as_float,
    at_least,
    limits_of,
    one_of,
    spelled,
    switch,
)


def read_back(record):
    return msgspec.json.decode(msgspec.json.encode(record), type=type(record))


@given(st.floats(1e-3, 1e9), st.integers(1, MOST_INT), st.booleans())
def test_limits_come_back_from_a_log_as_they_were(seconds, number, auto):
    limits = Limits(seconds=seconds, memory_mb=number, processes=number, auto=auto)
    assert read_back(limits) == limits


def test_numbers_of_numpy_are_limits_that_a_log_holds():
    limits = Limits(seconds=np.float32(2.5), memory_mb=np.int64(512))
    assert read_back(limits) == Limits(seconds=2.5, memory_mb=512)


@pytest.mark.parametrize("name", ["memory_mb", "processes", "files_mb", "value_mb", "output_kb"])
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (512.5, TypeError, "expected a whole number, got 512.5"),
        (2**63, ValueError, "expected at most 9,223,372,036,854,775,807"),
        (0, ValueError, "must be positive and finite, got 0"),
        (-1, ValueError, "must be positive and finite, got -1"),
        (True, ValueError, "must be positive and finite, got True"),
        ("512", TypeError, "expected a number, got '512'"),
    ],
)
def test_a_limit_that_no_log_holds_is_refused_at_once(name, value, error, message):
    with pytest.raises(error, match=message):
        Limits(**{name: value})


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan, 10**400, True])
def test_a_time_limit_is_positive_and_finite(seconds):
    with pytest.raises(ValueError, match="limit 'seconds' must be positive and finite"):
        Limits(seconds=seconds)


def test_auto_is_a_switch_and_no_number_of_seconds():
    with pytest.raises(ValueError, match="limit 'seconds': expected a number; auto=True"):
        Limits(seconds="auto")
    with pytest.raises(TypeError, match="limit 'auto': expected True or False, got 1"):
        Limits(auto=1)


@pytest.mark.parametrize(
    ("given_limits", "fields"),
    [
        ({"seconds": "auto"}, {"auto": True}),
        ({"seconds": 5}, {"seconds": 5, "auto": False}),
        ({"seconds": 5, "auto": True}, {"seconds": 5, "auto": True}),
        ({"memory_mb": 9}, {"memory_mb": 9}),
        ({}, {}),
    ],
)
def test_a_number_of_seconds_alone_is_not_fixed_by_the_run(given_limits, fields):
    before = dict(given_limits)
    assert spelled(given_limits) == fields
    assert given_limits == before


def test_limits_that_are_given_replace_only_what_they_name():
    base = Limits(seconds=7, memory_mb=100, auto=True)
    assert limits_of({"memory_mb": 50}, base) == Limits(seconds=7, memory_mb=50, auto=True)
    assert limits_of({"seconds": 3}, base) == Limits(seconds=3, memory_mb=100)
    assert limits_of({"seconds": "auto"}, Limits(seconds=9)) == Limits(seconds=9, auto=True)
    assert limits_of(Limits(seconds=1), base) == Limits(seconds=1)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (5, TypeError, "limits: expected evo.Limits or a dict, got 5"),
        ({"secs": 5}, ValueError, r"limits: .*secs.* \(there are: seconds, memory_mb,"),
        ({"memory_mb": 0.5}, ValueError, "limits: Expected `int`"),
        ({"seconds": -2}, ValueError, "limits: limit 'seconds' must be positive"),
    ],
)
def test_wrong_limits_are_answered_in_words(wrong, error, message):
    with pytest.raises(error, match=message):
        limits_of(wrong, Limits())


def test_a_run_fixes_only_a_limit_that_is_automatic():
    auto, plain = Limits(seconds=60, auto=True), Limits(seconds=60)
    assert auto.fixed(2.5) == Limits(seconds=2.5)
    assert auto.fixed(None) is auto
    assert plain.fixed(2.5) is plain


@pytest.mark.parametrize(
    ("number", "value"),
    [(3, 3.0), (True, 1.0), (10**400, math.inf), (-(10**400), -math.inf), (np.float32(0.5), 0.5)],
)
def test_any_number_is_a_float_and_what_none_holds_is_infinite(number, value):
    assert as_float(number) == value


def test_whole_numbers_have_both_ends():
    assert at_least("n", np.int32(4), 4) == 4
    assert type(at_least("n", np.int32(4), 4)) is int
    assert at_least("n", MOST_INT, 0) == MOST_INT
    for value, error, message in (
        (3, ValueError, "n: expected at least 4, got 3"),
        (8, ValueError, "n: expected at most 7, got 8"),
        (4.0, TypeError, r"n: expected a whole number, got 4\.0"),
        (True, TypeError, "n: expected a whole number, got True"),
    ):
        with pytest.raises(error, match=message):
            at_least("n", value, 4, most=7)


def test_a_model_with_numbers_written_as_floats_comes_back_from_a_log():
    model = evo.Model("m", active_parameters=3e9, context=1e5, input_price=1, max_tokens=512.0)
    assert (model.active_parameters, model.context, model.max_tokens) == (3 * 10**9, 10**5, 512)
    assert read_back(model) == model
    free = evo.Model("m", input_price=0, cached_price=0.0, output_price=0, context=0)
    assert read_back(free) == free


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        (
            {"active_parameters": 1.5},
            TypeError,
            r"active_parameters: expected a whole number.*1\.5",
        ),
        ({"context": 2**63}, ValueError, "context: expected at most"),
        ({"context": -1}, ValueError, "context: expected at least 0, got -1"),
        ({"context": "8k"}, TypeError, "context: expected a whole number, got '8k'"),
        ({"max_tokens": True}, TypeError, "max_tokens: expected a whole number, got True"),
        ({"input_price": "1"}, TypeError, "expected a number, got '1'"),
        ({"output_price": math.nan}, ValueError, "output_price: expected dollars of 0 or more"),
        ({"cached_price": -0.1}, ValueError, "cached_price: expected dollars of 0 or more"),
        ({"version": 3}, TypeError, "version: expected a text, got 3"),
        ({"base_url": b"x"}, TypeError, "base_url: expected a text, got b'x'"),
        ({"call": 3}, ValueError, "call: expected a function, got 3"),
        ({"client": 3}, ValueError, "client: expected a client object of openai, got 3"),
    ],
)
def test_a_model_that_no_log_holds_is_refused_at_once(fields, error, message):
    with pytest.raises(error, match=message):
        Model(name="m", **fields)


def test_a_function_goes_along_with_its_model_and_is_in_no_log():
    model = Model(name="m", call=len)
    assert (model.call, model.function, model.way) == (None, len, "function")
    again = read_back(model)
    assert (again.function, again.way) == (None, "function")
    assert again.missing.endswith("give it again, model=evo.Model('m', call=...)")
    kept = model.but(input_price=0.5)
    assert (kept.function, kept.input_price, model.input_price) == (len, 0.5, None)
    client = type("Client", (), {"with_options": print})()
    with pytest.raises(ValueError, match="a model has a call or a client, got both"):
        Model(name="m", call=len, client=client)
    by_client = Model(name="m", client=client, share=True)
    assert (by_client.client_object, by_client.shares, by_client.way) == (client, True, "client")
    assert "client=..." in by_client.missing


TASK = TaskRecord(
    name="t", hash="h", files={"a.py": "x", "notes.md": "n"}, program_file="a.py",
    evaluator_file="", statement="s",
)  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "asks"),
    [
        ({}, False),
        ({"instances_file": "i"}, False),
        ({"evolves": "text"}, False),
        ({"evolves": "text", "instances_file": "i"}, True),
        ({"evolves": "text", "instances_file": "i", "given_text": True}, False),
    ],
)
def test_a_model_is_asked_where_a_text_is_tried_on_instances(fields, asks):
    assert msgspec.structs.replace(TASK, **fields).asks_model is asks


def test_notes_change_nothing_of_how_programs_are_judged():
    assert TASK.judged is TASK
    noted = msgspec.structs.replace(TASK, notes_file="notes.md")
    assert noted.judged == msgspec.structs.replace(TASK, files={"a.py": "x"})
    assert noted.files == TASK.files


def test_functions_in_this_process_go_along_and_are_not_compared():
    one = TASK.evaluated_by(len, max)
    assert (one.function, one.functions, one == TASK) == (len, (len, max), True)
    assert TASK.function is None
    assert read_back(one).functions == ()


def test_an_option_of_two_names_has_one_value():
    assert one_of("a", None, "b", None) is None
    assert one_of("a", 1, "b", None) == one_of("a", None, "b", 1) == one_of("a", 1, "b", 1) == 1
    with pytest.raises(
        ValueError, match=r"a, b: two names of one option.*a=1 and b=2; give a alone"
    ):
        one_of("a", 1, "b", 2)


@pytest.mark.parametrize("yes", [True, 1, np.True_])
@pytest.mark.parametrize("no", [False, 0, np.False_, None])
def test_a_switch_is_a_bool_whatever_says_so(yes, no):
    assert switch("feedback", yes) is True
    assert switch("feedback", no) is False


@pytest.mark.parametrize("given", ["False", "true", "", 2, 0.5, [], {}])
def test_what_is_no_switch_is_not_taken_for_one(given):
    with pytest.raises(TypeError, match=r"feedback: expected True or False .*, got "):
        switch("feedback", given)
    if isinstance(given, str):
        with pytest.raises(TypeError, match="got the text '"):
            switch("feedback", given)
