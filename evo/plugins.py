"""What is known by name: what other packages add by entry points, and parameters of all of it.

| group | an entry gives |
|---|---|
| `evo.tasks` | the folder of a task, a path |
| `evo.models` | an `evo.Model` |
| `evo.policies` | a policy class |
| `evo.searches` | a search class |
| `evo.filters` | a filter class |
| `evo.engines` | an `evo.Engine` |
| `replay.importers` | an object, such as a module, with functions `read` and `recognises` |
| `replay.figures` | a figure of a group of runs, see `replay.plots.FIGURES` |
| `replay.panels` | a tab of `replay.explore`, see `replay.explorers.register` |
| `replay.sections` | a table of a group of runs, see `replay.reports.SECTIONS` |

An entry is loaded when it is asked for, so that a package that is broken harms nothing but what it
adds. What is registered here goes before an entry of the same name.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections import UserDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from evo.warning import warn

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Made = TypeVar("Made")
Entry = TypeVar("Entry")


class MistakenType(TypeError):  # noqa: N818 - it says whose mistake it is
    """A value of a type that a function does not take; the message states what it takes.

    A command answers it in one line, as it does every ValueError. Any other TypeError is a bug.
    """


class Registry(UserDict[str, Entry]):
    """A table by name to which users add entries, and which guards those that are built in.

        POLICIES["mine"] = Mine                        # makes it known
        POLICIES["ucb1"] = Mine                        # ValueError: the name is taken
        POLICIES.replace("ucb1", Mine)                 # replaces the built-in one on purpose

    An entry of one's own may be assigned again, as when a cell of a notebook is run twice. Looking
    up a name also finds what packages add, which is loaded then; iteration is over what this
    process knows without them, and `names()` has all names.

    Args:
        what: What messages call an entry.
        built_in: The entries of this package.
        taken: Names of what is built in and no entry.
        reserved: Words that mean something else where an entry is named, by what they mean.
        kind: What an entry is, where it is called: "class" or "function"; empty: a value.
        group: The group of entry points by which packages add entries; empty: there is none.

    Attributes:
        built_in: As given.
        taken: The names of all that is built in, and what is reserved.
    """

    def __init__(
        self,
        what: str,
        built_in: Mapping[str, Entry],
        taken: Collection[str] = (),
        *,
        reserved: Mapping[str, str] | None = None,
        kind: Literal["class", "function", ""] = "",
        group: str = "",
    ) -> None:
        self.what, self.built_in, self.kind, self.group = what, dict(built_in), kind, group
        self.reserved = dict(reserved or {})
        self.taken = (*self.built_in, *taken, *self.reserved)
        super().__init__(built_in)

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._check(name, entry)
        if name in self.taken and entry is not self.built_in.get(name):
            raise ValueError(
                f"{name!r} is the name of a built-in {self.what}: expected a name other than "
                f"{', '.join(self.taken)}; replace({name!r}, ...) of this registry replaces it "
                "on purpose"
            )
        super().__setitem__(name, entry)

    def __missing__(self, name: str) -> Entry:
        added = self._added()
        if name not in added:
            raise KeyError(name)
        found: Entry = _load(added[name], self.kind)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in self._added()

    def names(self) -> tuple[str, ...]:
        """Returns every name, those of packages last, without loading anything."""
        return tuple(dict.fromkeys([*self.data, *self._added()]))

    def _added(self) -> Mapping[str, EntryPoint]:
        return _usable(self.group, self.taken) if self.group else {}

    def replace(self, name: str, entry: Entry) -> None:
        """Sets an entry, even in the place of a built-in one."""
        self._check(name, entry)
        self.data[name] = entry

    def _check(self, name: str, entry: object) -> None:
        if not isinstance(name, str) or not name.strip():
            raise MistakenType(
                f"{self.what}: expected a name, a text that is not empty, got {name!r:.80}"
            )
        if name in self.reserved:
            raise ValueError(
                f"{self.what}: expected a name of its own, got {name!r}, which is the word for "
                f"{self.reserved[name]}; choose another one"
            )
        if self.kind and not callable(entry):
            given = type(entry)
            own = self.kind == "class" and given.__module__ != "builtins"
            hint = f"; give the class itself, {given.__name__}" if own else ""
            raise MistakenType(
                f"{self.what} {name!r}: expected a {self.kind}, got {entry!r:.80}{hint}"
            )


def meant(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Returns the question whether another name was meant, if one is close but for its case."""
    by_text = {each.lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), by_text, n=1)
    return f"; did you mean {prefix + by_text[close[0]]!r}?" if close else ""


class PluginError(ValueError):
    """What another package adds cannot be loaded; the message names the package."""


class _Entries(Mapping[str, Any]):
    """Entries by name: some that are known, then entry points, which are loaded when asked for."""

    def __init__(self, known: Mapping[str, Any], points: Mapping[str, EntryPoint]) -> None:
        self._known, self._points = known, points
        self._kind = known.kind if isinstance(known, Registry) else ""

    def __getitem__(self, name: str) -> Any:
        return self._known[name] if name in self._known else _load(self._points[name], self._kind)

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._points

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._known, *self._points]))

    def __len__(self) -> int:
        return len(self._known.keys() | self._points.keys())


@functools.cache
def _points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, ordered by name and package."""
    from importlib.metadata import entry_points  # 15 ms, which servers of the sandbox need not pay

    return tuple(sorted(entry_points(group=group), key=lambda each: (each.name, _package(each))))


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unknown package"


@functools.cache
def _load(point: EntryPoint, kind: str = "") -> Any:
    try:
        found = point.load()
    except Exception as error:  # a stranger's module may raise anything
        raise PluginError(
            f"{point.name!r} of {point.group} cannot be loaded: the package {_package(point)} "
            f"gives it as {point.value}, which raises {type(error).__name__}: {error}; mend or "
            "uninstall that package"
        ) from error
    if kind and not callable(found):
        raise PluginError(
            f"{point.name!r} of {point.group} cannot be used: the package {_package(point)} gives "
            f"it as {point.value}, expected a {kind}, got {found!r:.80}; mend or uninstall that "
            "package"
        )
    return found


def plugged_in(
    group: str, known: Mapping[str, Any] | None = None, taken: Collection[str] = ()
) -> Mapping[str, Any]:
    """Returns what other packages add to a group, by name, each loaded when it is asked for.

    Args:
        group: The group of entry points.
        known: What is known here; it comes first, and goes before an entry of the same name.
        taken: Names that no package may give to what it adds, besides the built-in ones of `known`.

    Returns:
        The entries; looking one up raises PluginError if it cannot be loaded.
    """
    known = {} if known is None else known
    taken = {*taken, *(known.taken if isinstance(known, Registry) else ())}
    return _Entries(known, _usable(group, taken))


def _usable(group: str, taken: Collection[str]) -> dict[str, EntryPoint]:
    """Returns the entry points of a group by name; a RuntimeWarning tells which are left out."""
    points: dict[str, EntryPoint] = {}
    for point in _points(group):
        first = points.get(point.name)
        if point.name in taken or first is not None:
            owner = "something built in" if first is None else f"what {_package(first)} adds"
            message = (
                f"{point.name!r} of {group}, which the package {_package(point)} adds, is left "
                f"out: the name is that of {owner}; give it another name"
            )
            warn(message, RuntimeWarning)
        else:
            points[point.name] = point
    return points


def loaded(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Returns the entries that can be loaded; a RuntimeWarning says which cannot."""
    found = {}
    for name in entries:
        try:
            found[name] = entries[name]
        except PluginError as error:
            warn(str(error), RuntimeWarning)
    return found


def with_refusals(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all entries; in the place of one that cannot be loaded, what raises its error."""
    found: dict[str, Any] = {}
    for name in entries:
        try:
            found[name] = entries[name]
        except PluginError as error:
            found[name] = _refusing(error)
    return found


def _refusing(error: PluginError) -> Callable[..., None]:
    def refuse(*given: object) -> None:
        raise error

    return refuse


def guarded(what: str, name: str, function: Callable[..., Made]) -> Callable[..., Made]:
    """Returns a function that somebody added; its failure of any kind is a ValueError naming it."""

    @functools.wraps(function)
    def called(*given: Any, **how: Any) -> Made:
        try:
            return function(*given, **how)
        except ValueError:
            raise
        except Exception as error:  # a stranger's function may raise anything
            raise ValueError(
                f"the function of the {what} {name!r} failed: {type(error).__name__}: {error}"
            ) from error

    return called


def find_named(
    what: str,
    given: str | Callable[..., Made],
    known: Mapping[str, Callable[..., Made]],
    parameters: Mapping[str, object],
    common: Sequence[str],
    aliases: Collection[str] = (),
) -> Callable[..., Made]:
    """Returns what a name stands for, or what can be called as it is, with parameters set.

    `what` is how messages call it, `common` the arguments that whoever calls it gives, `aliases`
    further names, which the caller has replaced by what they stand for. ValueError: nothing has
    that name; TypeError: no callable either, or a parameter that it has not, or needs.
    """
    if not isinstance(given, str) and not callable(given):
        raise MistakenType(
            f"expected the name of a {what} or a callable ({', '.join(common)}) -> {what}, got "
            f"{given!r}"
        )
    if isinstance(given, str) and given not in known:
        listed = sorted({*known, *aliases})
        hint = meant(given, listed)
        if ".py" in given:
            hint = f"; give a {what} of your own itself, or in a file the name of a registered one"
        raise ValueError(f"expected a {what} out of {listed}, got {given!r}{hint}")
    build = known[given] if isinstance(given, str) else given
    if isinstance(given, str) or parameters or isinstance(build, functools.partial):
        name = given if isinstance(given, str) else name_in(known, build)
        return with_parameters(f"{what} {name}", build, parameters, common)
    return build


def name_in(known: Mapping[str, Callable[..., Made]], build: Callable[..., Made]) -> str:
    """Returns the name of what builds, or of a partial of it; of a stranger its own."""
    kind = getattr(build, "func", build)
    own = str(getattr(kind, "__name__", type(kind).__name__))
    return next((name for name, each in known.items() if each is kind), own)


def with_parameters(
    name: str, build: Callable[..., Made], parameters: Mapping[str, object], common: Sequence[str]
) -> Callable[..., Made]:
    """Returns something that builds, with parameters of its own set; see `find_named`."""
    given = {**getattr(build, "keywords", {}), **parameters}
    takes = inspect.signature(getattr(build, "func", build)).parameters
    named = {k: each for k, each in takes.items() if each.kind is not each.VAR_KEYWORD}
    own = {key: each for key, each in named.items() if key not in common}
    if wrong := [key for key in given if key not in own and len(named) == len(takes)]:
        known = ", ".join(own) or "none"
        raise MistakenType(f"{name}: unknown parameter {wrong[0]!r} (known: {known})")
    for key, parameter in own.items():
        if parameter.default is parameter.empty and key not in given:
            raise MistakenType(f"{name}: needs {key}=...")
    return functools.partial(build, **parameters) if parameters else build
