"""Searches, filters and policies of one's own on the command line, as FILE.py:CLASS."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from evo.logs.types import JsonObject

FORM = "FILE.py:CLASS"
"""How a class of one's own is given, for help and messages."""

What = Literal["search", "filter", "policy"]


def known_name(what: What, given: str, flag: str = "") -> str:
    """Returns the name of a search, filter or policy; a class in a file is made known first.

    The file is run, as Python runs a script; a log names the class by its `name` and never by its
    file.

    Args:
        what: What is given.
        given: A name, which is returned as it is, or FILE.py:CLASS.
        flag: How a command line gives it, up to its value (default: `--search`, for instance).

    Raises:
        ValueError: The file cannot be run or has no such class, or the name is taken.
    """
    file, _, name = given.rpartition(":")
    if not file.endswith(".py"):
        if not given.endswith(".py"):
            return given
        file, name = given, ""
    flag = f"{flag or f'--{what} '}{given}"
    module = _run(Path(file), flag)
    found = getattr(module, name, None) if name else None
    if not isinstance(found, type):
        own = [n for n, each in vars(module).items() if _is_own(each, module)]
        raise ValueError(
            f"{flag}: expected {FORM}, the name of a class in {file}"
            + (f", which has {', '.join(own)}" if own else ", which has none")
        )
    own_name = getattr(found, "name", None)
    if what == "policy" and not isinstance(own_name, str):
        own_name = found.__name__
    if not isinstance(own_name, str):
        raise ValueError(
            f"{flag}: the class has no attribute `name`, a string, by which logs know it"
        )
    registry, methods = _registry(what)
    if missing := [each for each in methods if not callable(getattr(found, each, None))]:
        raise ValueError(f"{flag}: the class has no method `{missing[0]}`, so it is no {what}")
    try:
        registry[own_name] = found
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None
    return own_name


def known_filters(given: Sequence[str], fields: Mapping[str, object]) -> list[JsonObject]:
    """Returns filters, as `known_name` takes them, as mappings of their names and fields.

    Args:
        given: What `--filter` gives.
        fields: What `--filter-set` gives: values by filter and field, with a dot in between.

    Raises:
        ValueError: A field is of a filter that is not given; and as of `known_name`.
    """
    names = [known_name("filter", each) for each in given]
    filters: list[JsonObject] = [{"name": name} for name in names]
    for key, value in fields.items():
        name, _, field = key.partition(".")
        chosen = [each for each in filters if each["name"] == name]
        if not chosen or not field:
            known = f"--filter gives {', '.join(names)}" if names else "--filter gives none"
            raise ValueError(
                f"--filter-set {key}: expected FILTER.NAME=VALUE, such as "
                f"near_duplicates.ratio=0.9, of a filter that is given; {known}"
            )
        for each in chosen:
            each[field] = value
    return filters


def make_known(search: str | None, filters: Sequence[str] | None) -> None:
    """Makes the classes known that logs were made with; each is given as FILE.py:CLASS."""
    given: list[tuple[What, str]] = [("filter", each) for each in filters or ()]
    if search is not None:
        given.append(("search", search))
    for what, each in given:
        if ".py" not in each:
            raise ValueError(
                f"--{what}: expected {FORM}, a class of your own that the log was made with, got "
                f"{each!r}; the log names what is built in"
            )
        known_name(what, each)


def _registry(what: What) -> tuple[MutableMapping[str, Any], tuple[str, ...]]:
    """The classes that are known by name, and the methods of each."""
    from evo.filters import registry as filters
    from evo.policies import POLICIES
    from evo.searches import registry as searches

    if what == "policy":
        return POLICIES, ("ask", "tell")
    if what == "search":
        return searches.SEARCHES, searches.KIND.methods
    return filters.FILTERS, filters.KIND.methods


def _run(path: Path, flag: str) -> ModuleType:
    """Returns the module in a file; each file is run once."""
    if not path.is_file():
        raise ValueError(f"{flag}: no file {str(path)!r}")
    place = str(path.resolve())
    if place in sys.modules:
        return sys.modules[place]
    spec = importlib.util.spec_from_file_location(place, place)
    assert spec is not None  # the name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[place] = module  # dataclasses look their annotations up there
    sys.path.insert(0, str(path.resolve().parent))  # it may import what lies beside it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[place]
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == place]
        at = f" in line {lines[-1]}" if lines else ""
        raise ValueError(
            f"{flag}: {path} cannot be run: {type(error).__name__}{at}: {error}"
        ) from error
    return module


def _is_own(each: object, module: ModuleType) -> bool:
    return inspect.isclass(each) and each.__module__ == module.__name__
