"""Which names the text of a function looks up outside itself."""

from __future__ import annotations

import ast

import pytest

from evo.capture import sources
from evo.capture.names import names_in, quoted_annotations


def definition(text: str) -> sources.Definition:
    return sources.Definition(ast.parse(text).body[0], text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("def f(a, b=c): return a + b + d", ["c", "d"]),
        ("def f():\n    a = 1\n    return a", []),
        ("def f():\n    import math\n    return math.pi", []),
        ("def f():\n    return [x for x in y if x in z]", ["y", "z"]),
        ("def f(n):\n    return f(n - 1)", ["f"]),  # itself, as it is known outside
        ("@wrapped\ndef f(): pass", ["wrapped"]),
        ("class A(B):\n    c = d\n    def m(self): return c", ["B", "c", "d"]),
        ("def f():\n    def g(): return h\n    return g", ["h"]),
        ("def f():\n    return len(np.zeros(3))", ["len", "np"]),
        ("f = lambda x: x + a", ["a"]),
        ("def f(x):\n    try: return x\n    except Oops as e: return e", ["Oops"]),
    ],
)
def test_names_that_are_not_its_own_are_needed_in_order_of_appearance(
    text: str, needed: list[str]
) -> None:
    found = names_in(definition(text))
    assert [*found.needed] == needed
    assert not found.changed


@pytest.mark.parametrize(
    ("text", "needed", "mentioned"),
    [
        ("def f(a: A, *b: B, **c: C) -> D: return 1", [], ["A", "B", "C", "D"]),
        ("def f(a: A) -> A: return A(a)", ["A"], []),
        ("def f():\n    a: A = b\n    return a", ["b"], ["A"]),
        ("async def f(a: A) -> 'B': return a", [], ["A"]),
    ],
)
def test_names_in_annotations_alone_are_only_mentioned(
    text: str, needed: list[str], mentioned: list[str]
) -> None:
    found = names_in(definition(text))
    assert [*found.needed] == needed
    assert sorted(found.mentioned) == sorted(mentioned)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("def f():\n    global a\n    a = 1", ["a"]),
        ("def f():\n    global a\n    return a", []),
        ("def f():\n    global a\n    a += 1", ["a"]),
        ("def f():\n    nonlocal a\n    a = 1", ["a"]),
        ("def f():\n    a = 1\n    def g():\n        nonlocal a\n        a = 2\n    return g", []),
    ],
)
def test_variables_of_others_that_it_assigns_are_told(text: str, changed: list[str]) -> None:
    assert names_in(definition(text)).changed == changed


def test_dotted_names_are_whole_and_each_once() -> None:
    text = "def f(x):\n    return scipy.optimize.minimize(x.y, np.zeros(3)).x + np.zeros(1)"
    found = names_in(definition(text)).attributes
    assert sorted(found) == ["np.zeros", "scipy.optimize", "scipy.optimize.minimize", "x.y"]


def test_annotations_that_hold_a_name_are_quoted_and_no_other() -> None:
    text = "def f(a: A, b: list[B], é: int = 3) -> dict[str, A]:\n    c: B = a\n    return {}"
    quoted = quoted_annotations(definition(text), {"A"})
    assert quoted.splitlines() == [
        "def f(a: 'A', b: list[B], é: int = 3) -> 'dict[str, A]':",
        *text.splitlines()[1:],
    ]
    assert quoted_annotations(definition(text), {"x"}) == text
