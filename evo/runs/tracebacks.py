"""Tracebacks as users see them: of errors that say what to do, without frames of this package."""

from __future__ import annotations

from types import TracebackType

_OURS = ("evo", "joblib")
"""Packages whose frames tell a user nothing."""


class Short:
    """Shortens the traceback of an error that leaves the block; see `shorten`."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            shorten(error)


def shorten(error: BaseException) -> None:
    """Takes frames of this package and of joblib out of the traceback of an error of this package.

    Frames of the user's code stay, and so do causes, whose tracebacks are shortened likewise. An
    error of another class may be a fault of this package, and keeps all of its frames.
    """
    if _package(type(error).__module__) != "evo":
        return
    seen: BaseException | None = error
    while seen is not None:
        seen.__traceback__ = _without_ours(seen.__traceback__)
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def _package(module: str) -> str:
    return module.partition(".")[0]


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Returns a traceback without the frames of modules of `_OURS`."""
    if trace is None:
        return None
    rest = _without_ours(trace.tb_next)
    if _package(trace.tb_frame.f_globals.get("__name__", "")) in _OURS:
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
