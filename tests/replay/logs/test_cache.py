"""The cache of tables: it gives what reading gives, sees every change, and is no one's to forge."""

import os
import shutil
import stat

import numpy as np
import pandas as pd
import pytest
from odd_logs import odd_logs
from samples import write_sample

import replay
from replay.logs import cache
from replay.logs.tables import load_tables


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache.folder()


@pytest.fixture
def logs(tmp_path):
    for seed in range(3):
        write_sample(tmp_path / "logs" / f"r{seed}.jsonl", generations=3, children=4, seed=seed)
    return tmp_path / "logs"


def entries(place):
    return sorted(place.glob("*")) if place.exists() else []


@pytest.fixture
def unread(monkeypatch):
    """Reading a log fails, so that what is returned can only be of the cache."""

    def switch():
        monkeypatch.setattr("replay.logs.tables.read_run", None)

    return switch


@pytest.mark.parametrize("read", [replay.load, replay.children])
@pytest.mark.parametrize("timeouts", ["worst_case", "exclude"])
def test_the_second_load_is_the_first_and_reads_no_log(logs, place, unread, read, timeouts):
    first = read(logs, cache=True, timeouts=timeouts)
    assert len(entries(place)) == 1
    unread()
    second = read(logs, cache=True, timeouts=timeouts)
    pd.testing.assert_frame_equal(second, first)
    assert second.attrs == first.attrs
    if read is replay.children:
        assert second["parents"].map(type).eq(tuple).all()
    with pytest.raises(TypeError):  # of other settings there is no entry
        read(logs, cache=True, timeouts="bounded")


def test_tables_of_odd_logs_come_back_whole(tmp_path, unread):
    *sound, _ = odd_logs(tmp_path)
    (tmp_path / "damaged.jsonl").unlink()
    first = load_tables(tmp_path, cache=True)
    unread()
    for before, after in zip(first, load_tables(tmp_path, cache=True), strict=True):
        pd.testing.assert_frame_equal(after, before)
    assert len(first.runs) == len(sound)


def change_time(path):
    os.utime(path, ns=(1, 1))


def change_content(path):
    """The same size and time, as after a copy that keeps them."""
    before = path.stat()
    data = path.read_bytes()
    other = write_sample(path, generations=3, children=4, seed=99).read_bytes()
    path.write_bytes(other.ljust(len(data), b"\n")[: len(data)])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def change_size(path):
    write_sample(path, generations=4, children=4, seed=0)


@pytest.mark.parametrize("change", [change_time, change_content, change_size])
def test_a_changed_log_is_seen(logs, monkeypatch, change):
    replay.load(logs, cache=True)
    change(logs / "r0.jsonl")
    read = []
    real = replay.logs.tables.read_run
    monkeypatch.setattr(
        "replay.logs.tables.read_run", lambda path, name: read.append(name) or real(path, name)
    )
    try:
        found = replay.load(logs, cache=True)
    except replay.logs.tables.LogError:
        assert change is change_content  # what it was cut to is no log, and that is said
    else:
        assert read == ["r0", "r1", "r2"]
        pd.testing.assert_frame_equal(found, replay.load(logs, cache=False))


def test_other_logs_and_other_names_of_them_have_entries_of_their_own(logs, tmp_path, monkeypatch):
    whole = replay.load(logs, cache=True)
    assert replay.load(logs / "r0.jsonl", cache=True)["run"].unique().tolist() == ["r0"]
    monkeypatch.chdir(tmp_path)
    relative = replay.load("logs", cache=True)
    assert relative["source"].str.startswith("logs/").all()
    assert whole["source"].str.startswith(str(tmp_path)).all()


def test_quick_reading_leaves_nothing_behind_and_slow_reading_does(logs, place, monkeypatch):
    replay.load(logs)
    assert entries(place) == []
    monkeypatch.setattr(cache, "SLOW", 0.0)
    replay.load(logs, cache=False)
    assert entries(place) == []
    replay.load(logs)
    assert len(entries(place)) == 1
    assert not any(path.suffix != ".jsonl" for path in logs.iterdir())


def test_what_was_left_out_is_read_again(logs, place):
    (logs / "r1.jsonl").write_bytes((logs / "r1.jsonl").read_bytes().replace(b"ok", b"OK", 1))
    for _ in range(2):
        with pytest.warns(UserWarning, match="1 of 3 logs were left out"):
            assert replay.load(logs, strict=False, cache=True)["run"].nunique() == 2
    assert entries(place) == []


def test_what_another_tool_wrote_is_named_beside_logs_of_the_cache(logs, place, unread):
    (logs / "calls.csv").write_text("order,fitness\n1,0.5\n")
    first = None
    for _ in range(2):
        with pytest.warns(UserWarning, match="1 of 4 logs were left out: .*runs of table"):
            frame = replay.load(logs, cache=True)
        assert [path for path, _ in frame.attrs["skipped"]] == [str(logs / "calls.csv")]
        first = frame if first is None else first
        unread()
    pd.testing.assert_frame_equal(frame, first)
    assert len(entries(place)) == 1


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04nonsense", b"x" * 1000])
def test_a_damaged_entry_is_read_anew_and_replaced(logs, place, unread, damage):
    first = replay.load(logs, cache=True)
    [entry] = entries(place)
    entry.write_bytes(damage)
    pd.testing.assert_frame_equal(replay.load(logs, cache=True), first)
    unread()
    pd.testing.assert_frame_equal(replay.load(logs, cache=True), first)


def test_a_folder_that_others_can_write_to_is_not_trusted(logs, place, unread):
    replay.load(logs, cache=True)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    place.chmod(0o777)
    unread()
    with pytest.raises(TypeError):
        replay.load(logs, cache=True)


def test_a_folder_that_cannot_be_written_is_no_error(logs, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert len(replay.load(logs, cache=True)) == 12


def test_entries_that_were_not_used_for_longest_make_room(logs, place, monkeypatch):
    for seed in range(3):
        replay.load(logs / f"r{seed}.jsonl", cache=True)
        new = max(entries(place), key=lambda path: path.stat().st_mtime_ns)
        os.utime(new, ns=(seed + 1, seed + 1))
    oldest = min(entries(place), key=lambda path: path.stat().st_mtime_ns)
    size = oldest.stat().st_size
    monkeypatch.setattr(cache, "MOST_BYTES", int(4.5 * size))
    write_sample(logs / "r3.jsonl", generations=3, children=4, seed=3)
    replay.load(logs / "r3.jsonl", cache=True)
    assert len(entries(place)) == 4
    monkeypatch.setattr(cache, "MOST_BYTES", int(4.2 * size))
    shutil.copy(logs / "r3.jsonl", logs / "r4.jsonl")
    replay.load(logs / "r4.jsonl", cache=True)
    assert oldest not in entries(place)
    assert len(entries(place)) == 4


def test_numbers_keep_every_bit(logs, unread):
    first = replay.children(logs, cache=True)
    unread()
    second = replay.children(logs, cache=True)
    for name in first.columns[first.dtypes.map(lambda kind: kind.kind in "biuf")]:
        np.testing.assert_array_equal(second[name], first[name], strict=True)
