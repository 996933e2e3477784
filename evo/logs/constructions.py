"""Constructions that are kept beside a log: what its best program returned, for pictures."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

import msgspec

from evo.logs.caps import cap
from evo.logs.journal import write_new


class _Kept(msgspec.Struct):
    """A construction beside a log that holds none."""

    program: str  # SHA-256, hex
    value: object


_kept_decoder = msgspec.json.Decoder(_Kept)


def keep_value(path: Path, program: str, value: object) -> Path:
    """Keeps a program's construction beside a log, as `evo best --value` does; returns the file."""
    target = path.with_name(f"{path.name}.value.json")
    target.unlink(missing_ok=True)
    write_new(target, msgspec.json.encode(_Kept(_digest(program), value)))
    return target


def kept_value(path: Path, program: str) -> object:
    """The construction that is kept beside a log; None if it is not this program's."""
    with suppress(OSError, ValueError, RecursionError):
        data = path.with_name(f"{path.name}.value.json").read_bytes()
        if data.count(b",") <= cap("EVO_MAX_VALUE"):
            kept = _kept_decoder.decode(data)
            return kept.value if kept.program == _digest(program) else None
    return None


def _digest(program: str) -> str:
    return hashlib.sha256(program.encode("utf-8", "surrogatepass")).hexdigest()
