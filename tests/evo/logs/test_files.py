"""Writes at a place of a file."""

import os
import resource
from pathlib import Path

import pytest

from evo.logs.files import write_at


@pytest.mark.parametrize("size", [1, 4096, 12_288])
def test_all_of_the_data_is_where_it_should_be(tmp_path: Path, size: int) -> None:
    data = os.urandom(size - 1) + b"\0"
    with (tmp_path / "file").open("wb+") as file:
        write_at(file.fileno(), b"0123456789", 0)
        write_at(file.fileno(), data, 4)
        assert file.read() == b"0123" + data + b"0123456789"[4 + size :]


@pytest.mark.parametrize("size", [100, 8192])
def test_what_cannot_be_written_is_an_error_with_its_reason(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    with path.open("rb") as file, pytest.raises(OSError, match="Bad file descriptor"):
        write_at(file.fileno(), b"y" * size, 0)
    assert path.read_bytes() == b"x"
    with path.open("rb+") as file:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                write_at(file.fileno(), b"y" * size, 1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"x" + b"y" * 49
