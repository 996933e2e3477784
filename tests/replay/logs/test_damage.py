"""Damaged logs and other files: an error that names the line, or a table without them."""

import gzip
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import changed, make_log_bytes, sample_lines, write_sample

import replay
from evo.logs.journal import LogError, encode_line
from evo.logs.lines import BODY
from evo.logs.log import read_log
from evo.logs.records import (
    Attempt,
    Child,
    Evaluation,
)
from replay.logs.others import from_here
from replay.logs.tables import load_tables


def crafted(line, old, new):
    """A line of a log with a part of it changed, and its checksum made to match."""
    body = line.rstrip(b"\n")[BODY:]
    assert old in body
    body = body.replace(old, new, 1)
    return b'{"crc":"%08x",%s\n' % (zlib.crc32(body), body)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((b"0.625", fitness) for fitness in (b"null", b"NaN", b"1e999", b'"high"', b"[1]")),
        (b'"status":"ok","fitness"', b'"status":"error","fitness"'),
    ],
)
def test_a_fitness_that_is_none_or_of_a_failure_is_an_error(tmp_path, old, new):
    lines = changed(sample_lines(), Child, evaluation=Evaluation(status="ok", fitness=0.625))
    data = [encode_line(line) for line in lines]
    at = next(i for i, line in enumerate(data) if b"0.625" in line)
    data[at] = crafted(data[at], old, new)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(data))
    with pytest.raises(LogError, match=rf"a\.jsonl:{at + 1}: "):
        replay.load(path)


def test_a_count_that_no_number_holds_is_unknown(tmp_path):
    attempt = Attempt(
        status="ok", latency=1.0, usage={"prompt_tokens": 7654321, "completion_tokens": 3}
    )
    data = [encode_line(line) for line in changed(sample_lines(), Child, attempts=(attempt,))]
    at = next(i for i, line in enumerate(data) if b"7654321" in line)
    data[at] = crafted(data[at], b"7654321", b"9" * 400)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(data))
    row = replay.children(path).iloc[0]
    assert np.isnan(row["prompt_tokens"])
    assert row["completion_tokens"] == 3


def test_not_strict_leaves_out_what_is_damaged_and_says_so(tmp_path):
    good = write_sample(tmp_path / "good.jsonl")
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(good.read_bytes().replace(b'"seed":', b'"sead":', 1))
    with pytest.raises(LogError, match=r"--skip-damaged.*strict=False.*leaves it out") as caught:
        replay.load(tmp_path)
    assert f"`evo verify {from_here(bad)}` checks it, and with `--salvage" in str(caught.value)
    with pytest.raises(LogError, match="evo verify") as caught:
        replay.load(bad)
    assert "leaves it out" not in str(caught.value)
    with pytest.warns(UserWarning, match="1 of 2 logs were left out"):
        frame = replay.load(tmp_path, strict=False)
    assert set(frame["source"]) == {str(good)}
    assert [path for path, _ in frame.attrs["skipped"]] == [str(bad)]
    with pytest.raises(LogError, match="none of 1 logs"):
        replay.load(bad, strict=False)


def test_what_other_tools_wrote_beside_logs_is_left_and_named(tmp_path):
    good = write_sample(tmp_path / "good.jsonl")
    other = tmp_path / "trace.jsonl"
    other.write_text('{"iteration": 1}\n')
    with pytest.warns(UserWarning, match="trace.jsonl: not a log of evo; `replay import"):
        frame = replay.load(tmp_path)
    assert set(frame["source"]) == {str(good)}
    assert [path for path, _ in frame.attrs["skipped"]] == [str(other)]
    good.unlink()
    with pytest.raises(LogError, match=r"no log in this folder.*replay import"):
        replay.load(tmp_path)


def test_a_compressed_log_that_is_cut_anywhere_is_a_damaged_file(tmp_path):
    whole = gzip.compress(make_log_bytes(generations=2, children=2))
    for cut in (2, 9, 18, len(whole) // 2, len(whole) - 1):
        path = tmp_path / f"{cut}.jsonl.gz"
        path.write_bytes(whole[:cut])
        with pytest.raises(LogError, match="damaged gzip file: it ends too early"):
            replay.load(path)


@given(data=st.data())
def test_whatever_a_file_holds_it_is_a_table_or_one_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "a.jsonl"
    whole = make_log_bytes(generations=2, children=2)
    content = data.draw(
        st.one_of(
            st.binary(max_size=200),
            st.integers(0, len(whole)).map(lambda n: whole[:n]),
            st.tuples(st.integers(0, len(whole) - 1), st.binary(min_size=1, max_size=8)).map(
                lambda edit: whole[: edit[0]] + edit[1] + whole[edit[0] + len(edit[1]) :]
            ),
            st.permutations(whole.splitlines(keepends=True)).map(b"".join),
            st.lists(st.sampled_from(whole.splitlines(keepends=True))).map(b"".join),
        )
    )
    if data.draw(st.booleans()):
        content = gzip.compress(content)[: data.draw(st.integers(0, 10**6))]
    path.write_bytes(content)
    for read in (replay.load, replay.children, replay.attempts):
        try:
            frame = read(path)
        except LogError as error:
            frame, message = None, str(error)
        if frame is None:
            assert str(path) in message
            continue
        intact = read_log(path)
        if read is replay.load:
            np.testing.assert_array_equal(frame["best_fitness"], intact.trajectory)
        if read is replay.children:
            fitness = [
                np.nan if o.evaluation.fitness is None else o.evaluation.fitness
                for o in intact.outcomes
            ]
            np.testing.assert_array_equal(frame["fitness"].astype(float), fitness)


def with_line(path, number, old, new):
    """A log whose line `number` (from 1) is changed as `crafted` changes it."""
    made = [encode_line(line) for line in sample_lines(generations=2, children=2)]
    made[number - 1] = crafted(made[number - 1], old, new)
    path.write_bytes(b"".join(made))
    return path


READERS = [replay.load, replay.children, replay.attempts, replay.instances, load_tables]


@pytest.mark.parametrize(
    "deep", [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000]
)
def test_usage_nested_too_deep_is_an_error_that_names_the_line(tmp_path, deep):
    path = with_line(tmp_path / "a.jsonl", 4, b'"total_tokens":60', b'"total_tokens":' + deep)
    for read in READERS:
        with pytest.raises(LogError, match=r"a\.jsonl:4: "):
            read(path)


@pytest.mark.parametrize("size", [b"9" * 20, b"1" + b"0" * 400, b"1" + b"0" * 5000])
@pytest.mark.parametrize(
    ("number", "old", "new", "readers"),
    [
        (1, b'"children":2', b'"children":#', READERS),
        (1, b'"seed":7', b'"seed":#', READERS),
        (4, b'"index":0', b'"index":#', READERS),
        (4, b'{"status":"ok","fi', b'{"draws":#,"status":"ok","fi', [replay.children, load_tables]),
    ],
)
def test_a_number_that_no_table_holds_is_an_error_that_names_the_line(
    tmp_path, number, old, new, readers, size
):
    path = with_line(tmp_path / "a.jsonl", number, old, new.replace(b"#", size))
    for read in readers:
        with pytest.raises(LogError, match=rf"a\.jsonl:{number}: "):
            read(path)


def test_a_status_that_no_float_holds_is_an_error_that_names_the_line(tmp_path):
    huge = b'"http_status":1' + b"0" * 400
    path = with_line(tmp_path / "a.jsonl", 4, b'"http_status":200', huge)
    with pytest.raises(LogError, match=r"a\.jsonl:4: "):
        replay.attempts(path)


def test_usage_beyond_all_counts_is_unknown(tmp_path):
    path = with_line(
        tmp_path / "a.jsonl", 4, b'"prompt_tokens":50', b'"prompt_tokens":1' + b"0" * 400
    )
    assert replay.attempts(path)["prompt_tokens"].isna().sum() >= 1
