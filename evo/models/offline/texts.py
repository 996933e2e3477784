"""Rewrites texts other than programs: sentence and word edits, and a bank of instructions."""

from __future__ import annotations

import re

from evo.keyed import KeyedStream
from evo.models.offline.bank import WORDS

MOST_CHARACTERS = 2000  # a longer text loses a sentence instead of gaining one
_KEPT = "I keep the text."


def sentences_of(text: str) -> list[str]:
    """Splits a text into its sentences."""
    return [part for part in re.split(r"(?<=[.!?:])\s+", text.strip()) if part]


def rewrite_text(text: str, draws: KeyedStream) -> tuple[str, str]:
    """Rewrites a text; returns the new one and what was done, in words."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    code = sum(line.endswith(("{", "}", ";", ");", "},")) for line in lines)
    if code * 3 > len(lines):  # a program in some language rather than prose
        return text.rstrip("\n"), _KEPT
    sentences = sentences_of(text)
    operation = draws.weighted({"add": 0.5, "drop": 0.2, "order": 0.12, "word": 0.1, "copy": 0.08})
    if operation == "add" and len(text) < MOST_CHARACTERS:
        new = draws.pick(WORDS.instructions)
        if new in sentences:
            return text, _KEPT
        sentences.insert(draws.integer(0, len(sentences)), new)
        return " ".join(sentences), "I add an instruction."
    if operation in ("add", "drop", "order") and len(sentences) > 1:
        moved = sentences.pop(draws.integer(0, len(sentences) - 1))
        if operation != "order":
            return " ".join(sentences), "I leave out a sentence."
        sentences.insert(draws.integer(0, len(sentences)), moved)
        return " ".join(sentences), "I change the order."
    words = [word for word in WORDS.synonyms if re.search(rf"\b{word}\b", text)]
    if operation == "word" and words:
        word = draws.pick(words)
        return re.sub(rf"\b{word}\b", WORDS.synonyms[word], text, count=1), "I change a word."
    return text, _KEPT
