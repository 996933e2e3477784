"""`replay.load` of a folder of any known tool: the runs, and a message that says what was read."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from foreign_samples import write_codeevolve, write_openevolve, write_paper, write_shinka
from samples import write_sample

import replay
from evo.logs.journal import LogError
from replay import importers
from replay.importers import anything
from replay.importers.anything import find_logs, find_whole, load, load_tables
from replay.importers.following import places
from replay.logs.frames import ReplayWarning

SAMPLES = Path(__file__).parents[3] / "logs" / "samples"
OF_TWO_TASKS = pytest.mark.filterwarnings("ignore:.*do not say what task they are of")


def write_gepa(folder):
    shutil.copytree(SAMPLES / "gepa-1", folder, dirs_exist_ok=True)


def write_table(folder):
    (folder / "calls.csv").write_text("generation,fitness,island\n0,0.1,0\n1,0.3,2\n2,,1\n")


TOOLS = {
    "paper": write_paper,
    "openevolve": write_openevolve,
    "shinkaevolve": write_shinka,
    "codeevolve": write_codeevolve,
    "gepa": write_gepa,
    "table": write_table,
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_folder_of_a_known_tool_is_read_and_said(tmp_path, name):
    folder = tmp_path / "theirs"
    folder.mkdir()
    TOOLS[name](folder)
    runs = replay.importers.read(folder)
    with pytest.warns(ReplayWarning, match=rf"read {len(runs)} runs? of {name}"):
        frame = replay.load(folder)
    assert frame["run"].nunique() == len(runs)
    own = replay.importers.load(folder)
    assert frame["best_fitness"].tolist() == own["best_fitness"].tolist()
    with pytest.warns(ReplayWarning, match=f"of {name}"):
        assert len(replay.children(folder)) == sum(len(run.children) for run in runs)


def test_a_run_that_has_just_begun_is_left_out_beside_others(tmp_path):
    write_openevolve(tmp_path / "done")
    logs = tmp_path / "begun" / "logs"
    logs.mkdir(parents=True)
    (logs / "openevolve_1.log").write_text("2026 - INFO - Starting the process pool\n")
    with (
        pytest.warns(ReplayWarning, match="read 1 run of openevolve"),
        pytest.warns(UserWarning, match="begun: holds no call and no program"),
    ):
        frame = replay.load(tmp_path)
    assert [*frame["run"].unique()] == ["done"]
    with pytest.warns(UserWarning, match=r"left out: .*begun: holds no call"):
        assert [run.name for run in importers.read(tmp_path)] == ["done"]
    for read in (replay.load, importers.read):
        with pytest.raises(LogError, match=r"begun: holds no call and no program of OpenEvolve$"):
            read(tmp_path / "begun")


def test_folders_of_one_tool_are_announced_once(tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        write_openevolve(folder)
    with pytest.warns(ReplayWarning) as said:
        replay.load(folders)
    assert len(said) == 1
    assert f"{folders[0]} and 1 more: read" in str(said[0].message)


def test_a_folder_of_two_tools_names_both(tmp_path):
    for name in ("openevolve", "shinkaevolve"):
        (tmp_path / name).mkdir()
        TOOLS[name](tmp_path / name)
    with pytest.warns(ReplayWarning, match="read 2 runs of openevolve and shinkaevolve"):
        assert replay.load(tmp_path)["run"].nunique() == 2


@pytest.mark.parametrize("name", ["calls.jsonl", "calls.csv", "evolution_trace.jsonl"])
def test_a_single_file_of_another_tool_is_read_whatever_its_name_ends_in(tmp_path, name):
    rows = [{"generation": 0, "fitness": 0.1}, {"generation": 1, "fitness": 0.3}]
    table = "generation,fitness\n0,0.1\n1,0.3\n" if name.endswith("csv") else ""
    trace = {
        "iteration": 1, "parent_id": "a", "child_id": "b",
        "parent_metrics": {"combined_score": 0.1}, "child_metrics": {"combined_score": 0.3},
    }  # fmt: skip
    lines = [trace] if name.startswith("evolution") else rows
    (tmp_path / name).write_text(table or "".join(json.dumps(each) + "\n" for each in lines))
    with pytest.warns(ReplayWarning, match="read 1 run of"):
        assert replay.load(tmp_path / name)["best_fitness"].tolist() == [0.1, 0.3]


def test_what_stands_beside_our_logs_is_named_and_left_out(tmp_path):
    write_sample(tmp_path / "a.jsonl", generations=2, children=2)
    (tmp_path / "notes.csv").write_text("colour,size\nred,1\n")
    assert replay.load(tmp_path).attrs["skipped"] == []
    write_table(tmp_path)
    with pytest.warns(UserWarning, match="1 of 2 logs were left out: .*runs of table beside logs"):
        frame = replay.load(tmp_path)
    assert frame["run"].unique().tolist() == ["a"]
    write_openevolve(tmp_path / "theirs")
    with pytest.warns(UserWarning, match="`replay import openevolve .*theirs") as said:
        assert len(replay.load(tmp_path).attrs["skipped"]) == 2
    assert "evolution_trace.jsonl" not in str(said[0].message)
    assert "calls.csv: runs of table" in str(said[0].message)
    (tmp_path / "calls.csv").unlink()
    with pytest.warns(ReplayWarning, match="read 1 run of openevolve"):
        both = replay.load(tmp_path / "a.jsonl", tmp_path / "theirs")
    assert both["run"].nunique() == 2


def test_what_an_engine_wrote_beside_its_log_is_passed_over(tmp_path):
    write_sample(tmp_path / "a.jsonl", generations=2, children=2)
    write_openevolve(tmp_path / "a" / "output")
    (tmp_path / "a" / "gate.jsonl").write_text("{}")
    assert replay.load(tmp_path).attrs["skipped"] == []


def test_a_table_that_cannot_be_read_beside_one_that_can_is_named(tmp_path):
    write_table(tmp_path)
    (tmp_path / "mine.csv").write_text("trial,step,score\na,1,0.5\n")
    with pytest.warns(UserWarning, match="left out|read 1 run") as said:
        frame = replay.load(tmp_path)
    assert frame["run"].unique().tolist() == ["calls"]
    words = "\n".join(str(each.message) for each in said)
    assert "mine.csv: expected columns 'generation' (or 'order') and 'fitness'" in words
    assert [path for path, _ in frame.attrs["skipped"]] == [str(tmp_path / "mine.csv")]


@pytest.mark.parametrize("name", ["mine.csv", "mine.jsonl"])
def test_a_table_of_other_columns_says_how_to_name_them(tmp_path, name):
    text = "trial,step,score\na,1,0.5\n"
    if name.endswith("jsonl"):
        text = '{"trial": "a", "step": 1, "score": 0.5}\n'
    (tmp_path / name).write_text(text)
    message = "found 'trial', 'step', 'score'.*--columns run=trial,order=step,fitness=score"
    for source in (tmp_path / name, str(tmp_path / name)):
        with pytest.raises(LogError, match=message):
            replay.load(source)
        with pytest.raises(LogError, match=message):
            replay.importers.load(source)
    if name.endswith("csv"):
        with pytest.raises(LogError, match=f"no log in this folder.*{message}"):
            replay.load(tmp_path)


def test_a_frame_is_answered_with_what_to_do(tmp_path):
    write_sample(tmp_path / "a.jsonl")
    frame = replay.load(tmp_path / "a.jsonl")
    with pytest.raises(TypeError, match=r"a DataFrame of replay\.load, which is loaded already"):
        replay.load(frame)
    with pytest.raises(TypeError, match=r"frame\.to_csv\('calls\.csv', index=False\)"):
        replay.load(frame[["run"]])
    for ask in (replay.importers.load, replay.importers.read, replay.importers.detect):
        with pytest.raises(TypeError, match="got a DataFrame; a table of calls is read"):
            ask(frame[["run"]])


def test_a_log_that_ended_with_its_process_says_so(tmp_path):
    write_table(tmp_path)
    with pytest.warns(ReplayWarning):
        [source] = replay.load(tmp_path)["source"].unique()
    Path(source).unlink()
    with pytest.raises(LogError, match="of another tool's runs by the process that read them"):
        replay.children(source)


def test_a_folder_that_nobody_knows_is_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(LogError, match="no log in this folder"):
        replay.load(tmp_path)


@pytest.mark.parametrize("name", ["openevolve-1", "shinkaevolve-1", "table"])
def test_children_say_which_island_made_them(tmp_path, name):
    write_table(tmp_path)
    place = tmp_path if name == "table" else SAMPLES / name
    stated = {child.island for run in replay.importers.read(place) for child in run.children}
    with pytest.warns(ReplayWarning, match="read 1 run of"):
        found = replay.children(place)["island"].dropna()
    assert set(found) == stated - {None}
    assert len(set(found)) > 1


@pytest.fixture
def flat(tmp_path):
    """A folder that two tools have written into, side by side."""
    for name in ("gepa-1", "openevolve-1"):
        shutil.copytree(SAMPLES / name, tmp_path / "flat", dirs_exist_ok=True)
    return tmp_path / "flat"


def runs_by_tool(frame):
    return dict(zip(frame["tool"], frame["run"], strict=True))


@OF_TWO_TASKS
@pytest.mark.filterwarnings("ignore:.*which lack")
def test_a_folder_that_two_tools_share_holds_the_runs_of_both(flat):
    tables = load_tables(flat, progress=False)
    assert runs_by_tool(tables.runs) == {"GEPA": "gepa", "OpenEvolve": "openevolve"}
    assert importers.kinds(flat) == ["gepa", "openevolve"]
    [whole] = {path.parent for path in find_whole(flat)}
    assert {each.stem for each in whole.iterdir()} == {"gepa", "openevolve"}


@OF_TWO_TASKS
def test_a_run_in_a_folder_of_another_run_is_one_of_its_own(tmp_path):
    shutil.copytree(SAMPLES / "gepa-1", tmp_path / "outer")
    shutil.copytree(SAMPLES / "openevolve-1", tmp_path / "outer" / "inner")
    with pytest.warns(ReplayWarning, match="read 2 runs"):
        tables = load_tables(tmp_path / "outer", progress=False)
    assert runs_by_tool(tables.runs) == {"GEPA": "gepa", "OpenEvolve": "inner"}
    assert [*places(tmp_path)] == [
        ("gepa", tmp_path / "outer"),
        ("openevolve", tmp_path / "outer" / "inner"),
    ]


def test_all_tools_beside_logs_of_evo_are_named(flat):
    shutil.copytree(SAMPLES / "shinkaevolve-1", flat / "shinka")
    write_sample(flat / "ours.jsonl")
    with pytest.warns(UserWarning, match="runs of gepa and openevolve beside.*import auto") as told:
        find_logs(flat)
    assert "runs of shinkaevolve beside" in str(told[0].message)


@pytest.mark.parametrize("name", ["gepa-1", "openevolve-1", "shinkaevolve-1"])
def test_the_folders_of_a_run_are_no_runs_of_their_own(name):
    assert [place for _, place in places(SAMPLES / name)] == [SAMPLES / name]
    assert len(importers.read(SAMPLES / name)) == 1


@OF_TWO_TASKS
@pytest.mark.filterwarnings("ignore:.*which lack")
def test_what_is_damaged_of_another_tool_is_an_error_or_left_out(flat):
    cut = flat.with_name("cut")
    shutil.copytree(SAMPLES / "gepa-1", cut)
    (cut / "gepa_state.bin").write_bytes((cut / "gepa_state.bin").read_bytes()[:2000])
    for sources in ([flat.parent], [cut, flat]):
        with pytest.raises(
            LogError, match=r"gepa_state.bin: not a readable pickle: \w.*strict=False"
        ):
            load_tables(*sources, progress=False)
        with pytest.warns(UserWarning, match="1 of 3 logs were left out: .*cut"):
            assert len(load_tables(*sources, strict=False, progress=False).runs) == 2
    with pytest.raises(LogError, match=r"none of 1 logs can be read.*gepa_state.bin"):
        load_tables(cut, strict=False, progress=False)
    found = find_logs(flat)
    assert {each.name for each in map(anything.whole, found)} == {each.name for each in found}


@pytest.mark.filterwarnings("ignore:.*which lack")
def test_a_damaged_file_among_whole_ones_is_named_once(tmp_path):
    write_paper(tmp_path)
    [first, *_] = sorted(tmp_path.rglob("*.json"))
    cut = first.with_name(first.name.replace("seed", "seed9"))
    cut.write_text(first.read_text()[:200])
    with pytest.raises(LogError, match=f"^{cut}: not JSON"):
        load(tmp_path, progress=False)
    with pytest.warns(UserWarning, match=f"left out: {cut}: not JSON"):
        whole = load(tmp_path, strict=False, progress=False)
    cut.unlink()
    pd.testing.assert_frame_equal(
        whole.drop(columns="source"), load(tmp_path, progress=False).drop(columns="source")
    )


def test_a_fitness_beyond_statistics_is_refused_in_the_tools_own_file(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("run,order,fitness\na,1,0.5\na,2,1e308\n")
    shutil.copytree(SAMPLES / "openevolve-1", tmp_path / "tool")
    [program, *_] = (tmp_path / "tool").glob("checkpoints/*/programs/*.json")
    data = json.loads(program.read_text())
    program.write_text(json.dumps(data | {"metrics": {"combined_score": 1e300}}))
    for source, where in ((table, f"{table}:3"), (tmp_path / "tool", program)):
        for read in (importers.read, load, importers.load):
            with pytest.raises(LogError, match=f"^{where}: a fitness of 1e.*statistics"):
                read(source)


def test_an_error_about_an_imported_log_names_where_it_is_from(tmp_path, monkeypatch):
    table = tmp_path / "table.csv"
    table.write_text("run,order,fitness\na,1,0.5\nb,1,0.5\n")

    def torn(path, name):
        raise LogError(f"{path}:3: torn")

    monkeypatch.setattr("replay.logs.tables.read_run", torn)
    with pytest.warns(ReplayWarning), pytest.raises(LogError, match=f"^{table}, run a: torn"):
        load(table, progress=False)
