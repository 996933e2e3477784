"""Controls, the names of what a user explores, and what closes widgets."""

import html
import io
import math
import re
import types

import ipywidgets
import pandas as pd
import pytest
import traitlets
from foreign_samples import write_openevolve
from IPython.core import getipython
from PIL import Image
from samples import write_sample

import replay
from replay import explorers
from replay.explorers.widgets import (
    begin,
    choice,
    close_previous,
    close_tree,
    copyable,
    counter,
    entry,
    flip_book,
    grid,
    name_of,
    naming,
    page_script,
    several,
    short,
    source_of,
    toggles,
)
from replay.logs.others import from_here


def test_the_code_names_the_variable_of_the_user(frame, explorer, monkeypatch):
    named = types.SimpleNamespace(user_ns={"_": frame, "mine": frame})
    monkeypatch.setattr(getipython, "get_ipython", lambda: named)
    assert explorer.code.startswith("replay.explorers.explore_allocation(mine, ")


class Shell:
    """As much of IPython as says which cell runs."""

    def __init__(self):
        self.parent = {}

    def get_parent(self):
        return self.parent

    def run(self, cell, number):
        header = {"msg_id": f"{cell}-{number}"}
        self.parent = {
            "msg_type": "execute_request", "header": header, "metadata": {"cellId": cell},
        }  # fmt: skip


def test_running_a_cell_again_closes_what_it_made_and_nothing_else(frame, monkeypatch):
    from ipywidgets.widgets.widget import _instances

    shell = Shell()
    monkeypatch.setattr(getipython, "get_ipython", lambda: shell)
    made = []
    counts = []
    for number in range(3):
        for cell in ("a", "b"):
            shell.run(cell, number)
            made.append(explorers.explore(frame))
        counts.append(len(_instances))
    assert counts[0] == counts[1] == counts[2]
    for each in made[-2:]:
        each.close()


def loaded(code):
    """The frame that a call loads."""
    return eval(code, {"replay": replay})


@pytest.mark.parametrize("folder", ["", "runs [1]/", "a/b/"])
@pytest.mark.parametrize("count", [1, 3, 4])
def test_the_code_of_a_frame_loads_it_again_wherever_its_logs_are(
    tmp_path, monkeypatch, folder, count
):
    monkeypatch.chdir(tmp_path)
    paths = [f"{folder}r{seed}.jsonl" for seed in range(count)]
    for seed, path in enumerate(paths):
        write_sample(tmp_path / path, seed=seed)
    frame = replay.load(*paths, progress=False)
    code = source_of(frame)
    assert loaded(code)["source"].unique().tolist() == paths
    assert code.count(",") == (count - 1 if count <= 3 else 0)


@pytest.mark.filterwarnings("ignore:.*read 4 runs of openevolve")
def test_folders_of_other_tools_are_named_however_many_there_are(tmp_path):
    folders = [tmp_path / name for name in "abcd"]
    for folder in folders:
        folder.mkdir()
        write_openevolve(folder)
    write_sample(tmp_path / "own.jsonl")
    frame = replay.load(*folders, tmp_path / "own.jsonl")
    code = source_of(frame)
    assert all(repr(from_here(folder)) in code for folder in folders)
    assert loaded(code)["best_fitness"].tolist() == frame["best_fitness"].tolist()


@pytest.mark.parametrize("frame", [
    pd.DataFrame({"run": ["a"]}), pd.DataFrame({"source": ["", "a.jsonl"]}),
    pd.DataFrame({"source": []}),
])  # fmt: skip
def test_a_frame_that_names_no_logs_is_called_frame(frame):
    assert source_of(frame) == "frame"


def test_a_value_is_named_by_its_variable_else_by_what_it_is_made_of(monkeypatch):
    frame = pd.DataFrame({"source": ["a.jsonl"]})
    shell = types.SimpleNamespace(user_ns={"_": frame, "other": frame.copy()})
    monkeypatch.setattr(getipython, "get_ipython", lambda: shell)
    again = naming(frame)
    assert name_of(frame) == again() == "replay.load('a.jsonl')"
    assert name_of(frame, "data") == "data"
    shell.user_ns["mine"] = frame
    assert name_of(frame) == name_of(frame, "data") == again() == "mine"


def fit_nothing(controls, settings):
    """Makes no room."""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tau": math.inf}, "tau: expected a value out of .*, got inf"),
        ({"arms": 9}, "arms: expected a value out of 2 to 5, got 9"),
        ({"kind": "c"}, r"kind: expected a value out of \('a', 'b'\), got 'c'"),
        ({"runs": ["r9"]}, r"runs: expected a value out of .*, got \('r9',\)"),
        ({"z": 1}, "expected settings among tau, arms, kind, runs, got 'z'"),
    ],
)
def test_a_control_begins_only_with_a_value_that_it_has(settings, said):
    controls = {
        "tau": entry("", 0.5, 0.1, tip=""),
        "arms": counter("", 2, 5, tip=""),
        "kind": choice("", ["a", "b"], tip=""),
        "runs": several("", ["r1", "r2"], 2, tip=""),
    }
    with pytest.raises(ValueError, match=said):
        begin(controls, settings, fit_nothing)
    begin(controls, {"tau": 1, "arms": 5, "kind": "b", "runs": ["r2"]}, fit_nothing)
    assert [each.value for each in controls.values()] == [1.0, 5, "b", ("r2",)]
    with pytest.raises(ValueError, match="expected settings among none, got 'z'"):
        begin({}, {"z": 1}, fit_nothing)


def test_room_is_made_before_a_control_gets_its_value():
    controls = {"arms": counter("", 2, 5, tip="")}
    begin(controls, {"arms": 9}, lambda known, now: setattr(known["arms"], "max", now["arms"]))
    assert controls["arms"].value == 9


def test_buttons_are_chosen_in_the_order_of_presses_and_never_too_many():
    made = toggles("Policies", ["a", "b", "c"], most=2)
    one, two, three = made.children[1:]
    assert made.children[0].value == "Policies (up to 2)"
    two.value = True
    one.value = True
    assert made.value == ("b", "a")
    assert [each.disabled for each in (one, two, three)] == [False, False, True]
    two.value = False
    assert made.value == ("a",)
    assert not three.disabled
    made.value = ("c",)  # as a program sets it
    assert [each.value for each in (one, two, three)] == [False, False, True]
    close_tree(made)


def pages(count):
    """Pictures with their words by value."""
    data = io.BytesIO()
    Image.new("RGB", (2, 2)).save(data, "png")
    return {0.5 * k: (data.getvalue(), f"words < {k}") for k in range(count)}


@pytest.mark.parametrize(("now", "at"), [(1.0, 2), (7.0, 0)])
def test_a_flip_book_opens_at_the_value_of_now_or_at_its_beginning(now, at):
    made = flip_book("tau", pages(3), now, lambda *given: None)
    slider, stack = made.children
    assert slider.options == (("0", 0), ("0.5", 1), ("1", 2))
    assert slider.index == stack.selected_index == at
    assert "words &lt; 1" in stack.children[1].children[1].value
    close_tree(made)


def test_a_flip_book_of_its_own_widget_turns_its_trait():
    book = ipywidgets.HTML()
    book.add_traits(at=traitlets.Int(1).tag(sync=True))
    asked = []
    made = flip_book("tau", pages(2), 0.5, lambda *given: asked.append(given) or book)
    assert asked == [([pages(2)[0.0][0]] * 2, ["words < 0", "words < 1"], 1)]
    assert made.children[1] is book
    assert made.link.target == (book, "at")
    close_tree(made)
    assert made.link.comm is None


def test_code_that_is_copied_is_the_code_whatever_signs_it_has():
    code = "mine('<b>', \"x\")"
    shown = copyable(code)
    assert html.unescape(re.search('data-code="([^"]*)"', shown)[1]) == code
    assert "<b>" not in shown


def test_the_script_of_a_page_is_code_without_comments():
    code = html.unescape(re.search('onerror="([^"]*)"', page_script())[1])
    assert "data-replay-live" in code or "replayLive" in code
    assert not any(line.strip().startswith("//") for line in code.splitlines())


def test_a_setting_in_a_file_name_is_letters_digits_and_a_few_signs():
    assert short(("a", "b/c")) == "a+b_c"
    assert short(0.25) == "0.25"
    assert short("../x y") == ".._x_y"


class Open:
    """Something that a cell made."""

    def __init__(self):
        self.closed = 0

    def close(self):
        self.closed += 1


def test_what_one_run_of_a_cell_made_stays_until_the_next_run_and_handlers_close_nothing(
    monkeypatch,
):
    shell = Shell()
    monkeypatch.setattr(getipython, "get_ipython", lambda: shell)
    one, two, three, made_by_handler = (Open() for _ in range(4))
    shell.run("cell", 1)
    close_previous(one)
    close_previous(two)
    for number in (1, 2):
        shell.parent = {"msg_type": "comm_msg", "header": {"msg_id": f"move-{number}"}}
        close_previous(made_by_handler)
    assert [one.closed, two.closed] == [0, 0]
    shell.run("cell", 2)
    close_previous(three)
    assert [each.closed for each in (one, two, three, made_by_handler)] == [1, 1, 0, 0]
    shell.run("cell", 3)
    close_previous(Open())
    assert [each.closed for each in (one, two, three)] == [1, 1, 1]


def test_cells_without_a_number_are_told_apart_by_their_code(monkeypatch):
    shell = Shell()
    monkeypatch.setattr(getipython, "get_ipython", lambda: shell)
    made = [Open() for _ in range(3)]
    for number, (code, each) in enumerate(zip(("x", "y", "x"), made, strict=True)):
        shell.parent = {
            "msg_type": "execute_request", "header": {"msg_id": f"no-cell-{number}"},
            "metadata": {}, "content": {"code": f"explore({code})"},
        }  # fmt: skip
        close_previous(each)
    assert [each.closed for each in made] == [1, 0, 0]


@pytest.mark.filterwarnings("ignore")
def test_the_code_of_an_explorer_names_the_folder_that_lasts(tmp_path):
    write_openevolve(tmp_path / "theirs")
    frame = replay.load(tmp_path / "theirs")
    assert source_of(frame) == f"replay.load({from_here(tmp_path / 'theirs')!r})"


def track(widgets):
    """The least width of the columns that hold these controls."""
    return int(re.search(r"min\((\d+)px", grid(widgets).layout.grid_template_columns)[1])


def test_controls_stand_in_columns_that_hold_the_longest_choice():
    few, many = (choice("Log", [text, "b"], tip="Which") for text in ("a", "x" * 60))
    assert track([few]) == track([]) == 220
    assert track([few, many]) > 6 * 60
    assert track([choice("Log", [("x" * 60, 1)], tip="Which")]) == track([many])
    assert track([several("Log", ["x" * 60], 3, tip="Which")]) == 220  # a line each
