"""Frozen values that a run is given by name: searches and filters, and what a log keeps of them.

A log holds a value's name, version and fields, and of a user's own class a hash of its source. The
value itself goes along with its record in memory and is made again from the record after reading.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import math
import textwrap
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, Generic, TypeVar

import msgspec

from evo.logs.inputs import MOST_INT
from evo.logs.records import ValueRecord
from evo.logs.types import Fields, JsonObject
from evo.parsing import parsed
from evo.plugins import MistakenType, Registry, meant, plugged_in
from evo.warning import warn

T = TypeVar("T")
R = TypeVar("R", bound=ValueRecord)

_converting = threading.Lock()


class UnknownValue(ValueError):  # noqa: N818
    """A log was made with a value whose class is not known here."""


class FieldChanged(ValueError):  # noqa: N818
    """A method of a frozen value changed one of its fields."""


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A kind of value, such as searches.

    Attributes:
        what: What messages call one.
        registry: What messages call the table of classes.
        group: Entry points by which other packages add classes.
        known: Classes by name; users may add their own.
        shipped: The classes of this package: their version stands for their code.
        methods: What each value can do.
        advice: How else than by its class an unknown value can be given, if it can.
        earlier: By name, functions that return which shipped class made a record, for names under
            which earlier versions logged what the class known now does otherwise or refuses.
    """

    what: str
    registry: str
    group: str
    known: Registry[Callable[..., T]]
    shipped: frozenset[type]
    methods: tuple[str, ...]
    advice: str = ""
    earlier: Mapping[str, Callable[[ValueRecord], type[T]]] = dataclasses.field(
        default_factory=dict
    )

    def find(self, given: object) -> T:
        """Returns a value: the one given, or by name, or by a mapping of its name and fields.

        Raises:
            ValueError: The name or a field is unknown, or a class of one's own has the name of a
                built-in one.
            TypeError: It is no frozen dataclass with a name and the methods.
        """
        if isinstance(given, str):
            given = {"name": given}
        if isinstance(given, Mapping):
            fields = dict(given)
            name, known = fields.pop("name", None), self._classes()
            if name not in known:
                hint = self._hint(name, known)
                raise ValueError(f"unknown {self.what} {name!r}: one of {', '.join(known)}{hint}")
            return self._build(name, known[name], fields)
        if not self.has(given):
            raise MistakenType(
                f"expected the name of a {self.what}, or a value of a frozen dataclass with "
                f"{', '.join(('name', *self.methods))}, got {given!r}{self._lack(given)}"
            )
        name, own = given.name, type(given)  # type: ignore[attr-defined]
        if self.known.data.get(name) in self.shipped and own not in self.shipped:
            raise ValueError(  # its log would go on with the built-in one
                f"{self.what}: {name!r} is the name of a built-in one, got one of "
                f"{own.__name__}; give that class a `name` of its own"
            )
        return given  # type: ignore[return-value]  # it has all that makes one

    def _hint(self, name: object, known: Mapping[str, object]) -> str:
        """Returns what to do about a name that is not known, as the end of a message."""
        if not isinstance(name, str):
            return "; name it by `name`"
        if ".py" in name:
            return (
                f"; give a {self.what} of your own itself, an instance of its class, and in a TOML "
                f"file the name of one that an installed package adds to {self.group}"
            )
        return meant(name, known) or (
            f"; one of your own is known once it is registered, {self.registry}[{name!r}] = its "
            f"class, or a package adds it to {self.group}"
        )

    def has(self, value: object) -> bool:
        """Whether something is such a value, rather than the name of one."""
        return not isinstance(value, type) and not self._lack(value)

    def _lack(self, value: object) -> str:
        """Returns what something lacks to be such a value, as the end of a message, or nothing."""
        if isinstance(value, type):
            return f"; give an instance of the class, {value.__name__}(...)"
        if not is_dataclass(value):
            return "; it is not a dataclass"
        made: Any = type(value)  # a class that only inherits is as frozen as what it inherits
        if not made.__dataclass_params__.frozen:
            return f"; it is not frozen: write @dataclass(frozen=True) above {made.__name__}"
        if not isinstance(getattr(value, "name", None), str):
            return "; it has no attribute `name`, a string"
        missing = [name for name in self.methods if not callable(getattr(value, name, None))]
        return f"; it has no method `{missing[0]}`" if missing else ""

    def record(self, value: T, kind: type[R]) -> R:
        """Returns what a header keeps of a value, which goes along with it."""
        record = kind(
            name=value.name,  # type: ignore[attr-defined]
            version=getattr(value, "version", 1),
            fields=fields_of(value),
            source="" if type(value) in self.shipped else source_hash(value),
        )
        return self.attach(record, value)

    def attach(self, record: R, value: T) -> R:
        """Returns the record of a log with the value that goes on with it.

        Raises:
            ValueError: The value differs from the record.
        """
        own = str(getattr(value, "name", ""))
        if (own, fields_of(value)) != (record.name, record.fields):
            raise ValueError(
                f"{self.what}: the log was made by {record.name!r} with {record.fields!r}, "
                f"got {own!r} with {fields_of(value)!r}"
            )
        if not self._same_code(record, value):
            warn(
                f"the code of {self.what} {record.name!r} is not that which began the log: "
                "generations from here on may come out otherwise",
            )
        record = msgspec.structs.replace(record)
        record.__dict__["value"] = value
        return record

    def identity(self, record: R) -> R:
        """Returns what of a record identifies a run: a shipped class does so by its version."""
        if self._is_shipped(record):
            return msgspec.structs.replace(record, source="")
        return record

    def begun(self, record: R, logged: R) -> R:
        """Returns what a log goes on with: a shipped class does what it did when it was begun.

        Of one version it is the given record, which has the value of this process.
        """
        older = record.name == logged.name and record.version != logged.version
        return logged if self._is_shipped(record) and older else record

    def unversioned(self, record: R) -> R:
        """Returns the record of a shipped class without its version."""
        return msgspec.structs.replace(record, version=1) if self._is_shipped(record) else record

    def _is_shipped(self, record: ValueRecord) -> bool:
        return self.known.data.get(record.name) in self.shipped

    def of(self, record: ValueRecord) -> T:
        """Returns the value of a record.

        Raises:
            UnknownValue: Its class is not known here.
            ValueError: Its class does not have the recorded fields.
        """
        if "value" in record.__dict__:
            found: T = record.__dict__["value"]
            return found
        known = self._classes()
        if record.name not in known:
            raise UnknownValue(
                f"unknown {self.what} {record.name!r}: what made this log is not known here; "
                f"{self.advice}register its class, {self.registry}[{record.name!r}] = ... "
                f"(known: {', '.join(known)})"
            )
        made = known[record.name]
        if record.name in self.earlier and self._is_shipped(record):
            made = self.earlier[record.name](record)
        found = self._build(record.name, made, record.fields)
        record.__dict__.update(self.attach(record, found).__dict__)
        return found

    def _classes(self) -> Mapping[str, Callable[..., T]]:
        return plugged_in(self.group, self.known)

    def _build(self, name: str, made: Callable[..., T], fields: dict[str, object]) -> T:
        plain = isinstance(made, type) and not is_dataclass(made)
        if plain:
            raise ValueError(
                f"{self.what} {name!r}: expected a frozen dataclass, got {made!r}, which is none"
            )
        try:
            with _converting:  # the first conversion to a type is not safe in several threads
                found: T = msgspec.convert(fields, made)
        except (msgspec.ValidationError, TypeError) as error:
            raise ValueError(f"{self.what} {name!r}: its fields do not fit: {error}") from None
        if lack := self._lack(found):
            raise ValueError(f"{self.what} {name!r}: {lack.removeprefix('; it ')}")
        if unknown := _unknown(fields, fields_of(found)):
            known = ", ".join(fields_of(found))
            has = f"known: {known}" if known else "it has none"
            raise ValueError(f"{self.what} {name!r}: unknown field {unknown!r}, {has}")
        return found

    def _same_code(self, record: ValueRecord, value: T) -> bool:
        """Whether a value does what the one in a log's record did.

        A shipped class is known by its version, which changes when its behaviour does; the hash of
        its source, which older logs hold, would change with every edit.
        """
        if type(value) in self.shipped:
            return record.version == getattr(value, "version", 1)
        return not record.source or source_hash(value) in ("", record.source)


def fields_of(value: object) -> JsonObject:
    """Returns a dataclass's fields as they come back from a log: see `as_logged`.

    Raises:
        ValueError: A log cannot hold a field.
    """
    try:
        fields = asdict(value)  # type: ignore[call-overload]
    except Exception as error:  # it copies a stranger's objects, such as a lock
        raise ValueError(
            f"a log cannot hold the fields of {type(value).__name__}: expected numbers, texts, and "
            f"lists and dicts of them, and copying the fields raised {type(error).__name__}: "
            f"{error}; make what is no plain data where it is used"
        ) from error
    return as_logged(fields)


def called_on(value: object, method: str, *given: object) -> object:
    """Returns what a method of a frozen value returns.

    Raises:
        FieldChanged: It changed a field of the value, for instance a list.
    """
    before = fields_of(value)
    found: object = getattr(value, method)(*given)
    try:
        after = fields_of(value)
    except ValueError:  # it holds now what no log can
        after = vars(value)
    changed = [name for name in before if after.get(name) != before[name]]
    if changed:
        name = changed[0]
        raise FieldChanged(
            f"expected its fields to stay as they are, and {name} was {before[name]!r:.60} before "
            f"it and {after.get(name)!r:.60} after it"
        )
    return found


def as_logged(fields: Mapping[str, object]) -> JsonObject:
    """Returns fields as they come back from a log: tuples are lists, NumPy's numbers plain ones.

    Raises:
        ValueError: A log cannot hold a field.
    """
    for name, field in fields.items():
        if _is_beyond(field):
            raise ValueError(
                f"{name}: a log holds finite numbers, whole ones of 64 bits, got {field!r:.60}"
            )
    try:
        found: JsonObject = msgspec.json.decode(msgspec.json.encode(fields, enc_hook=_plain))
    except TypeError as error:
        raise ValueError(f"a log cannot hold the fields {dict(fields)!r:.200}: {error}") from None
    return found


def _plain(value: object) -> object:
    """Returns an array or number of NumPy as plain data."""
    if callable(made := getattr(value, "tolist", None)):
        return made()
    raise TypeError(f"{type(value).__name__} is no plain data")


def _is_beyond(field: object) -> bool:
    """Whether a field holds a number that is read as another, as None, or not at all."""
    if isinstance(field, Mapping):
        return any(_is_beyond(each) for pair in field.items() for each in pair)
    if isinstance(field, list | tuple | set | frozenset):
        return any(map(_is_beyond, field))
    if isinstance(field, float):
        return not math.isfinite(field)
    return isinstance(field, int) and not -MOST_INT - 1 <= field <= MOST_INT


def source_hash(value: object, *, beside: str = "") -> str:
    """Returns SHA-256 (hex) of a value's code, apart from its comments, docstrings and layout.

    That is its methods, inherited ones included, and constants; empty where the source is unknown.

    Args:
        value: Its class has the code.
        beside: A package whose classes are left out; empty is also returned where no other is left.
    """
    parts: list[str] = []
    owners = type(value).__mro__[:-1]
    if beside and not (owners := tuple(o for o in owners if not _belongs(o, beside))):
        return ""
    for owner in owners:
        for name, each in sorted(vars(owner).items()):
            function = getattr(each, "fget", getattr(each, "__func__", each))
            function = inspect.unwrap(function) if callable(function) else function
            if inspect.isfunction(function) and function.__code__.co_filename != "<string>":
                try:
                    parts.append(_code(inspect.getsource(function)))
                except (OSError, SyntaxError):
                    return ""
            elif not name.startswith("_") and isinstance(each, str | int | float | tuple):
                parts.append(f"{name} = {each!r}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _belongs(owner: type, package: str) -> bool:
    """Whether a class is one of a package, or of Python's `abc` and `typing`."""
    return owner.__module__.partition(".")[0] in (package, "abc", "typing")


def _code(source: str) -> str:
    tree = parsed(textwrap.dedent(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _unknown(given: Fields, known: Fields) -> str:
    """Returns a name that is given and not known, however deep; empty: there is none."""
    for name, value in given.items():
        if name not in known:
            return name
        if isinstance(value, Mapping) and (deeper := _unknown(value, known[name])):
            return f"{name}.{deeper}"
    return ""
