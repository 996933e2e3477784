"""What is known of a run: its programs in order, who descends from whom, and what was asked."""

import html

import evo
from evo.runs import planning
from replay.explorers.run_data import RunData


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
