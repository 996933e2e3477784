import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import replay
from evo.plugins import MistakenType
from replay.claims.further import further_tasks
from replay.claims.task_comparison import limits_of
from replay.plots.style import ranged
from replay.reports.sentences import in_words
from replay.reports.tables import UNITS, cell_text
from replay.statistics.intervals import Interval
from replay.statistics.numbers import as_numbers, brackets, number, with_limits


@pytest.mark.parametrize("given", [["a"], {}, [[1, 2], [3]], [1, object()], "0.5 or so"])
def test_what_is_no_number_is_named_with_its_argument(given):
    with pytest.raises(MistakenType, match=r"values: expected numbers, .*, got "):
        as_numbers("values", given)
    with pytest.raises(MistakenType, match="values: expected numbers"):
        replay.interval(given)
    with pytest.raises(TypeError, match=r"fitness: expected numbers|simulate\(replay.load"):
        replay.simulate(given, "ucb1", rounds=2)


@pytest.mark.parametrize("given", [[1, None], (0.5, 2), np.arange(2), [[1], [2]]])
def test_numbers_are_taken_in_every_form(given):
    found = as_numbers("values", given)
    assert found.dtype == np.float64
    assert found.shape == np.shape(given)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"), (999.6, "1k"), (12_345, "12.3k"), (2.5e6, "2.5M"), (3e15, "3e15"),
        (0, "0"), (-4.56e4, "-45.6k"), (1e-5, "1e-5"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    "given", [["1", "2"], [1, "2"], np.array(["1"]), np.array([1.0, "2"], object), [b"1"]]
)
def test_texts_are_no_numbers_even_where_numpy_reads_them_as_such(given: object) -> None:
    with pytest.raises(MistakenType, match=r"values: expected numbers, .* got "):
        as_numbers("values", given)
    np.testing.assert_array_equal(as_numbers("values", [1, None]), [1.0, np.nan])


def test_what_is_zero_up_to_rounding_is_written_as_zero_beside_the_width() -> None:
    assert brackets(-4.484e-11, 0.05123) == "[0, 0.05123]"
    assert with_limits(2.2e-17, -0.5, 1e-11) == "0 [-0.5, 0]"
    assert with_limits(2e-12, 1e-12, 3e-12) == "2e-12 [1e-12, 3e-12]"
    assert brackets(-np.inf, 0.5) == "[-inf, 0.5]"
    assert brackets(-4.5e-11, 0.05, number) == "[0, 0.05]"


def test_words_and_tables_have_no_limits_that_are_rounding() -> None:
    found = Interval(value=0.02, low=-4.484e-11, high=0.05123, n=9)
    cell = pd.Series({"value": 1.1, "low": -2.1e-9, "high": 2.4, "unit": "difference"})
    assert "[0, 0.05123]" in str(found)
    assert "[0, 0.0512]" in in_words(found)
    assert f"[{UNITS['difference'](0.0)}, " in cell_text(cell)
    assert ranged(0.02, -4.484e-11, 0.05123) == "0.02 [0, 0.05123]"


def test_limits_of_intervals_are_written_in_one_place() -> None:
    own = re.compile(r"\[\{[^}{]+:[^}{]*\d[^}{]*\}, \{")
    root = Path(replay.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if own.search(path.read_text())
    }
    assert found <= {"explorers/budget_data.py"}


def test_a_limit_left_by_rounding_is_0_wherever_it_is_said() -> None:
    low, high = -4.484e-11, 0.05123
    clause = further_tasks(0.02, low, high, 0.0)
    assert "+0.02 [0, 0.0512]" in clause
    row = {"low": low, "high": high, "alone_low": low, "alone_high": high}
    assert limits_of(row) == "[0, 0.051]"
    assert "(alone [0, 0.051]; none" in limits_of({**row, "low": math.nan})
    assert with_limits(-1e-17, -0.5, 0.5, "{:+.2f}".format, number) == "+0.00 [-0.5, 0.5]"
