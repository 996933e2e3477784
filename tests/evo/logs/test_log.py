import gzip
import random
import zlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import make_log_bytes, sample_child, sample_header, sample_lines, write_sample

from evo.logs.journal import LogError, Writer, encode_line
from evo.logs.lines import BODY
from evo.logs.log import Log, read_log
from evo.logs.records import Generation, Line
from evo.runs.verification import verify


def how_far(log: Log) -> tuple[int, int, bool]:
    return log.reader.length, log.reader.lines, log.reader.torn


def test_read_gives_what_was_written_compressed_or_not(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.jsonl", generations=3, children=4)
    plain = read_log(path)
    assert len(plain.trajectory) == 4
    places = [(generation, index) for generation in (1, 2, 3) for index in range(4)]
    assert [(c.generation, c.index) for c in plain.children] == places
    assert plain.child(2, 3) == plain.children[7]
    assert plain.best.program == plain.child(*plain.generations[-1].best).program
    assert not verify(path).faults
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(plain.path.read_bytes()))
    packed = read_log(tmp_path / "b.jsonl.gz")
    assert packed.children == plain.children
    assert packed.child(1, 0) == plain.child(1, 0)
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(plain.path.read_bytes())[:-9])
    with pytest.raises(LogError, match=r"c\.jsonl\.gz: damaged gzip"):
        read_log(tmp_path / "c.jsonl.gz")


def test_torn_last_line_is_forgiven_and_cut_off(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.jsonl")
    whole = path.read_bytes()
    before = read_log(path)
    path.write_bytes(whole + b'{"crc":"00000000","kind":"child","gener')
    assert read_log(path).children == before.children
    assert "torn" in verify(path).faults[0]
    with Writer.claim(path) as writer:
        writer.cut(read_log(path).reader.length)
    assert path.read_bytes() == whole


@given(st.data())
def test_any_flipped_byte_is_found_and_named(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(make_log_bytes(generations=2, children=2))
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("flip") / "log.jsonl"
    path.write_bytes(bytes(content))
    line = make_log_bytes(generations=2, children=2)[:position].count(b"\n") + 1
    try:
        faults = verify(path).faults
    except LogError as error:
        faults = (str(error),)
    assert faults
    assert faults[0].startswith(f"{path}:{line}:")


@given(st.binary(max_size=300))
def test_foreign_bytes_are_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("foreign") / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(LogError, match=str(path)):
        read_log(path)


@pytest.mark.parametrize("said", [b'"schema":99', b'"schema":0', b'"format":"evo2"'])
def test_an_unknown_version_asks_to_upgrade(tmp_path: Path, said: bytes) -> None:
    path = tmp_path / "new.jsonl"
    body = encode_line(sample_header())[BODY:-1]
    body = body.replace(b'"kind":"header"', b'"kind":"header",' + said)
    path.write_bytes(b'{"crc":"%08x",%s\n' % (zlib.crc32(body), body))
    number = said.partition(b":")[2].decode().replace('"', "'")
    with pytest.raises(LogError, match=f":1: log schema {number} is unknown .*upgrade"):
        read_log(path)


def test_verify_finds_a_missing_child_and_a_best_that_the_children_do_not_give(
    tmp_path: Path,
) -> None:
    path = write_sample(tmp_path / "a.jsonl", generations=2, children=3)
    kept = path.read_bytes().splitlines(keepends=True)
    kept.pop(next(i for i, line in enumerate(kept) if b'"kind":"child"' in line))
    path.write_bytes(b"".join(kept))
    assert "generation 1" in verify(path).faults[0]
    decoder = msgspec.json.Decoder(Line)
    lines = [decoder.decode(line) for line in make_log_bytes(generations=1).splitlines()]
    (last,) = (line for line in lines if isinstance(line, Generation))
    assert last.best_fitness is not None
    for number, wrong in enumerate((last.best_fitness - 0.1, last.best_fitness + 0.1, None)):
        told = msgspec.structs.replace(last, best_fitness=wrong)
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(b"".join(encode_line(told if x is last else x) for x in lines))
        assert any("states best fitness" in fault for fault in verify(path).faults)


def test_the_best_is_the_parent_unless_another_is_better_beyond_rounding(tmp_path: Path) -> None:
    lines = sample_lines(generations=1)
    (last,) = (line for line in lines if isinstance(line, Generation))
    assert last.best_fitness is not None
    for index, excess, best in ((-1, -5e-10, last.best), (9, 2e-9, (1, 9))):
        other = sample_child(1, index, last.best_fitness + excess)
        path = tmp_path / f"{index}.jsonl"
        path.write_bytes(b"".join(map(encode_line, [*lines[:-2], other, *lines[-2:]])))
        found = read_log(path).best
        assert (found.generation, found.index) == best


@given(shares=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_following_a_log_is_as_good_as_reading_it(
    tmp_path_factory: pytest.TempPathFactory, shares: tuple[float, float]
) -> None:
    data = make_log_bytes(shuffle=random.Random(5))
    path = tmp_path_factory.getbasetemp() / "growing.jsonl"
    first = data.index(b"\n") + 1
    cuts = sorted(first + int(share * (len(data) - first)) for share in shares)
    path.write_bytes(data[: cuts[0]])
    log = read_log(path)
    for cut in (cuts[1], len(data)):
        path.write_bytes(data[:cut])
        before = log.reader.length
        assert log.refresh() == (log.reader.length > before)
        whole = read_log(path)
        assert (log.outcomes, log.generations) == (whole.outcomes, whole.generations)
        assert (log.sessions, log.ended) == (whole.sessions, whole.ended)
        assert how_far(log) == how_far(whole)
        assert log.children == whole.children
    assert not log.refresh()


def test_what_cannot_be_followed_is_an_error(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.jsonl")
    log = read_log(path)
    with path.open("ab") as file:
        file.write(b'{"crc":"00000000","kind":"end"}\n')
    with pytest.raises(LogError, match=rf"a\.jsonl:{log.reader.lines + 1}: the checksum"):
        log.refresh()
    write_sample(path, generations=1)
    with pytest.raises(LogError, match="another log took its place"):
        log.refresh()
    path.write_bytes(path.read_bytes() + encode_line(sample_header()))
    with pytest.raises(LogError, match="expected one header, on line 1; got a header here"):
        read_log(path)
    path.unlink()
    with pytest.raises(LogError, match="cannot read"):
        log.refresh()


@pytest.mark.parametrize("end", [b"", b'{"crc":"torn'])
@pytest.mark.parametrize("piece", [7, 100, 5000])
def test_a_log_read_in_pieces_is_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, end: bytes
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(make_log_bytes() + end)
    whole = read_log(path)
    monkeypatch.setattr("evo.logs.journal._PIECE", piece)
    log = read_log(path)
    assert log.header == whole.header
    assert (log.outcomes, log.children) == (whole.outcomes, whole.children)
    assert how_far(log) == how_far(whole)
    assert log.reader.torn == bool(end)
