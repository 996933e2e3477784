"""Signatures, docstrings and checks that are made from classes of options."""

import inspect
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import numpy as np
import pytest

from evo.runs.options import Option
from evo.runs.signatures import check_options, completed, entries, lists_options, options_in


class Base(TypedDict, total=False):
    """Options that others share."""

    size: Annotated[int, Option("How many.", 3, 1)]
    share: Annotated[float | None, Option("How much.")]


class Whole(Base, total=False):
    """All options."""

    name: Annotated[str, Option("What it is called.", "x")]
    place: Annotated[Path | None, Option("Where.")]
    quick: Annotated[bool, Option("Whether it is quick.", False)]
    wait: Annotated[float | Literal["auto"] | None, Option("How long.")]
    thing: Annotated["Unknown | None", Option("Anything.")]  # noqa: F821


@lists_options(Whole, optional={"size"})
def verb(task: str, *, limits: object = None, **options: object) -> str:
    """Does it.

    More of it.
    """
    return task


def test_inherited_options_come_first_and_each_has_its_type() -> None:
    found = {each.name: each.annotation for each in entries(Whole)}
    assert [*found] == ["size", "share", "name", "place", "quick", "wait", "thing"]
    assert (found["size"], found["thing"]) == (int, "Unknown | None")


def test_a_function_shows_its_options_by_name_default_and_description() -> None:
    signature = inspect.signature(verb)
    assert [*signature.parameters] == ["task", "limits", *Whole.__annotations__]
    assert signature.parameters["name"].default == "x"
    assert signature.parameters["size"].default is None  # found by the function itself
    assert all(
        signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        for name in Whole.__annotations__
    )
    lines = (verb.__doc__ or "").splitlines()
    assert lines[:3] == ["Does it.", "", "More of it."]
    assert lines[4:7] == ["Options:", "    size: How many.", "    share: How much."]
    assert verb("t") == "t"


def test_options_of_a_class_are_taken_out_of_many() -> None:
    given = {"size": 4, "name": "y", "other": 1}
    assert options_in(Base, given) == {"size": 4}
    assert options_in(Whole, given) == {"size": 4, "name": "y"}


def test_defaults_fill_what_is_not_given_and_numbers_become_plain() -> None:
    found = completed(Whole, {"size": np.int64(4), "quick": 1})
    assert found == {
        "size": 4, "share": None, "name": "x", "place": None, "quick": True, "wait": None,
        "thing": None,
    }  # fmt: skip
    assert type(found["size"]) is int
    assert found["quick"] is True
    assert completed(Base, {}) == {"size": 3, "share": None}
    with pytest.raises(ValueError, match="size: expected at least 1, got 0"):
        completed(Base, {"size": 0})


def test_a_switch_is_true_or_false_and_no_text_that_says_so() -> None:
    for given, found in ((True, True), (np.False_, False), (0, False), (None, False)):
        assert completed(Whole, {"quick": given})["quick"] is found  # type: ignore[typeddict-item]
    for text in ("False", "no", ""):
        with pytest.raises(
            TypeError, match=f"quick: expected True or False .*, got the text '{text}'"
        ):
            completed(Whole, {"quick": text})  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"share": None, "name": None},
        {"share": 1, "name": "y", "place": "a"},
        {"share": np.float32(0.5), "place": Path("a"), "wait": "auto"},
        {"wait": 2.5, "thing": object(), "size": "looked at where it is used"},
    ],
)
def test_what_fits_is_no_mistake(options) -> None:
    check_options(Whole, options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": "a"}, "share: expected a number, got 'a'"),
        ({"share": True}, "share: expected a number, got True"),
        ({"name": 3}, "name: expected a text, got 3"),
        ({"place": 3}, "place: expected a path, got 3"),
        ({"wait": "long"}, "wait: expected a number or 'auto', got 'long'"),
        ({"nmae": "x"}, r"unknown argument 'nmae'; did you mean 'name'\?.*\(known: name, place"),
        ({"zzzzz": 1}, r"unknown argument 'zzzzz'; look there \(known: "),
    ],
)
def test_a_mistake_says_what_was_expected(options, message) -> None:
    with pytest.raises(TypeError, match=message):
        check_options(Whole, options, "look there")


def test_a_functions_own_arguments_are_known_too() -> None:
    with pytest.raises(TypeError, match=r"known: limits, .*task"):
        check_options(Base, {"zzzzz": 1}, verb=verb)
    with pytest.raises(TypeError, match=r"'limits\.seconds'; give limits=\{'seconds': \.\.\.\}"):
        check_options(Base, {"limits.seconds": 1}, verb=verb)
    with pytest.raises(TypeError, match=r"unknown argument 'limits\.seconds' \(known"):
        check_options(Base, {"limits.seconds": 1})
