"""What the offline model writes, read as a search and as other tools read it."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest
from offline_requests import (
    ENTRY,
    PARENTS,
    SEARCH_REPLACE,
    TAGGED,
    TASKS,
    TEXT,
    TOY,
    ask,
    descend,
    parses,
    showing,
)

from evo.llm.offline.bank import load_words
from evo.llm.offline.failures import RATES
from evo.llm.offline.program import find_bank
from evo.prompt import build_messages
from evo.records import Limits
from evo.sandbox import Evaluator
from evo.task import load_task

SEEDS = range(100)


def failure_of(name: str, text: str, finish_reason: str, program: str | None) -> str:
    """Which failure a reply to a parent of a task shows, as far as reading it tells."""
    if finish_reason == "length":
        return "truncated"
    if program is None:
        assert text in load_words().prose
        return "prose"
    if not parses(program):
        return "syntax"
    if "while error > 0:" in program:
        return "endless"
    found = find_bank(PARENTS[name])
    assert found is not None
    for kind, spoils in found[0].spoils.items():
        if any(spoil in program for spoil in spoils):
            return kind
    return "none"


def test_every_failure_occurs() -> None:
    found: Counter[str] = Counter()
    seeds = 0
    while found.keys() != RATES.keys() | {"none"}:
        reply = ask(showing(PARENTS["cp"]), seed=seeds, temperature=2.0)
        found[failure_of("cp", reply.text, reply.finish_reason, reply.program)] += 1
        seeds += 1
        assert seeds < 6000, f"after {seeds} seeds only {found}"


def evaluate_greedy(name: str, generations: int, children: int) -> Counter[str]:
    """Statuses of a greedy run's children under a limit that only endless programs meet."""
    task, statuses = load_task(name), Counter[str]()
    parent, best = task.initial_program, -1.0
    with Evaluator() as evaluator:
        for generation in range(generations):
            replies = [
                ask(build_messages(task.record, parent, best), seed=1000 * generation + index)
                for index in range(children)
            ]
            for reply in replies:
                if reply.program is None:
                    statuses["no_program"] += 1
                    continue
                found = evaluator.evaluate(task.record, reply.program, Limits(seconds=10))
                statuses[found.status] += 1
                if found.fitness is not None and found.fitness > best:
                    parent, best = reply.program, found.fitness
    assert best > 0
    return statuses


@pytest.mark.parametrize("name", TASKS)
def test_most_programs_evaluate_in_the_sandbox(name: str) -> None:
    statuses = evaluate_greedy(name, generations=2, children=8)
    assert statuses["ok"] > 0.5 * statuses.total()
    assert statuses["timeout"] == 0


@pytest.mark.slow
def test_about_a_fifth_of_the_children_of_a_run_fail() -> None:
    statuses = Counter[str]()
    for name in TASKS:
        statuses += evaluate_greedy(name, generations=10, children=12)
    assert 0.15 < 1 - statuses["ok"] / statuses.total() < 0.27, statuses
    assert {"no_program", "error", "invalid"} <= statuses.keys()


@pytest.mark.parametrize("name", TASKS)
def test_programs_stay_short_and_keep_their_entry_when_hot(name: str) -> None:
    chain = descend(PARENTS[name], 60, temperature=2.0)
    assert len(set(chain)) > 30
    assert max(map(len, chain)) < 9000
    assert all(f"def {ENTRY[name]}(" in program for program in chain)


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


# --- texts


def without_instructions(text: str) -> str:
    for instruction in load_words().instructions:
        text = " ".join(text.replace(instruction, " ").split())
    return text


def test_a_text_is_rewritten_by_its_sentences() -> None:
    """One sentence more out of the bank, one less, another order, another word, or nothing."""
    kinds: Counter[str] = Counter()
    old = " ".join(TEXT.split())
    for seed in range(400):
        reply = ask(showing(TEXT, language="text"), seed=seed)
        block = re.search(r"```text\n(.*)\n```", reply.text, re.DOTALL)
        if block is None:
            kinds[reply.finish_reason if reply.text not in load_words().prose else "prose"] += 1
            continue
        new = " ".join(block[1].split())
        if new == old:
            kinds["copy"] += 1
        elif any(instruction in new for instruction in load_words().instructions):
            kinds["add"] += 1
            assert without_instructions(new) == old
        elif sorted(new.split()) == sorted(old.split()):
            kinds["order"] += 1
        elif len(new) < 0.8 * len(old):
            kinds["drop"] += 1
            assert set(new.split()) < set(old.split())
        else:
            kinds["word"] += 1
            assert len(set(old.split()) - set(new.split())) == 1
    assert kinds.keys() == {"add", "drop", "word", "order", "copy", "prose", "length"}


def test_texts_stay_short() -> None:
    text = TEXT
    for seed in range(300):
        reply = ask(showing(text, language="text"), seed=seed)
        block = re.search(r"```text\n(.+)\n```", reply.text, re.DOTALL)
        if block is not None and reply.finish_reason == "stop":
            text = block[1]
        assert 0 < len(text) < 2100
