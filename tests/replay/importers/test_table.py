import gzip
import json

import numpy as np
import pandas as pd
import pytest
from foreign_samples import DATA, statuses, trajectory

import replay
from evo.logs.cost import cost_of_calls
from evo.logs.log import read_log
from replay.importers import LogFormatError, detect, keep, read, table

COLUMNS = {"run": ["config", "island"], "generation": "epoch", "fitness": "child"}
MORE = {"status": "outcome", "prompt_tokens": "prompt", "completion_tokens": "completion"}
TEXT = """config,island,epoch,child,outcome,prompt,completion
a,0,1,,timeout,10,0
a,0,2,0.5,valid,10,5
a,0,4,0.0,valid,,
a,1,1,nan,valid,10,5
"""
REAL = DATA / "codeevolve_circle_packing_26.csv.gz"
ROWS = [
    {"generation": 0, "fitness": 0.1, "program": "first"},
    {"generation": 1, "index": 0, "fitness": 0.3, "status": "ok", "program": "second"},
    {"generation": 1, "index": 1, "status": "exploded", "fitness": None},
    {"generation": 2, "index": 1, "fitness": 0.2, "parent_generation": 1, "parent_index": 0,
     "area": 2.5, "colour": "red", "island": 2, "prompt_tokens": 10, "completion_tokens": 4,
     "cached_tokens": 3, "dollars": 0.5, "seconds": 1.5},
]  # fmt: skip


def test_rows_of_other_names_are_calls(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    with pytest.warns(UserWarning, match="run 'a_0' of generation 3: 1 failed call is counted"):
        first, second = table.read(str(path), columns=COLUMNS | MORE)
    assert (first.name, second.name) == ("a_0", "a_1")
    assert statuses(first) == ["timeout", "ok", None, "ok"]
    assert statuses(second) == ["invalid"]
    assert first.children[3].evaluation.fitness == 0
    assert first.children[3].attempts == ()
    assert first.children[0].attempts[0].usage == {"prompt_tokens": 10, "completion_tokens": 0}
    assert first.initial is None
    keep([first], tmp_path / "out")
    frame = replay.load(tmp_path / "out")
    np.testing.assert_array_equal(frame["best_fitness"], [np.nan, np.nan, 0.5, 0.5, 0.5])


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_every_documented_column_is_kept_and_what_is_missing_stays_missing(tmp_path, ending):
    rows = [{"run": "r", "task": "t", "model": "m", "seed": 7, "fitness": None} | r for r in ROWS]
    path = tmp_path / f"table.{ending}"
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pd.DataFrame(rows).to_csv(path, index=False)
    assert detect(path) == "table"
    (run,) = read(path)
    header = run.header
    assert (run.name, header.task.name, header.model.name, header.seed) == ("r", "t", "m", 7)
    assert header.children == 2
    assert statuses(run) == ["ok", None, None, "ok"]
    assert trajectory(run) == [0.1, 0.3, 0.3]
    assert run.children[1].evaluation.error == "status 'exploded'"
    last = run.children[-1]
    assert (last.parents, last.island, last.evaluation.seconds) == (((1, 0),), 2, 1.5)
    assert last.attempts[0].usage == {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "dollars": 0.5,
        "prompt_tokens_details": {"cached_tokens": 3},
    }
    assert last.evaluation.metrics == {"area": 2.5}
    assert (run.program, run.children[0].program) == ("first", "second")
    assert run.children[0].attempts == ()


def test_without_generations_the_order_makes_them(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("order,fitness\n30,0.3\n10,0.1\n20,\n40,0.3\n")
    (run,) = read(path)
    assert trajectory(run) == [0.1, 0.1, 0.3, 0.3]
    assert statuses(run) == ["ok", None, "ok", "ok"]
    assert [each.improved for each in run.generations] == [True, False, True, False]
    assert run.generations[-1].best == (3, 0)  # as good is no better


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one row"),
        (
            "config,island,child\na,0,1\n",
            "expected a column 'epoch', as columns= calls our 'generation'",
        ),
        (TEXT.split("\n", maxsplit=1)[0] + "\n", "at least one row"),
        (TEXT + "a,0,x,1,valid,,\n", r":6: .*'x'"),
        (TEXT + "a,0,1.5,1,valid,,\n", r":6: .*1.5"),
        (TEXT + "a,0,9999999,1,valid,,\n", "from 0 to 100000"),
        (TEXT + "a,0,,,,,\n", r":6: .*'generation'"),
        (TEXT + "a,0,1,1,valid,,,7\n", ":6: expected 7 cells, got 8"),
        (TEXT.replace("prompt", "child"), ":1: expected each column once, got 'child' twice"),
    ],
)
def test_damage_names_file_and_line(tmp_path, text, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(LogFormatError, match=message) as caught:
        table.read(path, columns=COLUMNS)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("column", ["task", "model", "seed", "search"])
def test_one_name_for_two_runs_is_refused(tmp_path, column):
    rows = [{"run": "0", column: value, "order": 1, "fitness": 0.5} for value in ("1", "2")]
    path = tmp_path / "table.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(
        LogFormatError, match=f":2: run '0' has more than one {column},.*run=COLUMN,"
    ):
        read(path)


def test_a_child_that_stands_there_twice_is_refused(tmp_path):
    path = tmp_path / "table.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (ROWS[1], ROWS[1])))
    with pytest.raises(LogFormatError, match=r":2: .*\(1, 0\) twice"):
        read(path)


@pytest.mark.skipif(not REAL.is_file(), reason="the real table is not beside the project")
def test_the_real_table(tmp_path):
    stated = pd.read_csv(REAL)
    columns = {"run": ["config", "island"], "order": "epoch", "fitness": "child_fitness"}
    said = r"'prompt_tokens_so_far': 'prompt_tokens_cum'.* of replay\.importers\.load"
    with pytest.warns(UserWarning, match=said):
        runs = table.read(REAL, columns=columns | {"status": "outcome"}, task="circle_packing")
    assert len(runs) == 25
    assert {len(run.children) for run in runs} == {100}
    frame = replay.load(keep(runs, tmp_path / "logs"))
    matrix = replay.fitness_matrix(frame)
    assert matrix.shape == (25, 101)
    assert np.isnan(matrix[:, 0]).all()
    stated["run"] = stated["config"] + "_" + stated["island"].astype(str)
    best = stated.pivot(index="run", columns="epoch", values="best_local")
    ours = pd.DataFrame(matrix[:, 1:], index=frame["run"].unique()).fillna(0.0)
    pd.testing.assert_frame_equal(
        ours.loc[best.index], best, check_names=False, check_column_type=False
    )


def test_rows_without_an_index_follow_the_largest_one_so_far(tmp_path):
    rows = [{"generation": 1, "index": 3, "fitness": 0.1}, {"generation": 1, "fitness": 0.2}]
    path = tmp_path / "table.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = read(path)
    fitness = [child.evaluation.fitness for child in run.children]
    assert fitness == [None, None, None, 0.1, 0.2]
    path.write_text("".join(json.dumps({**rows[1], "fitness": f}) + "\n" for f in (0.3, 0.4)))
    assert [child.evaluation.fitness for child in read(path)[0].children] == [0.3, 0.4]


def test_a_fitness_that_is_no_number_is_refused_and_an_empty_one_is_a_failure(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('generation,fitness\n1,0.31\n2,"0,42"\n')
    with pytest.raises(LogFormatError, match=r"table\.csv:3: expected a number.*got '0,42'"):
        read(path)
    for nothing in ("", "n/a", "NaN", "-"):
        path.write_text(f"generation,fitness\n1,0.31\n2,{nothing}\n")
        [imported] = read(path)
        assert imported.children[1].evaluation.fitness is None


def test_rows_that_all_stand_twice_are_warned_of(tmp_path):
    path = tmp_path / "table.csv"
    rows = ["a,1,0.31", "a,2,0.42"]
    path.write_text("\n".join(["run,generation,fitness", *rows, *rows, "b,1,0.1", "b,1,0.1"]))
    with pytest.warns(UserWarning, match="run 'a': every row stands 2 times"):
        assert [each.name for each in read(path)] == ["a", "b"]
    path.write_text("\n".join(["run,generation,fitness", *rows, "a,2,0.42"]))
    assert len(read(path)) == 1


def test_numbers_of_the_order_that_recur_in_a_run_are_warned_of(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("config,island,epoch,fitness\na,0,1,.1\na,1,1,.2\na,0,2,.3\nb,0,1,.1\n")
    with pytest.warns(UserWarning, match="in run 'a', numbers of 'epoch' stand up to 2 times") as w:
        table.read(path, columns={"run": "config", "order": "epoch"})
    assert "`--columns run=config,run=COLUMN`" in str(w[0].message)
    apart = table.read(path, columns={"run": ["config", "island"], "order": "epoch"})
    assert [run.name for run in apart] == ["a_0", "a_1", "b_0"]


def test_rows_of_generation_0_that_differ_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("run,generation,fitness\na,0,.1\na,0,.9\na,1,.2\n")
    with pytest.raises(LogFormatError, match=r"csv:3: run 'a' has several rows of generation 0"):
        table.read(path)


def test_a_stated_cost_is_read_and_goes_before_prices(tmp_path):
    path = tmp_path / "table.csv"
    rows = ["a,1,0.1,0.5,1000,2000", "a,2,0.2,0.25,10,20", "a,3,0.3,,10,20", "a,4,0.4,0,10,20"]
    path.write_text("\n".join(["run,order,fitness,dollars,prompt_tokens,completion_tokens", *rows]))
    frame = replay.load(keep(read(path), tmp_path / "priced"))
    np.testing.assert_array_equal(frame["dollars"], [0.0, 0.5, 0.25, np.nan, 0.0])
    assert frame["tokens"].tolist() == [0.0, 3000, 30, 30, 30]
    path.write_text("run,order,fitness,dollars\na,1,0.1,0.5\na,2,0.2,-1\n")
    [log] = keep(read(path), tmp_path / "bare")
    frame = replay.load(log)
    np.testing.assert_array_equal(frame["dollars"], [0.0, 0.5, np.nan])
    assert np.isnan(frame["tokens"].iloc[1:]).all()
    assert cost_of_calls(read_log(log).outcomes[:1], read_log(log).header).dollars == 0.5


def test_a_plan_needs_a_table_that_says_its_search_is_greedy(tmp_path):
    path, rng = tmp_path / "table.csv", np.random.default_rng(1)
    rows = [
        (run, order, fitness)
        for run in range(6)
        for order, fitness in enumerate(np.maximum.accumulate(rng.random(8)), start=1)
    ]
    for column, search in (("", "table"), (",greedy", "greedy"), (",islands", "islands")):
        lines = [f"{run},{order},{fitness}{column}" for run, order, fitness in rows]
        header = "run,order,fitness" + (",search" if column else "")
        path.write_text("\n".join([header, *lines]))
        logs = keep(read(path), tmp_path / f"of{column}")
        frame = replay.load(logs)
        assert set(frame["search"]) == {search}
        assert set(frame["settings"]) == {""}
        if search == "greedy":
            assert len(replay.plan(frame, budget=8, kernels=2).options)
            continue
        with pytest.raises(ValueError, match=f"these are of {search}"):
            replay.plan(frame, budget=8, kernels=2)


SEARCHES = "run,{},order,fitness\na,A,1,0.2\na,A,2,0.3\nb,islands,1,0.7\nb,islands,2,0.8\n"


@pytest.mark.parametrize(("name", "columns"), [("search", None), ("config", {"search": "config"})])
def test_the_search_of_a_table_tells_its_configurations_apart(tmp_path, name, columns):
    path = tmp_path / "table.csv"
    path.write_text(SEARCHES.format(name))
    logs = keep(read(path, columns=columns), tmp_path / "logs")
    tables = replay.load_tables(*logs)
    assert tables.generations.groupby("run")["search"].first().to_dict() == {
        "a": "A",
        "b": "islands",
    }
    assert tables.runs["configuration"].nunique() == 2
    assert tables.children["island"].isna().all()


def test_each_column_that_describes_a_run_reaches_the_frame(tmp_path):
    stated = {"run": "r", "task": "t", "model": "m", "search": "s", "seed": 7}
    path = tmp_path / "table.jsonl"
    path.write_text(json.dumps(stated | {"order": 1, "fitness": 0.5}) + "\n")
    frame = replay.importers.load(path)
    assert frame[[*stated]].iloc[0].to_dict() == stated


@pytest.mark.parametrize("without", [{}, {"run": None}, {"run": " "}])
def test_a_row_that_does_not_name_its_run_is_refused_where_others_do(tmp_path, without):
    rows = [{"run": "a"}, {"run": "a"}, without, {"run": "b"}, without]
    path = tmp_path / "table.jsonl"
    path.write_text(
        "".join(json.dumps(row | {"order": k, "fitness": 0.5}) + "\n" for k, row in enumerate(rows))
    )
    with pytest.raises(LogFormatError, match=r":3: expected the name of a run in 'run'.* 1 more"):
        read(path)


def test_a_part_of_a_runs_name_that_is_missing_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("config,island,order,fitness\na,0,1,0.5\na,,2,0.5\n")
    with pytest.raises(LogFormatError, match=r":3: .*'config' and 'island'"):
        read(path, columns={"run": ["config", "island"]})


def test_what_a_parquet_table_lacks_is_no_name(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    path.touch()
    columns = {"run": ["a", "a"], "search": ["A", np.nan], "order": [1, 2], "fitness": [0.5, 0.5]}
    monkeypatch.setattr("pandas.read_parquet", lambda _: pd.DataFrame(columns))
    with pytest.raises(LogFormatError, match="more than one search, 'A' and None"):
        read(path)


@pytest.mark.parametrize(
    ("name", "cell", "kind"),
    [
        ("dollars", "0,01", "number"),
        ("seconds", "1.5 s", "number"),
        ("prompt_tokens", "1.234", "whole number"),
        ("completion_tokens_so_far", "1,234", "whole number"),
    ],
)
def test_a_cost_that_is_no_number_is_taken_for_missing_and_said(tmp_path, name, cell, kind):
    path = tmp_path / "calls.csv"
    path.write_text(f"run;order;fitness;{name}\na;1;0.1;{cell}\na;2;0.2;-\na;3;0.3;{cell}\n")
    words = f"calls.csv:2 and 1 more: expected a {kind} in column '{name}', .*got '?{cell}"
    with pytest.warns(UserWarning, match=words):
        [run] = table.read(path)
    [first, *_] = run.children
    assert first.evaluation.seconds is None
    assert all(attempt.usage is None for attempt in first.attempts)
    path.write_text(f"run;order;fitness;{name}\na;1;0.1;2\na;2;0.2;\n")
    assert len(table.read(path)) == 1


HEADINGS = "run,generation [1],Fitness (%),seconds (s),dollars [USD],prompt_tokens (tokens)"


def test_a_unit_in_a_heading_is_no_part_of_its_name_where_it_is_ours(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"{HEADINGS}\na,1,0.31,2.5,0.01,80\n")
    assert table.recognises(path)
    [[child]] = [run.children for run in read(path)]
    assert (child.evaluation.fitness, child.evaluation.seconds) == (0.31, 2.5)
    assert child.attempts[0].usage == {"prompt_tokens": 80, "dollars": 0.01}
    assert not child.evaluation.metrics


@pytest.mark.parametrize(
    ("heading", "ours"),
    [
        ("cost ($)", "dollars"),
        ("cost_usd", "dollars"),
        ("llm_cost", "dollars"),
        ("seconds (ms)", "seconds"),
        ("eval_time", "seconds"),
        ("input_tokens", "prompt_tokens"),
        ("output tokens", "completion_tokens"),
    ],
)
def test_a_column_that_looks_like_a_cost_and_is_not_taken_is_named_with_what_to_do(
    tmp_path, heading, ours
):
    path = tmp_path / "table.csv"
    path.write_text(f"run,generation,fitness,{heading}\na,1,0.31,3\n")
    words = f"not taken for them: {heading!r};.*columns={{{ours!r}: {heading!r}}}"
    with pytest.warns(UserWarning, match=words.translate({ord(c): f"\\{c}" for c in "($)"})):
        read(path)
    assert len(table.read(path, columns={ours: heading})) == 1


def test_metrics_of_a_program_are_no_costs(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("run,generation,fitness,cost,time,tokens,usd note\na,1,0.31,3,4,5,dear\n")
    [run] = read(path)
    assert {*run.children[0].evaluation.metrics} == {"cost", "time", "tokens"}
