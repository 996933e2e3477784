"""Tracebacks as users see them: of errors that say what to do, without frames of this package."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

_HERE = f"{Path(__file__).parent.parent}/"


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
    if type(error).__module__.partition(".")[0] != "evo":
        return
    import joblib  # by now it is loaded

    ours = (_HERE, f"{Path(joblib.__file__).parent}/")
    seen: BaseException | None = error
    while seen is not None:
        seen.__traceback__ = _without(ours, seen.__traceback__)
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def _without(folders: tuple[str, ...], trace: TracebackType | None) -> TracebackType | None:
    """Returns a traceback without the frames of files in some folders."""
    if trace is None:
        return None
    rest = _without(folders, trace.tb_next)
    if trace.tb_frame.f_code.co_filename.startswith(folders):
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
