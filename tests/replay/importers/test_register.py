"""A format of one's own, with islands, is read and recognised like the shipped ones."""

import json

import pytest

import evo
import replay
from evo.logs.records import Model
from evo.plugins import _points
from replay import importers
from replay.cli.entry import main
from replay.importers import assemble, born, judged, parse_file
from replay.logs.frames import ReplayWarning


def recognise(path):
    return path.is_file() and path.name.endswith(".islands.json")


def read(path):
    rows = parse_file(path, list[dict[str, float]])
    generations = [
        [
            born(number, judged(row["score"]), island=int(row["island"]), index=int(row["island"]))
            for row in rows
            if row["step"] == number
        ]
        for number in range(1, 1 + max(int(row["step"]) for row in rows))
    ]
    return [
        assemble(
            path, "mine", name=path.name.partition(".")[0], children=generations, initial=None,
            lost=["usage"], model=Model(name="theirs"), n=2,
        )
    ]  # fmt: skip


@pytest.fixture
def own(monkeypatch):
    monkeypatch.setattr(importers, "IMPORTERS", dict(importers.IMPORTERS))
    monkeypatch.setattr(importers, "_RECOGNISED", dict(importers._RECOGNISED))
    importers.register("mine", read, recognise)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "theirs").mkdir()
    for name in "ab":
        rows = [
            {"step": step, "island": island, "score": step / 10 + island / 100}
            for step in range(1, 5)
            for island in range(2)
        ]
        (tmp_path / "theirs" / f"{name}.islands.json").write_text(json.dumps(rows))
    return tmp_path / "theirs"


@pytest.mark.usefixtures("own")
def test_it_is_recognised_wherever_the_shipped_formats_are(folder, tmp_path, capsys):
    path = folder / "a.islands.json"
    assert importers.detect(path) == importers.kind(path) == "mine"
    frame = importers.load(folder)
    assert frame["run"].nunique() == 2
    assert frame.groupby("run")["best_fitness"].last().tolist() == pytest.approx([0.41, 0.41])
    output = tmp_path / "out"
    assert main(["import", "auto", str(folder), "-o", str(output)]) == 0
    for name in "ab":
        log = evo.read_log(output / f"{name}.islands.jsonl")
        assert [child.island for child in log.outcomes] == [0, 1] * 4


@pytest.mark.usefixtures("own")
def test_a_format_can_be_registered_again_but_not_in_place_of_a_shipped_one():
    importers.register("mine", read, recognise)
    assert list(importers._RECOGNISED).count("mine") == 1
    for taken in ("openevolve", "evo", "auto", "", " "):
        with pytest.raises(ValueError, match="name: expected one that is none of"):
            importers.register(taken, read, recognise)


@pytest.mark.usefixtures("own")
def test_a_format_that_is_taken_out_of_the_table_is_recognised_no_more(folder):
    importers.IMPORTERS.pop("mine")
    with pytest.raises(importers.LogFormatError, match="not recognised"):
        importers.detect(folder / "a.islands.json")


@pytest.mark.usefixtures("own")
def test_what_is_no_function_is_refused_where_it_is_registered():
    for functions in ((3, recognise), (read, None)):
        with pytest.raises(TypeError, match="expected a function of a path, got"):
            importers.register("other", *functions)
    assert "other" not in importers.IMPORTERS
    with pytest.raises(TypeError, match="name: expected a text, got 3"):
        importers.register(3, read, recognise)


@pytest.mark.usefixtures("own")
def test_a_recogniser_that_raises_is_named_and_keeps_nothing_else_from_being_read(folder):
    importers.register("broken", read, lambda path: {}["key"])
    with pytest.warns(RuntimeWarning, match="importer 'broken' recognises nothing.* KeyError"):
        assert importers.load(folder)["run"].nunique() == 2


@pytest.mark.parametrize(
    ("returns", "error", "message"),
    [
        (lambda path: None, TypeError, "importer 'mine': expected a list of runs, .* got None"),
        (lambda path: read(path)[0], TypeError, "expected a list of runs, .* got Imported"),
        (lambda path: [{"a": 1}], TypeError, "expected a list of runs, .* got .{'a': 1}"),
        (lambda path: read(path) * 2, ValueError, "importer 'mine' calls several runs 'a'; give"),
        (lambda path: 1 / 0, ValueError, "the importer 'mine' failed: ZeroDivisionError"),
        (lambda path: int("x"), ValueError, "the importer 'mine' failed: ValueError: invalid lit"),
    ],
)
@pytest.mark.usefixtures("own")
def test_an_importer_that_fails_or_returns_no_runs_is_named(folder, returns, error, message):
    importers.register("mine", returns, recognise)
    with pytest.raises(error, match=message):
        replay.load(folder / "a.islands.json", progress=False)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"name": 3}, TypeError, "name: expected a text, got 3"),
        ({"lost": "tokens"}, TypeError, "lost: expected a list of texts, got the text 'tokens'"),
        ({"n": 0}, ValueError, "n: expected at least 1 child in a generation, got 0"),
        ({"seconds": [1.0]}, ValueError, "seconds: expected a number or None for each of 2 gen"),
    ],
)
def test_what_is_put_together_wrongly_is_named(tmp_path, given, error, message):
    children = [[born(number, judged(0.5))] for number in (1, 2)]
    settings = {"name": "a", "children": children, "initial": None, "lost": [], **given}
    with pytest.raises(error, match=message):
        assemble(tmp_path, "mine", model=Model(name="m"), **settings)


def test_children_are_given_by_generation(tmp_path):
    child = born(1, judged(0.5))
    with pytest.raises(TypeError, match="children: expected a list of children for each generat"):
        assemble(
            tmp_path, "mine", name="a", children=[child], initial=None, lost=[],
            model=Model(name="m"),
        )  # fmt: skip


MODULE = """
from replay import importers

def recognises(path):
    return path.suffix == ".theirs"

def read(path):
    born, judged = importers.born, importers.judged
    [fitness] = path.read_text().split()
    return [
        importers.assemble(
            path, "theirs", name=path.stem, initial=None, lost=["all else"],
            children=[[born(1, judged(float(fitness)))]], model=evo_model,
        )
    ]

import evo
evo_model = evo.Model("m")
named = lambda path: read(path)
named.recognises = lambda path: path.suffix == ".named"
def silent(path):
    return read(path)
"""
ENTRIES = """
[replay.importers]
theirs = their_importer:{module}
named = their_importer:named
silent = their_importer:silent
"""


def test_what_a_package_adds_is_recognised_by_what_its_entry_states(tmp_path, monkeypatch, capsys):
    (tmp_path / "their_importer.py").write_text(MODULE)
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES.replace(":{module}", ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    # One that was registered here and taken out again does not stand in the package's way.
    monkeypatch.setitem(importers._RECOGNISED, "theirs", lambda path: False)
    _points.cache_clear()
    try:
        for ending, name in (("theirs", "theirs"), ("named", "named")):
            path = tmp_path / "runs" / f"a.{ending}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("0.5")
            assert importers.detect(path) == importers.kind(path) == name
            assert importers.load(path)["best_fitness"].iloc[-1] == 0.5
            with pytest.warns(ReplayWarning, match=f"read 1 run of {name}"):
                assert replay.load(path)["best_fitness"].iloc[-1] == 0.5
        assert importers.load(path.parent)["run"].nunique() == 2
        assert main(["import", "auto", str(path.parent), "-o", str(tmp_path / "out")]) == 0
        (tmp_path / "x.txt").write_text("0.25")
        assert importers.load(tmp_path / "x.txt", "silent")["best_fitness"].iloc[-1] == 0.25
        with pytest.raises(importers.LogFormatError, match=r"one of .*named.*silent.*theirs"):
            importers.detect(tmp_path / "x.txt")
    finally:
        _points.cache_clear()
