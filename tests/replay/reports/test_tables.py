"""The cells of a report's tables."""

import pytest

from replay.reports.tables import exact, stack, title


def test_a_unit_that_no_table_prints_is_refused_where_the_cells_are_stacked():
    with pytest.raises(ValueError, match=r"distance: expected a unit out of fitness.*'parsecs'"):
        stack({"all": [exact("distance", 3.0, 4, "parsecs")]})


def test_a_model_that_is_called_model_is_named_once():
    assert title("slow", "model", is_llm=True) == "slow, model"
    assert title("slow", "mine", is_llm=True) == "slow, model mine"
