"""The hashes by which logs know a task, and a fork the lines that it inherited."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from evo.logs.journal import encode_line
from evo.logs.records import InheritableLine, TaskRecord


def hash_of_task(record: TaskRecord) -> str:
    """Returns SHA-256 (hex) over everything in the record of a task but its hash and its notes."""
    content = msgspec.json.encode(msgspec.structs.replace(record.judged, hash=""), order="sorted")
    return hashlib.sha256(content).hexdigest()


def hash_of_lines(lines: Iterable[InheritableLine]) -> str:
    """Returns SHA-256 (hex) of lines, whether or not they are inherited."""
    own = (msgspec.structs.replace(line, inherited=False) for line in lines)
    return hashlib.sha256(b"".join(map(encode_line, own))).hexdigest()
