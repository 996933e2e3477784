"""The offline model from inside: its key, chains of steps, failures, word problems, latency."""

from __future__ import annotations

import ast
import collections
import functools
import hashlib
import random
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.keyed import KeyedStream
from evo.llm.offline import OFFLINE_VERSION
from evo.llm.offline.bank import load_banks
from evo.llm.offline.edits import edit
from evo.llm.offline.failures import RATES, draw_failure, spoil
from evo.llm.offline.formats import difference
from evo.llm.offline.latency import Latency
from evo.llm.offline.model import complete, find_parent
from evo.llm.offline.problems import find_problem, read_problem
from evo.llm.offline.program import Step, find_bank, read_chain, write_chain
from evo.llm.offline.rewrite import MOST_MILLISECONDS, estimate_milliseconds
from evo.llm.offline.solver import accuracy, read_demands, solve
from evo.prompt import build_messages, parse_reply
from evo.task import load_task as load_task_anew

load_task = functools.cache(load_task_anew)

TASKS = ("circle_packing", "min_max_distance", "heilbronn_triangle")


def ask(messages, **fields):
    return complete({"model": "offline", "messages": messages, **fields})


def prompt_for(program, task="mmd", fitness=0.5):
    return build_messages(load_task(task).record, program, fitness)


def text_of(completion):
    return completion["choices"][0]["message"]["content"]


def child_of(program, seed, task="mmd"):
    completion = ask(prompt_for(program, task), seed=seed)
    return parse_reply(text_of(completion), finish_reason=completion["choices"][0]["finish_reason"])


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


@pytest.mark.parametrize("task", TASKS)
def test_seeds_give_different_replies(task):
    messages = prompt_for(load_task(task).initial_program, task)
    replies = {text_of(ask(messages, seed=seed)) for seed in range(60)}
    assert len(replies) > 45


def test_the_fitness_in_the_prompt_does_not_matter():
    program = load_task("mmd").initial_program
    for seed in range(40):
        low, high = (ask(prompt_for(program, "mmd", f), seed=seed) for f in (0.1, 0.9))
        assert text_of(low) == text_of(high)


def test_without_a_seed_the_whole_prompt_is_the_key():
    program = load_task("mmd").initial_program
    assert text_of(ask(prompt_for(program))) == text_of(ask(prompt_for(program)))
    replies = {text_of(ask(prompt_for(program, fitness=k / 50))) for k in range(50)}
    assert len(replies) > 30


def test_draws_of_a_key_are_fixed_for_ever():
    draws = KeyedStream("a", 1)
    assert [draws.integer(0, 99) for _ in range(5)] == [86, 76, 28, 23, 89]


def test_the_model_is_frozen():
    """Logs are analysed as those of this version: another answer needs another version."""
    digest = hashlib.sha256()
    for task in TASKS:
        for seed in range(40):
            program = load_task(task).initial_program
            text = f"```text\nSolve it. Give the answer.\n```\nProblem: {seed} and 3 more"
            digest.update(text_of(ask([{"role": "user", "content": text}], seed=seed)).encode())
            digest.update(solve(text, "Step by step.", seed=seed).encode())
            for _ in range(2):
                digest.update(text_of(ask(prompt_for(program, task), seed=seed)).encode())
                program = child_of(program, seed, task) or program
    assert (OFFLINE_VERSION, digest.hexdigest()[:16]) == ("1", "e85fa72c614e2aee")


# --- programs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_programs_stay_short_and_cheap_over_60_generations(task):
    """Every generation goes on from a random sound child: no selection holds the length down."""
    program, entry = load_task(task).initial_program, load_task(task).record.entry[0]
    bank, _ = find_bank(program)
    rng = random.Random(task)
    for _ in range(60):
        children = (child_of(program, rng.randrange(2**31), task) for _ in range(50))
        program = next(child for child in children if sound(child, entry))
        assert len(program) < 9000
        chain = read_chain(program)
        if chain is not None and chain.native:
            assert estimate_milliseconds(chain, bank) <= MOST_MILLISECONDS


@pytest.mark.parametrize("bank", load_banks(), ids=lambda bank: bank.entries[0])
def test_every_idea_runs_on_every_layout(bank):
    task = next(t for t in TASKS if find_bank(load_task(t).initial_program)[0] is bank)
    chain = read_chain(load_task(task).initial_program)
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
    bank, _ = find_bank(load_task(task).initial_program)
    program = load_task(task).initial_program
    children = [child_of(program, seed, task) for seed in range(60)]
    chains = [chain for child in children if child and (chain := read_chain(child))]
    native = [chain for chain in chains if chain.native]
    assert len(native) > 10
    for chain in native:
        assert read_chain(write_chain(chain, bank)) == chain


def test_wrapping_keeps_what_the_parent_makes():
    for task in TASKS:
        program = load_task(task).initial_program
        bank, entry = find_bank(program)
        wrapped = write_chain(read_chain(program), bank)
        old, new = value_of(program, entry), value_of(wrapped, entry)
        for a, b in zip(old, new, strict=True):
            np.testing.assert_array_equal(a, b)


@given(st.integers(0, 10**6))
def test_an_edit_gives_python_again(seed):
    source = load_task("cp").initial_program
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
    assert draw_failures(0.0) < draw_failures(0.6) < draw_failures(2.0)


def draw_failures(temperature):
    drawn = (draw_failure(KeyedStream(k), temperature=temperature) for k in range(5000))
    return sum(failure != "none" for failure in drawn)


@pytest.mark.parametrize("task", TASKS)
def test_spoiled_programs_fail_as_their_name_says(task):
    program, entry = load_task(task).initial_program, load_task(task).record.entry[0]
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


def test_text_parts_are_read_as_one_text():
    program = load_task("mmd").initial_program
    whole = prompt_for(program)
    text = whole[1]["content"]
    parts = [{"type": "text", "text": text[:100]}, {"type": "text", "text": text[100:]}]
    split = [whole[0], {"role": "user", "content": parts}]
    assert text_of(ask(whole, seed=2)) == text_of(ask(split, seed=2))


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


def test_asked_for_differences_it_answers_with_them_and_never_fails_to_answer():
    program = load_task("mmd").initial_program
    prompt = f"Use <<<<<<< SEARCH blocks.\n```python\n{program}```\n"
    applied = 0
    for seed in range(200):
        reply = text_of(ask([{"role": "user", "content": prompt}], seed=seed))
        assert "```" not in reply
        applied += ">>>>>>> REPLACE" in reply
    assert applied > 150


# --- texts and word problems ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("How many minutes are there in 3 hours?", "convert", 180),
        ("A rope is 2.5 km long. How long is it in metres?", "convert", 2500),
        ("A train covers 60 km per hour for 3 hours. How far does it go?", "rate", 180),
        ("A pump moves 40 litres per minute for 2 hours. How much is that?", "rate", 4800),
        ("Ann has 12 pears and Bo has 5. How many more pears does Ann have than Bo?", "compare", 7),
        ("48 sweets are shared among 6 children. How many does each get?", "share", 8),
        ("Tom buys 4 boxes of 6 pencils and gives away 5. How many are left?", "groups", 19),
        ("Tom has 12 apples and buys 7 more. How many has he in total?", "running", 19),
        ("Tom has 1,200 coins, loses 150 and finds 20. How many are left?", "running", 1070),
    ],
)
def test_word_problems_of_the_family_are_read_rightly(text, kind, value):
    reading = read_problem(text)
    assert (reading.kind, reading.value) == (kind, pytest.approx(value))


PROBLEM = "Tom buys 4 boxes of 6 pencils and gives away 5. How many are left?"


def solved(system, seeds=400):
    wanted = "Answer: 19"
    messages = [{"role": "system", "content": system}]
    messages.append({"role": "user", "content": f"Problem: {PROBLEM}"})
    replies = [text_of(ask(messages, seed=seed)) for seed in range(seeds)]
    return sum(reply.endswith(wanted) for reply in replies) / seeds


def test_the_solver_is_as_accurate_as_documented():
    system = "Think step by step and check. End with a line 'Answer: <number>'."
    expected = accuracy(read_problem(PROBLEM), read_demands(system))
    assert expected == pytest.approx(0.30 + 0.35 + 0.08)
    assert abs(solved(system, 2000) - expected) < 0.05


def test_a_better_prompt_never_loses_a_problem_that_a_worse_one_solved():
    """The luck of a problem and a seed is shared, so prompts are compared on equal terms."""
    plain, better = "answer: <number>", "step by step, answer: <number>"
    for seed in range(200):
        if solve(PROBLEM, plain, seed=seed).endswith("Answer: 19"):
            assert solve(PROBLEM, better, seed=seed).endswith("Answer: 19")


def test_a_problem_with_a_code_block_is_a_program_to_rewrite():
    assert find_problem("Task\nProblem: 1 + 1\n\nMore") == "1 + 1"
    prompt = "Problem: do better\n```python\nx = 1.5\n```\n"
    replies = [text_of(ask([{"role": "user", "content": prompt}], seed=s)) for s in range(20)]
    assert sum("```python" in reply for reply in replies) > 10


# --- latency ----------------------------------------------------------------------------------


def test_latency_is_lognormal_and_seeded_by_the_request():
    latency = Latency(median=2.0, sigma=0.5)
    seconds = np.array([latency.seconds(b"%d" % k) for k in range(2000)])
    assert latency.seconds(b"7") == seconds[7]
    assert np.log(seconds).mean() == pytest.approx(np.log(2.0), abs=0.05)
    assert np.log(seconds).std() == pytest.approx(0.5, abs=0.05)
    assert Latency(0.3).seconds(b"x") == pytest.approx(0.3)


@pytest.mark.parametrize("bad", [{"median": -1.0}, {"median": 1.0, "sigma": float("nan")}])
def test_latency_refuses_what_is_no_time(bad):
    with pytest.raises(ValueError, match="at least 0"):
        Latency(**bad)
