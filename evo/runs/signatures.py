"""Signatures, docstrings and checks of functions, made from their classes of options."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import ForwardRef, NamedTuple, TypeVar, cast, get_args

from evo.runs.options import Option

Function = TypeVar("Function", bound=Callable[..., object])
Options = TypeVar("Options", bound=Mapping[str, object])


class ListedOption(NamedTuple):
    """An option as listed: its name, its type as an annotation, and its description."""

    name: str
    annotation: object
    option: Option


def entries(kind: type) -> Iterator[ListedOption]:
    """Yields the options of one of the classes above, inherited ones first."""
    for name, annotated in kind.__annotations__.items():
        annotation, option = get_args(annotated)
        if isinstance(annotation, ForwardRef):
            annotation = annotation.__forward_arg__
        yield ListedOption(name, annotation, option)


def lists_options(kind: type, *, optional: Collection[str] = ()) -> Callable[[Function], Function]:
    """Returns a decorator that lists options in a function's signature and docstring.

    Args:
        kind: The class of the function's `**options`.
        optional: Names whose default is None, since the function finds another value then.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None if name in optional else option.default,
                annotation=annotation,
            )
            for name, annotation, option in entries(kind)
        ]
        listed = "\n".join(f"    {name}: {option.help}" for name, _, option in entries(kind))
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions:\n{listed}\n"
        whole = signature.replace(parameters=[*own, *more])
        function.__signature__ = whole  # type: ignore[attr-defined]
        return function

    return decorate


def options_in(kind: type[Options], options: Mapping[str, object]) -> Options:
    """Returns those of some options that belong to a class of options."""
    names = kind.__annotations__
    return cast(Options, {name: value for name, value in options.items() if name in names})


def completed(kind: type[Options], options: Options) -> Options:
    """Returns options with the default of each one that is not given.

    Whole numbers become ints, and switches bools.

    Raises:
        ValueError: A whole number is out of its range.
        TypeError: A switch is neither True nor False, such as the text "False".
    """
    from evo.logs.inputs import at_least, switch

    values: dict[str, object] = {}
    for name, _, option in entries(kind):
        value = options.get(name, option.default)
        if option.least is not None:
            value = at_least(name, value, option.least)
        values[name] = switch(name, value) if isinstance(option.default, bool) else value
    return cast(Options, values)


def check_options(
    kind: type,
    options: Mapping[str, object],
    advice: str = "",
    *,
    verb: Callable[..., object] | None = None,
) -> None:
    """Raises MistakenType if an option is none of a class of options, or of another type.

    Numbers and texts are looked at here, and what has a class of its own where it is used.

    Args:
        kind: The class of options.
        options: Values by name; None is passed over.
        advice: What to do about a name that nothing resembles.
        verb: The public function that takes the options, whose own arguments are known, too.
    """
    from evo.plugins import MistakenType, meant
    from evo.tasks.their_names import of_runs

    for name, value in options.items():
        if name not in kind.__annotations__:
            taken = {*kind.__annotations__, *(inspect.signature(verb).parameters if verb else ())}
            hint = (
                of_runs(name)
                or _in_limits(name, taken)
                or meant(name, taken)
                or (advice and f"; {advice}")
            )
            known = ", ".join(sorted(taken))
            raise MistakenType(f"unknown argument {name!r}{hint} (known: {known})")
        annotation = get_args(kind.__annotations__[name])[0]
        known_types = (annotation, *get_args(annotation))
        accepted = [_ACCEPTED[each] for each in known_types if each in _ACCEPTED]
        named = [word for each in known_types for word in get_args(each) if isinstance(word, str)]
        fits = any(isinstance(value, types) for types, _ in accepted) or value in named
        if accepted and value is not None and (isinstance(value, bool) or not fits):
            words = " or ".join(dict.fromkeys([w for _, w in accepted] + list(map(repr, named))))
            raise MistakenType(f"{name}: expected {words}, got {value!r:.60}")


def _in_limits(name: str, taken: Collection[str]) -> str:
    """Returns how `limits.seconds`, a field of sweeps, is given elsewhere; else nothing."""
    if "limits" not in taken or not name.startswith("limits."):
        return ""
    return f"; give limits={{{name.removeprefix('limits.')!r}: ...}}"


_ACCEPTED: dict[object, tuple[type | tuple[type, ...], str]] = {
    float: (Real, "a number"),
    str: (str, "a text"),
    Path: ((str, PathLike), "a path"),
}
"""What is accepted for an option of a type, and how a message calls it."""
