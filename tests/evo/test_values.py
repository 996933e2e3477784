"""Frozen values by name, and what a log keeps of them."""

import math
import threading
import warnings
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.inputs import MOST_INT
from evo.logs.records import ValueRecord
from evo.plugins import Registry
from evo.values import (
    FieldChanged,
    Kind,
    UnknownValue,
    as_logged,
    called_on,
    fields_of,
    source_hash,
)


@dataclass(frozen=True)
class Inner:
    """A value inside another one."""

    depth: int = 1


@dataclass(frozen=True)
class Shipped:
    """A value of the package."""

    size: int = 3
    inner: Inner = field(default_factory=Inner)

    name = "shipped"
    version = 2

    def act(self) -> int:
        """Does it."""
        return self.size


@dataclass(frozen=True)
class Own:
    """A value of a user."""

    shares: tuple[float, ...] = (0.5,)

    name = "own"

    def act(self) -> float:
        return sum(self.shares)


@dataclass(frozen=True)
class Old(Shipped):
    """What `shipped` was at version 1."""

    version = 1


class Inheriting(Own):
    """It is a dataclass by what it inherits."""

    name = "inheriting"


def kind(**more):
    return Kind(
        what="thing", registry="evo.THINGS", group="evo.tests.none",
        known=Registry("thing", {"shipped": Shipped, **more}),
        shipped=frozenset({Shipped, Old}), methods=("act",),
        earlier={"shipped": lambda record: Old if record.version == 1 else Shipped},
    )  # fmt: skip


def test_a_value_is_found_by_name_by_fields_or_is_itself() -> None:
    own = Own()
    assert kind().find("shipped") == Shipped()
    given_fields = {"name": "shipped", "size": 4, "inner": {"depth": 2}}
    assert kind().find(given_fields) == Shipped(4, Inner(2))
    assert kind().find(own) is own
    assert kind().find(inherited := Inheriting()) is inherited
    assert kind().has(own)
    assert not kind().has("shipped")
    assert not kind().has(Own)


@dataclass(frozen=True)
class Nameless:
    """It has no name."""

    def act(self) -> None:
        """Does nothing."""


@dataclass(frozen=True)
class Idle:
    """It cannot do what values do."""

    name = "idle"


@dataclass
class Loose:
    """Its fields may change at any time."""

    name = "loose"

    def act(self) -> None:
        """Does nothing."""


@dataclass(frozen=True)
class Noting:
    """It has a field that its method changes, at times to what no log can hold."""

    seen: list[object] = field(default_factory=list)

    name = "noting"

    def act(self, what: object) -> int:
        if what is not None:
            self.seen.append(what)
        return len(self.seen)


@dataclass(frozen=True)
class Posing(Own):
    """It has the name of a built-in one."""

    name = "shipped"


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ("shiped", ValueError, "unknown thing 'shiped': one of shipped; did you mean 'shipped'"),
        ("mine.py", ValueError, "give a thing of your own itself, an instance of its class"),
        ("mine.py:A", ValueError, "in a TOML file the name of one .* package adds to evo.tests.n"),
        ("own", ValueError, r"evo\.THINGS\['own'\] = its class, or a package adds it"),
        ({"size": 3}, ValueError, "unknown thing None: one of shipped; name it by `name`"),
        ({"name": "shipped", "sise": 3}, ValueError, "unknown field 'sise', known: size, inner"),
        ({"name": "shipped", "inner": {"deep": 1}}, ValueError, r"unknown field 'inner\.deep'"),
        ({"name": "shipped", "size": "x"}, ValueError, "its fields do not fit"),
        (Shipped, TypeError, r"give an instance of the class, Shipped\(\.\.\.\)"),
        (3, TypeError, "expected the name of a thing.*it is not a dataclass"),
        (Nameless(), TypeError, "it has no attribute `name`, a string"),
        (Idle(), TypeError, "it has no method `act`"),
        (Loose(), TypeError, r"it is not frozen: write @dataclass\(frozen=True\) above Loose"),
        (Posing(), ValueError, "'shipped' is the name of a built-in one, got one of Posing"),
    ],
)
def test_what_is_no_value_is_told_why(wrong, error, message) -> None:
    with pytest.raises(error, match=message):
        kind().find(wrong)


def test_a_class_that_is_no_dataclass_is_named() -> None:
    class Plain:
        name = "plain"

        def act(self) -> None:
            """Does nothing."""

    with pytest.raises(
        ValueError, match=r"thing 'plain': expected a frozen dataclass, got .*Plain"
    ):
        kind(plain=Plain).find("plain")


def test_a_registered_class_that_is_not_frozen_is_named() -> None:
    with pytest.raises(ValueError, match=r"thing 'loose': is not frozen: write @dataclass"):
        kind(loose=Loose).find("loose")


def test_a_method_that_changes_a_field_of_its_value_is_told_which() -> None:
    value = Noting()
    assert called_on(value, "act", None) == 0
    with pytest.raises(FieldChanged, match=r"and seen was \[\] before it and \[1\] after it"):
        called_on(value, "act", 1)
    assert called_on(value, "act", None) == 1
    with pytest.raises(FieldChanged, match=r"seen was \[1\] before it and \[1, <object"):
        called_on(value, "act", object())


def read_back(record: ValueRecord) -> ValueRecord:
    return msgspec.json.decode(msgspec.json.encode(record), type=ValueRecord)


def test_a_record_is_made_into_its_value_again_by_the_version_it_was_logged_with() -> None:
    record = kind().record(Shipped(5), ValueRecord)
    assert (record.name, record.version, record.source) == ("shipped", 2, "")
    assert kind().of(read_back(record)) == Shipped(5)
    old = msgspec.structs.replace(read_back(record), version=1)
    assert type(kind().of(old)) is Old
    assert kind().unversioned(record).version == 1


def test_a_users_value_goes_along_in_memory_and_is_missed_after_reading() -> None:
    own = Own((0.25, 0.5))
    record = kind().record(own, ValueRecord)
    assert kind().of(record) is own
    assert record.source == source_hash(own) != ""
    with pytest.raises(UnknownValue, match=r"unknown thing 'own'.*register its class, evo\.THINGS"):
        kind().of(read_back(record))
    assert kind(own=Own).of(read_back(record)) == own


def test_another_value_than_the_logged_one_is_refused_and_other_code_is_warned_of() -> None:
    record = read_back(kind().record(Own(), ValueRecord))
    with pytest.raises(ValueError, match=r"the log was made by 'own' with .* got 'own' with"):
        kind().attach(record, Own((0.1,)))
    with pytest.warns(UserWarning, match="the code of thing 'own' is not that which began the log"):
        kind().attach(msgspec.structs.replace(record, source="other"), Own())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind().attach(record, Own())
        kind().attach(msgspec.structs.replace(record, source=""), Own())  # it is not known


def test_of_shipped_values_the_version_stands_for_the_code() -> None:
    record = ValueRecord(name="shipped", version=2, source="of an older log")
    assert kind().identity(record).source == ""
    for version, same in ((1, False), (2, True), (3, False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fields = fields_of(Shipped())
            kind().attach(ValueRecord(name="shipped", version=version, fields=fields), Shipped())
        assert (caught == []) is same
    assert kind().find(Shipped(9)) == Shipped(9)  # of its own class, and no poser
    own = ValueRecord(name="own", source="abc")
    assert kind().identity(own) is own
    logged = ValueRecord(name="shipped", version=1)
    assert kind().begun(record, logged) is logged
    assert kind().begun(own, ValueRecord(name="own", source="old")) is own


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-MOST_INT - 1, MOST_INT) | st.text(max_size=4)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)  # fmt: skip


@given(st.dictionaries(st.text(max_size=3), plain, max_size=3))
def test_plain_fields_come_back_as_they_were(fields) -> None:
    assert as_logged(fields) == fields


def test_tuples_are_lists_and_numbers_of_numpy_are_plain() -> None:
    fields = {"a": (1, (2, 3)), "b": np.float64(0.5), "c": np.arange(2), "d": np.int32(7)}
    assert as_logged(fields) == {"a": [1, [2, 3]], "b": 0.5, "c": [0, 1], "d": 7}
    assert fields_of(Shipped()) == {"size": 3, "inner": {"depth": 1}}


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("place", [lambda x: x, lambda x: [1, (x,)], lambda x: {"k": {"l": x}}])
def test_a_number_that_no_log_holds_is_named(number, place) -> None:
    with pytest.raises(
        ValueError, match=f"size: a log holds finite numbers, .* 64 bits, got .*{number}"
    ):
        as_logged({"size": place(number)})


def test_what_is_no_plain_data_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a log cannot hold the fields .*object is no plain data"):
        as_logged({"a": object()})


def test_a_field_that_cannot_be_copied_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a log cannot hold the fields of Own: .*_thread.lock"):
        fields_of(Own(shares=threading.Lock()))


def test_a_source_is_that_of_the_code_without_comments_and_docstrings(tmp_path) -> None:
    import importlib.util
    import sys

    def value(name: str, body: str) -> object:
        path = tmp_path / f"{name}.py"
        path.write_text(body)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module.Value()

    plain = "class Value:\n    k = 1\n    def act(self):\n        return 1\n"
    same = plain.replace("    k", '    """Doc."""\n\n    k').replace("return 1", "return 1  # one")
    same = same.replace("act(self):\n", 'act(self):\n        "Says it."\n')
    base = source_hash(value("evo_value_a", plain))
    assert base == source_hash(value("evo_value_b", same)) != ""
    for name, other in (
        ("evo_value_c", plain.replace("return 1", "return 2")),
        ("evo_value_d", plain.replace("k = 1", "k = 2")),
        ("evo_value_e", plain.replace("def act", "def other")),
    ):
        assert source_hash(value(name, other)) != base
    assert source_hash(value("evo_value_f", plain), beside="evo_value_f") == ""
