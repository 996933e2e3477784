"""The tree of a run and the origin of the lines of a program, on small logs made by hand."""

import math
from pathlib import Path

import pandas as pd
import pytest
from samples import sample_child, sample_header, write_sample

import replay
from evo.logs.journal import encode_line
from evo.logs.log import read_log
from evo.logs.maintenance import compact
from evo.logs.records import Evaluation, Generation, Initial
from replay.logs.descent import FOLDS
from replay.logs.frames import ReplayWarning

SAMPLES = Path(__file__).resolve().parents[3] / "logs" / "samples"
RUNS = [
    "searches/circle_packing-greedy-s40.jsonl.gz",
    "searches/circle_packing-islands-s40.jsonl.gz",
    "side-by-side/openevolve-circle_packing-s40.jsonl.gz",
]


@pytest.fixture(scope="module", params=RUNS)
def run(request):
    return read_log(SAMPLES / request.param)


def children_with(programs):
    """Children of given (place, parents, fitness, program), as changed records."""
    import msgspec

    for (generation, index), parents, fitness, program in programs:
        child = sample_child(generation, index, fitness)
        yield msgspec.structs.replace(child, parents=parents, program=program)


@pytest.fixture
def crossed(tmp_path):
    """Two rewrites of the initial program, and a crossover of them that adds a line."""
    header = sample_header(2)
    first = header.task.files[header.task.program_file]
    one, two = f"a = 1\n{first}", f"{first}b = 2\n"
    both = f"a = 1\n{first}b = 2\nc = 3\n"
    children = list(
        children_with(
            [
                ((1, 0), ((0, 0),), 0.2, one),
                ((1, 1), ((0, 0),), 0.3, two),
                ((2, 0), ((1, 0), (1, 1)), 0.5, both),
                ((2, 1), ((1, 1),), None, "x = 0\n"),
            ]
        )
    )
    lines = [
        header,
        Initial(evaluation=Evaluation(status="ok", fitness=0.1, seconds=0.01)),
        *children[:2],
        Generation(generation=1, best_fitness=0.3, best=(1, 1), improved=True, seconds=1.0),
        *children[2:],
        Generation(generation=2, best_fitness=0.5, best=(2, 0), improved=True, seconds=1.0),
    ]
    path = tmp_path / "crossed.jsonl"
    path.write_bytes(b"".join(map(encode_line, lines)))
    return read_log(path)


def test_an_initial_program_that_is_not_logged_has_no_fitness_in_a_tree(tmp_path):
    (tmp_path / "calls.csv").write_text("run,order,fitness\na,1,0.3\na,2,0.4\n")
    with pytest.warns(ReplayWarning, match="which lack: .*generation 0"):
        (path,) = replay.find_logs(tmp_path / "calls.csv")
    first, *children = replay.tree(read_log(path)).to_dict("records")
    assert (first["generation"], first["ok"]) == (0, 0)
    assert pd.isna(first["status"])
    assert pd.isna(first["fitness"])
    assert [row["fitness"] for row in children] == [0.3, 0.4]


def test_a_tree_has_every_program_once_under_its_parent(run) -> None:
    table = replay.tree(run)
    places = list(zip(table["generation"], table["index"], strict=True))
    assert places == [(0, 0), *((o.generation, o.index) for o in run.outcomes)]
    assert all(parent in places for parents in table["parents"] for parent in parents)
    stated = {(o.generation, o.index): o.parents for o in run.outcomes if o.parents}
    rows = dict(zip(places, table["parents"], strict=True))
    assert all(rows[place] == parents for place, parents in stated.items())
    assert table["rewrites"].sum() == (table["parents"].map(len) > 0).sum()


def test_the_line_to_the_best_program_is_marked(run) -> None:
    table = replay.tree(run)
    line = table[table["best_line"]]
    last = line.iloc[-1]
    assert (last["generation"], last["index"]) == (run.best.generation, run.best.index)
    assert last["fitness"] == table["fitness"].max()
    places = list(zip(line["generation"], line["index"], strict=True))
    assert [parents[0] for parents in line["parents"][1:]] == places[:-1]


@pytest.mark.parametrize("fold", range(1, FOLDS + 1))
def test_folding_loses_no_program_and_never_the_line_to_the_best(run, fold) -> None:
    whole, before = replay.tree(run), replay.tree(run, fold=fold - 1)
    folded = replay.tree(run, fold=fold)
    assert list(folded.columns) == list(whole.columns)
    assert folded["members"].sum() == len(whole)
    assert folded["ok"].sum() == whole["ok"].sum()
    assert len(folded) <= len(before)
    lines = [t[t["best_line"]].drop(columns="rewrites") for t in (whole, folded)]
    assert lines[0].reset_index(drop=True).equals(lines[1].reset_index(drop=True))
    kept = set(zip(folded["generation"], folded["index"], strict=True))
    assert sum(p[0] not in kept for p in folded["parents"] if p) == 0
    if fold == FOLDS:
        assert len(folded) < len(whole)


def test_a_level_of_folding_that_does_not_exist_is_refused(run) -> None:
    with pytest.raises(ValueError, match="fold to be 0 to 3, got 4"):
        replay.tree(run, fold=4)


def test_lines_of_a_crossover_belong_to_the_parent_that_has_them(crossed) -> None:
    table = replay.blame(crossed)
    places = zip(table["generation"], table["index"], strict=True)
    whose = dict(zip(table["text"], places, strict=True))
    assert whose["a = 1"] == (1, 0)
    assert whose["b = 2"] == (1, 1)
    assert whose["c = 3"] == (2, 0)
    assert (table["generation"] == 0).sum() == len(table) - 3
    gains = table.set_index("text")["gain"]
    assert math.isclose(gains["c = 3"], 0.5 - 0.2)
    assert table["line"].tolist() == list(range(1, len(table) + 1))


def test_each_line_is_in_the_program_that_introduced_it(run) -> None:
    table = replay.blame(run)
    assert "\n".join(table["text"]) == "\n".join((run.best.program or "").splitlines())
    best_line = replay.tree(run).query("best_line")
    ancestors = set(zip(best_line["generation"], best_line["index"], strict=True))
    for row in table[table["generation"] > 0].itertuples():
        assert row.text in (run.child(row.generation, row[4]).program or "").splitlines()
    if "greedy" in run.path.name:
        assert set(zip(table["generation"], table["index"], strict=True)) <= ancestors


def test_a_log_without_programs_is_refused(tmp_path) -> None:
    small = compact(write_sample(tmp_path / "a.jsonl"), tmp_path / "small.jsonl")
    with pytest.raises(ValueError, match="holds no programs"):
        replay.blame(small)
    assert len(replay.tree(small)) == 10


def test_the_place_of_a_program_must_exist(crossed) -> None:
    assert set(replay.blame(crossed, (2, 1))["text"]) == {"x = 0"}
    with pytest.raises(ValueError, match="the place of a program"):
        replay.blame(crossed, (9, 9))


@pytest.mark.parametrize("fold", [1, 2])
def test_a_row_of_folded_leaves_shows_the_fittest_of_them(run, fold) -> None:
    """Leaves of one parent on one island are one row, with fold 1 those of one generation."""
    whole, folded = replay.tree(run), replay.tree(run, fold=fold)
    single = whole["best_line"] | (whole["rewrites"] > 0)
    leaves = whole[~single]
    keys = [leaves["parents"].str[0], leaves["island"].fillna(-1.0)]
    keys += [leaves["generation"]] if fold == 1 else []
    best = leaves.groupby(keys)["fitness"].max()
    assert fold == 1 or len(best) < len(leaves)
    expected = [*best.dropna(), *whole.loc[single, "fitness"].dropna()]
    assert sorted(folded["fitness"].dropna()) == sorted(expected)
