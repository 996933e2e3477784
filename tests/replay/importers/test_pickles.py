"""Untrusted pickles: data come through, and whatever would be called is refused."""

import collections
import contextlib
import io
import os
import pickle
import random
import struct
from typing import Any, Generic, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.importers.pickles import Stub, load
from replay.importers.reading import LogFormatError

Key = TypeVar("Key")
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
    | st.tuples(inner, inner),
    max_leaves=8,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pickles")


def loaded(folder, data, package="tool"):
    path = folder / "a.pkl"
    path.write_bytes(data)
    return load(path, package=package)


@given(value=plain, protocol=st.integers(3, 5))
def test_plain_data_come_back_as_they_were(folder, value, protocol):
    assert loaded(folder, pickle.dumps(value, protocol)) == value


def test_sets_ordered_dicts_and_numpys_numbers_are_plain(folder):
    value = {"s": {1}, "f": frozenset({2}), "o": collections.OrderedDict(a=1)}
    assert loaded(folder, pickle.dumps(value)) == {"s": {1}, "f": frozenset({2}), "o": {"a": 1}}
    assert loaded(folder, pickle.dumps([np.float64(0.5), np.int64(-7)])) == [0.5, -7.0]
    assert isinstance(loaded(folder, pickle.dumps(np.float32(0.5))), Stub)


def called(module: str, name: str, *arguments: object) -> bytes:
    """A pickle that calls a function by its name."""
    out = io.BytesIO()
    writer = pickle._Pickler(out, 2)
    writer.proto = 2
    out.write(b"\x80\x02c" + f"{module}\n{name}\n".encode())
    body = pickle.dumps(arguments, 2)
    return out.getvalue() + body[2:-1] + b"R."


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"), ("builtins", "eval"), ("builtins", "exec"), ("builtins", "open"),
        ("subprocess", "Popen"), ("builtins", "__import__"), ("numpy", "load"),
        ("toolbox", "Program"), ("tool2.x", "Program"), ("tool", "os.system"), ("tool", "a b"),
        ("importlib", "import_module"), ("random", "seed"), ("", "x"),
    ],
)  # fmt: skip
def test_any_other_name_is_refused_before_anything_is_called(folder, module, name, monkeypatch):
    monkeypatch.setattr(os, "system", lambda *_: pytest.fail("it was called"))
    with pytest.raises(
        LogFormatError, match=rf"a\.pkl: refused: the pickle asks for {module}\.{name}"
    ):
        loaded(folder, called(module, name, "true"))


def test_classes_of_the_tool_hold_their_attributes_and_do_nothing(folder):
    data = b"\x80\x02ctool.database\nProgram\n)\x81}X\x01\x00\x00\x00xK\x07sb."
    found = loaded(folder, data)
    assert isinstance(found, Stub)
    assert found.attributes == {"x": 7}
    [argument] = loaded(folder, called("tool", "Program", 5)).arguments
    assert argument == 5
    odd = loaded(folder, b"\x80\x02ctool\nProgram\n)\x81K\x07b.")  # a state that is no dict
    assert odd.attributes == {}
    assert loaded(folder, b"\x80\x02ctool\nProgram\n)\x81.").attributes == {}  # without a state


class Cache(Generic[Key]):
    """An object of it names the type that it was made for."""

    def __init__(self):
        self.kept = {"a": 0.5}


def test_an_object_of_a_generic_class_is_a_stand_in(folder):
    made = Cache[Any]()
    assert b"_operator" in pickle.dumps(made)
    assert loaded(folder, pickle.dumps(made), package=__name__).attributes["kept"] == {"a": 0.5}


def test_getattr_gives_a_stand_in_and_generators_are_stand_ins(folder):
    assert isinstance(loaded(folder, called("builtins", "getattr", "a", "upper")), Stub)
    assert isinstance(loaded(folder, pickle.dumps(random.Random(1))), Stub)


@pytest.mark.parametrize(
    "data",
    [b"", b"no pickle", b"\x80\x02", b"\x80\x02K", b"\x80\x02\x8c\x05ab", b"\x80\xff.", b"0.",
     b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"."],
)  # fmt: skip
def test_a_damaged_pickle_is_one_error_that_names_the_file(folder, data):
    with pytest.raises(LogFormatError, match=r"a\.pkl: not a readable pickle"):
        loaded(folder, data)


@pytest.mark.parametrize("code", [b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00"])
def test_extensions_are_refused(folder, code):
    with pytest.raises(LogFormatError, match="refused: the pickle asks for extension 1"):
        loaded(folder, b"\x80\x02" + code + b".")


@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_value_or_one_error(folder, data):
    with contextlib.suppress(LogFormatError):
        loaded(folder, b"\x80\x02" + data)
