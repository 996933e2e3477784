"""Effects on several tasks together: each in its own unit, with errors that are independent."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.simulation.together import Scaled, effects_together
from replay.simulation.widths import SURE, widths
from replay.statistics.intervals import Interval, interval, student


def part(value, error, *, n=24, arms=4, scale=1.0, level=0.95):
    """A task whose interval is Student's of this error, as wide as pools of so many arms need."""
    half = error * float(student(level, n - 1)) * widths(n, arms).usual
    made = interval(np.arange(float(n)), level=level)
    return Scaled(replace(made, value=value, low=value - half, high=value + half), scale, arms)


def together(*parts, level=0.95):
    return effects_together(parts, level=level, name="effect together")


def test_one_task_alone_is_its_own_interval_in_its_unit():
    one = part(0.3, 0.1, scale=2.0)
    found = together(one)
    assert found.interval.value == pytest.approx(0.15)
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (one.found.low / 2, one.found.high / 2)
    )
    assert found.freedom == pytest.approx(23)
    assert found.limits == pytest.approx((found.interval.low, found.interval.high))
    assert found.error == found.errors[0]


def test_tasks_of_any_scale_count_alike():
    parts = [part(0.3, 0.1), part(-0.1, 0.2, n=40)]
    scaled = [parts[0], part(-100.0, 200.0, n=40, scale=1000.0)]
    one, other = together(*parts), together(*scaled)
    assert other.values == pytest.approx(one.values)
    assert other.limits == pytest.approx(one.limits)
    assert other.freedom == pytest.approx(one.freedom)


@given(st.permutations([(0.3, 0.1, 24), (-0.2, 0.05, 40), (0.1, 0.3, 12)]))
def test_the_order_of_tasks_decides_nothing(order):
    found = together(*(part(v, e, n=n) for v, e, n in order))
    first = together(part(0.3, 0.1, n=24), part(-0.2, 0.05, n=40), part(0.1, 0.3, n=12))
    assert found.interval.value == pytest.approx(first.interval.value)
    assert found.limits == pytest.approx(first.limits)
    assert found.interval.n == first.interval.n == 76


def test_equal_errors_add_up_as_independent_ones_do():
    alone, both = together(part(0.2, 0.1)), together(part(0.1, 0.1), part(0.3, 0.1))
    assert both.interval.value == pytest.approx(0.2)
    assert both.error == pytest.approx(alone.error / np.sqrt(2))
    assert both.freedom == pytest.approx(46)
    noisy = together(part(0.1, 0.1), part(0.3, 1e-9))
    assert noisy.freedom == pytest.approx(23)  # all of the error is that of one task


def test_with_few_runs_in_all_the_worst_world_decides():
    few = together(part(0.2, 0.1, n=SURE - 1))
    assert few.limits[0] < few.interval.low
    assert few.limits[1] > few.interval.high
    low = (0.2 - few.limits[0]) / (0.2 - few.interval.low)
    assert low == pytest.approx(widths(SURE - 1, 4).worst / widths(SURE - 1, 4).usual)
    many = together(part(0.2, 0.1, n=10), part(0.2, 0.1, n=10))
    assert many.limits == pytest.approx((many.interval.low, many.interval.high))


def test_tasks_without_an_interval_or_a_unit_are_named():
    none = part(0.2, 0.1)
    none = none._replace(found=replace(none.found, low=np.nan, high=np.nan, note="3 runs are few"))
    with pytest.raises(ValueError, match="number 2 has none: 3 runs are few"):
        together(part(0.2, 0.1), none)
    for scale in (0.0, np.nan, -1.0):
        with pytest.raises(
            ValueError, match="number 1 has none: what the baseline reaches does not differ"
        ):
            together(part(0.2, 0.1)._replace(scale=scale))


def test_what_it_states_is_of_all_tasks():
    found = together(part(0.1, 0.1, n=10, arms=2), part(0.1, 0.1, n=40))
    assert isinstance(found.interval, Interval)
    assert found.interval.statistic == "effect together"
    assert found.interval.least == pytest.approx(min(widths(10, 2).least, widths(40, 4).least))
