"""The run browser: where it goes, what it lists, and that looking runs nothing."""

import random

import msgspec
import numpy as np
import pytest
from explored import went
from matplotlib.backends.backend_agg import FigureCanvasAgg
from odd_logs import odd_logs, write
from samples import sample_child, sample_header, sample_lines

import replay
from evo.logs.constructions import keep_value
from evo.logs.log import read_log
from evo.logs.records import Evaluation, Generation
from replay.explorers.run_browser import HOPS
from replay.explorers.run_data import RunData, look_at
from replay.logs.lineage import program_of
from replay.logs.others import from_here
from replay.markup import counted, difference


def test_it_begins_at_the_best(browser, log):
    assert browser.place == (log.best.generation, log.best.index)
    assert f"fitness {log.best.evaluation.fitness:.6g}" in browser.words
    assert "it became the next parent" in browser.words


def test_hops_visit_everything_of_a_sort_in_order(browser, log):
    every = [(0, 0), *((o.generation, o.index) for o in log.outcomes)]
    improving = [each.best for each in log.generations if each.improved]
    failing = [(o.generation, o.index) for o in log.outcomes if o.evaluation.status != "ok"]
    for to, places in (("child", every), ("improvement", improving), ("failure", failing)):
        browser.choose(generation=0, index=0)
        seen = [browser.place] if to == "child" else []
        while browser.hop(to):
            seen.append(browser.place)
        assert seen == places
        assert "no further" in browser._status.value
        back = [browser.place]
        while browser.hop(to, -1):
            back.append(browser.place)
        assert back == places[::-1]


def test_there_is_a_button_for_every_hop(browser):
    browser.choose(generation=2, index=1)
    buttons = browser.widget.children[2].children
    assert [each.description for each in buttons] == list(HOPS)
    for button, index in zip(buttons[:2], (0, 1), strict=True):
        button.click()
        assert browser.place == (2, index)


def test_going_to_a_point_shows_its_program_and_its_construction(browser, log):
    data = RunData(log)
    for place in random.Random(1).sample(data.places, 8):
        went(browser, place)
        assert browser.place == place
        assert browser._screen.at == list(place)
        assert browser._screen.drawing["at"] == list(place)
        assert browser.words.startswith(look_at(data, place).words)
        assert browser._pages["Program"].value
    browser.controls["generation"].value = 0
    assert browser._screen.at == [0, 0]


def test_the_list_shows_the_lineage_and_finds_texts(browser, log):
    improving = [(0, 0), *(each.best for each in log.generations if each.improved)]
    assert [place for _, place in browser._list.options] == improving
    assert not [label for label, _ in browser._list.options if "└" in label]  # without branches
    assert browser._list.value == browser.place
    browser._list.value = improving[1]
    assert browser.place == improving[1]
    _, added, removed = difference(program_of(log, (0, 0)), log.child(*improving[1]).program)
    said = f"{counted(added, removed)}, against the initial program."
    assert said in browser._status.value  # what it changed is announced
    browser._kind.value = "error"
    failed = [(o.generation, o.index) for o in log.outcomes if o.evaluation.status == "error"]
    assert f"The list shows {len(failed)} programs" in browser._status.value
    assert [place for _, place in browser._list.options if place] == failed
    browser._kind.value = "every program"
    wanted = log.children[5].program.splitlines()[-1]
    browser._search.value = wanted
    found = [place for _, place in browser._list.options]
    assert (log.children[5].generation, log.children[5].index) in found
    assert all(wanted in (c.program or "") for c in log.children
               if (c.generation, c.index) in found)  # fmt: skip
    browser._search.value = "\x00 nowhere"
    assert browser._list.options == (("none", None),)


def test_sliders_go_where_there_is_a_program(browser):
    browser.controls["generation"].value = 0
    assert browser.place == (0, 0)
    assert "initial program" in browser.words
    browser.controls["generation"].value = 3
    browser.controls["index"].value = 3
    assert browser.place == (3, 3)
    assert browser.controls["index"].max == 3


def traced(folder, *, value=None):
    """A log whose only child's program would leave a file behind if anything ran it."""
    trace = folder / "trace"
    program = f"open({str(trace)!r}, 'w').close()\ndef min_max_dist_dim2_16():\n    return []\n"
    good = Evaluation(status="ok", fitness=0.5, metrics={"<b>": 1.0})
    child = msgspec.structs.replace(
        sample_child(1, 0, 0.5), program=program, evaluation=good, value=value
    )
    end = Generation(generation=1, best_fitness=0.5, best=(1, 0), improved=True, seconds=1.0)
    return write(folder / "a.jsonl", sample_header(1), sample_lines()[2], child, end), trace


POINTS = np.random.default_rng(0).random((16, 2)).tolist()


@pytest.mark.parametrize("value", [POINTS, None, [[1.0]], "<script>", [[0.0, -1e300]] * 16])
def test_looking_runs_nothing_and_draws_what_the_log_keeps(tmp_path, value):
    path, trace = traced(tmp_path, value=value)
    browser = replay.browse(path)
    browser.settle()
    browser.save(tmp_path / "view.png")
    figure = eval(browser.code, {"replay": replay})
    follower = replay.follow(path, every=0.02)
    follower.close()
    follower._thread.join(30)
    browser.close()
    assert not trace.exists()
    title = figure.axes[2].get_title(loc="left")
    assert title.startswith("Distance ratio") == (value == POINTS)
    said = " ".join(text.get_text() for text in figure.axes[2].texts).replace("\n", " ")
    if value is None:
        words = f"`evo best --value {from_here(path)}` keeps it beside the log"
        assert "".join(words.split()) in "".join(said.split())  # lines are wrapped to the axes
    elif value != POINTS:
        assert "no picture of points" in said


def test_a_construction_beside_the_log_is_drawn(tmp_path):
    path, trace = traced(tmp_path)
    keep_value(path, read_log(path).best.program, POINTS)
    figure = replay.browse(path).figure()
    assert figure.axes[2].get_title(loc="left").startswith("Distance ratio")
    assert not trace.exists()


def test_odd_logs_give_a_sentence_and_no_traceback(tmp_path):
    paths = list(odd_logs(tmp_path))
    browser = replay.browse(paths)
    for path in paths:
        browser.controls["log"].value = str(path)
        browser.settle()
        assert browser.words
        assert browser.png
        if path.stem == "damaged":
            with pytest.raises(ValueError, match="checksum"):
                read_log(path)
        FigureCanvasAgg(browser.figure()).draw()
    assert "checksum" in browser.words
    browser.controls["log"].value = str(paths[3])
    assert browser.place == (1, 1)
    browser.close()


def test_programs_that_are_not_there_are_named(log):
    with pytest.raises(ValueError, match="generation: expected a value out of 0 to 6, got 7"):
        replay.browse(log, generation=7)


def test_a_failure_opens_on_its_error_and_what_is_ok_on_the_page_before(browser, log):
    titles = list(browser._pages)
    failed = next(o for o in log.outcomes if o.evaluation.status != "ok")
    fine = (log.best.generation, log.best.index)
    browser._tabs.selected_index = titles.index("Prompt")
    browser.choose(generation=failed.generation, index=failed.index)
    assert titles[browser._tabs.selected_index] == "Error"
    browser.choose(generation=fine[0], index=fine[1])
    assert titles[browser._tabs.selected_index] == "Prompt"


def test_failures_are_listed_by_their_message(browser, log):
    browser._kind.value = "failures by message"
    listed = browser._list.options
    failed = [(o.generation, o.index) for o in log.outcomes if o.evaluation.status != "ok"]
    assert sorted(place for _, place in listed) == sorted(failed)
    counts = [int(label.split()[1]) for label, _ in listed if " times " in label]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == len(failed)
