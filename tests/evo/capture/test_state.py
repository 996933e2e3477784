"""What code changes outside itself, and what of it makes it another code."""

import ast
import collections
import dataclasses

import numpy as np
import pytest

from evo.capture.state import Changes, changed_attributes, changed_names, changed_places

CHANGES = {
    "seen.append(x)": {("seen", "")},
    "seen[x] = 1": {("seen", "")},
    "seen[x][0] += 1": {("seen", "")},
    "seen[x].append(1)": {("seen", "")},
    "del seen[x]": {("seen", "")},
    "state.n += 1": {("state", "n")},
    "state.calls.append(x)": {("state", "calls")},
    "state.calls[x] = 1": {("state", "calls")},
    "setattr(state, 'n', x)": {("state", "n")},
    "for seen[0] in x: pass": {("seen", "")},
    "heapq.heappush(seen, x)": {("seen", "")},
    "return seen.setdefault(x, lambda: other.pop())": {("seen", ""), ("other", "")},
    "seen = []; seen.append(x)": set(),
    "x.append(1)": set(),
    "return seen[x] + len(seen)": set(),
    "return [each.pop() for each in x]": set(),
}


@pytest.mark.parametrize("body", CHANGES)
def test_what_a_function_changes_outside_itself_is_found(body):
    assert changed_places(ast.parse(f"def f(x):\n    {body}")) == CHANGES[body]


def test_a_variable_of_an_inner_function_hides_no_name_of_the_outer_one():
    text = "def f(x):\n    def g(seen): seen.append(x)\n    seen.append(g)"
    assert changed_places(ast.parse(text)) == {("seen", "")}


class Counting:
    def __init__(self):
        self.limit = 5
        self.calls = []

    def __call__(self, x):
        self.n = len(x)
        self.calls.append(self.limit)


class Counted(Counting):
    def more(self):
        self.total = 1


def test_a_class_changes_the_attributes_that_its_own_methods_assign_after_it_was_made():
    assert changed_attributes(Counting) == {"n", "calls"}
    assert changed_attributes(Counted) == {"n", "calls", "total"}


def test_only_containers_are_changed_as_a_whole_and_only_data_by_attribute():
    @dataclasses.dataclass
    class Data:
        n: int
        limit: int

    state, data = Changes(), Data(1, 2)
    for value in ([], {}, set(), collections.deque(), np.zeros(2)):
        assert state.add(value)
        assert not state.add(value), "known already"
        assert state.is_changed(value)
        assert state.without(value) is ...
    assert not any(map(state.add, (None, print, ast, object(), "text", data)))
    assert state.add(data, "n")
    assert state.without(data) == Data(..., 2)
    assert data == Data(1, 2)


def test_what_differs_between_two_modules_is_named():
    one = "A = 1\nB = [2]\ndef f(): return A\nself.k = 9\n"
    assert changed_names(one, one.replace("[2]", "[3]")) == ["B"]
    assert changed_names(one, one.replace("return A", "return B")) == ["f"]
    assert changed_names(one, one.replace("9", "8")) == ["self.k"]
    assert changed_names(one, one + "C = 1\n") == ["C"]
    assert changed_names(one, one.replace("A = 1", "A  =  1  # a remark")) == []
    assert changed_names(one, "def (") == []
