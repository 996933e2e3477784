"""The folder of a study: by what it is recognised, and what it refuses."""

import functools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.inputs import MOST_INT
from evo.logs.journal import LogError
from evo.studies.folders import (
    MARKERS,
    keep_identity,
    kind_of,
    parameters_of,
    refuse_other,
    request,
    require_finite,
)


def keep(path, **identity):
    encoded = json.dumps(identity).encode()
    keep_identity(path, "a sweep", identity, encoded, lambda file: json.loads(file.read_bytes()))


def test_an_identity_is_written_once_and_then_checked(tmp_path):
    path = tmp_path / "sweep.json"
    keep(path, task="cp", seeds=[1, 2])
    before = path.read_bytes()
    keep(path, task="cp", seeds=[1, 2])
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match=r"holds a sweep with seeds \[1, 2\], not \[1\]; give its"):
        keep(path, task="cp", seeds=[1])
    with pytest.raises(ValueError, match="with more None, not 3"):
        keep(path, task="cp", seeds=[1, 2], more=3)


def test_arguments_that_are_not_given_now_may_be_anything(tmp_path):
    refuse_other(tmp_path, "a sweep", {"a": 1, "b": 2}, {"a": 1})
    refuse_other(tmp_path, "a sweep", {}, {"a": None})
    with pytest.raises(ValueError, match="with a 1, not None"):
        refuse_other(tmp_path, "a sweep", {"a": 1}, {"a": None})


numbers = st.integers(-MOST_INT, MOST_INT) | st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    numbers | st.text(max_size=3) | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(plain)
def test_plain_values_are_no_mistake(value):
    require_finite(value)


@pytest.mark.parametrize("wrong", [float("inf"), float("nan"), -float("inf"), 2**63, -(2**63)])
@pytest.mark.parametrize(
    ("place", "name"),
    [
        (lambda x: {"a": {"b": x}}, "a.b"),
        (lambda x: {"a": [1, (2, x)]}, "a"),
        (lambda x: {"k": [{"c": x}]}, "k.c"),
    ],
)
def test_a_number_that_no_folder_holds_is_named_with_its_place(wrong, place, name, tmp_path):
    with pytest.raises(ValueError, match=rf"^{name}: expected a finite number"):
        require_finite(place(wrong))
    with pytest.raises(ValueError, match="expected a finite number"):
        keep(tmp_path / "new.json", **place(wrong))
    assert not (tmp_path / "new.json").exists()


def test_parameters_are_those_that_were_set_beforehand():
    assert parameters_of(print) == {}
    assert parameters_of(functools.partial(print, c=(1, 2), d=None)) == {"c": [1, 2], "d": None}
    with pytest.raises(ValueError, match=r"parameters\.c: expected a finite number"):
        parameters_of(functools.partial(print, c=float("nan")))


@pytest.mark.parametrize(("marker", "kind"), MARKERS.items())
def test_a_folder_is_known_by_its_marker_and_asked_beside_it(marker, kind, tmp_path):
    assert kind_of(tmp_path) is None
    with pytest.raises(LogError, match=r"not the folder of a study: expected one of allocation"):
        request(tmp_path, "stop")
    (tmp_path / marker).mkdir()  # a folder of that name is no marker
    assert kind_of(tmp_path) is None
    (tmp_path / marker).rmdir()
    (tmp_path / marker).touch()
    assert kind_of(tmp_path) == kind
    for wish in ("pause", "stop"):
        assert request(tmp_path, wish) == kind
        assert (tmp_path / f"{marker}.{wish}").is_file()
