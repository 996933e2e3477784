"""How a program is shown to the offline model, and how it answers."""

from __future__ import annotations

import re

import pytest
from offline_requests import PARENTS, SEARCH_REPLACE, TAGGED, TASKS, TOY, ask, showing

SEEDS = range(100)


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


def test_a_program_in_a_block_without_a_language_is_found_before_what_is_known_of_it() -> None:
    """As GEPA shows it."""
    known = "# Example 1\n## status\nok\n\n## fitness\n0.25\n"
    for seed in SEEDS:
        plain = ask(showing(TOY), seed=seed)
        prompt = f"The component:\n```\n{TOY}```\nIts data:\n```\n{known}```\nImprove it."
        assert ask([{"role": "user", "content": prompt}], seed=seed).program == plain.program
