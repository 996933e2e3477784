"""Rewrites of texts: sentences come, go and move, and code is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.keyed import KeyedStream
from evo.models.offline.bank import WORDS
from evo.models.offline.texts import MOST_CHARACTERS, rewrite_text, sentences_of

TEXT = "Solve it. Mind the units: always. Be brief!"
KEPT = "I keep the text."


def test_sentences_end_at_a_sign_before_a_space():
    assert sentences_of("  A b. C: d! E 1.5?\n\nF") == ["A b.", "C:", "d!", "E 1.5?", "F"]
    assert sentences_of(" ") == []


@given(st.integers(0, 10**6))
def test_each_rewrite_does_what_it_says(seed):
    new, words = rewrite_text(TEXT, KeyedStream(seed))
    old, made = sentences_of(TEXT), sentences_of(new)
    if words == "I add an instruction.":
        added = [each for each in made if each not in old]
        assert [each for each in made if each in old] == old
        assert " ".join(added) in WORDS.instructions
    elif words == "I leave out a sentence.":
        assert len(made) == len(old) - 1
        assert [each for each in old if each in made] == made
    elif words == "I change the order.":
        assert sorted(made) == sorted(old)
    else:
        assert words in (KEPT, "I change a word.")
    assert (new == TEXT) == (words == KEPT) or words == "I change the order."


@given(st.integers(0, 10**6))
def test_a_long_text_gains_no_sentence_and_a_single_one_is_not_left_out(seed):
    long = "This is a sentence. " * (MOST_CHARACTERS // 20 + 1)
    assert len(sentences_of(rewrite_text(long, KeyedStream(seed))[0])) <= len(sentences_of(long))
    assert rewrite_text("Only one", KeyedStream(seed))[0].strip()


@pytest.mark.parametrize("seed", range(5))
def test_code_in_any_language_is_kept(seed):
    code = "int main() {\n  return f(1);\n}\n"
    assert rewrite_text(code, KeyedStream(seed)) == (code.rstrip("\n"), KEPT)
