"""The columns of a table are found under other names, or refused in words that say what to do."""

import re

import pytest

import replay
from replay.importers import LogFormatError, detect, load, table
from replay.importers.cells import ENDINGS, close_to, header_of, ours_of, table_of, what_to_name

PLAIN = "run,order,fitness\na,1,0.1\na,2,0.2\nb,1,0.5\nb,2,0.6\n"
OTHER = "trial,step,score\na,1,.1\na,2,.2\nb,1,.3\nb,2,.4\n"
COLUMNS = {"run": "trial", "order": "step", "fitness": "score"}


def runs_of(path, **how):
    return [
        (run.name, [g.best_fitness for g in run.generations]) for run in table.read(path, **how)
    ]


@pytest.mark.parametrize(
    ("text", "name", "encoding"),
    [
        (PLAIN, "a.csv", "utf-8-sig"),
        (PLAIN.replace(",", ", "), "a.csv", "utf-8"),
        (PLAIN.replace(",", ";"), "a.csv", "utf-8"),
        (PLAIN.replace(",", "\t"), "a.tsv", "utf-8-sig"),
        (PLAIN.replace(",", "\t"), "a.csv", "utf-8"),
        (PLAIN.replace("\n", "\r\n"), "a.csv", "utf-8"),
        (PLAIN.replace("run,order,fitness", "Run, ORDER ,Fitness"), "a.csv", "utf-8"),
        ("\n" + PLAIN, "a.csv", "utf-8"),
        (PLAIN.replace("\n", "\r"), "a.csv", "utf-8"),
        (PLAIN.replace(",", " ,"), "a.csv", "utf-8"),
    ],
)
def test_a_table_is_read_however_it_is_written(tmp_path, text, name, encoding):
    path = tmp_path / name
    path.write_text(text, encoding=encoding, newline="")
    assert table.recognises(path)
    assert runs_of(path) == [("a", [0.1, 0.2]), ("b", [0.5, 0.6])]


def test_lines_of_json_may_lack_keys_and_begin_with_a_mark(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = ['{"Generation": 1, "fitness": 0.5}', '{"Generation": 2, "status": "error"}']
    path.write_text("\n".join(rows), encoding="utf-8-sig")
    assert table.recognises(path)
    assert runs_of(path) == [("a", [0.5, 0.5])]


def test_a_file_of_other_names_is_read_with_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(OTHER)
    assert not table.recognises(path)
    assert table.recognises(path, COLUMNS)
    assert runs_of(path, columns=COLUMNS) == [("a", [0.1, 0.2]), ("b", [0.3, 0.4])]
    assert load(path, columns=COLUMNS)["run"].nunique() == 2
    assert load(tmp_path, columns=COLUMNS)["run"].nunique() == 2
    with pytest.raises(ValueError, match="expected a table, whose columns they are, got 'gepa'"):
        load(path, "gepa", columns=COLUMNS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({**COLUMNS, "runs": "trial"}, "unknown column 'runs'; did you mean 'run'?"),
        ({**COLUMNS, "colour": "trial"}, "unknown column 'colour'; expected names among"),
        ({**COLUMNS, "run": "trail"}, "expected a column 'trail'.*did you mean 'trial'?"),
        ({**COLUMNS, "run": []}, "expected for 'run' the name of a column of the file"),
        ({**COLUMNS, "run": 3}, "expected for 'run' the name of a column of the file"),
    ],
)
def test_a_name_that_is_no_column_is_refused(tmp_path, columns, message):
    path = tmp_path / "a.csv"
    path.write_text(OTHER)
    with pytest.raises(ValueError, match=message):
        table.read(path, columns=columns)


def test_what_lacks_a_column_says_which_there_are_and_how_to_name_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(OTHER)
    with pytest.raises(LogFormatError, match="found 'trial', 'step', 'score'") as caught:
        table_of(path, {})
    assert "--columns run=trial,order=step,fitness=score -o FOLDER" in str(caught.value)
    assert f"replay.importers.load({str(path)!r}, columns={COLUMNS})" in str(caught.value)
    assert "fitness=COLUMN" in what_to_name(path, ["run", "order", "colour"])
    assert "fitness=child_fitness" in what_to_name(path, ["run", "order", "child_fitness"])


def test_names_that_look_like_ours_are_found():
    names = ["run_id", "Run ID", "runs", "runtime", "trial", "seconds", "trials", "prune"]
    assert close_to("run", names) == ["run_id", "Run ID", "runs", "trial", "trials"]
    assert ours_of(["Run", "run", "ORDER"], {}) == {"run": ["run"], "order": ["ORDER"]}
    assert ours_of(["Run", "RUN"], {}) == {}  # which of them is not known
    assert all(each.startswith(".") for each in ENDINGS)


def test_several_runs_without_a_name_are_said(tmp_path):
    path = tmp_path / "a.csv"
    for name, message in (
        ("run_id", "'run_id' may name the runs: if so, pass columns={'run': 'run_id'}"),
        ("colour", "numbers of 'order' stand there several times"),
    ):
        path.write_text(PLAIN.replace("run", name))
        with pytest.warns(UserWarning, match=re.escape(message)):
            assert len(table.read(path)) == 1
    path.write_text("order,fitness,trial\n1,0.1,1\n2,0.2,2\n")  # a number of its own each
    assert len(table.read(path)) == 1


def test_a_row_that_is_too_short_is_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("run,order,fitness\na,1,0.1\na,2\na,3\n")
    with pytest.warns(UserWarning, match=r"a\.csv:3 and 1 more: fewer than 3 cells"):
        [(_, best)] = runs_of(path)
    assert best == [0.1, 0.1, 0.1]
    path.write_text("run,order,fitness\na,1,0.1,\n")  # an empty cell at the end is no other
    assert len(runs_of(path)) == 1


@pytest.mark.parametrize("above", ["# exported on Monday", "sep=,"])
def test_a_line_above_the_names_of_the_columns_is_to_be_deleted(tmp_path, above):
    path = tmp_path / "a.csv"
    path.write_text(f"{above}\n{PLAIN}")
    with pytest.raises(LogFormatError, match="delete what stands above the names"):
        table.read(path)
    path.write_text(f"{PLAIN}c,1,0.1,more\n")
    with pytest.raises(LogFormatError, match="a text that holds ',' is written in quotes"):
        table.read(path)


def test_a_row_without_its_order_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("run,order,fitness\na,1,0.1\na,,0.2\n")
    with pytest.raises(LogFormatError, match=r"a\.csv:3: expected a number in column 'order'"):
        table.read(path)


def test_gaps_between_generations_are_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("run,generation,fitness\na,0,.1\na,1,.2\na,4,.5\nb,1,.5\nb,1,.5\nb,3,.5\n")
    match = "2 of 2 runs lack rows of generations, such as run 'a' of generations 2, 3: 4 failed"
    with pytest.warns(UserWarning, match=match):
        assert len(table.read(path)[0].generations) == 4
    path.write_text("generation,fitness\n0,.1\n1,.2\n3,.5\n")
    match = "run 'a' has no row of generation 2: 1 failed call is counted in their place"
    with pytest.warns(UserWarning, match=match):
        table.read(path)


@pytest.mark.parametrize(
    ("text", "encoding", "message"),
    [
        ("", "utf-8", "expected columns 'generation' (or 'order') and 'fitness'"),
        ("\n\n", "utf-8", "found none"),
        (PLAIN, "utf-16", "it is UTF-16; save it as UTF-8"),
    ],
)
def test_a_csv_that_cannot_be_read_is_called_a_table(tmp_path, text, encoding, message):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding=encoding)
    for ask in (load, detect, replay.load):
        with pytest.raises(LogFormatError, match=re.escape(message)):
            ask(path)


def test_what_is_no_table_has_no_header(tmp_path):
    path = tmp_path / "a.jsonl"
    for text in ("nothing", "[1, 2]", "3"):
        path.write_text(text)
        assert header_of(path) is None
