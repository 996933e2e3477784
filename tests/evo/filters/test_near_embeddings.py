"""A filter that compares embeddings: what it refuses, and what identifies it."""

import functools
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from embedding_samples import grams
from filter_samples import PROGRAM, archive
from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.filters import NearEmbeddings
from evo.filters.near_embeddings import _here
from evo.filters.registry import KIND, records_of
from evo.logs.vectors import cosines, decode_vector, encode_vector

TEXTS = st.text("ab=1\n", min_size=3, max_size=20)


def two(texts: Sequence[str]) -> list[list[int]]:
    """Counts two letters."""
    return [[1 + text.count("a"), 1 + text.count("b")] for text in texts]


@given(st.lists(TEXTS, min_size=1, max_size=6), TEXTS, st.floats(-1, 1))
def test_a_program_is_refused_where_an_earlier_one_is_at_the_threshold(
    earlier: list[str], program: str, threshold: float
) -> None:
    own, *others = (decode_vector(encode_vector(each)) for each in grams([program, *earlier]))
    similar = cosines(own, others)
    reason = NearEmbeddings(embed=grams, threshold=threshold).check(program, archive(*earlier))
    assert (reason is not None) == bool((similar >= threshold).any())
    if reason is not None:
        assert f"child {similar.argmax()} has the cosine similarity {similar.max():.3f}" in reason


def test_the_same_program_is_refused_at_any_threshold_and_the_first_one_by_none() -> None:
    for threshold in (-1, 0.5, 1):
        alike = NearEmbeddings(embed=grams, threshold=threshold)
        assert alike.check(PROGRAM, []) is None
        assert "generation 1, child 1 has" in (alike.check(PROGRAM, archive("x", PROGRAM)) or "")


@pytest.mark.parametrize("wrong", [1.01, -1.01, float("nan"), True, "much", None])
def test_a_threshold_is_a_cosine(wrong: Any) -> None:
    with pytest.raises(ValueError, match="threshold: expected a cosine similarity from -1 to 1"):
        NearEmbeddings(embed=grams, threshold=wrong)


@pytest.mark.parametrize("wrong", ["", None, 3, dict])
def test_what_embeds_is_a_function_a_name_or_a_model(wrong: Any) -> None:
    with pytest.raises(TypeError, match="embed: expected a function of a list of texts"):
        NearEmbeddings(embed=wrong)
    with pytest.raises(ValueError, match="its fields do not fit: embed: expected a function"):
        records_of({"name": "near_embeddings", "embed": wrong})


def test_vectors_of_two_lengths_are_an_error() -> None:
    one, other = (decode_vector(encode_vector(each)) for each in ([1.0], [1.0, 2.0]))
    with pytest.raises(ValueError, match=r"one length, got 1 numbers, and 2 for generation 0"):
        NearEmbeddings(embed="m").compare(one, [((0, 0), other)])


def test_a_model_is_asked_in_a_run_alone() -> None:
    for embed in ("m", evo.Model("m", base_url="http://localhost:1/v1")):
        alike = NearEmbeddings(embed=embed)
        assert alike == NearEmbeddings(embed="m")
        with pytest.raises(ValueError, match="got the model 'm', which is asked within a run"):
            alike.check(PROGRAM, [])


def test_a_log_knows_a_function_by_its_source_and_finds_it_again() -> None:
    value = NearEmbeddings(embed=two, threshold=0.9)
    assert value.embed.startswith("function two ")
    assert value == NearEmbeddings(embed=two, threshold=0.9) != NearEmbeddings(embed=grams)
    (record,) = records_of(value)
    read = msgspec.json.decode(msgspec.json.encode(record), type=type(record))
    assert read == record
    again = KIND.of(read)
    assert again == value
    assert again.check("a", archive("a")) == value.check("a", archive("a"))
    (by_name,) = records_of({"name": "near_embeddings", "embed": two, "threshold": 0.9})
    assert by_name == record


def test_a_function_of_another_process_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    (record,) = records_of(NearEmbeddings(embed=two))
    read = msgspec.json.decode(msgspec.json.encode(record), type=type(record))
    monkeypatch.delitem(_here, NearEmbeddings(embed=two).embed)
    with pytest.raises(ValueError, match=r"'function two \w+' was of the process that made the lo"):
        KIND.of(read).check(PROGRAM, [])


def test_a_function_without_a_source_is_like_no_other() -> None:
    made = functools.partial(eval("lambda size, texts: [[size] for _ in texts]"), 2)
    assert NearEmbeddings(embed=made) != NearEmbeddings(embed=made)
    named = evo.Model("mine", call=made, version="2")
    assert NearEmbeddings(embed=named).embed == "function mine 2"
    assert NearEmbeddings(embed=named) == NearEmbeddings(embed=named)
    assert NearEmbeddings(embed=named).check("a", archive("b")) is not None


def test_arrays_are_vectors_too() -> None:
    alike = NearEmbeddings(embed=lambda texts: np.array(grams(texts)), threshold=0.999)
    assert alike.check(PROGRAM, archive(PROGRAM)) is not None
    assert alike.check(PROGRAM, archive("x = 1\n")) is None
