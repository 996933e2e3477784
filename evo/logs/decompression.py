"""Decompresses gzip files in linear time and within the caps on their size; refuses archives."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator

from evo.logs.caps import above, cap

_MEMBER = 1 << 9  # compressed bytes of a gzip member that are fed at first
_FREE = 16 << 20  # decompressed bytes that no ratio is asked of
_ZEROS = re.compile(rb"\0*")


_ARCHIVES = ((b"PK\x03\x04", 0), (b"ustar", 257))  # how zip and tar begin, and at which byte
ARCHIVE = (
    "an archive or a workbook; unpack an archive and name the folder, and save a table of a "
    "workbook as CSV"
)
"""What messages call a file that holds other files, such as a zip."""


class DamagedGzip(ValueError):  # noqa: N818 - what the file is
    """The file cannot be decompressed, or holds others; the message says why."""


class HoldsFiles(DamagedGzip):
    """The file is an archive or a workbook."""


def unarchived(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the content of a file, given from its beginning.

    Raises:
        HoldsFiles: It is an archive or a workbook, which nobody can read line by line.
    """
    for number, piece in enumerate(pieces):
        if number == 0 and any(piece.startswith(mark, at) for mark, at in _ARCHIVES):
            raise HoldsFiles(ARCHIVE)
        yield piece


def decompressed(blocks: Iterable[bytes], size: int, piece_size: int) -> Iterator[bytes]:
    """Yields the content of a gzip file in small pieces.

    Args:
        blocks: What the file holds.
        size: Its length, bytes.
        piece_size: Bytes of a piece, about.

    Raises:
        DamagedGzip: It is damaged, ends too early, or is beyond a cap.
    """
    most = cap("EVO_MAX_LOG_MB") << 20
    dense = max(_FREE, size * cap("EVO_MAX_RATIO"))
    unpack, fed, total, ready = zlib.decompressobj(31), piece_size, 0, bytearray()
    try:
        for block in blocks:
            at, view = 0, memoryview(block)
            while at < len(block):
                if unpack.eof:  # zeros may follow, or a further member
                    zeros = _ZEROS.match(block, at)
                    at = zeros.end() if zeros else at
                    if at == len(block):
                        break
                    unpack, fed = zlib.decompressobj(31), _MEMBER
                # What follows the end of a member is copied, so each but the first is fed little
                # at first: the time must not grow with the square of the number of members.
                given = view[at : at + fed]
                piece = unpack.decompress(given, piece_size)
                at += len(given) - len(unpack.unused_data if unpack.eof else unpack.unconsumed_tail)
                fed, total = 2 * fed, total + len(piece)
                if total > most or total > dense:
                    variable = "EVO_MAX_LOG_MB" if total > most else "EVO_MAX_RATIO"
                    raise DamagedGzip(above(variable))
                ready += piece
                if len(ready) >= piece_size:
                    yield bytes(ready)
                    ready.clear()
        yield bytes(ready)
    except zlib.error as error:
        raise DamagedGzip(f"damaged gzip file: {error}") from None
    if not unpack.eof:
        raise DamagedGzip("damaged gzip file: it ends too early")
