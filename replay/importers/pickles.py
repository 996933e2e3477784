"""Read untrusted pickles: a short list of names, each replaced by a stand-in, the rest refused.

Unpickling calls whatever a pickle names. Here it can name nothing but stand-ins that hold data and
do nothing. Python's own unpickler is used because the C one reserves whatever memory a pickle
asks for.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from evo.logs.journal import read_bytes
from replay.importers.reading import LogFormatError

_ERRORS = (ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError,
           MemoryError, RecursionError, TypeError, ValueError, pickle.PickleError,
           struct.error)  # fmt: skip
"""What a damaged pickle makes the unpickler raise."""


class Stub:
    """Stands for an object of the other tool: its attributes as plain data."""

    arguments: tuple[object, ...]
    attributes: dict[str, object]

    def __new__(cls, *arguments: object) -> Self:
        """Makes one, also where a pickle makes objects without calling their class."""
        made = super().__new__(cls)
        made.arguments, made.attributes = arguments, {}
        return made

    def __setstate__(self, state: object) -> None:
        """Keeps a state that is a dict of attributes; any other is dropped."""
        if isinstance(state, dict):
            self.attributes = {str(key): value for key, value in state.items()}


def _scalar(kind: Stub, data: object = b"") -> float | Stub:
    """Stands for a NumPy scalar: floats and integers of 8 bytes, which is what fitness is."""
    code = kind.arguments[0] if kind.arguments else None
    formats = {"f8": "<d", "i8": "<q"}
    if code in formats and isinstance(data, bytes) and len(data) == 8:
        return float(struct.unpack(formats[code], data)[0])
    return Stub()


def load(path: Path, *, package: str) -> object:
    """Unpickles a file without trusting it; classes of `package` become `Stub`.

    LogFormatError if it names anything else that is not allowed, or is damaged.
    """
    allowed: dict[tuple[str, str], Callable[..., Any]] = {
        ("random", "Random"): Stub,
        ("builtins", "getattr"): lambda *_: Stub(),  # by which pickles hold bound methods
        ("_operator", "getitem"): lambda *_: Stub(),  # and generic types such as Cache[Any]
        ("typing", "Any"): Stub,
        ("builtins", "set"): set,
        ("builtins", "frozenset"): frozenset,
        ("collections", "OrderedDict"): dict,
        ("numpy", "dtype"): Stub,
        ("numpy._core.multiarray", "scalar"): _scalar,
        ("numpy.core.multiarray", "scalar"): _scalar,
    }

    class Unpickler(pickle._Unpickler):
        def find_class(self, module: str, name: str, /) -> object:
            if (module, name) in allowed:
                return allowed[module, name]
            if (module == package or module.startswith(package + ".")) and name.isidentifier():
                return Stub
            raise LogFormatError(f"{path}: refused: the pickle asks for {module}.{name}")

        def get_extension(self, code: int) -> None:
            raise LogFormatError(f"{path}: refused: the pickle asks for extension {code}")

    data = read_bytes(path)
    try:
        return Unpickler(io.BytesIO(data)).load()
    except LogFormatError:
        raise
    except _ERRORS as error:
        raise LogFormatError(
            f"{path}: not a readable pickle: {str(error) or type(error).__name__}"
        ) from None
