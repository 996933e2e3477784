"""The texts of a child: each says something, or why there is nothing to say."""

import msgspec
import pytest
from explored import NASTY
from odd_logs import write
from samples import sample_child, sample_header, sample_lines

import evo
import replay
from evo.logs.maintenance import compact
from evo.logs.records import Evaluation
from replay.explorers import run_text as texts
from replay.explorers.run_data import RunData, look_at
from replay.markup import clean


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
