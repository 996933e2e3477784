"""What words on a command line mean, and options that are made from those of functions."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.cli.options import (
    _as_logged,
    _descriptions,
    _in_python,
    _type_on_the_line,
    arm,
    assignments,
    fields,
    finite,
    instance_range,
    limits,
    literal,
    numbers,
    pairs,
    paths,
    seconds_or_auto,
    takes,
    whole,
)
from evo.filters import NearDuplicates, SameProgram
from evo.filters.registry import filters_of
from evo.runs.configuration import make_header
from evo.runs.options import GoalOptions


@given(st.integers())
def test_a_whole_number_is_read_as_it_is_written(value: int) -> None:
    assert whole(str(value)) == value
    assert whole(f" {value} ", low=value) == value
    with pytest.raises(ValueError, match=f"expected at least {value + 1}, got {value}"):
        whole(str(value), low=value + 1)


@pytest.mark.parametrize("text", ["", "1.5", "1e3", "one", "0x1", "nan"])
def test_what_is_no_whole_number_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number, got"):
        whole(text)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "", "1,5", "auto"])
def test_numbers_are_finite(text: str) -> None:
    assert finite("-1.5e3") == -1500.0
    with pytest.raises(ValueError, match="expected a finite number, got"):
        finite(text)
    assert seconds_or_auto("auto") == "auto"
    assert seconds_or_auto("2.5") == 2.5


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("40", 40), ("0", 0), ("40:60", slice(40, 60)), ("40:", slice(40, None)),
        (":60", slice(None, 60)), (":", slice(None, None)),
    ],
)  # fmt: skip
def test_instances_are_the_first_so_many_or_a_part(text: str, meant: object) -> None:
    assert instance_range(text) == meant


@pytest.mark.parametrize("text", ["", "-1", "40:60:2", "a", "4 0", "40-60", "1.5"])
def test_what_is_no_part_of_the_instances_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number such as 40, or 40:60 or 40:, got"):
        instance_range(text)


def test_pairs_have_a_name_a_sign_and_a_value_and_each_name_once() -> None:
    assert pairs([" a = 1 ", "b=x=y"], "A=B", str) == {"a": "1", "b": "x=y"}
    assert pairs([], "A=B", str) == {}
    for wrong in ("a", "=1", "a=", " = ", ""):
        with pytest.raises(ValueError, match=f"expected A=B, got '{wrong}'"):
            pairs([wrong], "A=B", str)
    with pytest.raises(ValueError, match="'a' is given twice, the second time in 'a=2'"):
        pairs(["a=1", "a=2"], "A=B", str)
    with pytest.raises(ValueError, match="expected NAME=NUMBER, got 'a=x'"):
        numbers(["a=x"])
    assert paths(["openevolve=/a/b=c"]) == {"openevolve": "/a/b=c"}


@given(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
    | st.text("abc") | st.lists(st.integers())
)  # fmt: skip
def test_a_json_value_is_itself_and_anything_else_is_text(value: object) -> None:
    assert literal(json.dumps(value)) == value
    assert literal("near_duplicates") == "near_duplicates"
    assert [literal(text) for text in (".5", "-.5", "2.", "+.5e3")] == [0.5, -0.5, 2.0, 500.0]
    assert [literal(text) for text in (".", "1.2.3", "v.5", "nano")] == [
        ".",
        "1.2.3",
        "v.5",
        "nano",
    ]
    assert assignments(["a=1", "b=word", 'c="1"', "d=true", "e=[1]"]) == {
        "a": 1, "b": "word", "c": "1", "d": True, "e": [1]
    }  # fmt: skip


def test_fields_list_their_values() -> None:
    assert fields(["children=4,16", "model=a,b"]) == {"children": [4, 16], "model": ["a", "b"]}
    assert fields(["a=1"]) == {"a": [1]}
    with pytest.raises(ValueError, match="each field once"):
        fields(["children"])


def test_an_arm_is_the_path_of_a_log_or_pairs(tmp_path: Path) -> None:
    log = tmp_path / "a=1,b=2.jsonl"
    assert arm(str(log)) == {str(tmp_path / "a"): 1, "b": "2.jsonl"}
    log.touch()
    assert arm(str(log)) == str(log)
    assert arm("logs/a.jsonl") == "logs/a.jsonl"
    assert arm("model=offline,children=8") == {"model": "offline", "children": 8}
    with pytest.raises(ValueError, match="such as model=offline,children=8"):
        arm("model=offline,children")


def test_a_budget_without_a_unit_says_what_was_meant() -> None:
    assert limits(["calls=512", "dollars=0.5"]) == {"calls": 512.0, "dollars": 0.5}
    with pytest.raises(ValueError, match=r"such as calls=512, got '512'; .* grid is --calls 512"):
        limits(["512"])
    with pytest.raises(ValueError, match="UNIT=NUMBER such as calls=512"):
        limits(["calls"])


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        ("How often to retry (default: 5).", "How often to retry (default: as in the log)."),
        ("How often to retry.", "How often to retry (default: as in the log)."),
        ("Name (or path).", "Name (or path) (default: as in the log)."),
    ],
)
def test_an_option_that_is_logged_has_the_logs_default(text: str, logged: str) -> None:
    assert _as_logged(text) == logged


def test_descriptions_are_those_of_the_docstring() -> None:
    def command(a: int, b: int) -> None:
        """Does it.

        Args:
            a: One thing,
                on two lines.
            b: Another: with a colon.

        Raises:
            ValueError: never.
        """

    assert _descriptions(command) == {
        "a": "One thing, on two lines.",
        "b": "Another: with a colon.",
    }
    assert _descriptions(lambda: None) == {}


def test_types_follow_from_annotations() -> None:
    def converter(annotation: str) -> Any:
        made = _type_on_the_line(annotation)
        return getattr(made, "__metadata__", (None,))[0]

    assert _type_on_the_line("str | None") == str | None
    assert converter("bool").negative == ()
    assert converter("int | None").metavar == converter("float").metavar == "NUMBER"
    assert converter("int | None").converter is not None


def made(function: Any, **how: Any) -> Any:
    return takes(GoalOptions, **how)(function)


def test_a_command_has_its_own_parameters_and_those_of_its_kinds_once() -> None:
    seen: dict[str, Any] = {}

    def command(task: str, *, patience: int = 7, **options: Any) -> int:
        """Runs it.

        Args:
            task: The task.
            patience: Its own.
        """
        seen.update(options, task=task, patience=patience)
        return 3

    line = made(command, shown=["target"])
    names = [*inspect.signature(line).parameters]
    assert names[0] == "task"
    assert sorted(names) == sorted({"task", *GoalOptions.__annotations__} - {"stops"})
    assert names.index("target") < names.index("generations")  # what the short help shows
    assert inspect.signature(line).parameters["patience"].default == 7
    assert line("mmd", generations=4) == 3
    assert seen == {"task": "mmd", "patience": 7, "generations": 4}
    assert line.__doc__ == "Runs it."


def test_what_a_command_line_gives_becomes_what_a_function_takes() -> None:
    assert _in_python({"search": "population", "search_set": {"size": 4}}, {"search"}) == {
        "search": {"name": "population", "size": 4}
    }
    assert _in_python({"search_set": {"size": 4}}, {"search"})["search"]["name"] == "greedy"
    assert _in_python({"search": "tree"}, ()) == {"search": "tree"}
    assert _in_python({}, {"quiet"}) == {"progress": True}
    assert _in_python({"quiet": True}, {"quiet"}) == {"progress": False}
    named = {"filters": ["same_program", "near_duplicates"]}
    fields = {"near_duplicates.ratio": 0.9}
    listed = {"filters", "filter_set"}
    assert _in_python({**named, "filter_set": fields}, listed) == {
        "filters": [{"name": "same_program"}, {"name": "near_duplicates", "ratio": 0.9}]
    }
    assert filters_of(make_header("mmd", **_in_python({**named}, listed))) == (
        SameProgram(),
        NearDuplicates(),
    )
    assert _in_python({"filter_set": None}, listed) == {}
    for wrong in ("ratio", "same_output.ratio", "near_duplicates", "near_duplicates."):
        with pytest.raises(ValueError, match=f"--filter-set {wrong}: expected FILTER.NAME=VALUE"):
            _in_python({**named, "filter_set": {wrong: 1}}, listed)
    with pytest.raises(ValueError, match="of a filter that is given; --filter gives none"):
        _in_python({"filter_set": fields}, listed)
    both = {"backend": "dask", "scheduler": "tcp://host:8786"}
    assert _in_python({**both}, {"quiet"}) == {"scheduler": both["scheduler"], "progress": True}
    for name, value in both.items():
        with pytest.raises(ValueError, match="--backend dask and --scheduler ADDRESS go together"):
            _in_python({name: value}, {"quiet"})
