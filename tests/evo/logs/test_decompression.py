"""Members of a gzip file one after another, whatever pieces they come in; and what is damaged."""

import gzip
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.decompression import DamagedGzip, decompressed, unarchived


def content_of(data: bytes, *, block: int = 64, piece: int = 100) -> bytes:
    blocks = [data[at : at + block] for at in range(0, len(data), block)]
    return b"".join(decompressed(blocks, len(data), piece))


@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=5),
    st.integers(1, 700),
    st.integers(1, 400),
    st.integers(0, 20),
)
def test_all_members_are_read_however_the_file_is_cut(members, block, piece, zeros):
    data = b"".join(gzip.compress(each) + bytes(zeros) for each in members)
    assert content_of(data, block=block, piece=piece) == b"".join(members)


def test_it_comes_in_pieces_that_are_not_much_larger_than_asked():
    data = gzip.compress(bytes(range(256)) * 400)
    sizes = [*map(len, decompressed([data], len(data), 1000))]
    assert sum(sizes) == 256 * 400
    assert max(sizes) <= 2 * 1000
    assert all(size >= 1000 for size in sizes[:-1])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], "it ends too early"),
        (lambda data: b"", "it ends too early"),
        (lambda data: b"no gzip", "damaged gzip file: .*header"),
        (lambda data: data + b"rest", "damaged gzip file: .*header"),
        (lambda data: data[:-6] + b"\0\0" + data[-4:], "damaged gzip file: .*check"),
        (lambda data: data + data[:9], "it ends too early"),
    ],
)
def test_what_is_damaged_is_said(damage, message):
    with pytest.raises(DamagedGzip, match=message):
        content_of(damage(gzip.compress(b"content " * 50)))


@pytest.mark.parametrize(
    ("variable", "value", "size"), [("EVO_MAX_LOG_MB", "1", 2), ("EVO_MAX_RATIO", "2", 17)]
)
def test_a_bomb_is_stopped_at_the_cap(variable, value, size, monkeypatch):
    """A ratio is asked of more than 16 MiB alone."""
    monkeypatch.setenv(variable, value)
    data = gzip.compress(bytes(size << 20))
    sizes = list[int]()
    with pytest.raises(DamagedGzip, match=variable):
        sizes.extend(map(len, decompressed([data], len(data), 1 << 16)))
    assert sum(sizes) <= (16 if variable == "EVO_MAX_RATIO" else 1) << 20
    monkeypatch.setenv("EVO_MAX_RATIO", "2")
    fits = gzip.compress(bytes(1 << 20))
    assert sum(map(len, decompressed([fits], len(fits), 1 << 16))) == 1 << 20


def test_time_does_not_grow_with_the_square_of_the_number_of_members():
    """Each byte after a member's end is copied a few times, not once for each member."""
    member = gzip.compress(b"")
    fed = []

    class Watched(bytes):
        def __len__(self) -> int:
            fed.append(1)
            return super().__len__()

    data = Watched(member * 2000)
    assert b"".join(decompressed([data], len(data), 1 << 20)) == b""
    assert len(fed) < 20 * 2000


def test_blocks_may_be_empty_or_hold_zeros_alone():
    data = gzip.compress(b"x")
    blocks = [b"", data[:5], b"", data[5:], b"\0" * 9, b""]
    assert b"".join(itertools.chain(decompressed(blocks, len(data), 10))) == b"x"


@pytest.mark.parametrize("pieces", [[], [b""], [b"a line\n", b"PK\x03\x04"], [b"P", b"K"]])
def test_what_is_no_archive_passes_as_it_is(pieces: list[bytes]) -> None:
    assert [*unarchived(pieces)] == pieces
