"""What the offline model of version 2 does besides version 1, so that all machinery is exercised.

- It tells the program to rewrite from others that the prompt shows, by the words before a block
  (`Current`), and mixes in the parent that is shown `to mix in`: programs of the shipped tasks step
  by step, texts by their sentences.
- Where a prompt lists recent failures it uses that list with probability `HEEDED`: it then makes
  no mistake of its own, and mends a text that asks for answers in a wrong format.
- Under a system message that asks for an answer without digits it answers word problems so, which
  no evaluator can read.
- It scores a critic's triples: what is right (the answer to a word problem that it can read, a
  reply with a sound program or a text) it finds so with probability `ACCURACY`.

It sees no evaluator. Figures that compare prompts, crossover, feedback or critics on it show how
the machinery works and nothing about language models.
"""

from __future__ import annotations

import re
from dataclasses import replace

from evo.keyed import KeyedStream
from evo.models.offline.formats import Parent, make_parent
from evo.models.offline.problems import NUMBER, find_problem, read_problem
from evo.models.offline.program import find_bank, parse, read_chain, write_chain
from evo.models.offline.texts import sentences_of

HEEDED = 0.6  # probability that feedback is used
ACCURACY = 0.85  # that a critic's score is on the right side of the middle
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_SHOWN = re.compile(
    r"^(?P<words>[^\n]*)\n(?P<fence>`{3,})[^\n`]*\n(?P<text>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_WRONG_FORMAT = re.compile(
    r"in words|as words?\b|spell(ed)? (it )?out|(no|without) (any )?digits|roman numeral",
    re.IGNORECASE,
)
_ASK_FORMAT = "End with a line of the form 'Answer: <number>'."


def prepare(parent: Parent, prompt: str, key: object) -> tuple[Parent, bool]:
    """Returns what to rewrite, mixed with a partner and mended, and whether feedback is heeded."""
    blocks = {found["words"].lower(): found["text"] for found in _SHOWN.finditer(prompt)}
    current = next((text for words, text in blocks.items() if words.startswith("current")), None)
    partner = next((text for words, text in blocks.items() if "to mix in" in words), None)
    if current is not None:
        parent = make_parent(parent.language, current, compiled=parent.compiled)
    text, python = parent.text, parent.language == "python"
    if partner is not None:
        mix = _mix_programs if python else _mix_texts
        text = mix(text, partner, KeyedStream("mix", text, partner, key))
    failures = re.search(r"^What went wrong lately:\n- ", prompt, re.MULTILINE)
    heeded = failures is not None and KeyedStream("heed", parent.text, key).chance(HEEDED)
    if heeded and not python:
        kept = [each for each in sentences_of(text) if not _WRONG_FORMAT.search(each)]
        text = " ".join(kept if _ASK_FORMAT in kept else [*kept, _ASK_FORMAT]) + "\n"
    return parent._replace(text=text), heeded


def _mix_programs(one: str, other: str, draws: KeyedStream) -> str:
    """Returns a program with moves of both; the first where they are no chains of one task."""
    found, chain, partner = find_bank(one), read_chain(one), read_chain(other)
    if found is None or chain is None or partner is None or found != find_bank(other):
        return one
    bank = found[0]
    if draws.chance(0.5) and partner.native:
        chain, partner = partner, chain
    foreign = [move for move in partner.moves if bank.idea(move.function) is not None]
    cut, rest = draws.integer(0, len(chain.moves)), draws.integer(0, len(foreign))
    moves = (*chain.moves[:cut], *foreign[rest:])[: bank.most_moves]
    return write_chain(replace(chain, moves=moves), bank)


def _mix_texts(one: str, other: str, draws: KeyedStream) -> str:
    """Returns the sentences that both have, and about two in three of the others."""
    first, second = sentences_of(one), sentences_of(other)
    every = dict.fromkeys([*first, *second])
    kept = [each for each in every if (each in first and each in second) or draws.chance(0.67)]
    return " ".join(kept or first)


def without_digits(reply: str, system: str) -> str:
    """Returns a reply as a defective system message wants it, without a digit; else as it is."""
    numbers = re.findall(f"-?{NUMBER}", reply)
    if not numbers or not _WRONG_FORMAT.search(system):
        return reply
    signs = {"-": "minus", ".": "point"}
    spelled = [_DIGITS[int(c)] if c.isdecimal() else signs.get(c, "") for c in numbers[-1]]
    return f"The answer is {' '.join(filter(None, spelled))}."


def read_triple(system: str, prompt: str) -> tuple[str, str, str] | None:
    """Reads the system prompt, the query and the reply that a critic is asked to score."""
    if "Score: <number>" not in system:
        return None
    found = [each["text"] for each in _SHOWN.finditer(prompt)]
    return (found[0], found[1], found[2]) if len(found) == 3 else None


def score_triple(triple: tuple[str, str, str], *, seed: int | None) -> str:
    """Returns a critic's reply: mostly right, on a scale from 0 to 10."""
    draws = KeyedStream("critic", triple, seed)
    low, high, honest = draws.integer(0, 3), draws.integer(7, 10), draws.chance(ACCURACY)
    good = _is_good(triple)
    if good is None:
        return f"I cannot tell.\nScore: {draws.integer(0, 10)}"
    verdict = "It does what is asked." if good == honest else "It does not do what is asked."
    return f"{verdict}\nScore: {high if good == honest else low}"


def _is_good(triple: tuple[str, str, str]) -> bool | None:
    """Whether a reply is right as far as this model can see; None: it cannot."""
    _, query, reply = triple
    if "```" in query:
        blocks = [found["text"] for found in _SHOWN.finditer(f"\n{reply}\n")]
        if not blocks or find_bank(query) is None:
            return bool(blocks)
        text = blocks[-1]
        return bool(parse(text) and find_bank(text)) and "NotImplemented" not in text
    reading = read_problem(find_problem(query) or "")
    if reading is None:
        return None
    numbers = re.findall(f"-?{NUMBER}", reply)
    return bool(numbers) and abs(float(numbers[-1].replace(",", "")) - reading.value) < 1e-6
