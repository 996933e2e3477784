"""What identifies a run, what may differ, and how a log goes on as it was begun."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import sample_header

from evo.logs.log import Log, read_log
from evo.logs.records import AskedModel, CriticRecord, Header, Model, Sampling, SearchRecord
from evo.runs.configuration import make_header
from evo.runs.identity import as_begun, differences, identity
from evo.searches import Population

HEADER = sample_header()
replace = msgspec.structs.replace

ELSEWHERE: dict[str, Any] = {
    "base_url": "http://elsewhere/v1",
    "key_variable": "KEY",
    "input_price": 9.0,
    "output_price": 9.0,
    "cached_price": 9.0,
}
ANOTHER: dict[str, Any] = {
    "children": 4,
    "seed": 8,
    "sampling": Sampling(temperature=0.7, top_p=0.95, max_tokens=100),
    "min_improvement": 0.0,
    "search": SearchRecord(name="population", fields={"size": 3}),
    "edits": "diff",
    "feedback": True,
    "inspirations": 1,
    "drafts": 2,
    "draws": 2,
    "confirm": 2,
    "spending": True,
    "asynchronous": True,
    "advice": 2,
    "audit": 1,
    "statement": "other words",
}


@pytest.mark.parametrize("name", ANOTHER)
def test_whatever_a_child_depends_on_makes_another_run(name: str) -> None:
    other = replace(HEADER, **{name: ANOTHER[name]})
    assert differences(HEADER, other) == differences(other, HEADER) == [name]
    assert identity(HEADER) != identity(other)


@given(st.sets(st.sampled_from(sorted(ANOTHER))))
def test_each_field_that_differs_is_named_and_no_other(names: set[str]) -> None:
    other = replace(HEADER, **{name: ANOTHER[name] for name in names})
    assert set(differences(HEADER, other)) == names


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("whose", ["model", "models", "critic", "asks"])
def test_where_a_model_is_served_and_what_it_costs_makes_no_other_run(
    name: str, whose: str
) -> None:
    model, moved = HEADER.model, replace(HEADER.model, **{name: ELSEWHERE[name]})

    def of(each: Model) -> Header:
        asked = AskedModel(model=each, sampling=HEADER.sampling)
        critic = CriticRecord(model=each, sampling=HEADER.sampling, rubric="good?")
        changes = {"model": each, "models": (asked,), "critic": critic, "asks": asked}
        return replace(HEADER, **{whose: changes[whose]})

    assert of(model) != of(moved)
    assert differences(of(model), of(moved)) == []
    assert identity(of(model)) == identity(of(moved))
    assert differences(of(model), of(replace(model, name="another"))) == [whose]


def test_versions_of_software_and_notes_of_the_task_identify_nothing() -> None:
    other = replace(HEADER, versions={"evo-replay": "9"}, schema=HEADER.schema + 1)
    assert identity(HEADER) == identity(other)
    assert differences(HEADER, other) == []
    task = replace(HEADER.task, notes_file="", files={**HEADER.task.files})
    if HEADER.task.notes_file:
        del task.files[HEADER.task.notes_file]
    assert identity(HEADER) == identity(replace(HEADER, task=task))
    changed = replace(HEADER, task=replace(HEADER.task, hash="0" * 64))
    assert differences(HEADER, changed) == ["task"]


def test_what_a_model_is_asked_by_identifies_and_what_is_known_of_it_does_not() -> None:
    model = HEADER.model
    same = (
        replace(model, id=model.name),
        replace(model, active_parameters=99),
        replace(model, source="x"),
    )
    for each in same:
        assert differences(HEADER, replace(HEADER, model=each)) == []
    for each in (replace(model, id="other"), replace(model, extra_body={"a": 1})):
        assert differences(HEADER, replace(HEADER, model=each)) == ["model"]


def test_fields_that_come_back_from_a_log_as_lists_are_the_same() -> None:
    given_, read = (
        replace(HEADER, search=SearchRecord(name="map_elites", fields={"metrics": kind(["x"])}))
        for kind in (tuple, list)
    )
    assert given_ != read
    assert differences(given_, read) == []


@pytest.fixture
def log(tmp_path: Any) -> Log:
    from evo.logs.journal import Writer

    header = make_header("mmd", search=Population(size=3), feedback=True)
    old = replace(header, prompt_version=2, mixture_version=7, schema=1)
    with Writer.create(tmp_path / "a.jsonl", old):
        pass
    return read_log(tmp_path / "a.jsonl")


def test_a_log_goes_on_under_the_versions_that_it_was_begun_with(log: Log) -> None:
    header = make_header("mmd", search=Population(size=3), feedback=True)
    assert header.prompt_version > 2
    begun = as_begun(header, log)
    assert (begun.prompt_version, begun.mixture_version, begun.schema) == (2, 7, 1)
    assert differences(header, log.header) == []
    assert as_begun(begun, log) == begun
    assert as_begun(header, None) is header
    changed = {f.name for f in msgspec.structs.fields(Header)} - {
        "prompt_version",
        "mixture_version",
        "schema",
        "search",
    }
    assert all(getattr(begun, name) == getattr(header, name) for name in changed)
