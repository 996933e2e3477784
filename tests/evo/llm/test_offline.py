"""The offline model from inside: its key, chains of steps, failures, word problems, latency."""

from __future__ import annotations

import ast
import collections
import functools
import gc
import random
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
from offline_requests import PARENTS, SEARCH_REPLACE, TAGGED, TOY, ask, parses, showing

from evo.keyed import KeyedStream
from evo.llm.offline.bank import BANKS
from evo.llm.offline.edits import edit
from evo.llm.offline.failures import RATES, draw_failure, spoil
from evo.llm.offline.formats import difference, find_parent
from evo.llm.offline.problems import accuracy, find_problem, read_demands, read_problem, solve
from evo.llm.offline.program import Step, find_bank, parse, read_chain, write_chain
from evo.llm.offline.rewrite import MOST_MILLISECONDS, estimate_milliseconds
from evo.llm.server import Latency
from evo.prompt import build_messages
from evo.task import load_task as load_task_anew

load_task = functools.cache(load_task_anew)

TASKS = ("cp", "mmd", "ht")
SEEDS = range(100)


def prompt_for(program, task="mmd", fitness=0.5):
    return build_messages(load_task(task).record, program, fitness)


def child_of(program, seed, task="mmd"):
    return ask(prompt_for(program, task), seed=seed).program


def value_of(program, entry):
    names = {"__name__": "program"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(program, "program", "exec"), names)
        return names[entry]()


def sound(child, entry):
    """Whether a child has a program that returns; those that never would are not tried."""
    return child is not None and "while error > 0" not in child and runs(child, entry)


def runs(program, entry):
    try:
        value_of(program, entry)
    except Exception:
        return False
    return True


# --- a pure function of parent, seed and temperature ------------------------------------------


# --- programs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_programs_stay_short_and_cheap_over_60_generations(task):
    """Every generation goes on from a random sound child: no selection holds the length down."""
    program, entry = PARENTS[task], load_task(task).record.entry[0]
    bank, _ = find_bank(program)
    rng = random.Random(task)
    for _ in range(60):
        children = (child_of(program, rng.randrange(2**31), task) for _ in range(50))
        program = next(child for child in children if sound(child, entry))
        assert len(program) < 9000
        chain = read_chain(program)
        if chain is not None and chain.native:
            assert estimate_milliseconds(chain, bank) <= MOST_MILLISECONDS


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


@pytest.mark.parametrize("task", TASKS)
def test_a_written_chain_is_read_back_as_it_was(task):
    bank, _ = find_bank(PARENTS[task])
    program = PARENTS[task]
    children = [child_of(program, seed, task) for seed in range(60)]
    chains = [chain for child in children if child and (chain := read_chain(child))]
    native = [chain for chain in chains if chain.native]
    assert len(native) > 10
    for chain in native:
        assert read_chain(write_chain(chain, bank)) == chain


def test_wrapping_keeps_what_the_parent_makes():
    for task in TASKS:
        program = PARENTS[task]
        bank, entry = find_bank(program)
        wrapped = write_chain(read_chain(program), bank)
        old, new = value_of(program, entry), value_of(wrapped, entry)
        for a, b in zip(old, new, strict=True):
            np.testing.assert_array_equal(a, b)


@given(st.integers(0, 10**6))
def test_an_edit_gives_python_again(seed):
    source = PARENTS["cp"]
    edited, _ = edit(source, KeyedStream(seed))
    ast.parse(edited)


# --- failures ---------------------------------------------------------------------------------


def test_all_failures_occur_at_their_rates():
    count = collections.Counter(
        draw_failure(KeyedStream(k), temperature=0.6) for k in range(30_000)
    )
    for failure, rate in RATES.items():
        assert abs(count[failure] / 30_000 - rate) < 5 * (rate / 30_000) ** 0.5
    assert count["endless"] > 0


@pytest.mark.parametrize("task", TASKS)
def test_spoiled_programs_fail_as_their_name_says(task):
    program, entry = PARENTS[task], load_task(task).record.entry[0]
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


# --- usage and requests -----------------------------------------------------------------------


# --- formats of other tools -------------------------------------------------------------------


def test_the_parent_is_the_last_block_with_code():
    prompt = "```python\na = 1\n```\n```python\nb = 2\n```\n```python\n# your program\n```\n"
    assert find_parent(prompt).text == "b = 2\n"


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


def test_a_problem_with_a_code_block_is_a_program_to_rewrite():
    assert find_problem("Task\nProblem: 1 + 1\n\nMore") == "1 + 1"
    prompt = "Problem: do better\n```python\nx = 1.5\n```\n"
    replies = [ask([{"role": "user", "content": prompt}], seed=s).text for s in range(20)]
    assert sum("```python" in reply for reply in replies) > 10


# --- latency ----------------------------------------------------------------------------------


def test_latency_is_lognormal_and_seeded_by_the_request():
    latency = Latency(median=2.0, sigma=0.5)
    seconds = np.array([latency.seconds(b"%d" % k) for k in range(2000)])
    assert latency.seconds(b"7") == seconds[7]
    assert np.log(seconds).mean() == pytest.approx(np.log(2.0), abs=0.05)
    assert np.log(seconds).std() == pytest.approx(0.5, abs=0.05)
    assert Latency(0.3).seconds(b"x") == pytest.approx(0.3)


def shape(program: str) -> str:
    """A program's syntax tree without its numbers and operators."""
    tree = ast.dump(ast.parse(program))
    tree = re.sub(r"Constant\(value=[\d.e-]+\)", "number", tree)
    tree = tree.replace("UnaryOp(op=USub(), operand=number)", "number")
    return re.sub(r"\b(Add|Sub|Mult|Div|LtE|GtE|Lt|Gt)\(\)", "sign", tree)


def test_programs_of_other_tasks_are_edited_only() -> None:
    edited = 0
    for seed in range(300):
        program = ask(showing(TOY), seed=seed).program
        if program is None or not parses(program) or re.search("raise|while error", program):
            continue  # a failure
        assert shape(program) == shape(TOY)
        edited += program != TOY
    assert edited > 200


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


def test_only_the_evolve_block_changes() -> None:
    before, after = "import os\n# EVOLVE-BLOCK-START\n", "# EVOLVE-BLOCK-END\nprint(7 + 1)\n"
    changed = 0
    for seed in SEEDS:
        program = ask(showing(before + TOY + after), seed=seed).program
        if program is not None:
            assert program.startswith(before)
            assert program.endswith(after)
            changed += program != before + TOY + after
    assert changed > 70


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
