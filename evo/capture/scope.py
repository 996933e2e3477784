"""Where the text of a function looks up names, and from where what is installed is imported."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType

from evo.capture.sources import is_installed, module_of, raw_function

_BUILTINS = vars(builtins)
MISSING, BUILTIN = object(), object()
"""What a name means that nobody defined, and one of Python's own."""


@dataclass(frozen=True)
class Scope:
    """Where a definition looks up names: in the functions around it, then in its module."""

    cells: Mapping[str, object]
    module: Mapping[str, object]

    def look(self, name: str) -> object:
        """Returns what a name means, `MISSING` or `BUILTIN`."""
        if name in self.cells:
            return self.cells[name]
        if name in self.module and not name.startswith("__"):
            return self.module[name]
        if name not in _BUILTINS and not (name.startswith("__") and name in self.module):
            return MISSING
        value = _BUILTINS.get(name)
        if str(getattr(value, "__module__", "")).startswith("IPython"):  # display
            return value
        return BUILTIN


def may_change(value: object) -> bool:
    """Whether a name with this value is that of a variable."""
    return value is not BUILTIN and not (callable(value) or isinstance(value, ModuleType))


def scope_of(value: object) -> Scope:
    """Returns where a function, or the methods of a class, look up names."""
    functions = [value] if isinstance(value, FunctionType) else list(_functions_of(value))
    cells = dict[str, object]()
    for each in functions:
        for name, cell in zip(each.__code__.co_freevars, each.__closure__ or (), strict=True):
            try:
                cells[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
    cells.pop("__class__", None)
    if functions:
        return Scope(cells, functions[0].__globals__)
    return Scope(cells, vars(module_of(value) or ModuleType("")))


def _functions_of(cls: object) -> Iterator[FunctionType]:
    for each in vars(cls).values():
        function = raw_function(getattr(each, "fget", None) or getattr(each, "__func__", each))
        own = function is not None and function.__code__.co_filename != "<string>"
        if function is not None and own and function.__qualname__.startswith(cls.__qualname__):  # type: ignore[attr-defined]
            yield function


def _public_package(module: str) -> str | None:
    """The package of a private module of the standard library, which other Pythons may lack."""
    package, private, _ = module.partition("._")
    known = package.partition(".")[0] in sys.stdlib_module_names
    return package if private and known else None


def place_of(value: object, name: str) -> tuple[str, str] | None:
    """Returns an installed module and the name there of a function, class or instance."""
    if isinstance(value, FunctionType | type):
        module = value.__module__
        if not module or not is_installed(module):
            return None
    own = getattr(value, "__module__", None)
    stated = [_public_package(own or ""), own, type(value).__module__.partition(".")[0]]
    names = dict.fromkeys([str(getattr(value, "__name__", name)), name])
    for module in filter(None, stated):
        for each in names:
            loaded = sys.modules.get(module)
            if loaded is not None and vars(loaded).get(each) is value and is_installed(module):
                return module, each
    found = []
    for module, loaded in list(sys.modules.items()):
        if "._" in module or module.startswith("_") or not isinstance(loaded, ModuleType):
            continue
        if vars(loaded).get(name) is value and is_installed(module):
            found.append(module)
    return (min(found, key=len), name) if found else None
