"""The verbs: one function that prepares work, called at once or in the background."""

import pytest

import evo


@pytest.mark.parametrize("verb", [evo.sweep, evo.start_sweep, evo.allocate_live])
def test_more_values_than_a_verb_takes_by_place_are_answered_with_the_call(verb):
    with pytest.raises(TypeError, match=rf"{verb.__name__}: expected .* by name, .* has no name"):
        verb("mmd", "ucb1", 3)
