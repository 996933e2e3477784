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


def changed_parts(one: TaskRecord, other: TaskRecord) -> list[str]:
    """Returns what differs between two versions of a task: names of files, and settings."""
    files = [{**each.judged.files, **each.encoded} for each in (one, other)]
    names = dict.fromkeys(name for part in files for name in part)
    changed = [name for name in names if files[0].get(name) != files[1].get(name)]
    for name in one.__struct_fields__:
        unlike = getattr(one, name) != getattr(other, name)
        if unlike and name not in {"hash", "files", "encoded", "notes_file"}:
            changed.append("the statement" if name == "statement" else f"the setting {name}")
    return changed


def hash_of_lines(lines: Iterable[InheritableLine]) -> str:
    """Returns SHA-256 (hex) of lines, whether or not they are inherited."""
    own = (msgspec.structs.replace(line, inherited=False) for line in lines)
    return hashlib.sha256(b"".join(map(encode_line, own))).hexdigest()
