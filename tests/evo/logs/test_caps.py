"""Caps are numbers above 0, and limits beyond this machine's are held to it."""

from __future__ import annotations

import math
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.caps import CAPS, LIMITS_VARIABLE, above, cap, held, maxima, with_seconds
from evo.logs.records import Limits


@pytest.mark.parametrize("variable", CAPS)
def test_a_cap_is_its_default_unless_the_environment_says_otherwise(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for unset in ("", "  "):
        monkeypatch.setenv(variable, unset)
        assert cap(variable) == CAPS[variable][0]
    for stated, value in (("1", 1), (" 7 ", 7), ("1234567890123456789012", 1234567890123456789012)):
        monkeypatch.setenv(variable, stated)
        assert cap(variable) == value
    monkeypatch.setenv(variable, "12345")
    assert (
        above(variable)
        == f"more than 12,345 {CAPS[variable][1]}; if you trust it, raise {variable}"
    )
    for wrong in ("0", "000", "-1", "1.5", "1e3", "many", "²", "٣"):
        monkeypatch.setenv(variable, wrong)
        with pytest.raises(ValueError, match=f"{variable}: expected a whole number above 0"):
            cap(variable)


def test_maxima_are_raised_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMITS_VARIABLE, raising=False)
    before = maxima()
    assert before["seconds"] == 3600
    assert before["memory_mb"] >= 1
    monkeypatch.setenv(LIMITS_VARIABLE, "seconds=7200.5, processes=2000.9,")
    assert maxima() == {**before, "seconds": 7200.5, "processes": 2000}
    for wrong in (
        "seconds=0",
        "seconds=inf",
        "seconds=nan",
        "seconds",
        "second=3",
        "seconds=x",
        "=3",
    ):
        monkeypatch.setenv(LIMITS_VARIABLE, wrong)
        with pytest.raises(ValueError, match=f"{LIMITS_VARIABLE}: expected NAME=NUMBER"):
            maxima()


def test_limits_at_the_maximum_stay_and_beyond_it_are_held_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(LIMITS_VARIABLE, "seconds=100,processes=20")
    fitting = Limits(seconds=100, processes=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert held(fitting, "the task") is fitting
    wide = Limits(seconds=101, processes=21)
    with pytest.warns(UserWarning, match="the task: .*seconds 101 to 100, processes 21 to 20"):
        assert held(wide, "the task") == fitting


@given(st.floats() | st.sampled_from([0.0, 3600.0, 3600.5]))
def test_a_time_limit_is_above_nothing_and_at_most_the_maximum(seconds: float) -> None:
    before = Limits(seconds=10, auto=True)
    if 0 < seconds <= 3600:
        assert with_seconds(before, seconds) == Limits(seconds=seconds)
    else:
        with pytest.raises(ValueError, match="the time limit of an evaluation: expected 'auto'"):
            with_seconds(before, seconds)


def test_a_time_limit_that_is_not_given_stays_and_auto_is_at_most_what_it_was() -> None:
    before = Limits(seconds=10)
    assert with_seconds(before, None) is before
    assert with_seconds(before, "auto") == Limits(seconds=10, auto=True)
    assert not with_seconds(Limits(auto=True), 5.0).auto
    assert math.isclose(with_seconds(before, 5).seconds, 5.0)
