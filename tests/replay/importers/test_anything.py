"""`replay.load` of a folder of any known tool: the runs, and a message that says what was read."""

import pytest
from foreign_samples import write_codeevolve, write_openevolve, write_paper, write_shinka
from samples import write_sample

import replay
from evo.logs.journal import LogError
from replay.logs.frames import ReplayWarning

TOOLS = {
    "paper": write_paper,
    "openevolve": write_openevolve,
    "shinkaevolve": write_shinka,
    "codeevolve": write_codeevolve,
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


def test_folders_of_one_tool_are_announced_once(tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        write_openevolve(folder)
    with pytest.warns(ReplayWarning) as said:
        replay.load(folders)
    assert len(said) == 1
    assert f"{folders[0]} and 1 more: read" in str(said[0].message)


def test_our_logs_beside_those_of_a_tool_are_read_as_before(tmp_path):
    write_sample(tmp_path / "a.jsonl", generations=2, children=2)
    write_paper(tmp_path)
    assert replay.load(tmp_path)["run"].unique().tolist() == ["a"]


def test_a_folder_that_nobody_knows_is_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(LogError, match="no log in this folder"):
        replay.load(tmp_path)
