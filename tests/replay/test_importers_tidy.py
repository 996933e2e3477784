import gzip
from functools import partial

import numpy as np
import pytest
from foreign_samples import DATA, statuses

import replay
from replay.importers import LogFormatError, write
from replay.importers.tidy import read

COLUMNS = {"run": ["config", "island"], "generation": "epoch", "fitness": "child"}
TEXT = """config,island,epoch,child,outcome,prompt,completion
a,0,0,,timeout,10,5
a,0,1,0.5,valid,10,5
a,0,3,0.0,valid,,
a,1,0,nan,valid,10,5
"""
REAL = DATA / "codeevolve_circle_packing_26.csv.gz"


def test_rows_are_calls(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    first, second = read(path, **COLUMNS, outcome="outcome", tokens=("prompt", "completion"))
    assert (first.name, second.name) == ("a_0", "a_1")
    assert statuses(first) == ["timeout", "ok", "no_reply", "ok"]
    assert statuses(second) == ["invalid"]
    assert first.children[3].evaluation.fitness == 0
    assert first.children[3].attempts == ()
    assert first.initial is None
    write(first, tmp_path / "out" / "first.jsonl")
    frame = replay.load(tmp_path / "out")
    np.testing.assert_array_equal(frame["best_fitness"], [np.nan, np.nan, 0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r":1: .*missing"),
        ("config,island,child\n", r"missing \['epoch'\]"),
        (TEXT.split("\n", maxsplit=1)[0] + "\n", "at least one row"),
        (TEXT + "a,0,x,1,valid,,\n", r":6: .*'x'"),
        (TEXT + "a,0,1.5,1,valid,,\n", r":6: .*'1.5'"),
        (TEXT + "a,0,1,1,valid,,\n", r":6: .*twice"),
        (TEXT + "a,0,9999999,1,valid,,\n", "at most"),
        (TEXT + "a,0\n", r":6: .*None"),
    ],
)
def test_damage_names_file_and_line(tmp_path, text, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(LogFormatError, match=message) as caught:
        read(path, **COLUMNS)
    assert str(path) in str(caught.value)


@pytest.mark.skipif(not REAL.is_file(), reason="the real table is not beside the project")
def test_the_real_table(tmp_path):
    reader = partial(read, REAL, run=["config", "island"], generation="epoch")
    runs = reader(fitness="child_fitness", outcome="outcome", task="circle_packing")
    assert len(runs) == 25
    for run in runs:
        assert len(run.children) == 100
        write(run, tmp_path / f"{run.name}.jsonl")
    frame = replay.load(tmp_path)
    matrix = replay.fitness_matrix(frame)
    assert matrix.shape == (25, 101)
    assert np.isnan(matrix[:, 0]).all()
    import pandas as pd

    table = pd.read_csv(REAL)
    table["run"] = table["config"] + "_" + table["island"].astype(str)
    stated = table.pivot(index="run", columns="epoch", values="best_local")
    ours = pd.DataFrame(matrix[:, 1:], index=frame["run"].unique()).fillna(0.0)
    pd.testing.assert_frame_equal(
        ours.loc[stated.index], stated, check_names=False, check_column_type=False
    )
