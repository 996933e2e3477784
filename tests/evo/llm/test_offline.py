"""The offline model from inside: its key, chains of steps, failures, word problems, latency."""

from __future__ import annotations

import ast
import gc
import re
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from offline_requests import ENTRY, PARENTS, SEARCH_REPLACE, TAGGED, TOY, ask, showing

from evo.keyed import KeyedStream
from evo.llm.offline.bank import BANKS
from evo.llm.offline.failures import spoil
from evo.llm.offline.formats import difference
from evo.llm.offline.problems import accuracy, read_demands, read_problem, solve
from evo.llm.offline.program import Step, find_bank, parse, read_chain, write_chain
from evo.llm.server import Latency

TASKS = ("cp", "mmd", "ht")
SEEDS = range(100)


def value_of(program, entry):
    names = {"__name__": "program"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(program, "program", "exec"), names)
        return names[entry]()


def runs(program, entry):
    try:
        value_of(program, entry)
    except Exception:
        return False
    return True


# --- programs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bank", BANKS, ids=lambda bank: bank.entries[0])
def test_every_idea_runs_on_every_layout(bank):
    task = next(t for t in TASKS if find_bank(PARENTS[t])[0] is bank)
    chain = read_chain(PARENTS[task])
    draws = KeyedStream(task)
    last = Step(bank.lasts[0].name, bank.lasts[0].draw(draws)) if bank.lasts else None
    for layout in bank.layouts:
        base = replace(chain, layout=Step(layout.name, layout.draw(draws)), base="", last=last)
        for move in bank.moves:
            made = replace(base, moves=(Step(move.name, move.draw(draws)),))
            value_of(write_chain(made, bank), bank.entries[0])
    for idea in bank.lasts:
        made = replace(base, last=Step(idea.name, idea.draw(draws)))
        value_of(write_chain(made, bank), bank.entries[0])


# --- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_spoiled_programs_fail_as_their_name_says(task):
    program, entry = PARENTS[task], ENTRY[task]
    for seed in range(12):
        with pytest.raises(SyntaxError):
            ast.parse(spoil(program, "syntax", KeyedStream(seed)))
        assert not runs(spoil(program, "exception", KeyedStream(seed)), entry)
        wrong = value_of(spoil(program, "shape", KeyedStream(seed)), entry)
        right = value_of(program, entry)
        shapes = [np.shape(part) for part in wrong], [np.shape(part) for part in right]
        assert shapes[0] != shapes[1]
        ast.parse(spoil(program, "infeasible", KeyedStream(seed)))
    assert "while error > 0" in spoil(program, "endless", KeyedStream(0))


# --- formats of other tools -------------------------------------------------------------------


@given(st.lists(st.sampled_from("abc"), min_size=1), st.lists(st.sampled_from("abc"), min_size=1))
def test_a_difference_turns_the_old_text_into_the_new(old, new):
    old_text, new_text = "\n".join(old), "\n".join(new)
    block = difference(old_text, new_text)
    search, replacement = block.split("\n=======\n")
    search = search.removeprefix("<<<<<<< SEARCH\n")
    replacement = replacement.removesuffix("\n>>>>>>> REPLACE")
    places = [k for k in range(len(old_text)) if old_text.startswith(search, k)]
    made = {old_text[:k] + replacement + old_text[k + len(search) :] for k in places}
    assert new_text in made


# --- texts and word problems ------------------------------------------------------------------


PROBLEMS = {
    "How many minutes are there in 3 hours?": ("convert", 180),
    "A rope is 2.5 km long. How long is it in metres?": ("convert", 2500),
    "A train covers 60 km per hour for 3 hours. How far does it go?": ("rate", 180),
    "A pump moves 40 litres per minute for 2 hours. How much is that?": ("rate", 4800),
    "Ann has 12 pears and Bo has 5. How many more pears does Ann have than Bo?": ("compare", 7),
    "48 sweets are shared among 6 children. How many does each get?": ("share", 8),
    "Tom buys 4 boxes of 6 pencils and gives away 5. How many are left?": ("groups", 19),
    "Tom has 12 apples and buys 7 more. How many has he in total?": ("running", 19),
    "Tom has 1,200 coins, loses 150 and finds 20. How many are left?": ("running", 1070),
}


def test_word_problems_of_the_family_are_read_rightly():
    for text, (kind, value) in PROBLEMS.items():
        reading = read_problem(text)
        assert (reading.kind, reading.value) == (kind, pytest.approx(value))


@pytest.mark.parametrize("system", ["", "Check it step by step. Use units. "])
def test_answers_are_as_often_right_as_documented(system):
    system += "End with a line of the form 'Answer: <number>'."
    demands = read_demands(system)
    expected = np.mean([accuracy(read_problem(problem), demands) for problem in PROBLEMS])
    right = [
        solve(problem, system, seed=seed).endswith(f"Answer: {value}")
        for problem, (_, value) in PROBLEMS.items()
        for seed in range(150)
    ]
    error = (expected * (1 - expected) / len(right)) ** 0.5
    assert abs(np.mean(right) - expected) < 4 * error


# --- latency ----------------------------------------------------------------------------------


def test_latency_is_lognormal_and_seeded_by_the_request():
    latency = Latency(median=2.0, sigma=0.5)
    seconds = np.array([latency.seconds(b"%d" % k) for k in range(2000)])
    assert latency.seconds(b"7") == seconds[7]
    assert np.log(seconds).mean() == pytest.approx(np.log(2.0), abs=0.05)
    assert np.log(seconds).std() == pytest.approx(0.5, abs=0.05)
    assert Latency(0.3).seconds(b"x") == pytest.approx(0.3)


# --- formats of other tools


@pytest.mark.parametrize("name", [*TASKS, "toy"])
def test_formats_of_other_tools_carry_the_same_program(name: str) -> None:
    parent, ambiguous = PARENTS.get(name, TOY), 0
    for seed in SEEDS:
        plain = ask(showing(parent), seed=seed)
        if plain.program is None:  # truncation draws differently in each format
            continue
        tagged = ask(showing(parent, system=TAGGED), seed=seed)
        assert re.search(r"^<NAME>.*^<DESCRIPTION>.*^<CODE>\n```python", tagged.text, re.M | re.S)
        assert tagged.program == plain.program
        for system in (SEARCH_REPLACE, SEARCH_REPLACE + "<NAME>"):
            text = ask(showing(parent, system=system), seed=seed).text
            block = re.search(r"<{7} SEARCH\n(.*?)\n={7}\n(.*?)\n>{7} REPLACE", text, re.DOTALL)
            assert block is not None
            assert ("<NAME>" in text) == ("<NAME>" in system)
            old, new = block.groups()
            assert old in parent
            if parent.count(old) == 1:
                assert parent.replace(old, new).rstrip() == plain.program.rstrip()
            else:
                ambiguous += 1
    assert ambiguous < 0.15 * len(SEEDS)


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns while a tree is being made."""

    def give_way(*_: object) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(give_way)
    gc.set_threshold(20)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(give_way)


@pytest.mark.usefixtures("restless")
def test_many_threads_may_parse_at_once() -> None:
    deep = "value = " + "(" * 60 + "1" + " + 1)" * 60
    sources = [f"{deep}\nname_{k} = {k}\n" for k in range(24)]
    ready = threading.Barrier(4)

    def work(first: int) -> int:
        ready.wait()
        return sum(parse(source) is not None for source in sources[first::4])

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == len(sources)
