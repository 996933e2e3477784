"""Rewrites texts other than programs: sentence and word edits, and a bank of instructions.

Serves tasks on which a prompt evolves. The bank holds instructions that help a solver, some that
do nothing and some that harm; which is which, the rewriter does not know.
"""

from __future__ import annotations

import re

from evo.llm.offline.draws import Draws

MOST_CHARACTERS = 2000
"""A longer text loses a sentence instead of gaining one."""

INSTRUCTIONS = (
    "Think step by step.",
    "Work step by step and show each calculation.",
    "Write down the unit of every number.",
    "Convert all quantities to the same units first.",
    "End with a line of the form 'Answer: <number>'.",
    "Give the final answer as a number on the last line.",
    "Check the result before you answer.",
    "Read the question twice.",
    "List the known quantities first.",
    "Be concise.",
    "Give only the answer.",
    "Be polite and friendly.",
    "You are an expert.",
    "Explain it to a child.",
    "Answer in a full sentence.",
    "Use simple words.",
    "Take a deep breath.",
    "Round the result to the nearest ten.",
    "If in doubt, guess.",
    "State what is asked for.",
)
"""Sentences that a rewrite may add."""

_SYNONYMS = {
    "solve": "work out",
    "answer": "reply",
    "give": "state",
    "find": "determine",
    "question": "problem",
    "number": "value",
    "carefully": "with care",
    "help": "assist",
}


def rewrite_text(text: str, draws: Draws) -> tuple[str, str]:
    """Rewrites a text.

    Returns:
        The new text and what was done, in words.
    """
    sentences = [part for part in re.split(r"(?<=[.!?:])\s+", text.strip()) if part]
    operation = draws.weighted({"add": 0.5, "drop": 0.2, "order": 0.12, "word": 0.1, "copy": 0.08})
    if operation == "add" and len(text) < MOST_CHARACTERS:
        new = draws.pick(INSTRUCTIONS)
        if new in sentences:
            return text, "I keep the text."
        sentences.insert(draws.integer(0, len(sentences)), new)
        return " ".join(sentences), "I add an instruction."
    if operation in ("add", "drop") and len(sentences) > 1:
        sentences.pop(draws.integer(0, len(sentences) - 1))
        return " ".join(sentences), "I leave out a sentence."
    if operation == "order" and len(sentences) > 1:
        moved = sentences.pop(draws.integer(0, len(sentences) - 1))
        sentences.insert(draws.integer(0, len(sentences)), moved)
        return " ".join(sentences), "I change the order."
    words = [word for word in _SYNONYMS if re.search(rf"\b{word}\b", text)]
    if operation == "word" and words:
        word = draws.pick(words)
        return re.sub(rf"\b{word}\b", _SYNONYMS[word], text, count=1), "I change a word."
    return text, "I keep the text."
