"""Which files are logs, what runs are called, and logs decoded in one go."""

import hashlib
import random
from pathlib import Path

import pytest
from samples import changed, make_log_bytes, sample_lines, write_lines, write_sample

import replay
from evo.logs.journal import LogError
from evo.logs.log import read_log
from evo.logs.maintenance import compact
from evo.logs.records import Child, Evaluation, Generation, Header, Initial
from evo.studies.allocation.journal import AllocationHeader, ArmRecord
from replay.logs.decode import (
    MOST_FITNESS,
    find_all,
    find_logs,
    find_own,
    name_runs,
    read_run,
)


def test_sources_are_files_folders_patterns_and_logs_each_once(tmp_path, monkeypatch):
    a = write_sample(tmp_path / "x" / "a.jsonl")
    b = write_sample(tmp_path / "y" / "deep" / "b.jsonl")
    (tmp_path / "y" / "events.jsonl").write_text("{}\n")  # of a sweep: no log
    (tmp_path / "y" / "agent.jsonl").touch()  # of a selection, just begun
    expected = {a.resolve(), b.resolve()}
    monkeypatch.chdir(tmp_path)
    for sources in (
        (tmp_path,),
        (str(tmp_path / "**" / "*.jsonl"),),
        ([a, b],),
        (a, read_log(b), "x", "x/a.jsonl", tmp_path / "x" / ".." / "x" / "a.jsonl"),
    ):
        found = find_logs(*sources)
        assert {path.resolve() for path in found} == expected
        assert len(found) == 2


@pytest.mark.parametrize("source", ["missing.jsonl", "no*.jsonl", "empty"])
def test_sources_without_logs_are_errors(tmp_path, source):
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogError, match=r"no log|no such file"):
        replay.load(tmp_path / source)
    with pytest.raises(LogError, match="at least one log"):
        replay.load([])


def test_an_allocation_stands_for_its_arms_in_order_wherever_they_lie(tmp_path):
    outside = write_sample(tmp_path / "before.jsonl", seed=3)
    folder = tmp_path / "allocation"
    inside = [write_sample(folder / f"arm-{k:02}.jsonl", seed=k) for k in range(2)]
    arms = tuple(
        ArmRecord(log=log, seed=seed)
        for log, seed in (("arm-01.jsonl", 1), ("../before.jsonl", 3), ("arm-00.jsonl", 0))
    )
    header = AllocationHeader(policy="ucb1", reward="rank", rounds=3, seed=0, arms=arms)
    journal = write_lines(folder / "allocation.jsonl", [header])
    for source in (folder, journal):
        assert find_logs(source) == [inside[1], outside, inside[0]]
    packed = folder / "arm-01.jsonl.gz"
    compact(inside[1], packed)
    inside[1].unlink()
    assert find_logs(journal) == [packed, outside, inside[0]]
    journal.write_text("{}\n")
    with pytest.raises(LogError, match=r"allocation\.jsonl:1: not the header"):
        replay.load(folder)


def test_runs_of_the_same_name_stay_apart(tmp_path):
    for place in ("x/a.jsonl", "y/a.jsonl"):
        write_sample(tmp_path / place)
    compact(tmp_path / "x" / "a.jsonl", tmp_path / "x" / "a.jsonl.gz")
    names = name_runs(find_logs(tmp_path))
    assert set(names.values()) == {"x/a.jsonl", "x/a.jsonl.gz", "y/a.jsonl"}
    assert replay.fitness_matrix(replay.load(tmp_path), repeats=True).shape == (3, 4)
    assert set(replay.load(tmp_path / "x" / "a.jsonl", tmp_path / "y")["run"]) == {"x/a", "y/a"}


def test_a_link_to_a_folder_of_logs_elsewhere_is_named_where_it_is_not_followed(tmp_path):
    write_sample(tmp_path / "elsewhere" / "deep" / "a.jsonl")
    (tmp_path / "runs" / "within").mkdir(parents=True)
    (tmp_path / "runs" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "runs" / "around").symlink_to(tmp_path / "runs" / "within")
    (tmp_path / "runs" / "up").symlink_to(tmp_path)
    words = r"runs/linked: a symbolic link to a folder with logs, which is not followed; name it"
    with pytest.raises(LogError, match=rf"no log in this folder .*{words}"):
        find_logs(tmp_path / "runs")
    own = write_sample(tmp_path / "runs" / "within" / "b.jsonl")
    with pytest.warns(UserWarning, match=f"1 file left out: .*{words}"):
        assert find_logs(tmp_path / "runs") == [own]
    assert len(find_logs(tmp_path / "runs" / "within", tmp_path / "runs" / "linked")) == 2


def test_links_of_one_name_to_logs_in_one_folder_are_runs_of_their_own(tmp_path):
    for seed in (1, 2):
        lines = changed(sample_lines(), Header, seed=seed)
        log = write_lines(tmp_path / "kept" / f"{seed}.jsonl", lines)
        (tmp_path / "runs" / f"seed-{seed}").mkdir(parents=True)
        (tmp_path / "runs" / f"seed-{seed}" / "run.jsonl").symlink_to(log)
    frame = replay.load(tmp_path / "runs")
    assert frame.groupby("run")["seed"].unique().map(list).to_dict() == {
        "seed-1/run": [1],
        "seed-2/run": [2],
    }


def test_a_flipped_byte_names_file_and_line(tmp_path):
    data = make_log_bytes()
    lines = data.split(b"\n")
    lines[4] = lines[4].replace(b"error", b"errer", 1).replace(b'"ok"', b'"OK"', 1)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(LogError, match=r"a\.jsonl:5: the checksum"):
        replay.load(path)


@pytest.mark.parametrize(
    "contradict",
    [
        lambda lines: changed(lines, Child, generation=99),
        lambda lines: changed(lines, Child, generation=-1),
        lambda lines: changed(lines, Child, index=3),
        lambda lines: changed(lines, Child, generation=2**63),
        lambda lines: [*lines, next(line for line in lines if isinstance(line, Child))],
        lambda lines: changed(lines, Generation, generation=2),
        lambda lines: [*lines, lines[0]],
        lambda lines: changed(lines, Header, schema=9),
    ],
)
def test_lines_that_contradict_each_other_name_file_and_line(tmp_path, contradict):
    path = write_lines(tmp_path / "a.jsonl", contradict(sample_lines()))
    with pytest.raises(LogError, match=r"a\.jsonl:\d+: "):
        replay.load(path)


def test_a_run_that_is_read_at_once_is_what_the_line_by_line_reader_finds(tmp_path):
    path = write_sample(tmp_path / "a.jsonl", shuffle=random.Random(1), generations=4)
    run, log = read_run(path, "name"), read_log(path)
    assert (run.path, run.name, run.header) == (path, "name", log.header)
    places = [(child.generation, child.index) for child in run.children]
    assert places == [(g, i) for g in range(1, 5) for i in range(3)]
    assert [each.fitness for each in (child.evaluation for child in run.children)] == [
        each.evaluation.fitness for each in log.children
    ]
    assert [each.generation for each in run.generations] == [1, 2, 3, 4]
    assert run.initial.evaluation.fitness == 0.1
    assert run.fresh == {"generations": 4.0}
    first = path.read_bytes().partition(b"\n")[0]
    assert run.key == hashlib.sha256(first).hexdigest()[:12]


def test_a_torn_last_line_is_forgiven_and_any_other_is_not(tmp_path):
    data = make_log_bytes()
    path = tmp_path / "a.jsonl"
    lines = data.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    assert read_run(path, "a").fresh == {}
    for at in (0, 3, len(lines) - 2):
        torn = [line[:-20] + b"\n" if k == at else line for k, line in enumerate(lines)]
        path.write_bytes(b"".join(torn))
        with pytest.raises(LogError, match=rf"a\.jsonl:{at + 1}: "):
            read_run(path, "a")


@pytest.mark.parametrize(
    ("contradict", "message"),
    [
        (lambda lines: changed(lines, Child, generation=5), "generations 1 to 4 and N = 3"),
        (lambda lines: changed(lines, Child, generation=0), r"got \(0, 0\)"),
        (lambda lines: changed(lines, Child, index=3), r"N = 3, got \(1, 3\)"),
        (lambda lines: changed(lines, Child, index=1), r"child \(1, 1\) was logged twice"),
        (lambda lines: changed(lines, Generation, generation=2), "expected generation 1, got 2"),
        (lambda lines: [*lines, lines[0]], "expected one header, on line 1; got a header here"),
        (lambda lines: changed(lines, Initial, evaluation=Evaluation(status="ok", fitness=-2e100)),
         r"a fitness of -2e\+100, but statistics are possible up to 1e\+100"),
    ],
)  # fmt: skip
def test_a_contradiction_is_told_in_words(tmp_path, contradict, message):
    path = write_lines(tmp_path / "a.jsonl", contradict(sample_lines()))
    with pytest.raises(LogError, match=message):
        read_run(path, "a")


def test_a_child_of_the_generation_under_way_and_the_largest_fitness_are_no_contradiction(tmp_path):
    under_way = changed(sample_lines(), Child, generation=4)
    assert read_run(write_lines(tmp_path / "a.jsonl", under_way), "a").children[-1].generation == 4
    largest = Evaluation(status="ok", fitness=MOST_FITNESS)
    lines = changed(sample_lines(), Initial, evaluation=largest)
    run = read_run(write_lines(tmp_path / "b.jsonl", lines), "b")
    assert run.initial.evaluation.fitness == MOST_FITNESS


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        ([], []),
        (["x/a.jsonl", "x/b.jsonl.gz"], ["a", "b"]),
        (["x/a.jsonl", "y/a.jsonl"], ["x/a", "y/a"]),
        (["x/a.jsonl", "x/deep/a.jsonl"], ["a", "deep/a"]),
        (["x/y/a.jsonl", "x/z/a.jsonl", "x/z/b.jsonl"], ["y/a", "z/a", "z/b"]),
        (["x/a.jsonl", "x/a.jsonl.gz"], ["a.jsonl", "a.jsonl.gz"]),
    ],
)
def test_runs_are_named_with_as_many_folders_as_tell_them_apart(paths, names):
    assert [*name_runs([*map(Path, paths)]).values()] == names


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "expected the path of a log, a folder or a pattern, got ''"),
        ("nothing", "nothing: no such file or folder"),
        ("no*.jsonl", r"no\*\.jsonl: no log matches"),
    ],
)
def test_what_stands_for_no_log_is_told(source, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LogError, match=message):
        find_logs(source)


def test_what_is_no_path_is_told():
    with pytest.raises(TypeError, match="such as 'logs/local', got 5"):
        find_logs([5])


def test_a_folder_of_other_files_says_how_to_read_them(tmp_path):
    (tmp_path / "trace.jsonl").write_text('{"iteration": 1}\n')
    with pytest.raises(
        LogError, match=r"no log in this folder .*files of another tool .*replay import FORMAT"
    ):
        find_logs(tmp_path)
    good = write_sample(tmp_path / "good.jsonl")
    with pytest.warns(UserWarning, match=r"1 file left out: .*trace\.jsonl"):
        assert find_logs(tmp_path) == [good]
    assert find_own(tmp_path) == [good]  # without a word
    assert find_own(tmp_path / "trace.jsonl") == []
    assert find_own(tmp_path / "nothing") == []
    both, left = find_all([tmp_path, good])
    assert both == [good]
    assert [path for path, _ in left] == [str(tmp_path / "trace.jsonl")]
