"""What code changes outside itself while it runs: state, which is no part of what it is."""

from __future__ import annotations

import ast
import collections
import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Set

import numpy as np

from evo.capture.sources import NotCaptured, definition_of
from evo.parsing import parsed

MUTATING = frozenset(
    {
        *("add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "fill"),
        *("insert", "move_to_end", "pop", "popitem", "popleft", "put", "remove", "reverse"),
        *("rotate", "setdefault", "sort", "subtract", "update", "difference_update"),
        *("intersection_update", "symmetric_difference_update", "__setitem__", "__delitem__"),
    }
)
"""Methods that change what they are called on."""

_CHANGES_FIRST = frozenset(
    {
        *("delattr", "heapify", "heappop", "heappush", "heappushpop", "heapreplace"),
        *("insort", "insort_left", "insort_right", "setattr", "setitem", "delitem", "shuffle"),
    }
)
"""Functions that change their first argument."""

_CONTAINERS = (list, dict, set, bytearray, collections.deque, np.ndarray)
_MADE_BY = ("__init__", "__new__", "__post_init__")
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
OutsideName = tuple[str, str]
"""A name outside a definition, and which attribute of its value; empty: the value itself."""


def changed_places(tree: ast.AST) -> set[OutsideName]:
    """Returns what the code of a definition changes of the values of names from outside it.

    Example:
        >>> sorted(changed_places(ast.parse("def f(x): seen.append(x); state.n += 1; y = [x]")))
        [('seen', ''), ('state', 'n')]
    """
    found = set[OutsideName]()
    _look(tree, frozenset(), found)
    return found


def _read_by_key(tree: ast.AST) -> set[str]:
    """Returns the names whose values are subscripted, which changes a `defaultdict`."""
    nodes = (n for n in ast.walk(tree) if isinstance(n, ast.Subscript))
    return {n.value.id for n in nodes if isinstance(n.value, ast.Name)}


def changed_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Returns the parameters of a function whose values it changes."""
    names = _parameters(node.args)
    places = set[OutsideName]()
    _look(node, frozenset(), places, free=names)
    return {name for name, attribute in places if name in names and not attribute}


def changed_attributes(cls: type) -> set[str]:
    """Returns the attributes that a class changes of its instances outside of what makes them."""
    found = set[str]()
    for each in cls.__mro__:
        try:
            node = definition_of(each).node if each is not object else None
        except NotCaptured:
            continue
        for method in getattr(node, "body", ()):
            if not isinstance(method, _SCOPES) or getattr(method, "name", "") in _MADE_BY:
                continue
            parameters = [*method.args.posonlyargs, *method.args.args]
            if not parameters:
                continue
            own = parameters[0].arg
            places = set[OutsideName]()
            _look(method, frozenset(), places, free={own})
            found |= {attribute for name, attribute in places if name == own and attribute}
    return found


class Changes:
    """What some functions change outside themselves: whole values, and attributes of values."""

    def __init__(self) -> None:
        self._values: dict[int, object] = {}  # these stay alive, so that no number is used again
        self._attributes: dict[int, set[str]] = {}

    def add(self, value: object, attribute: str = "") -> bool:
        """Notes that a value, or an attribute of it, is changed; returns whether that is new."""
        data = dataclasses.is_dataclass(value) and not isinstance(value, type)
        if not (data if attribute else isinstance(value, _CONTAINERS)):
            return False  # what it holds stands in no captured text
        known = self._attributes.setdefault(id(value), set())
        if attribute in known:
            return False
        self._values[id(value)] = value
        known.add(attribute)
        return True

    def note(self, node: ast.AST, look: Callable[[str], object]) -> bool:
        """Notes what a definition changes; returns whether some of that is new.

        Args:
            node: The definition.
            look: Returns what a name outside it means.
        """
        places = changed_places(node)
        read = {name for name in _read_by_key(node) if _grows_when_read(look(name))}
        places |= {(name, "") for name in read}
        if isinstance(node, _SCOPES):
            changed = changed_parameters(node)
            for name, default in _defaults(node.args):
                if isinstance(default, ast.Name) and name in changed:
                    places.add((default.id, ""))
        return any(self.add(look(name), attribute) for name, attribute in places)

    def note_partial(self, value: functools.partial[object]) -> bool:
        """Notes what a function changes of the arguments that it was given beforehand."""
        node = definition_of(value.func).node
        if not isinstance(node, _SCOPES):
            return False
        changed = changed_parameters(node)
        names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        given = {**dict(zip(names, value.args, strict=False)), **value.keywords}
        return any(self.add(each) for name, each in given.items() if name in changed)

    def is_changed(self, value: object) -> bool:
        """Whether a value itself is changed."""
        return "" in self._attributes.get(id(value), ())

    def without(self, value: object) -> object:
        """Returns a value with `...` for what is changed: it all, or attributes of a dataclass."""
        if self.is_changed(value):
            return ...
        if not dataclasses.is_dataclass(value) or isinstance(value, type):
            return value
        names = {each.name for each in dataclasses.fields(value)}
        changed = self._attributes.get(id(value), set()) | changed_attributes(type(value))
        if not names & changed:
            return value
        bare = copy.copy(value)
        for name in names & changed:
            object.__setattr__(bare, name, ...)
        return bare


def _grows_when_read(value: object) -> bool:
    """Whether a value changes where a key is only read."""
    return isinstance(value, collections.defaultdict) and value.default_factory is not None


def changed_names(one: str, other: str) -> list[str]:
    r"""Returns the names at the top of two modules whose definitions differ, in order.

    Example:
        >>> changed_names("A = 1\ndef f(): return A", "A = 2\ndef f(): return A")
        ['A']
    """
    try:
        there, here = (dict(_definitions(parsed(text))) for text in (one, other))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = dict.fromkeys([*here, *there])
    return [name for name in names if there.get(name) != here.get(name)]


def _definitions(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, ast.dump(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield ", ".join(map(ast.unparse, targets)), ast.dump(node)


def _look(
    node: ast.AST, local: frozenset[str], found: set[OutsideName], free: Set[str] = frozenset()
) -> None:
    """Adds what a node changes of names that are no variables of the functions around it.

    `free` are parameters of the outermost function that are looked for nevertheless.
    """
    if isinstance(node, _SCOPES):
        local = local | (_variables(node) - free)
    for place in _changed_by(node):
        if place[0] not in local:
            found.add(place)
    for child in ast.iter_child_nodes(node):
        _look(child, local, found)


def _variables(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Returns the parameters and variables of a function."""
    names, outside = _parameters(function.args), set[str]()
    bodies = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    for each in _inside(bodies):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            names.add(each.id)
        elif isinstance(each, ast.Global | ast.Nonlocal):
            outside.update(each.names)
    return names - outside


def _parameters(arguments: ast.arguments) -> set[str]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return {each.arg for each in every}


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr | None]]:
    """Yields the parameters that have default values, with these."""
    plain = [*arguments.posonlyargs, *arguments.args]
    first = len(plain) - len(arguments.defaults)
    for each, default in zip(plain[first:], arguments.defaults, strict=True):
        yield each.arg, default
    for each, of_key in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield each.arg, of_key


def _inside(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yields nodes and what is in them, but for what is in other functions and classes."""
    for node in nodes:
        yield node
        if not isinstance(node, _SCOPES | ast.ClassDef):
            yield from _inside(ast.iter_child_nodes(node))


def _changed_by(node: ast.AST) -> Iterator[OutsideName]:
    """Yields the places that one node changes."""
    changes = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
    if isinstance(node, ast.Subscript) and changes:
        yield from _place_of(node.value)
    elif isinstance(node, ast.Attribute) and changes:
        yield from _place_of(node)
    elif isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in MUTATING:
            yield from _place_of(called.value)
        name = getattr(called, "attr", getattr(called, "id", ""))
        if name in _CHANGES_FIRST and node.args:
            second = node.args[1] if len(node.args) > 1 else None
            if name in ("setattr", "delattr") and isinstance(second, ast.Constant):
                yield from _place_of(ast.Attribute(node.args[0], str(second.value), ast.Store()))
            else:
                yield from _place_of(node.args[0])


def _place_of(node: ast.AST) -> Iterator[OutsideName]:
    """Yields the name that an expression begins with, and the first attribute of its value."""
    attribute = ""
    while isinstance(node, ast.Attribute | ast.Subscript):
        attribute = node.attr if isinstance(node, ast.Attribute) else ""
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id, attribute
