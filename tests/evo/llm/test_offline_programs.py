"""What the offline model writes, read as a search and as other tools read it."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest
from offline_requests import (
    PARENTS,
    SEARCH_REPLACE,
    TAGGED,
    TASKS,
    TOY,
    ask,
    parses,
    showing,
)

from evo.llm.offline.bank import load_words
from evo.llm.offline.failures import RATES
from evo.llm.offline.program import find_bank

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
