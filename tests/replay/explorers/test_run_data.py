"""What is known of a run: its programs in order, who descends from whom, and what was asked."""

import html

import msgspec
import numpy as np
import pytest
from odd_logs import write
from samples import sample_child, sample_header, sample_lines

import evo
from evo.logs.inputs import SearchRecord
from evo.logs.log import read_log
from evo.logs.records import Evaluation, Generation, Initial, RunEnd
from evo.runs import planning
from replay.explorers import run_data
from replay.explorers.run_data import RunData, drawing_of, end_words, look_at, run_words, sentence
from replay.logs.others import from_here


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


def judged(number, **how):
    """A child of the first generation with this evaluation."""
    return msgspec.structs.replace(
        sample_child(1, number, None), evaluation=Evaluation(**{"seconds": None, **how})
    )


@pytest.fixture
def data_of(tmp_path):
    """Makes what is known of a run of one generation from its children."""

    def make(*children, header=None, initial=None):
        best = max((c.evaluation.fitness or 0.0, -c.index) for c in children)
        place = (1, -best[1]) if best[0] > 0.1 else (0, 0)
        end = Generation(generation=1, best_fitness=max(best[0], 0.1), best=place,
                         improved=best[0] > 0.1, seconds=1.0)  # fmt: skip
        header = header or sample_header(len(children))
        lines = [header, initial or sample_lines()[2], *children, end]
        return RunData(read_log(write(tmp_path / "a.jsonl", *lines)))

    return make


def test_a_failure_of_an_unknown_kind_is_called_unknown_wherever_it_is_named(data_of):
    data = data_of(*(judged(k, status=None, error="gone") for k in (0, 1)))
    assert data.failures("")[0] == ("1.0  2 times unknown: gone", (1, 0))
    assert data.counts == "2 unknown"
    assert data.table()["status"].tolist() == ["ok", "unknown", "unknown"]
    assert data.find("", "unknown") == [("1.0  unknown", (1, 0)), ("1.1  unknown", (1, 1))]
    view = look_at(data, (1, 0))
    assert view.words.startswith("Child 0 of generation 1: unknown, so it has no fitness.")
    assert view.drawing.reason == "unknown: no construction to draw"


def test_failures_are_counted_by_message_and_found_by_their_texts(data_of):
    data = data_of(
        judged(0, status="error", error="ValueError: a"),
        judged(1, status="timeout"),
        judged(2, status="error", error="ValueError: b"),
        judged(3, status="error", error="ValueError: b"),
        judged(4, status="ok", fitness=0.5),
    )
    labels = [label for label, _ in data.failures("")]
    assert labels[0] == "1.2  2 times error: ValueError: b"
    assert labels[1] == "1.3"
    assert set(labels[2:]) == {"1.0  1 times error: ValueError: a", "1.1  1 times timeout"}
    assert [place for _, place in data.failures("Error: b")] == [(1, 2), (1, 3)]
    assert [place for _, place in data.failures("program 1 1")] == [(1, 1)]
    assert data.failures("nowhere") == []


def test_a_search_lists_so_many_programs_and_no_more(data_of, monkeypatch):
    data = data_of(*(judged(k, status="error", error="boom") for k in range(6)))
    monkeypatch.setattr(run_data, "LISTED", 4)
    assert [place for _, place in data.find("", None)] == [(0, 0), (1, 0), (1, 1), (1, 2)]
    assert len(data.find("boom", "error")) == 4
    assert len(data.failures("")) == 4
    assert data.find("", "timeout") == []
    assert [label for label, _ in data.find("", "ok")] == ["0.0  0.1"]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("Traceback (most recent call last):\n  File x\nValueError: no", "ValueError: no"),
        ("first\nsecond", "first"),
        ("Traceback: a\nlast\n--- stdout ---\nprinted", "last"),
        ("\n\n  only  \n", "only"),
        ("", ""),
        (None, ""),
    ],
)
def test_the_sentence_of_an_error_is_the_last_line_of_a_traceback_else_the_first(error, line):
    assert sentence(error) == line


@pytest.mark.parametrize(
    ("fitness", "said"),
    [
        (0.5, "and gains 0.4; it became the next parent."),
        (0.05, "and loses 0.05."),
        (0.1, "and changes its fitness by 0."),
    ],
)
def test_the_words_say_what_a_child_gains_over_its_parent(data_of, fitness, said):
    data = data_of(judged(0, status="ok", fitness=fitness), judged(1, status="error"))
    assert f"It rewrites the initial program {said}" in look_at(data, (1, 0)).words
    failed = look_at(data, (1, 1)).words
    assert "error, so it has no fitness. It rewrites the initial program. Run: " in failed
    assert "rewrites" not in look_at(data, (0, 0)).words
    assert look_at(data, (0, 0)).words.startswith("The initial program: ok, fitness 0.1.")


def test_nothing_is_gained_over_a_parent_that_has_no_fitness_itself(data_of):
    failed = Initial(evaluation=Evaluation(status="error", error="boom"))
    words = look_at(data_of(judged(0, status="ok", fitness=0.5), initial=failed), (1, 0)).words
    assert "It rewrites the initial program; it became the next parent." in words


def test_of_several_parents_the_first_is_the_one_that_was_rewritten(data_of):
    child = msgspec.structs.replace(judged(1, status="error"), parents=((1, 0), (0, 0)))
    data = data_of(judged(0, status="ok", fitness=0.5), child)
    assert data.parent((1, 1)) == (1, 0)
    assert data.parent((1, 0)) == (0, 0)
    assert data.parent((0, 0)) is None


def test_without_an_initial_program_the_first_child_stands_for_it(tmp_path):
    children = [sample_child(1, k, 0.5) for k in range(2)]
    data = RunData(read_log(write(tmp_path / "a.jsonl", sample_header(2), *children)))
    assert data.places[data.number((0, 0))] == (1, 0)
    assert data.counts == "2 ok"


def test_that_no_child_is_ok_is_said(data_of):
    data = data_of(judged(0, status="error"), judged(1, status="invalid"))
    assert data.counts == "0 ok, 1 invalid, 1 error"
    assert data.counts in run_words(data)


def test_the_best_is_the_best_so_far_and_without_a_fitness_the_last(data_of):
    fine = data_of(judged(0, status="error"), judged(1, status="ok", fitness=0.7))
    assert fine.best == (1, 1)
    assert data_of(judged(0, status="error")).best == (0, 0)
    data = data_of(judged(0, status="error"))
    data.fitness[:] = np.nan
    assert data.best == (1, 0)


def test_a_run_without_children_says_so(tmp_path):
    log = read_log(write(tmp_path / "a.jsonl", *sample_lines()[:3]))
    data = RunData(log)
    assert run_words(data).endswith("T = 0 of N = 3, best fitness 0.1; no children yet.")
    assert data.hop((0, 0), "child", 1) is None
    header, session = sample_lines()[:2]
    empty = read_log(write(tmp_path / "b.jsonl", header, session))
    with pytest.raises(ValueError, match=r"b\.jsonl: no program was evaluated yet"):
        RunData(empty)


def test_a_label_names_what_tells_a_run_from_others(data_of):
    child = judged(0, status="ok", fitness=0.5)
    plain = sample_header(1, seed=3)
    assert data_of(child, header=plain).label == "min_max_distance by sample, seed 3"
    for field, value, label in (
        ("seed", -1, "min_max_distance by sample"),
        ("search", SearchRecord(name="islands"), "min_max_distance by sample, islands, seed 3"),
        ("search", SearchRecord(name="greedy"), "min_max_distance by sample, seed 3"),
    ):
        header = msgspec.structs.replace(plain, **{field: value})
        assert data_of(child, header=header).label == label
    model = msgspec.structs.replace(plain.model, is_llm=False)
    header = msgspec.structs.replace(plain, model=model)
    assert data_of(child, header=header).label == ("min_max_distance by sample, seed 3")


def test_the_next_failure_or_improvement_lies_strictly_on_the_side_that_is_asked_for(data_of):
    data = data_of(
        judged(0, status="error"), judged(1, status="ok", fitness=0.9),
        judged(2, status="error"), judged(3, status="timeout"),
    )  # fmt: skip
    assert data.hop((1, 0), "failure", 1) == (1, 2)
    assert data.hop((1, 2), "failure", -1) == (1, 0)
    assert data.hop((1, 3), "failure", -1) == (1, 2)
    assert data.hop((1, 0), "failure", -1) is None
    assert data.hop((0, 0), "improvement", 1) == (1, 1)
    assert data.hop((1, 1), "improvement", 1) is None


def test_what_is_drawn_of_a_program_is_what_the_log_keeps_or_why_it_keeps_nothing(log, tmp_path):
    fine, failed = Evaluation(status="ok", fitness=0.5), Evaluation(status="timeout")
    assert drawing_of(log, fine, "x = 1", [[0.0, 1.0]]).value == [[0.0, 1.0]]
    late = drawing_of(log, failed, "x = 1", [[0.0, 1.0]])
    assert (late.value, late.reason) == (None, "timeout: no construction to draw")
    none = drawing_of(log, fine, "x = 1", None)
    assert f"evo best --value {from_here(log.path)}" in none.reason
    assert late.pictured
    bare = msgspec.structs.replace(log.header.task, picture="")
    for source, whose in (("evo", "min_max_distance"), ("tool", "an imported log")):
        header = msgspec.structs.replace(log.header, task=bare, source=source)
        path = write(tmp_path / f"{source}.jsonl", header, sample_lines()[2])
        found = drawing_of(read_log(path), fine, "x = 1", [[0.0, 1.0]])
        assert found.reason == f"{whose} has no picture of what a program returns"
        assert (found.pictured, found.value) == (False, None)


def test_a_branch_is_indented_below_its_parent_and_a_line_stays_straight(tmp_path):
    parents = [{0: (0, 0), 1: (0, 0)}, {0: (1, 1), 1: (1, 0)}, {0: (2, 1), 1: (2, 1)}]
    lines = [sample_header(2), sample_lines()[2]]
    for g, of in enumerate(parents, start=1):
        lines += [
            msgspec.structs.replace(sample_child(g, k, 0.1 * g + 0.05 * (1 - k)), parents=(parent,))
            for k, parent in of.items()
        ]
        lines.append(Generation(generation=g, best_fitness=0.1 * g + 0.05, best=(g, 0),
                                improved=True, seconds=1.0))  # fmt: skip
    data = RunData(read_log(write(tmp_path / "a.jsonl", *lines)))
    assert data.best == (3, 0)
    assert data.tree() == [
        ("initial  0.1", (0, 0)),
        ("└ 1.0  0.15", (1, 0)),
        ("└ 2.1  0.2", (2, 1)),
        ("└ 3.0  0.35", (3, 0)),
        ("└ 1.1  0.1", (1, 1)),
    ]


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        ("interrupted", None, "stopped"),
        ("interrupted", "paused", "paused"),
        ("interrupted", "no sandbox today", "interrupted: no sandbox today"),
        ("budget", None, "budget"),
        ("endpoint", "no answer", "endpoint: no answer"),
    ],
)
def test_who_asked_for_an_end_reads_what_was_asked_for(reason, message, words):
    assert end_words(RunEnd(reason=reason, message=message)) == words
