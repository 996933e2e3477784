import base64
import gzip
import html
import json
import random
import re

import msgspec
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from odd_logs import odd_logs, write
from samples import sample_child, sample_header, sample_lines, write_sample

import evo
import replay
from evo.logs.constructions import keep_value
from evo.logs.log import read_log
from evo.logs.maintenance import compact
from evo.logs.records import STATUSES, Child, Evaluation, Generation
from evo.runs import planning
from replay.explorers import run_explorer
from replay.explorers import run_text as texts
from replay.explorers.run_arrays import LOOKS, run_arrays
from replay.explorers.run_browser import HOPS
from replay.explorers.run_data import RunData, look_at, run_words
from replay.explorers.run_file import _generations, run_file
from replay.explorers.run_picture import RunPicture
from replay.logs.lineage import program_of
from replay.markup import clean, counted, difference

NASTY = "<script>alert('x')</script>\n# \u202egnp.exe & \x1b[31m"


@pytest.fixture
def log(tmp_path):
    return read_log(write_sample(tmp_path / "run.jsonl", generations=6, children=4, seed=3))


@pytest.fixture
def browser(log):
    made = replay.browse(log)
    yield made
    made.close()


def went(explorer, place, how="click"):
    """What the browser says once somebody went to a program of the picture."""
    told = {"kind": "at", "generation": place[0], "index": place[1], "how": how, "move": 1}
    explorer._on_message(told)


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


def test_the_browser_gets_every_number_of_the_run_once(browser, log):
    data, drawn = RunData(log), browser._screen.run
    children = drawn["children"]
    assert list(zip(children["generation"], children["index"], strict=True)) == data.places
    known = [None if np.isnan(each) else each for each in data.fitness.tolist()]
    assert children["fitness"] == known
    names = [drawn["statuses"][k][0] if k >= 0 else "ok" for k in children["status"]]
    assert names == [STATUSES[k] for k in data.status.tolist()]
    assert children["better"] == np.flatnonzero(data.improved).tolist()
    parents = [data.places[k] if k >= 0 else None for k in children["parent"]]
    assert parents == [data.parent(place) for place in data.places]
    assert drawn["best"] == log.trajectory.tolist()
    errors = {int(k): drawn["errors"][text] for k, text in children["said"].items()}
    failed = [k for k, place in enumerate(data.places) if names[k] != "ok"]
    assert list(errors) == failed
    for number in failed:
        assert errors[number] in log.child(*data.places[number]).evaluation.error
    went(browser, (1, 0))
    assert browser._screen.run is drawn


def test_moving_draws_nothing_in_the_kernel(browser, monkeypatch):
    def refuse(*args, **settings):
        raise AssertionError("a picture was drawn")

    monkeypatch.setattr(RunPicture, "show", refuse)
    for _ in range(5):
        browser.hop("child", -1)
    went(browser, (1, 1))
    monkeypatch.undo()
    before = browser.png
    browser.hop("child")
    assert browser.png != before


def test_without_anywidget_the_picture_is_an_image(log, monkeypatch):
    monkeypatch.setattr(run_explorer, "_screen", lambda: None)
    made = replay.browse(log)
    made.hop("child", -1)
    made.settle()
    assert made.png == bytes(made._screen.value)
    made.close()


def test_a_saved_page_holds_the_run_and_no_markup_of_a_log(tmp_path):
    failed = Evaluation(status="error", error=NASTY)
    child = msgspec.structs.replace(sample_child(1, 0, None), evaluation=failed)
    path = write(tmp_path / "a.jsonl", sample_header(1), sample_lines()[2], child)
    browser = replay.browse(path)
    page = browser.save(tmp_path / "run.html").read_text()
    assert "<script>alert" not in page
    assert all("<script>alert" not in each["html"] for each in unpacked(page).values())
    assert clean(run_words(browser._view.data)) in page
    browser.close()


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
        words = f"`evo best --value {path}` keeps it beside the log"
        assert "".join(words.split()) in "".join(said.split())  # lines are wrapped to the axes
    elif value != POINTS:
        assert "no picture of points" in said


def test_a_construction_beside_the_log_is_drawn(tmp_path):
    path, trace = traced(tmp_path)
    keep_value(path, read_log(path).best.program, POINTS)
    figure = replay.browse(path).figure()
    assert figure.axes[2].get_title(loc="left").startswith("Distance ratio")
    assert not trace.exists()


def test_texts_of_strangers_stay_texts(tmp_path):
    child = msgspec.structs.replace(
        sample_child(1, 0, None),
        reply=NASTY,
        program=NASTY,
        reasoning=NASTY,
        evaluation=Evaluation(status="error", error=NASTY),
    )
    header = sample_header(1)
    path = write(tmp_path / "a<b>.jsonl", header, sample_lines()[2], child)
    browser = replay.browse(path)
    browser.choose(generation=1, index=0)
    shown = "".join(page.value for page in (*browser._pages.values(), browser._facts))
    shown += browser._words.value + browser._code.value
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "\u202e" not in shown
    assert "⟨U+202E⟩" in shown
    browser.close()
    assert clean("a\tb\r\nc\n") == "a\tb\nc\n"


def test_every_page_says_something_of_every_child(browser, log):
    for outcome in log.outcomes:
        browser.choose(generation=outcome.generation, index=outcome.index)
        assert all(page.value for page in browser._pages.values())
        assert outcome.evaluation.status in browser._facts.value
        child = log.child(outcome.generation, outcome.index)
        assert (child.reply or "no reply") in browser._pages["Reply"].value


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"search": "population", "feedback": True, "inspirations": 2},
        {"draws": 2, "confirm": 2},
        {"advice": 1},
    ],
    ids=["greedy", "population with feedback", "confirmed", "advised"],
)
def test_prompts_are_shown_as_they_were_sent(tmp_path, settings):
    log = evo.run("mmd", generations=3, children=4, seed=2, log=tmp_path / "a.jsonl",
                  progress=False, **settings)  # fmt: skip
    [fork] = evo.fork(log, at=2, generations=4, feedback=True, log_dir=tmp_path / "forks")
    for each in (log, fork):
        browser = replay.browse(each)
        for outcome in each.outcomes:
            browser.choose(generation=outcome.generation, index=outcome.index)
            page = browser._pages["Prompt"].value
            assert "As it was sent" in page
            parents = outcome.parents or [log.generations[outcome.generation - 2].best]
            first = parents[0] if outcome.generation > 1 else (0, 0)
            advised = settings.get("advice") and outcome.generation > 1
            assert ("shows the advice that was given" in page) == bool(advised)
            assert ("initial program" if first == (0, 0) else f"generation {first[0]}") in page
        browser.close()
    told = [texts.prompt(look_at(RunData(fork), (4, k))) for k in range(4)]
    assert any("Its metrics" in page for page in told)


def test_the_prompts_of_a_generation_are_made_again_once(browser, log, monkeypatch):
    made, asked_in = [], planning.asked_in
    monkeypatch.setattr(
        planning,
        "asked_in",
        lambda log, generation: made.append(generation) or asked_in(log, generation),
    )
    for generation in (2, 3, 2):
        for index in range(4):
            browser.choose(generation=generation, index=index)
            assert asked_in(log, generation)[index].messages[-1]["content"].splitlines()[0] in (
                html.unescape(browser._pages["Prompt"].value)
            )
    assert made == [2, 3, 2]


def test_a_compact_log_says_what_it_lacks(log, tmp_path):
    browser = replay.browse(compact(log.path, tmp_path / "small.jsonl.gz"))
    assert "compact" in browser._pages["Diff"].value
    assert "compact" in browser._pages["Reply"].value
    assert browser._view.drawing.reason == (
        "the log is compact: it keeps no constructions and no programs"
    )
    browser.close()


def test_an_imported_log_says_what_it_lacks(tmp_path):
    header = sample_header(2, source="openevolve")
    bare = msgspec.structs.replace(header.task, picture="", files={})
    lines = [msgspec.structs.replace(header, task=bare), *sample_lines(children=2)[2:]]
    browser = replay.browse(write(tmp_path / "a.jsonl", *lines))
    assert "imported" in browser._pages["Diff"].value
    assert "program" in browser._pages["Program"].value
    assert "imported" in browser._view.drawing.reason
    assert browser._screen.drawing["pictured"] is False  # so that the chart has the whole width
    browser.close()


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


def test_very_low_values_do_not_squeeze_the_rest(tmp_path):
    lines = sample_lines(generations=12, children=5)
    low = Evaluation(status="ok", fitness=-1e9)
    position = next(k for k, line in enumerate(lines) if isinstance(line, Child))
    lines[position] = msgspec.structs.replace(lines[position], evaluation=low)
    data = RunData(read_log(write(tmp_path / "a.jsonl", *lines)))
    picture = RunPicture("light")
    picture._set_up(data)
    assert picture._fitness.get_ylim()[0] > -1
    assert np.isfinite(picture._points).all()
    assert "below the axis" in picture._fitness.texts[0].get_text()


def test_every_status_has_a_look():
    assert set(LOOKS) == set(STATUSES) - {"ok"}
    assert len({marker for marker, _ in LOOKS.values()}) == len(LOOKS)


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


def test_the_list_of_an_island_run_holds_the_whole_line_of_the_best(tmp_path):
    log = evo.run(
        "mmd", generations=4, children=4, search="islands", log=tmp_path / "i.jsonl", progress=False
    )
    data = RunData(log)
    places = [place for _, place in data.tree()]
    place = data.best
    while place is not None:
        assert place in places
        place = data.parent(place)


def test_a_place_without_a_program_is_that_of_the_nearest_one(log):
    data = RunData(log)
    for asked, nearest in (
        ((2, 9), (2, 3)),
        ((2, -1), (2, 0)),
        ((99, 1), (6, 1)),
        ((-1, 0), (0, 0)),
        ((0, 3), (0, 0)),
    ):
        assert data.places[data.number(asked)] == nearest


def unpacked(page):
    """What a saved page holds of each child."""
    given = json.loads(base64.b64decode(re.search(r'open\("([^"]+)"\)', page)[1]))
    parts = [
        json.loads(gzip.decompress(base64.b64decode(each))) for each in given["parts"].values()
    ]
    return {name: shown for part in parts for name, shown in part.items()}


def test_a_saved_page_holds_every_text_of_every_child_and_is_small(browser, log, tmp_path):
    path = browser.save(tmp_path / "run.html")
    page = path.read_text()
    children = unpacked(page)
    assert set(children) == {f"{g}-{i}" for g, i in browser._view.data.places}
    for child in log.children:
        shown = children[f"{child.generation}-{child.index}"]["html"]
        assert shown == texts.child(look_at(browser._view.data, (child.generation, child.index)))
        if child.reply is not None:
            assert clean(child.reply[:40]) in shown
    texts_alone = sum(len(each["html"]) for each in children.values())
    assert sum(map(len, dict(_generations(browser._view.data, ())).values())) < 0.6 * texts_alone
    assert "exceed" not in page


def test_a_page_that_would_be_too_large_leaves_replies_out_first_and_says_so(browser):
    data, most = browser._view.data, 20_000_000
    given = {"words": "a run", "picture": b"", "at": [0, 0]}
    run = run_arrays(data.log, "run")
    whole = run_file(data, run, most=most, **given)
    size = sum(map(len, dict(_generations(data, ())).values()))
    less = run_file(data, run, most=size - 1, **given)
    least = run_file(data, run, most=1, **given)
    assert len(whole) > len(less) > len(least)
    assert "Without the replies: with them the page would exceed" in less
    assert "Without all texts but the programs" in least
    heads = [
        {
            head
            for each in unpacked(page).values()
            for head in re.findall("<summary>(.*?)<", each["html"])
        }
        for page in (whole, less, least)
    ]
    assert heads[0] - heads[1] == {"Reply"}
    assert heads[1] - heads[2] == {"Messages", "What it changed"}
    assert "Program" in heads[2]
