"""A line of a journal, and what may be wrong with it before it is decoded."""

from __future__ import annotations

import re
import zlib

from evo.logs.caps import above, cap

PREFIX = b'{"crc":"'
BODY = len(PREFIX) + 8 + 2  # where the record's own fields begin, after the checksum and `",`
_MARK = b"\xef\xbb\xbf"
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def check_line(line: bytes) -> str | None:
    """Returns the fault of the line's checksum, or None."""
    if not line.startswith(PREFIX) or line[BODY - 2 : BODY] != b'",':
        return 'expected a line that begins with {"crc":"<8 hex digits>", got ' + repr(line[:40])
    if line[len(PREFIX) : BODY - 2] != b"%08x" % zlib.crc32(memoryview(line)[BODY:]):
        return "the checksum does not match: the line was changed after it was written"
    return None


def rewritten(line: bytes) -> str | None:
    """Returns what an editor did to a line that was sound before, and what to do; else None."""
    if line.startswith(_MARK) and check_line(line.removeprefix(_MARK).removesuffix(b"\r")) is None:
        return (
            "the log begins with a byte-order mark, which a program has added to it; save it "
            "without (UTF-8, not 'UTF-8 with BOM'), or take the file as it was written"
        )
    if line.endswith(b"\r") and check_line(line[:-1]) is None:
        return (
            "the lines end in CR LF, as a program has rewritten them; restore LF, such as by "
            "dos2unix, or take the file as it was written"
        )
    return None


def check_size(line: bytes) -> str | None:
    """Returns why a line is too large to be decoded, or None."""
    if len(line) > cap("EVO_MAX_LINE_MB") << 20:
        return above("EVO_MAX_LINE_MB")
    bare = _STRINGS.sub(b"", line)
    if sum(map(bare.count, (b"[", b"{", b","))) > cap("EVO_MAX_ELEMENTS"):
        return above("EVO_MAX_ELEMENTS")
    return None
