"""A run as one page: every text of every child, as far as they fit."""

import base64
import contextlib
import gzip
import json
import re

import msgspec
import pytest
from explored import NASTY
from odd_logs import write
from samples import sample_child, sample_header, sample_lines

import replay
from evo.logs.records import Evaluation
from replay.explorers import run_text as texts
from replay.explorers.run_arrays import run_arrays
from replay.explorers.run_data import look_at, run_words
from replay.explorers.run_file import _fitting, _generations, run_file
from replay.markup import clean


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


@pytest.mark.parametrize("room", [0, -1])
def test_a_page_may_have_exactly_as_many_bytes_as_are_allowed(browser, room):
    data = browser._view.data
    size = sum(map(len, dict(_generations(data, ())).values()))
    missing, parts = _fitting(data, size + room)
    assert missing == ("" if room == 0 else "the replies")
    assert parts.keys() == {str(generation) for generation in range(7)}


def test_a_program_whose_construction_the_log_does_not_keep_says_why_nothing_is_drawn(tmp_path):
    points = [[0.1 * x, 0.2 * y] for x in range(4) for y in range(4)]
    drawn, bare = (
        msgspec.structs.replace(sample_child(1, k, 0.5 + 0.1 * k), value=value)
        for k, value in enumerate((points, None))
    )
    path = write(tmp_path / "a.jsonl", sample_header(2), sample_lines()[2], drawn, bare)
    with contextlib.closing(replay.browse(path)) as shown:
        found = unpacked(shown.save(tmp_path / "run.html").read_text())
    assert [name for name, each in found.items() if "chart" in each["drawing"]] == ["1-0"]
    assert "keeps no construction" in found["1-1"]["drawing"]["reason"]
    [panel] = found["1-0"]["drawing"]["chart"]["panels"]
    assert len(panel["marks"][-1]["x"]) == 16


def test_the_name_and_the_words_of_a_run_are_text(browser):
    data = browser._view.data
    run = run_arrays(data.log, "<b>") | {"label": "x"}
    page = run_file(data, run, words="<i>", picture=b"png", at=[0, 0])
    assert "<b>" not in page.split("<script")[0]
    assert "&lt;b&gt;" in page
    assert "&lt;i&gt;" in page
    assert base64.b64encode(b"png").decode() in page
