"""Filters by name, and what a log keeps of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from filter_samples import QUIET, Sized, archive

import evo
from evo.filters import FILTERS, NearDuplicates
from evo.filters.base import refusal
from evo.filters.registry import filters_of, records_of
from evo.runs.configuration import make_header, make_header_again
from evo.runs.identity import as_begun, differences
from evo.searches import Member


@dataclass(frozen=True)
class Nameless:
    """Lacks a name."""

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Lets everything pass."""
        return None


def test_a_log_goes_on_with_the_filters_that_it_was_begun_with(task: Path, tmp_path: Path) -> None:
    names = ["same_program", "near_duplicates"]
    new = make_header(task, filters=names, seed=4, children=2)
    old = msgspec.structs.replace(
        new, filters=tuple(msgspec.structs.replace(each, version=1) for each in new.filters)
    )
    assert [each.version for each in new.filters] == [3, 2]
    blank = 'a = """x\n\ny"""\n'
    other = blank.replace("\n\n", "\n")
    assert refusal(other, filters=filters_of(new)[:1], archive=archive(blank)) is None
    assert refusal(other, filters=filters_of(old)[:1], archive=archive(blank))
    again = make_header_again(old)
    assert [each.version for each in again.filters] == [1, 1]
    assert differences(old, new) == []
    log = evo.run(task, filters=names, seed=4, children=2, generations=1,
                  log=tmp_path / "a.jsonl", **QUIET)  # fmt: skip
    begun = as_begun(old, log)
    assert [each.version for each in begun.filters] == [3, 2]
    tokens = msgspec.structs.replace(
        new, filters=tuple(msgspec.structs.replace(each, version=2) for each in new.filters)
    )
    whole, broken = "x = 1 \\\n\ny = 2\n", "x = 1 \\\ny = 2\n"
    assert refusal(whole, filters=filters_of(tokens)[:1], archive=archive(broken))
    assert refusal(whole, filters=filters_of(new)[:1], archive=archive(broken)) is None


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ("near_duplicate", ValueError, "unknown filter .* did you mean 'near_duplicates'"),
        ({"name": "near_duplicates", "ratoi": 1}, ValueError, "unknown field 'ratoi'"),
        ([NearDuplicates], TypeError, r"give an instance of the class, NearDuplicates\(\.\.\.\)"),
        (NearDuplicates, TypeError, r"give an instance of the class, NearDuplicates\(\.\.\.\)"),
        (Nameless(), TypeError, "expected the name of a filter.*; it has no attribute `name`"),
        ([3], TypeError, "expected the name of a filter"),
    ],
)
def test_mistakes_are_named(wrong: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        records_of(wrong)


@pytest.mark.parametrize("rule", [3, None, ["Keep it short."], lambda own: "Keep it short."])
def test_a_rule_that_is_no_text_is_refused_before_it_stands_in_a_prompt(rule: object) -> None:
    own = type("Ruled", (Sized,), {"rule": rule})(most=9)
    with pytest.raises(TypeError, match="filter 'sized': expected `rule` to be a sentence"):
        records_of([own])
    assert records_of([type("Ruled", (Sized,), {"rule": "Keep it short."})(most=9)])


def test_a_filter_of_ones_own_resumes_once_it_is_registered(task: Path, tmp_path: Path) -> None:
    log = evo.run(
        task, filters=[Sized(most=62)], generations=1, children=3, log=tmp_path / "a.jsonl", **QUIET
    )
    assert log.header.filters[0].source
    with pytest.raises(ValueError, match=r"unknown filter 'sized'.*evo\.FILTERS\['sized'\]"):
        evo.resume(log.path, generations=2, **QUIET)
    FILTERS["sized"] = Sized
    try:
        assert len(evo.resume(log.path, generations=2, **QUIET).generations) == 2
    finally:
        del FILTERS["sized"]
