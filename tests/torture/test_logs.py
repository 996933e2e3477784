"""Logs of strangers, damaged ones and full disks: never another answer, nothing sent or written."""

from __future__ import annotations

import gzip
import os
import random
import resource
import shlex
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from endpoints import together
from samples import make_log_bytes, sample_header, write_sample

import evo
from evo.cli.entry import main
from evo.logs.hashes import hash_of_task
from evo.logs.journal import LogError, Writer, encode_line, file_name, write_new
from evo.logs.log import read_log
from evo.logs.maintenance import require_whole, salvage_log
from evo.logs.records import Child, Line, Model, RunEnd, SearchRecord
from evo.runs.configuration import make_header
from evo.runs.verification import verify

pytestmark = pytest.mark.slow

TIMES = int(os.environ.get("EVO_TORTURE", "1"))
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def forged(path: Path, **header: Any) -> Path:
    """A log whose header says something else, with right checksums."""
    lines = make_log_bytes().splitlines(keepends=True)
    record = _decoder.decode(lines[0])
    lines[0] = encode_line(msgspec.structs.replace(record, **header))
    path.write_bytes(b"".join(lines))
    return path


def test_any_damage_is_found_or_harmless_and_salvaged(tmp_path: Path) -> None:
    draws = random.Random(11)
    whole = make_log_bytes(generations=2, children=3)
    sound = whole.splitlines(keepends=True)
    for number in range(60 * TIMES):
        path, content = tmp_path / f"{number}.jsonl", bytearray(whole)
        match draws.randrange(4):
            case 0:
                content[draws.randrange(len(content))] ^= 1 << draws.randrange(8)
            case 1:
                del content[draws.randrange(len(content)) :]
            case 2:
                start = draws.randrange(len(content))
                content[start : start + draws.randrange(1, 500)] = b""
            case _:
                start = draws.randrange(len(content))
                content[start:start] = draws.randbytes(draws.randrange(1, 50))
        path.write_bytes(content)
        try:
            found = {(c.generation, c.index): c for c in read_log(path).children}
            faulty = bool(verify(path).faults)
        except LogError as error:
            faulty = str(path) in str(error)
        else:
            for line in map(_decoder.decode, sound):
                if isinstance(line, Child) and (line.generation, line.index) in found:
                    assert found[line.generation, line.index] == line
        assert faulty or content == whole or len(content) < len(whole)
        target = tmp_path / f"{number}.sound.jsonl"
        try:
            salvage_log(path, target)
        except LogError:  # not even the header is left
            assert sound[0] not in content
        else:
            kept = target.read_bytes().splitlines(keepends=True)
            assert all(line in sound for line in kept)
            assert [line for line in sound if line in bytes(content)] == kept
            read_log(target)


@contextmanager
def full_disk(path: Path, room: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_whole_lines_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [_decoder.decode(line) for line in make_log_bytes().splitlines()]
    with Writer.create(path, lines[0]) as writer:
        for line in lines[1:]:
            for room in (0, 1, 40):
                before = path.read_bytes()
                with full_disk(path, room), pytest.raises(OSError, match="no part of the line"):
                    writer.append(line)
                assert path.read_bytes() == before
            writer.append(line)
    assert path.read_bytes() == make_log_bytes()
    with full_disk(path, -path.stat().st_size), pytest.raises(LogError, match="cannot write"):
        Writer.create(tmp_path / "b.jsonl", lines[0])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl"]


def test_threads_on_a_full_disk_lose_only_their_own_lines(tmp_path: Path) -> None:
    path, failed = tmp_path / "a.jsonl", []
    with Writer.create(path, sample_header()) as writer:

        def work(name: int) -> None:
            for number in range(50):
                try:
                    writer.append(RunEnd(reason="completed", message=f"{name}-{number}"))
                except OSError:
                    failed.append(f"{name}-{number}")

        with full_disk(path, 8000):
            together(4, work)
        work(5)
    written = {end.message for end in read_log(path).ends}
    assert written.isdisjoint(failed)
    assert len(written) + len(failed) == 250
    assert failed


def test_an_exchanged_evaluator_is_found_before_anything_runs(tmp_path: Path) -> None:
    record = sample_header().task
    evil = {**record.files, record.evaluator_file: "raise SystemExit(3)"}
    path = forged(tmp_path / "a.jsonl", task=msgspec.structs.replace(record, files=evil))
    assert "stated hash" in verify(path).faults[0]
    for verb in (evo.resume, evo.rerun, evo.rescore):
        with pytest.raises(LogError, match="stated hash"):
            verb(path)
    other = msgspec.structs.replace(record, name="nobody's")
    assert "not one of the shipped tasks" in verify(forged(tmp_path / "b.jsonl", task=other)).task
    assert "equals the shipped" in verify(write_sample(tmp_path / "c.jsonl")).task
    absent = msgspec.structs.replace(record, program_file="gone.py")
    absent = msgspec.structs.replace(absent, hash=hash_of_task(absent))
    with pytest.raises(LogError, match=r"no file 'gone\.py'"):
        require_whole(read_log(forged(tmp_path / "d.jsonl", task=absent)))


@pytest.mark.parametrize(
    "name", ["/etc/cron.d/x", "../../x", "..", ".ssh", "a\0b", "a\nb", "", "é/"]
)
def test_no_name_becomes_a_path(name: str) -> None:
    made = file_name(name)
    assert made
    assert not made.startswith(".")
    assert not {"/", "\\", "\0", "\n"} & set(made)


def test_bombs_are_refused_with_the_setting_that_lets_them_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "bomb.jsonl.gz"
    packed.write_bytes(gzip.compress(make_log_bytes() + b" " * (40 << 20)))
    with pytest.raises(LogError, match="EVO_MAX_RATIO"):
        read_log(packed)
    (tmp_path / "b.jsonl").write_bytes(make_log_bytes() + b"x" * (3 << 20))
    monkeypatch.setenv("EVO_MAX_LINE_MB", "2")
    with pytest.raises(LogError, match="EVO_MAX_LINE_MB"):
        read_log(tmp_path / "b.jsonl")
    monkeypatch.setenv("EVO_MAX_LINE_MB", "nonsense")
    with pytest.raises(ValueError, match="EVO_MAX_LINE_MB: expected a whole number"):
        read_log(tmp_path / "b.jsonl")
    monkeypatch.delenv("EVO_MAX_LINE_MB")
    nested = b'{"kind":"end","reason":"completed","more":[' + b"[]," * 1_000_000 + b"0]}"
    body = nested[1:]
    line = b'{"crc":"%08x",%s\n' % (zlib.crc32(body), body)
    (tmp_path / "c.jsonl").write_bytes(make_log_bytes() + line)
    with pytest.raises(LogError, match="EVO_MAX_ELEMENTS"):
        read_log(tmp_path / "c.jsonl")
    monkeypatch.setenv("EVO_MAX_ELEMENTS", "9000000")
    assert read_log(tmp_path / "c.jsonl").ends


def test_a_long_text_with_many_commas_is_no_bomb(tmp_path: Path) -> None:
    lines = [_decoder.decode(line) for line in make_log_bytes().splitlines()]
    child = next(line for line in lines if isinstance(line, Child))
    long = msgspec.structs.replace(child, reply='[1,{"a":' * 400_000)
    data = b"".join(encode_line(long if line is child else line) for line in lines)
    (tmp_path / "a.jsonl").write_bytes(data)
    assert read_log(tmp_path / "a.jsonl").child(child.generation, child.index) == long


def test_resume_obeys_no_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Model(name="qwen3-8b", base_url="http://127.0.0.1:9/v1", key_variable="AWS_SECRET")
    header = make_header("cp", children=2)
    log = tmp_path / "a.jsonl"
    lines = [msgspec.structs.replace(header, model=model), RunEnd(reason="interrupted")]
    write_new(log, b"".join(map(encode_line, lines)))
    before = log.read_bytes()
    assert main(["resume", str(log), "-T", "1", "-q"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "http://127.0.0.1:9/v1" in said
    assert "AWS_SECRET" in said
    assert f"evo resume {log} --model qwen3-8b" in said
    assert log.read_bytes() == before


def test_a_log_of_another_model_goes_on_with_a_named_one_alone(tmp_path: Path) -> None:
    model = Model(name="x; touch gone\n#`id`", base_url="http://127.0.0.1:9/v1")
    path = tmp_path / "two words.jsonl"
    write_new(path, encode_line(make_header("cp", children=2, model=model)))
    with pytest.raises(ValueError, match="is not among your"):
        evo.allocate_live("cp", "random", arms=[path], log_dir=tmp_path / "all")
    with pytest.raises(ValueError, match=r"go(es)? on with") as raised:
        evo.resume(path, generations=1, progress=False)
    quoted = f"evo resume {shlex.quote(str(path))} --model {shlex.quote(model.name)}"
    assert quoted in str(raised.value)
    with pytest.warns(UserWarning, match="and goes on with 'offline'"):
        log = evo.resume(path, generations=1, model="offline", progress=False)
    assert len(log.outcomes) == 2
    assert log.header.model == model
    assert log.sessions[-1].model is not None
    assert log.sessions[-1].model.name == "offline"


ENDLESS = [
    *({name: 10**12} for name in ("children", "draws", "confirm", "drafts", "inspirations")),
    {"search": SearchRecord(name="population", fields={"tournament": 10**12})},
    {"search": SearchRecord(name="islands", fields={"population": {"size": 10**12}})},
]


@pytest.mark.parametrize("changes", ENDLESS)
def test_countless_work_is_refused_with_the_setting_that_allows_it(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    path = forged(tmp_path / "a.jsonl", **changes)
    for verb in (evo.resume, evo.rerun, evo.rescore):
        with pytest.raises(LogError, match="EVO_MAX_"):
            verb(path)
    if {"children", "draws", "confirm"} & changes.keys():
        with pytest.raises(ValueError, match="EVO_MAX_"):
            make_header("cp", **changes)


def test_stop_touches_logs_alone(tmp_path: Path) -> None:
    for name in ("evaluator.py", "notes.txt"):
        (tmp_path / name).write_text("def score(value): ...\n")
        with pytest.raises(LogError, match="not a log"):
            evo.stop(tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["evaluator.py", "notes.txt"]


def test_a_growing_log_is_never_compressed(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"begin it as .*z\.jsonl"):
        evo.run("cp", generations=1, children=1, log=tmp_path / "z.jsonl.gz", progress=False)
    assert not list(tmp_path.iterdir())


def test_reading_a_hostile_log_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "flat.jsonl"
    path.write_bytes(make_log_bytes() + b'{"crc":"' + b"x" * (30 << 20))
    code = (
        "import resource, sys; from evo.logs.log import read_log; import numpy\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; read_log(sys.argv[1])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    command = [sys.executable, "-c", code, str(path)]
    grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(grown) < 200_000


def test_headers_that_no_struct_takes(tmp_path: Path) -> None:
    header = msgspec.to_builtins(sample_header())
    draws = random.Random(3)
    junk: list[Any] = [None, -1, 1e30, "x", [], {}, [[]] * 50, "\udc80".encode("utf-8", "replace")]
    for number in range(40 * TIMES):
        made = dict(header)
        made[draws.choice(list(made))] = draws.choice(junk[:-1])
        body = msgspec.json.encode(made)[1:]
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(b'{"crc":"%08x",%s\n' % (zlib.crc32(body), body))
        for verb in ("show", "verify", "best", "rerun", "stats"):
            assert main([verb, str(path)]) in (0, 1, 2), (verb, made)


def test_a_log_of_an_unknown_search_is_not_gone_on_with_as_greedy(tmp_path: Path) -> None:
    path = forged(tmp_path / "a.jsonl", search=SearchRecord(name="os.system"))
    for go_on in (evo.rerun, lambda path: evo.resume(path, generations=9, model="offline")):
        with pytest.raises(ValueError, match="search"):
            go_on(path)
