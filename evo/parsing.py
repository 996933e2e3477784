"""Python's parser, in whatever thread it is called."""

from __future__ import annotations

import ast
import contextlib
import functools
import threading
from typing import cast

_parsing = threading.Lock()


def parsed(source: str, filename: str = "<unknown>", flags: int = 0) -> ast.Module:
    """Returns the syntax tree of a module, as `ast.parse` does, and raises what that raises.

    `flags` are further ones of `compile`.

    In CPython before 3.11.8 the parser of another thread upsets the depth that this one counts, and
    the call fails for no fault of the source.
    """
    parse = functools.partial(
        compile, source, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True
    )
    with _parsing:
        for _ in range(9):
            with contextlib.suppress(SystemError):
                return cast(ast.Module, parse())
        return cast(ast.Module, parse())
