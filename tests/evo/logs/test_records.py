"""What is written can be read: every field of every record, whatever it holds."""

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.keyed import KeyedStream
from evo.logs.journal import encode_line
from evo.logs.log import line_decoder, read_log
from evo.logs.maintenance import SHIPPED, require_whole
from evo.logs.records import (
    Child,
    Confirmation,
    CriticCall,
    Generation,
    Header,
    Initial,
    InstanceCall,
    Plan,
    ReplyLine,
    RunEnd,
    Session,
    Tick,
)
from evo.runs.configuration import make_header
from evo.searches.base import Member, Request

KINDS = [Header, Session, Initial, Plan, Child, InstanceCall, CriticCall, ReplyLine, Confirmation,
         Generation, Tick, RunEnd]  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
POSITIVE = st.floats(1e-6, 1e6)


def values_of(kind: msgspec.inspect.Type, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of a type of a field."""
    inspect = msgspec.inspect
    match kind:
        case inspect.UnionType(types=types):
            chosen = types if depth < 2 else [t for t in types if isinstance(t, inspect.NoneType)]
            return st.one_of(*(values_of(each, depth) for each in chosen or types))
        case inspect.StructType(cls=cls):
            return records(cls, depth + 1)
        case inspect.VarTupleType(item_type=item):
            return st.lists(values_of(item, depth), max_size=2 if depth < 2 else 0).map(tuple)
        case inspect.TupleType(item_types=items):
            return st.tuples(*(values_of(each, depth) for each in items))
        case inspect.DictType(value_type=item):
            return st.dictionaries(TEXTS, values_of(item, depth), max_size=2)
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=low, le=high):
            return st.integers(low, high)
        case inspect.FloatType():
            return st.floats(allow_nan=False, allow_infinity=False)
        case inspect.StrType():
            return TEXTS
        case inspect.AnyType() | inspect.CustomType():
            return JSON
    raise AssertionError(f"a field of a kind without a strategy: {kind}")


@functools.cache
def records(cls: type, depth: int = 0) -> st.SearchStrategy[Any]:
    """Records of a class, every field of which may hold anything that its type allows."""
    if cls is evo.logs.records.Evaluation:
        fitness = st.floats(allow_nan=False, allow_infinity=False)
        made = fields_of(cls, depth, without={"status", "fitness"})
        return st.one_of(
            st.builds(cls, status=st.just("ok"), fitness=fitness, **made),
            st.builds(cls, status=st.sampled_from(["error", "invalid", None]), **made),
        )
    if cls is evo.logs.records.Limits:
        return st.builds(cls, seconds=POSITIVE, memory_mb=st.integers(1, 2**40))
    if cls is evo.Model:  # what makes its calls is of this process, and never written
        made = fields_of(cls, depth, without={"call", "client"})
        whole, price = st.integers(0, 2**63 - 1), st.floats(0, allow_infinity=False)
        made |= {"active_parameters": st.none() | whole, "context": st.none() | whole}
        made |= dict.fromkeys(("input_price", "cached_price", "output_price"), st.none() | price)
        return st.builds(cls, **(made | {"max_tokens": whole}))
    return st.builds(cls, **fields_of(cls, depth))


def fields_of(
    cls: type, depth: int, without: frozenset[str] | set[str] = frozenset()
) -> dict[str, st.SearchStrategy[Any]]:
    kind = msgspec.inspect.type_info(cls)
    assert isinstance(kind, msgspec.inspect.StructType)
    return {f.name: values_of(f.type, depth) for f in kind.fields if f.name not in without}


@pytest.mark.parametrize("cls", KINDS)
@given(data=st.data())
def test_every_field_of_every_record_is_read_as_it_was_written(
    cls: type, data: st.DataObject
) -> None:
    record = data.draw(records(cls))
    line = encode_line(record)
    again = line_decoder.decode(line)
    assert type(again) is cls
    assert encode_line(again) == line


@dataclass(frozen=True)
class Sized:
    """A user's own search, with numbers of any kind among its fields."""

    number: float = 0.0
    numbers: tuple[int, ...] = ()
    deeper: dict[str, float] | None = None

    name = "sized"

    def start(self, initial: Member, min_improvement: float) -> Member:
        return initial

    def plan(self, state: Member, children: int, rng: KeyedStream) -> list[Request]:
        return [Request(parents=((0, 0),))] * children

    def fold(self, state: Member, generation: list[Member]) -> Member:
        return state


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
)
def test_a_search_of_ones_own_may_have_any_number(number: float, numbers: list[int]) -> None:
    search = Sized(number, tuple(numbers), {"one": number})
    header = make_header("mmd", search=search)
    assert header.search is not None
    assert math.isclose(header.search.fields["number"], number)
    log = read_log_of(header)
    require_whole(log)


def read_log_of(header: Header) -> evo.Log:
    """A log that holds nothing else."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_bytes(encode_line(header))
        return read_log(path)


def test_a_run_of_such_a_search_can_go_on(tmp_path: Path) -> None:
    search = Sized(1e9, (2**40,))
    how: dict[str, Any] = {"progress": False, "workers": 1}
    log = evo.run("mmd", generations=1, children=2, search=search, log=tmp_path / "a.jsonl", **how)
    assert len(evo.resume(log.path, generations=2, search=search, **how).generations) == 2
    assert not evo.verify(log.path).faults


def test_the_shipped_searches_are_those_whose_counts_a_log_is_checked_for() -> None:
    assert SHIPPED | {"greedy"} == set(evo.SEARCHES)


@pytest.mark.parametrize(
    "options",
    [{"search": {"name": "population", "size": 200_000}}, {"inspirations": 200_000},
     {"search": {"name": "islands", "islands": 200_000}}, {"children": 200_000}],
)  # fmt: skip
def test_counts_of_what_is_shipped_are_checked_when_a_run_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="100,000"):
        make_header("mmd", **options)
