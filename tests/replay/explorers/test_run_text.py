"""The texts of a child: each says something, or why there is nothing to say."""

import re

import msgspec
import pytest
from explored import NASTY
from odd_logs import write
from samples import sample_child, sample_header, sample_lines

import evo
import replay
from evo.logs.evaluations import Instance
from evo.logs.log import read_log
from evo.logs.maintenance import compact
from evo.logs.records import Attempt, Evaluation, Model
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


def test_what_another_tool_does_not_state_of_a_child_is_unknown(view_of, tmp_path):
    header = sample_header(1, source="gepa")
    child = msgspec.structs.replace(sample_child(1, 0, 0.5), seed=-1, attempts=())
    data = RunData(read_log(write(tmp_path / "a.jsonl", header, sample_lines()[2], child)))
    shown = re.sub(r"<[^>]*>", " ", texts.facts(look_at(data, (1, 0))))
    assert re.search(r"tokens\s+unknown", shown)
    assert re.search(r"cost\s+unknown", shown)
    assert "seed" not in shown
    ours = re.sub(r"<[^>]*>", " ", texts.facts(view_of()))
    assert re.search(r"tokens\s+\d", ours)
    assert "seed" in ours


@pytest.fixture
def view_of(tmp_path):
    """Makes a view of a program that rewrote another text."""

    def make(before="", after="", model=None, **child):
        header = sample_header(1)
        header = msgspec.structs.replace(header, model=model or header.model)
        task = header.task
        files = {**task.files, task.program_file: before}
        task = msgspec.structs.replace(task, files=files)
        made = msgspec.structs.replace(sample_child(1, 0, 0.5), program=after, **child)
        lines = [msgspec.structs.replace(header, task=task), sample_lines()[2], made]
        return look_at(RunData(read_log(write(tmp_path / "a.jsonl", *lines))), (1, 0))

    return make


def lines_of(count, change=None):
    return "\n".join("x = 'new'" if k == change else f"x = {k}" for k in range(count))


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        ("error", None, "The log holds no message of this failure."),
        (None, None, "The log holds no message of this failure."),
        ("error", "a < b", "a &lt; b"),
        ("ok", None, "The evaluation had nothing to complain of."),
    ],
)
def test_only_of_what_is_ok_it_is_said_that_nothing_was_wrong(view_of, status, error, said):
    fitness = 0.5 if status == "ok" else None
    view = view_of(evaluation=Evaluation(status=status, error=error, fitness=fitness))
    assert said in texts.error(view)
    assert (status or "unknown") in texts.facts(view)


@pytest.mark.parametrize(("count", "gaps"), [(9, 0), (10, 1), (30, 1)])
def test_long_equal_parts_are_folded_and_short_ones_are_shown(view_of, count, gaps):
    view = view_of(lines_of(count, 0), lines_of(count))
    shown = texts.side_by_side(view)
    assert shown.count("equal lines") == gaps
    rows = shown.count("<tr><td")
    assert rows == (count if not gaps else 1 + 3 + 1 + 3)
    if gaps:
        assert f"{count - 1 - 6} equal lines" in shown
    assert shown.count("--minus") == shown.count("--plus") == 1


def test_a_line_that_only_one_side_has_stands_beside_nothing(view_of):
    shown = texts.side_by_side(view_of("a = 1\n", "a = 1\nb = 2\n"))
    assert shown.count("--plus") == 1
    assert "--minus" not in shown


def test_programs_are_compared_only_where_there_are_two_that_are_not_too_long(view_of, monkeypatch):
    same = view_of("a = 1\n", "a = 1\n")
    assert texts.changes(same) == ("The same text as the initial program.", "")
    sentence, shown = texts.changes(view_of("a = 1\n", "a = 2\n"))
    assert sentence == "1 line added, 1 removed, against the initial program."
    assert "a = 2" in re.sub("<[^>]+>", "", shown)
    less, shown = texts.changes(view_of("a = 1\nb = 2\n", "a = 1\n"))
    assert (less, bool(shown)) == ("0 lines added, 1 removed, against the initial program.", True)
    root = look_at(same.data, (0, 0))
    assert "rewrites nothing" in texts.changes(root)[0]
    assert "rewrites nothing" in texts.side_by_side(root)
    monkeypatch.setattr(texts, "MOST_LINES", 3)
    assert "too long to be compared" in texts.side_by_side(view_of(lines_of(4), "x"))
    assert "too long to be compared" not in texts.side_by_side(view_of(lines_of(3), "x"))


def test_of_the_initial_program_it_is_said_that_nobody_was_asked_for_it(view_of):
    root = look_at(view_of().data, (0, 0))
    for page in (texts.prompt, texts.reply, texts.attempts):
        assert "No call was made for the initial program." in page(root)
    assert "seed" not in texts.facts(root)


def test_a_long_text_is_cut_and_the_rest_is_counted(view_of, monkeypatch):
    monkeypatch.setattr(texts, "LONGEST", 10)
    for length, more in ((10, None), (11, 1), (2010, 2000)):
        shown = texts.reply(view_of(reply="r" * length))
        assert shown.count("r" * 10) == 1
        assert ("further characters" in shown) == (more is not None)
        if more:
            assert f"{more:,} further characters are not shown." in shown


def test_reasoning_follows_the_reply_where_the_endpoint_gave_it(view_of):
    assert "Reasoning" not in texts.reply(view_of(reply="said"))
    shown = texts.reply(view_of(reply="said", reasoning="thought"))
    assert shown.index("said") < shown.index("Reasoning") < shown.index("thought")


def test_every_request_states_its_tokens_or_that_they_are_unknown(view_of):
    usage = {"prompt_tokens": 1500, "completion_tokens": 7,
             "prompt_tokens_details": {"cached_tokens": 60}}  # fmt: skip
    attempts = (
        Attempt(status="error", latency=None, error="a < b", http_status=503),
        Attempt(status="ok", latency=0.5, usage=usage, finish_reason="stop", cached=True),
    )
    shown = texts.attempts(view_of(attempts=attempts))
    rows = [re.findall("<td[^>]*>(.*?)</td>", row) for row in shown.split("<tr>")[2:]]
    assert rows[0] == ["1", "error (503)", "unknown", *["unknown"] * 3, "", "a &lt; b"]
    assert rows[1] == [
        "2", "ok (from the response cache)", "0.5", "1,500", "60", "7", "stop", "",
    ]  # fmt: skip
    assert "nothing about the requests" in texts.attempts(view_of(attempts=()))


def test_facts_state_scores_by_instance_and_no_time_that_is_unknown(view_of):
    scores = (Instance(id="a", status="ok", score=0.25), Instance(id="b", status="error"))
    evaluation = Evaluation(
        status="ok", fitness=0.5, metrics={"<m>": 2.0}, instances=scores, seconds=None
    )
    shown = texts.facts(view_of(evaluation=evaluation, attempts=(), kept_out="too similar"))
    cells = re.findall("<td[^>]*>(.*?)</td>", shown)
    table = dict(zip(cells[::2], cells[1::2], strict=True))
    assert (table["instance a"], table["instance b"]) == ("0.25", "error")
    assert (table["&lt;m&gt;"], table["kept out"]) == ("2", "too similar")
    assert table["fitness"] == "0.5"
    timed = Evaluation(status="ok", fitness=0.5, seconds=0.0)
    assert "<td>0 s</td>" in re.sub(" style='[^']*'", "", texts.facts(view_of(evaluation=timed)))
    assert "evaluation" not in table  # its time is unknown


def facts_of(view):
    cells = re.findall("<td[^>]*>(.*?)</td>", texts.facts(view))
    return dict(zip(cells[::2], cells[1::2], strict=True))


def test_tokens_are_known_without_a_price_and_only_an_llm_has_a_cost(view_of):
    whole = (Attempt(status="ok", latency=0.5, usage={"prompt_tokens": 5, "completion_tokens": 2}),)
    priced = facts_of(view_of(attempts=whole))
    assert priced["tokens"] == "7"
    assert priced["cost"].startswith("$0.0000")
    free = facts_of(view_of(attempts=whole, model=Model(name="free")))
    assert (free["tokens"], free["cost"]) == ("7", "unknown")
    offline = facts_of(view_of(attempts=whole, model=Model(name="offline", is_llm=False)))
    assert "cost" not in offline


@pytest.mark.parametrize("status", ["no_reply", "no_program"])
def test_a_program_that_never_was_is_no_text_that_the_log_lost(view_of, status):
    for error, said in (("refused", "refused"), (None, status)):
        view = view_of(after=None, evaluation=Evaluation(status=status, error=error))
        assert f"There is no program: {said}" in texts.program(view)
    assert "The log holds no program." in texts.program(view_of(after=None))


def test_notes_have_a_head_only_where_there_are_some_and_errors_are_open(view_of):
    fine = texts.child(view_of())
    assert "<summary>Notes" not in fine
    assert "<details id='error'>" in fine
    noted = texts.child(view_of(evaluation=Evaluation(status="error", error="e", notes="a < b")))
    assert "<summary>Notes</summary><pre>a &lt; b</pre>" in noted
    assert "<details id='error' open>" in noted
    assert "<summary>Reply" not in texts.child(view_of(), ("Reply",))
