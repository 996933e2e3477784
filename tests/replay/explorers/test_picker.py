"""The folder picker: what it lists, what it opens, what it says."""

import pytest

import evo
import replay
from replay import explorers, importers


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    evo.run_many(
        "mmd", seeds=range(3), generations=2, children=2, log_dir=folder / "mine", progress=False
    )
    (folder / "empty").mkdir()
    (folder / "notes.txt").write_text("nothing")
    return folder


@pytest.fixture
def picker(logs):
    made = explorers.pick(logs)
    yield made
    made.close()


def names(picker):
    return [value for _, value in picker.entries.options]


def test_it_lists_folders_and_what_may_hold_runs(picker):
    assert names(picker) == [".", "..", "empty", "mine"]


def test_it_goes_in_and_up(picker):
    picker.entries.value = "mine"
    picker.enter()
    assert len([name for name in names(picker) if name.endswith(".jsonl")]) == 3
    picker._asked.value = "../ (one up)"  # as the page tells of Enter on the list
    assert "mine" in names(picker)
    assert picker._asked.value == ""


def test_what_is_opened_is_the_frame_of_load(picker, logs):
    picker.entries.value = "mine"
    picker.open()
    assert picker.frame.equals(replay.load(logs / "mine"))
    assert picker.path == logs / "mine"
    assert picker._shown.widget.children[0].children  # the first tab is not empty
    assert picker._recent.options[1] == str(logs / "mine")


def test_a_folder_without_runs_is_a_sentence(picker, logs):
    picker.open(logs / "mine")
    picker.entries.value = "empty"
    picker.open()
    assert "no log in this folder" in picker._status.value
    assert picker.path == logs / "mine"  # what was open stays


def test_names_are_text(tmp_path):
    (tmp_path / "<b>x").mkdir()
    picker = explorers.pick(tmp_path / "<b>x")
    assert "<b>x" not in picker.widget.children[0].value
    picker.close()


def test_opening_another_closes_the_first(picker, logs):
    picker.open(logs / "mine")
    first = picker._shown
    picker.open(logs)
    assert first.widget.comm is None
    assert picker._shown.widget.comm is not None


@pytest.mark.filterwarnings("ignore:not carried over")
def test_load_reads_own_and_exported_logs_alike(logs, tmp_path):
    from replay.importers.paper_export import export_paper

    for path in sorted((logs / "mine").glob("*.jsonl")):
        export_paper(evo.read_log(path), tmp_path / "paper")
    assert importers.kind(logs / "mine") == "evo"
    assert importers.kind(tmp_path / "paper") == "paper"
    there = replay.fitness_matrix(importers.load(tmp_path / "paper"))
    own = replay.fitness_matrix(importers.load(logs / "mine"))
    assert there == pytest.approx(own, abs=1e-8)
    with pytest.raises(evo.LogError, match="no such file"):
        importers.load(tmp_path / "absent")
