"""The text of values: expressions that make equal ones again."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import re
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType

import numpy as np

MOST = 1 << 20
"""Characters of one constant; more than that is data, which a task has as instances."""

_BY_REPR = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, fractions.Fraction)
_ATOMS = (bool, int, str, bytes, type(None), type(...), range)
_NUMBERS = "biufcSU"
_CONTAINERS: Mapping[type, str] = {
    collections.Counter: "collections.Counter",
    collections.OrderedDict: "collections.OrderedDict",
    collections.deque: "collections.deque",
    frozenset: "frozenset",
}


class NoText(ValueError):  # noqa: N818
    """A value has no text; the message says which part of it."""


def expression_of(value: object, named: Callable[[object], str | None]) -> str:
    """Returns an expression that makes an equal value again.

    Args:
        value: Numbers, texts, containers, NumPy's arrays and a few more.
        named: Returns a dotted name for a function, class or module within the value, and makes
            sure that it is known where the expression stands; None if that is not possible.

    Raises:
        NoText: There is none.
    """
    text = _Writer(named).write(value)
    if len(text) > MOST:
        raise NoText(f"{len(text):,} characters as text, at most {MOST:,}")
    return text


class _Writer:
    def __init__(self, named: Callable[[object], str | None]) -> None:
        self._named = named
        self._around: list[int] = []  # containers that contain themselves would not end

    def write(self, value: object) -> str:
        kind = type(value)
        if kind in _ATOMS:
            return repr(value)
        if isinstance(value, enum.Enum):
            return f"{self._name(kind)}.{value.name}"
        if isinstance(value, float) and kind is float:
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if isinstance(value, complex) and kind is complex:
            return f"complex({self.write(value.real)}, {self.write(value.imag)})"
        if isinstance(value, np.generic | np.ndarray):
            return self._array(value)
        if isinstance(value, FunctionType | type | ModuleType):
            return self._name(value)
        if id(value) in self._around:
            raise NoText("something that contains itself")
        self._around.append(id(value))
        try:
            return self._whole(value)
        finally:
            self._around.pop()

    def _whole(self, value: object) -> str:
        """Returns the text of a value that is made of others."""
        kind = type(value)
        if kind in (list, set):
            opened, closed = "[]" if kind is list else "{}"
            items = [self.write(each) for each in value]  # type: ignore[attr-defined]
            items = items if kind is list else sorted(items)  # whose order differs each time
            return f"{opened}{', '.join(items)}{closed}" if items or kind is list else "set()"
        if kind is tuple:
            items = [self.write(each) for each in value]  # type: ignore[attr-defined]
            return f"({', '.join(items)}{',' * (len(items) == 1)})"
        if kind is dict:
            return self._dict(value)  # type: ignore[arg-type]
        if kind is slice:
            return repr(value)
        if kind in _CONTAINERS:
            plain: object = dict(value) if isinstance(value, dict) else list(value)  # type: ignore[call-overload]
            plain = set(value) if kind is frozenset else plain  # type: ignore[call-overload]
            made = self._name(kind) if kind is not frozenset else "frozenset"
            return f"{made}({self.write(plain)})"
        if isinstance(value, collections.defaultdict):
            factory = "None" if value.default_factory is None else self._name(value.default_factory)
            return f"{self._name(kind)}({factory}, {self._dict(value)})"
        if isinstance(value, _BY_REPR) and kind.__module__ in ("datetime", "decimal", "fractions"):
            return (
                f"{self._name(kind)}{repr(value).partition('(')[1]}{repr(value).partition('(')[2]}"
            )
        if isinstance(value, pathlib.PurePath):
            public = pathlib.Path if isinstance(value, pathlib.Path) else pathlib.PurePath
            return f"{self._name(public)}({str(value)!r})"
        if isinstance(value, re.Pattern):
            return f"{self._name(re)}.compile({value.pattern!r}, {int(value.flags)})"
        if isinstance(value, tuple) and hasattr(value, "_fields"):  # a named tuple
            return f"{self._name(kind)}({', '.join(map(self.write, value))})"
        if dataclasses.is_dataclass(value):
            return self._dataclass(value)
        if (name := self._named(value)) is not None:
            return name
        raise NoText(f"a {kind.__name__}")

    def _dict(self, value: Mapping[object, object]) -> str:
        items = (f"{self.write(key)}: {self.write(each)}" for key, each in value.items())
        return f"{{{', '.join(items)}}}"

    def _dataclass(self, value: object) -> str:
        parts = []
        for each in dataclasses.fields(value):  # type: ignore[arg-type]
            if not each.init:
                raise NoText(f"a {type(value).__name__} whose field {each.name!r} is set elsewhere")
            parts.append(f"{each.name}={self.write(getattr(value, each.name))}")
        return f"{self._name(type(value))}({', '.join(parts)})"

    def _array(self, value: np.generic | np.ndarray) -> str:
        if value.dtype.kind not in _NUMBERS or type(value) not in (np.ndarray, value.dtype.type):
            raise NoText(f"an array of type {value.dtype}")
        if isinstance(value, np.ndarray) and 0 in value.shape:
            return f"{self._name(np)}.empty({value.shape!r}, dtype={str(value.dtype)!r})"
        text = self.write(value.tolist())
        made = f"{self._name(np)}.array({text}, dtype={str(value.dtype)!r})"
        return made if isinstance(value, np.ndarray) else f"{made}[()]"

    def _name(self, value: object) -> str:
        if (name := self._named(value)) is None:
            raise NoText(f"{getattr(value, '__name__', type(value).__name__)!r}")
        return name
