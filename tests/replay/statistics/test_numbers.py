import pytest

from replay.statistics.numbers import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"), (999.6, "1k"), (12_345, "12.3k"), (2.5e6, "2.5M"), (3e15, "3e15"),
        (0, "0"), (-4.56e4, "-45.6k"), (1e-5, "1e-5"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits(value, text):
    assert number(value) == text
