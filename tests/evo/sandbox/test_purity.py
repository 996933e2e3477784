"""A program's randomness is keyed by what it is evaluated as, in every process that it starts."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.sandbox.purity import for_subprocesses, key_of

DRAWS = """
import os, random, secrets, uuid
import numpy
print(random.random(), random.Random().random(), os.urandom(4).hex(), secrets.token_hex(4))
print(uuid.uuid4(), numpy.random.random(), numpy.random.default_rng().random())
random.seed()
print(random.random(), random.Random(5).random())
"""


def drawn(key: bytes) -> str:
    """Returns what a new interpreter draws."""
    command = [sys.executable, "-c", for_subprocesses(key) + DRAWS]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_all_sources_of_randomness_repeat_with_the_key_and_change_with_it() -> None:
    one, again, other = (drawn(key_of(program)) for program in ("a", "a", "b"))
    assert one == again
    own = one.split()
    for place, (mine, theirs) in enumerate(zip(own, other.split(), strict=True)):
        assert (mine == theirs) == (place == len(own) - 1)  # a seed of one's own is no luck


@given(st.text(), st.text(), st.integers(0, 3), st.integers(0, 3))
def test_draw_0_is_keyed_by_the_program_and_later_ones_by_all_else(
    program: str, task: str, draw: int, seed: int
) -> None:
    key = key_of(program, task, draw=draw, seed=seed)
    assert len(key) == 32
    assert (key == key_of(program + "x", task, draw=draw, seed=seed)) == (draw > 0)
    assert (key == key_of(program, task + "x", draw=draw, seed=seed)) == (draw == 0)
    assert (key == key_of(program, task, draw=draw, seed=seed + 1)) == (draw == 0)
    assert key != key_of(program, task, draw=draw + 1, seed=seed)


@pytest.mark.parametrize("program", ["", "\ud800"])
def test_any_text_has_a_key(program: str) -> None:
    assert len(key_of(program)) == 32
