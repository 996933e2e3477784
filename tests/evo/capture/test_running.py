"""Sources of functions that run in this process: what they change is no part of them."""

import collections
import dataclasses
import functools

import pytest

from evo.capture import capture
from evo.capture.running import restate, restated, short_hash, source_of

WEIGHTS = [1, 2, 3]
CACHE = {}
COUNT = [0]
GROUPS = collections.defaultdict(list)
HANDED = []


@dataclasses.dataclass
class Data:
    limit: int
    n: int = 0

    def next(self):
        self.n += 1
        return self.n


DATA = Data(5)


def caches(x):
    return CACHE.setdefault(x, WEIGHTS[0])


def counts(x):
    COUNT[0] += 1
    return x


def reads(x):
    return len(CACHE) + caches(x)


def groups(x):
    return len(GROUPS[x])


def data(x):
    return x if DATA.next() < DATA.limit else 0


def default(x, handed=HANDED):
    handed.append(x)


def twice(first, x):
    first.append(x)


partial = functools.partial(twice, HANDED)


def closing():
    seen = []

    def closure(x):
        seen.append(x)

    return closure


STATEFUL = [caches, counts, reads, groups, data, default, partial, closing()]


@pytest.fixture(autouse=True)
def _fresh():
    for each in (CACHE, GROUPS, HANDED):
        each.clear()


@pytest.mark.parametrize("function", STATEFUL, ids=range(len(STATEFUL)))
def test_a_source_is_the_same_after_the_function_was_called(function):
    before = source_of(function)
    for x in ("one prompt", "another"):
        function(x)
    after = source_of(function)
    assert before.text == after.text
    assert "one prompt" not in after.text
    assert after.earlier == capture(function).text != before.earlier


def test_a_constant_that_is_only_read_is_part_of_the_source(monkeypatch):
    before = source_of(caches).text
    assert "WEIGHTS = [1, 2, 3]" in before
    assert "CACHE = ...  # a dict that this code changes" in before
    monkeypatch.setitem(globals(), "WEIGHTS", [4])
    assert source_of(caches).text != before
    assert "limit=5" in source_of(data).text


def test_state_whose_values_have_no_text_changes_no_source():
    before = source_of(caches).text
    caches("x")
    CACHE["client"] = object()
    assert source_of(caches).text == before


def plain(x):
    return WEIGHTS[0] + x


def test_a_source_without_state_is_what_it_always_was():
    found = source_of(plain)
    assert found.text == found.earlier == capture(plain).text


class Model:
    def __init__(self, k, client=None, api_key="sk-abcdefghijklmnopqrstuvwxyz0123456789"):
        self.k, self.client, self.api_key = k, client, api_key
        self.n = 0

    def __call__(self, x):
        self.n += 1
        return x + self.k


def test_an_object_is_known_by_its_class_and_by_the_attributes_that_it_does_not_change():
    model = Model(9, client=object())
    before = source_of(model).text
    model(1)
    assert source_of(model).text == before == source_of(Model(9, client=object())).text
    assert source_of(Model(8, client=object())).text != before
    assert "class Model" in before
    assert "self.k = 9" in before
    assert "self.client = ...  # a object" in before
    assert "self.n = " not in before.rpartition("# The attributes")[2]
    assert "self.api_key = ...  # it seems to hold a key" in before


def test_a_long_attribute_is_known_by_its_hash():
    one, other = (source_of(Model(list(range(first, 2000)))).text for first in (0, 1))
    assert one != other
    assert len(one) < 1000


def test_a_source_of_an_earlier_version_is_known_by_its_hash():
    assert restated(short_hash("earlier")) is None
    restate("earlier", "now")
    assert restated(short_hash("earlier")) == "now"
    restate("same", "same")
    assert restated(short_hash("same")) is restated(None) is None
