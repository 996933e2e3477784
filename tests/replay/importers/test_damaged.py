"""Whatever a file holds: an import, or one error that names the file; and never a silent zero."""

import contextlib
import io
import json
import math
import os
import tempfile
from pathlib import Path

import pytest
from foreign_samples import (
    execute,
    write_codeevolve,
    write_openevolve,
    write_paper,
    write_shinka,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import replay
from evo.logs.journal import LogError
from replay.cli.entry import main
from replay.importers import detect, read, write

FILES = {
    "table": "table.jsonl",
    "paper": "greedy_C6_T2_N3_seed41.json",
    "openevolve": "evolution_trace.jsonl",
    "skydiscover": "adaevolve_iteration_stats_1.jsonl",
    "shinkaevolve": "programs.sqlite",
    "codeevolve": "ckpt_5.pkl",
}
STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([math.nan, math.inf, -math.inf, -1, 10**30, 2**63, 1e300, "", "\ud800", "x"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@contextlib.contextmanager
def an_error_at_most(path):
    """Lets through one of our errors, if it names the file."""
    try:
        yield
    except LogError as error:
        if str(path) not in str(error):
            raise


def survives(path, format):  # noqa: A002
    """Import and write, or one error of ours that names the source; the ok fitnesses."""
    found = []
    with an_error_at_most(path):
        runs = read(path, format)
        for number, run in enumerate(runs):
            write(run, path.parent / f"out{number}.jsonl")
        found = [child.evaluation.fitness for run in runs for child in run.children]
    return [fitness for fitness in found if fitness]


@pytest.mark.parametrize("format", [*FILES, "auto"])
@given(
    content=st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=200).map(lambda rest: b"run,generation,fitness\n" + rest),
        st.dictionaries(st.sampled_from(["trajectory", "fitness", "generation", "N"]), STRANGE).map(
            lambda value: json.dumps(value).encode()
        ),
    )
)
@settings(max_examples=30)
def test_whatever_bytes_are_a_log_or_one_line(format, content):  # noqa: A002
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILES.get(format, "table.csv")
        path.write_bytes(content)
        target = Path(folder) / "out"
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = main(["import", format, str(path), "-o", str(target)])
        if code:
            assert code == 2
            assert said.getvalue().count("\n") == 1
            assert str(path) in said.getvalue()
        else:
            assert len(replay.load(target))


def samples(folder):
    write_openevolve(folder / "openevolve")
    write_shinka(folder / "shinka")
    write_codeevolve(folder / "codeevolve")
    return {
        "paper": write_paper(folder / "paper"),
        "openevolve": folder / "openevolve" / "evolution_trace.jsonl",
        "shinkaevolve": folder / "shinka" / "programs.sqlite",
        "codeevolve": folder / "codeevolve" / "0" / "ckpt" / "ckpt_5.pkl",
    }


@pytest.mark.parametrize("format", ["paper", "openevolve", "shinkaevolve", "codeevolve"])
def test_truncated_files(format, tmp_path):  # noqa: A002
    path = samples(tmp_path)[format]
    content = path.read_bytes()
    whole = survives(path, format)
    assert (whole == []) == (format == "openevolve")  # its trace holds one invalid child
    for stop in range(0, len(content), max(1, len(content) // 60)):
        (path.parent / "out0.jsonl").unlink(missing_ok=True)
        path.write_bytes(content[:stop])
        assert set(survives(path, format)) <= set(whole)


@pytest.mark.parametrize(
    "column", ["code", "generation", "combined_score", "correct", "metadata", "public_metrics"]
)
@given(value=st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text() | st.binary())
@settings(max_examples=25)
def test_strange_cells_of_a_database(column, value):
    if isinstance(value, str):  # SQLite holds no lone surrogates
        value = value.encode("utf-8", "replace").decode()
    with tempfile.TemporaryDirectory() as folder:
        path = write_shinka(Path(folder)) / "programs.sqlite"
        execute(path, [f"UPDATE programs SET {column} = ? WHERE id = 'a'", value])
        survives(path, "shinkaevolve")


def test_a_pipe_or_a_device_in_a_checkpoint_is_refused_and_nothing_waits_for_it(
    tmp_path: Path,
) -> None:
    for name in ("pipe", "device"):
        programs = tmp_path / name / "checkpoints" / "checkpoint_10" / "programs"
        programs.mkdir(parents=True)
        file = programs / "a.json"
        os.mkfifo(file) if name == "pipe" else file.symlink_to("/dev/zero")
        with pytest.raises(LogError, match="a pipe or a device"):
            detect(tmp_path / name)
        assert main(["import", "auto", str(tmp_path / name), "-o", str(tmp_path / "out")]) == 2
