"""Collects functions and all that they use into the text of one module."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType

from evo.capture.constants import NoText, expression_of
from evo.capture.names import Names, names_in, quoted_annotations
from evo.capture.scope import BUILTIN, MISSING, Scope, may_change, place_of, scope_of
from evo.capture.sources import (
    Definition,
    NotCaptured,
    closure_text,
    definition_of,
    is_installed,
    raw_function,
)
from evo.capture.state import Changes
from evo.logs.keys import holds_key
from evo.parsing import parsed

_ADVICE = "build it inside the function, or pass it as an argument"


@dataclass(frozen=True)
class Captured:
    """A function as text.

    Attributes:
        text: A module that holds it and all that it uses.
        names: The names of what was asked for, in order.
        uses: What was captured beside these, in words.
    """

    text: str
    names: tuple[str, ...]
    uses: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the first function."""
        return self.names[0]


def capture(*functions: object, advice: str = _ADVICE, state: bool = True) -> Captured:
    """Returns the text of a module that holds some functions or classes and all that they use.

    That is imports, constants, and functions and classes that were written in a notebook or in a
    file beside it; what is installed is imported. The values of constants are those of now.

    Args:
        *functions: Functions or classes; the module defines each.
        advice: What to do instead about something that has no text, for error messages.
        state: Whether what the functions themselves change outside, such as a list that one of them
            appends to, is held with its value of now. Else it is named alone: the text says what
            the code is, is the same however often it was called, and does not run.

    Raises:
        NotCaptured: One of them uses something that has no text, such as an open client or a
            fitted model, or changes what it shares with others, or seems to hold a key.

    Example:
        >>> print(capture(str.upper).text)
        Traceback (most recent call last):
        evo.capture.sources.NotCaptured: 'upper' is a method: write a function that calls it
    """
    changed = None if state else Changes()
    while True:
        module, names = _Module(advice, changed), []
        try:
            for function in functions:
                names.append(module.define_first(_name_of(function), function))
        except NotCaptured:
            if not module.found_state:
                raise
        if not module.found_state:
            return Captured(module.text(), tuple(names), tuple(module.uses(set(names))))


def _name_of(function: object) -> str:
    """Returns the name of a function or class; raises NotCaptured for what is neither."""
    inner = function.func if isinstance(function, functools.partial) else function
    name = str(getattr(inner, "__name__", type(inner).__name__))
    method = isinstance(function, MethodType) or type(function).__name__ == "method_descriptor"
    if method:
        raise NotCaptured(f"{name!r} is a method: write a function that calls it")
    if not callable(function):
        raise NotCaptured(f"expected a function or class, got {function!r:.80}")
    written = raw_function(function) is not None or isinstance(function, type | functools.partial)
    if not written and place_of(function, name) is None:
        raise NotCaptured(
            f"{name!r} is an object that can be called: write a function that does what it does"
        )
    return "function" if name == "<lambda>" else name


@dataclass
class _Module:
    """The module as far as it is written: imports first, then definitions in an order that runs."""

    advice: str
    state: Changes | None = None
    found_state: bool = False
    imports: dict[str, None] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    bound: dict[str, object] = field(default_factory=dict)

    def text(self) -> str:
        """Returns the text of the module."""
        parts = [part.rstrip("\n") for part in self.parts.values()]
        spaced, before = "", ""
        for part in parts:
            plain = not re.match(r"(async def|def|class|@)", part)
            spaced += "\n" if plain and before == "plain" else "\n\n\n" if spaced else ""
            spaced, before = spaced + part, "plain" if plain else "block"
        deeper = {line.rpartition(".")[0] for line in self.imports if line.startswith("import ")}
        head = "".join(f"{line}\n" for line in sorted(self.imports.keys() - deeper))
        gap = "\n" if before and head and parts[0][:4] not in ("def ", "clas", "asyn") else "\n\n"
        return (head + gap if head and parts else head) + spaced + "\n" * bool(parts)

    def uses(self, names: set[str]) -> Iterator[str]:
        """Yields what was captured beside some functions, in words."""
        yield from sorted(self.imports)
        for name, value in self.bound.items():
            if name not in names and name in self.parts:
                kind = {FunctionType: "function", type: "class"}.get(type(value), "constant")
                yield f"{kind} {name}"

    def define_first(self, name: str, value: object) -> str:
        """Adds what was asked for, under a name that is free, and returns that."""
        own = isinstance(value, functools.partial) and not self._importable(value.func, name)
        free = f"partial_{name}" if own else name  # the function within has the name itself
        while free in self.bound and self.bound[free] is not value:
            free += "_"
        self.bind(free, value, free)
        return free

    def bind(self, name: str, value: object, user: str) -> None:
        """Makes a name mean a value; `user` uses it, for error messages."""
        if name in self.bound:
            if not self._means(name, value):
                raise NotCaptured(
                    f"{user!r} uses {name!r}, and something else that was captured uses another "
                    "one of that name: rename one of them"
                )
            return
        self.bound[name] = value
        if isinstance(value, ModuleType):
            self._import_module(name, value, user)
        elif place := self._importable(value, name):
            module, attribute = place
            alias = "" if attribute == name else f" as {name}"
            self.imports[f"from {module} import {attribute}{alias}"] = None
        elif isinstance(value, FunctionType | type) or _is_decorated(value):
            self._define(name, value)
        elif isinstance(value, functools.partial):
            parts = [value.func, *value.args], value.keywords
            if self.state and isinstance(value.func, FunctionType):
                self.found_state |= self.state.note_partial(value)
            words = [self._expression(each, name, user) for each in parts[0]]
            words += [f"{key}={self._expression(v, name, user)}" for key, v in parts[1].items()]
            self._put(name, f"{self._name(functools)}.partial({', '.join(words)})")
        elif self.state and self.state.is_changed(value):
            self.parts[name] = f"{name} = ...  # a {type(value).__name__} that this code changes\n"
        else:
            self._put(name, self._expression(value, name, user))

    def _put(self, name: str, expression: str) -> None:
        text = f"{name} = {expression}\n"
        if holds_key(text):
            raise NotCaptured(
                f"{name!r} seems to hold a key, and a log is passed on to others: read it from the "
                "environment where it is used"
            )
        self.parts[name] = text

    def _means(self, name: str, value: object) -> bool:
        """Whether a name means a value already, or one that has the very same text."""
        if self.bound[name] is value:
            return True
        if callable(value) or isinstance(value, ModuleType):
            return False
        try:
            return self.parts.get(name) == f"{name} = {expression_of(value, self._named)}\n"
        except NoText:
            return False

    def _expression(self, value: object, name: str, user: str) -> str:
        try:
            kept = self.state.without(value) if self.state else value
            return expression_of(kept, self._named)
        except NoText as error:
            raise NotCaptured(
                f"{user!r} uses {name!r}, a {type(value).__name__}, which cannot be kept as text "
                f"({error}): {self.advice}"
            ) from None

    def _named(self, value: object) -> str | None:
        """Returns a dotted name for a function, class or module, which is then bound."""
        try:
            return self._name(value)
        except NotCaptured:
            return None

    def _name(self, value: object) -> str:
        for name, known in self.bound.items():
            plain = isinstance(value, FunctionType | type | ModuleType)
            if known is value and (plain or name in self.parts):
                return name
        if isinstance(value, ModuleType):
            self.bind(value.__name__, value, value.__name__)
            return value.__name__
        if isinstance(value, type) and value.__module__ == "builtins":
            return value.__name__
        wanted = getattr(value, "__name__", None)
        if place := self._importable(value, str(wanted)):
            module, attribute = place
            owner = sys.modules[module]
            return f"{self._name(owner)}.{attribute}"
        if isinstance(value, FunctionType | type) and wanted != "<lambda>":
            self.bind(str(wanted), value, str(wanted))
            return str(wanted)
        raise NotCaptured(f"{value!r:.60} has no name")

    def _import_module(self, name: str, module: ModuleType, user: str) -> None:
        if module.__name__ == "__main__" or not is_installed(module.__name__):
            raise NotCaptured(
                f"{user!r} uses the module {module.__name__!r}, a file of your own that others do "
                f"not have: import from it what is used, from {module.__name__} import ..., which "
                "is captured"
            )
        same = name in (module.__name__, module.__name__.partition(".")[0])
        alias = "" if same else f" as {name}"
        self.imports[f"import {module.__name__}{alias}"] = None

    def _importable(self, value: object, name: str) -> tuple[str, str] | None:
        """Returns module and name from which something that is installed can be imported."""
        if type(value).__module__ == "builtins" and not callable(value):
            return None  # a number, a text or a container
        return place_of(value, name)

    def _define(self, name: str, value: object) -> None:
        """Adds a function or class of the user's own, after what it uses."""
        if isinstance(value, type) and _is_namedtuple(value):
            return self._define_namedtuple(name, value)
        source, decorated = _source_of(value)
        definition = definition_of(source)
        if not decorated and isinstance(definition.node, ast.FunctionDef | ast.AsyncFunctionDef):
            definition = _undecorated(definition)
        names, scope = names_in(definition), scope_of(source)
        self._check(names, name)
        if self.state:
            self.found_state |= self.state.note(definition.node, scope.look)
        renamed = self._bind_cells(names, scope, name)
        unknown = self._bind_names(names, scope, name)
        text = quoted_annotations(definition, unknown) if unknown else definition.text
        text = self._with_defaults(text, source, scope, name)
        if holds_key(text):
            raise NotCaptured(
                f"the source of {name!r} seems to hold a key, and a log is passed on to others: "
                "read it from the environment where it is used"
            )
        defined, own = definition.name, definition.name
        if renamed or isinstance(definition.node, ast.Lambda):
            self.parts[name] = closure_text(name, text, defined, renamed)
            return None
        if own != name:
            while own in self.bound and self.bound[own] is not value:
                own += "_"
            self.bound[own] = value
        if own != defined:
            text = re.sub(rf"(?m)^((?:async )?def|class) {defined}\b", rf"\1 {own}", text, count=1)
        if own != name:
            text += f"\n\n{name} = {own}\n"
        if wrapping := _cache_around(value, decorated):
            text += f"\n\n{name} = {self._name(functools)}.{wrapping}({own})\n"
        self.parts[name] = text
        return None

    def _define_namedtuple(self, name: str, value: type) -> None:
        fields: tuple[str, ...] = value._fields  # type: ignore[attr-defined]
        defaults: Mapping[str, object] = value._field_defaults  # type: ignore[attr-defined]
        made = self._name(namedtuple)
        text = f"{made}({value.__name__!r}, {list(fields)!r}"
        if defaults:
            text += f", defaults={self._expression(list(defaults.values()), name, name)}"
        self._put(name, f"{text})")

    def _bind_cells(self, names: Names, scope: Scope, user: str) -> dict[str, str]:
        """Binds variables of the function around it; returns the names of those with another one.

        Two functions that one decorator made both have a variable `f`, say.
        """
        renamed = dict[str, str]()
        for each in [name for name in names.needed if name in scope.cells]:
            free = each
            while free in self.bound and not self._means(free, scope.cells[each]):
                free += "_"
            self.bind(free, scope.cells[each], user)
            if free != each:
                renamed[each] = free
        names.needed = {name: None for name in names.needed if name not in scope.cells}
        return renamed

    def _check(self, names: Names, user: str) -> None:
        if names.changed:
            raise NotCaptured(
                f"{user!r} changes {names.changed[0]!r}, which lies outside it: its calls are made "
                "in other processes and in any order, so return what is to be kept"
            )

    def _bind_names(self, names: Names, scope: Scope, user: str) -> set[str]:
        """Binds what a definition uses; returns names in annotations that cannot be had."""
        for dotted in names.attributes:
            self._import_submodules(dotted, scope)
        for each in names.needed:
            found = scope.look(each)
            if found is BUILTIN:
                continue
            if found is MISSING:
                raise NotCaptured(
                    f"{user!r} uses {each!r}, which is not defined: its cell was deleted or has "
                    "not run"
                )
            self.bind(each, found, user)
        unknown = set()
        for each in names.mentioned:
            found = scope.look(each)
            before = dict(self.imports), dict(self.parts), dict(self.bound)
            try:
                if found is MISSING:
                    unknown.add(each)
                elif found is not BUILTIN:
                    self.bind(each, found, user)
            except NotCaptured:
                self.imports, self.parts, self.bound = before
                unknown.add(each)
        return unknown

    def _import_submodules(self, dotted: str, scope: Scope) -> None:
        """Imports `a.b` where `a.b.c` is used and `a` alone would not load it."""
        root, *rest = dotted.split(".")
        module = scope.look(root)
        for each in rest:
            if not isinstance(module, ModuleType):
                return
            inner = f"{module.__name__}.{each}"
            module = getattr(module, each, None)
            if module is not None and sys.modules.get(inner) is module and is_installed(inner):
                self.imports[f"import {inner}"] = None

    def _with_defaults(self, text: str, source: object, scope: Scope, user: str) -> str:
        """Returns the text with the default values that the function was defined with.

        A name in one may mean something else by now.
        """
        if not isinstance(source, FunctionType):
            return text
        node = next(n for n in ast.walk(parsed(text)) if isinstance(n, _Defs))
        pairs = list(zip(node.args.defaults, source.__defaults__ or (), strict=False))
        given = source.__kwdefaults__ or {}
        pairs += [
            (default, given[each.arg])
            for each, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if default is not None and each.arg in given
        ]
        lines = text.encode().split(b"\n")
        for default, value in sorted(pairs, key=lambda pair: -pair[0].col_offset):
            if any(may_change(scope.look(n.id)) for n in _names_under(default)):
                words = self._expression(value, ast.unparse(default), user).encode()
                line = lines[default.lineno - 1]
                lines[default.lineno - 1] = (
                    line[: default.col_offset] + words + line[default.end_col_offset :]
                )
        return b"\n".join(lines).decode()


_Defs = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def _names_under(tree: ast.AST) -> list[ast.Name]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Name)]


def _source_of(value: object) -> tuple[object, bool]:
    """Returns the function or class whose text defines a value, and whether its decorators do."""
    if isinstance(value, type):
        return value, True
    inner = raw_function(value)
    if inner is None:
        raise NotCaptured(f"{value!r:.60} has no source text")
    if inner is value:
        name = getattr(definition_of(inner).node, "name", "")
        return inner, inner.__globals__.get(name) is value
    if getattr(definition_of(inner).node, "decorator_list", ()):
        return inner, True
    # Wrapped where it was called, cached = lru_cache(f), rather than where it was defined.
    return (value, False) if isinstance(value, FunctionType) else (inner, False)


def _undecorated(definition: Definition) -> Definition:
    node = definition.node
    lines = definition.text.split("\n")
    text = "\n".join(lines[node.lineno - 1 :])
    return Definition(parsed(text).body[0], text)  # type: ignore[arg-type]


def _is_decorated(value: object) -> bool:
    return raw_function(value) is not None and not isinstance(value, MethodType)


def _cache_around(value: object, decorated: bool) -> str:
    """Returns the call of `functools` that wrapped a function outside its definition, or nothing.

    Raises NotCaptured for another wrapping, whose text is not known.
    """
    if decorated or isinstance(value, FunctionType | type):
        return ""
    parameters: Callable[[], dict[str, object]] | None = getattr(value, "cache_parameters", None)
    if parameters is None:
        raise NotCaptured(
            f"{getattr(value, '__name__', value)!r} was wrapped after its definition: write the "
            "wrapping as a decorator above it"
        )
    words = ", ".join(f"{name}={each!r}" for name, each in parameters().items())
    return f"lru_cache({words})"


def _is_namedtuple(value: type) -> bool:
    return value.__bases__ == (tuple,) and hasattr(value, "_fields")
