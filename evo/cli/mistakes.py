"""Messages about mistakes on a command line: what a command takes, what was given, what to do."""

from __future__ import annotations

import difflib
from shlex import quote

import cyclopts


def words_of(error: cyclopts.CycloptsError) -> str:
    """Returns what to print about arguments that do not fit a command."""
    left = list(error.unused_tokens or ())
    if isinstance(error, cyclopts.MissingArgumentError) and error.argument is not None:
        return _missing(error.argument, left, given=bool(error.keyword))
    if isinstance(error, cyclopts.UnusedCliTokensError):
        shown = ", ".join(map(repr, left))
        return f"expected no further words, got {shown}; leave them out or name their options"
    return str(error)


def _missing(argument: cyclopts.Argument, left: list[str], *, given: bool) -> str:
    """Returns what to print where an argument has no value.

    Args:
        argument: The argument.
        left: Words that no argument took.
        given: Whether its name was given, without a value.
    """
    name = argument.names[0]
    if argument.index is not None:
        return f"expected {name.lstrip('-').upper().replace('-', '_')}, got none"
    if given:
        return f"{name}: expected a value after it, got none"
    options = [word for word in left if word.startswith("-")]
    if options:
        meant = difflib.get_close_matches(options[0], argument.names, 1)
        hint = f"; did you mean {meant[0]}?" if meant else ""
        return f"expected {name}, got the unknown option {options[0]}{hint}"
    if left:
        return (
            f"expected {name} and its value, got {left[0]!r} without a name; write "
            f"`{name} {quote(left[0])}`"
        )
    return f"expected {name} and its value, got none"
