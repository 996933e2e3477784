"""Files that hang, grow or lie are refused at once, by name and line, and nothing obeys a log."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import time
import zipfile
import zlib
from pathlib import Path

import msgspec
import pytest
from samples import make_log_bytes

from evo.cli.entry import main
from evo.logs.decompression import ARCHIVE
from evo.logs.hashes import hash_of_task
from evo.logs.journal import LogError, encode_line, read_bytes
from evo.logs.lines import PREFIX
from evo.logs.log import line_decoder, read_log
from evo.logs.records import Header
from evo.studies.selection.driver import _read
from evo.studies.sweep.design import read_design
from replay.cli.entry import main as replay_main

NAME = "a$x_{$b\x1b[31mred\x9b\u202e"
LINES = make_log_bytes(generations=2, children=3).splitlines()


def signed(record: dict[str, object], **raw: bytes) -> bytes:
    """A line with a right checksum; raw JSON replaces the texts `@NAME`."""
    record.pop("crc", None)
    body = json.dumps(record).encode()[1:]
    for name, value in raw.items():
        body = body.replace(b'"@%s"' % name.encode(), value)
    return b'%s%08x",%s\n' % (PREFIX, zlib.crc32(body), body)


def with_usage(path: Path, usage: bytes) -> Path:
    """A log in which the first attempt of each child has this usage."""
    lines = [json.loads(line) for line in LINES]
    for record in lines:
        if record["kind"] == "child":
            record["attempts"][0]["usage"] = "@usage"
    path.write_bytes(b"".join(signed(record, usage=usage) for record in lines))
    return path


def renamed(path: Path) -> Path:
    """A log whose task and model have a name that is neither plain nor a formula."""
    header = line_decoder.decode(LINES[0])
    assert isinstance(header, Header)
    task = msgspec.structs.replace(header.task, name=NAME)
    task = msgspec.structs.replace(task, hash=hash_of_task(task))
    model = msgspec.structs.replace(header.model, name=NAME)
    first = encode_line(msgspec.structs.replace(header, task=task, model=model))
    path.write_bytes(first + b"".join(line + b"\n" for line in LINES[1:]))
    return path


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_a_pipe_is_no_log_and_nothing_waits_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    for verb in ("show", "stats", "best", "verify", "resume", "rerun", "rescore", "compact"):
        assert main([verb, str(path)]) in (1, 2)
        said = capsys.readouterr().err
        assert "expected a file, got a pipe or a device" in said, (verb, said)
    if path.suffix == ".jsonl":
        assert main(["serve", "--log", str(path)]) == 2
        assert f"{path}: expected a file, got a pipe" in capsys.readouterr().err
    assert replay_main(["report", str(path)]) == 2
    assert "a pipe or a device" in capsys.readouterr().err
    with pytest.raises(LogError, match="a pipe or a device"):
        read_bytes(Path("/dev/zero"))


@pytest.mark.parametrize("pack", ["zip", "tar", "gztar"])
def test_an_archive_of_logs_is_named_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pack: str
) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.jsonl").write_bytes(make_log_bytes())
    path = shutil.make_archive(str(tmp_path / "sent"), pack, tmp_path, "runs")
    for verb, command in ((main, "show"), (main, "verify"), (replay_main, "report")):
        assert verb([command, path]) in (1, 2)
        said = "".join(capsys.readouterr())
        assert said.rstrip().endswith(ARCHIVE), said
    assert replay_main(["import", "auto", path, "-o", str(tmp_path / "made")]) == 2
    assert ARCHIVE in capsys.readouterr().err


def test_a_workbook_is_to_be_saved_as_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "calls.xlsx"
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>")
    for form in ("auto", "table"):
        assert replay_main(["import", form, str(path), "-o", str(tmp_path / "made")]) == 2
        assert ARCHIVE in capsys.readouterr().err


def test_many_gzip_members_are_read_in_time_that_grows_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"

    def seconds(members: int) -> float:
        path.write_bytes(gzip.compress(make_log_bytes()) + gzip.compress(b"") * members)
        started = time.process_time()
        assert read_log(path).generations
        return time.process_time() - started

    seconds(1000)
    assert seconds(40_000) < 16 * max(seconds(10_000), 0.02)  # 4 times as many; the square is 16


def test_any_split_into_members_is_the_same_file(tmp_path: Path) -> None:
    whole, draws, path = make_log_bytes() * 20, random.Random(3), tmp_path / "a.gz"
    for _ in range(10):
        packed, at = b"", 0
        while at < len(whole):
            size = draws.choice([0, 1, 10, 1000, 50_000])
            packed += gzip.compress(whole[at : at + size]) + bytes(draws.choice([0, 0, 1, 700]))
            at += size
        path.write_bytes(packed)
        assert read_bytes(path) == whole
    path.write_bytes(packed[:-900])
    with pytest.raises(LogError, match="too early"):
        read_bytes(path)


@pytest.mark.parametrize(
    "usage",
    [
        b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"a":' + b"[" * 800 + b"]" * 800 + b"}",
        b'{"prompt_tokens":1' + b"0" * 400 + b',"completion_tokens":3}',
        b'{"prompt_tokens":-5,"completion_tokens":{"a":1}}',
    ],
    ids=["endless", "deep", "astronomic", "odd"],
)
def test_usage_of_any_shape_ends_no_command_in_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], usage: bytes
) -> None:
    path = str(with_usage(tmp_path / "a.jsonl", usage))
    for command in (["show"], ["stats"], ["verify"]):
        assert main([*command, path]) in (0, 1, 2)
    assert replay_main(["report", path, "--json", "-o", str(tmp_path / "a.png")]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


def fields(record: dict[str, object], prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The places of whole numbers in a record."""
    found = []
    for name, value in record.items():
        if isinstance(value, dict):
            found += fields(value, (*prefix, name))
        elif isinstance(value, int) and not isinstance(value, bool):
            found.append((*prefix, name))
    return found


def test_a_number_beyond_all_arrays_is_an_error_of_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    places = [(n, at) for n, line in enumerate(LINES) for at in fields(json.loads(line))]
    for number, at in places:
        lines = [json.loads(line) for line in LINES]
        part = lines[number]
        for name in at[:-1]:
            part = part[name]
        part[at[-1]] = "@huge"
        path.write_bytes(b"".join(signed(each, huge=b"1" + b"0" * 400) for each in lines))
        with pytest.raises(LogError, match=rf"a\.jsonl:{number + 1}: "):
            read_log(path)


def test_no_command_prints_what_a_terminal_obeys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = renamed(tmp_path / "a.jsonl")
    for run in (
        lambda: main(["show", str(log)]),
        lambda: main(["verify", str(log)]),
        lambda: main(["rerun", str(log)]),
        lambda: replay_main(["report", str(log), "-o", str(tmp_path / "a.png")]),
        lambda: print(read_log(log)),
    ):
        run()
        said = capsys.readouterr()
        assert not set("\x1b\x9b\u202e") & set(said.out + said.err)
    assert "\\x1b[31mred" in repr(read_log(log))


def test_a_program_is_printed_harmlessly_and_written_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "# \x1b]0;title\x07\r\ndef construct():\r\n    return []\r\n"
    records = [line_decoder.decode(line) for line in LINES]
    best = read_log(write(tmp_path / "a.jsonl", LINES)).best
    path = tmp_path / "b.jsonl"
    place = (best.generation, best.index)
    lines = []
    for record in records:
        if (getattr(record, "generation", 0), getattr(record, "index", -1)) == place:
            lines.append(encode_line(msgspec.structs.replace(record, program=program)))
        else:
            lines.append(encode_line(record))
    path.write_bytes(b"".join(lines))
    assert main(["best", str(path)]) == 0
    said = capsys.readouterr()
    assert said.out == program.replace("\x1b", "\\x1b").replace("\x07", "\\x07")
    assert "-o FILE" in said.err
    assert main(["best", str(path), "-o", str(tmp_path / "p.py")]) == 0
    assert (tmp_path / "p.py").read_bytes().decode() == program


def write(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def test_a_name_that_is_no_formula_stops_neither_report_nor_site(tmp_path: Path) -> None:
    names = [str(renamed(tmp_path / f"{k}.jsonl")) for k in range(3)]
    assert replay_main(["report", *names, "-o", str(tmp_path / "a.png")]) == 0
    assert replay_main(["site", *names, "-o", str(tmp_path / "site")]) == 0


@pytest.mark.parametrize(
    "options",
    [["--log", "/proc/x"], ["--log-dir", "/proc/x", "--seeds", "1:3"], ["--cache", "/"]],
    ids=lambda options: options[0],
)
def test_what_cannot_be_written_is_an_error_before_anything_is_announced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    options: list[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["run", "cp", "-T", "1", "-N", "1", "-q", *options]) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)


@pytest.mark.parametrize("name", ["sweep.json", "selection.json"])
def test_a_pipe_in_a_studys_folder_is_refused_and_nothing_waits_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    os.mkfifo(tmp_path / name)
    reads = {"sweep.json": read_design, "selection.json": lambda folder: _read(folder / name)}
    with pytest.raises(LogError, match="expected a file, got a pipe"):
        reads[name](tmp_path)
