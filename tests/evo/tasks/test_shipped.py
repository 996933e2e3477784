"""What all three shipped tasks have in common."""

import ast
import math
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SHAPES = {
    "circle_packing": ((26, 2), (26,)),
    "min_max_distance": (16, 2),
    "heilbronn_triangle": (11, 2),
}
odd_numbers = st.one_of(
    st.floats(),
    st.floats(0, 1),
    st.integers(),
    st.sampled_from([0, 0.5, 1e308, -1e308, 5e-324, 1e-160, 1.0 + 1e-7, 10**400]),
)
junk = st.recursive(
    odd_numbers | st.none() | st.booleans() | st.text(max_size=3) | st.complex_numbers(),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.just({}),
    max_leaves=12,
)


def nested(shape, leaves):
    strategy = leaves
    for n in reversed(shape):
        strategy = st.lists(strategy, min_size=n, max_size=n)
    return strategy


def values(name):
    """Junk, and values of the right shape with odd numbers or junk inside."""
    shape = SHAPES[name]
    leaves = st.sampled_from([odd_numbers, st.floats(0.2, 0.5), odd_numbers | junk])
    if name == "circle_packing":
        shaped = leaves.flatmap(lambda x: st.tuples(*(nested(s, x) for s in shape), junk))
    else:
        shaped = leaves.flatmap(lambda x: nested(shape, x))
    return junk | shaped


def first_array(value):
    """The array that is checked first, as nested lists inside `value`."""
    return value[0] if len(value) == 3 else value


@pytest.mark.parametrize("name", SHAPES)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_value_is_scored_with_finite_floats_or_refused_with_a_reason(
    name, data, shipped_by_name
):
    try:
        metrics = shipped_by_name[name].score(data.draw(values(name)))
    except ValueError as error:
        reason = str(error)
    else:
        reason = None
        assert set(metrics) == {"fitness", "objective", "strict_fitness"}
        assert all(type(x) is float and math.isfinite(x) and x >= 0 for x in metrics.values())
        assert metrics["strict_fitness"] <= metrics["fitness"]
    assert reason != ""


@pytest.mark.parametrize(
    "rows",
    [
        lambda rows: rows[:-1],
        lambda rows: [*rows, [0.5, 0.5]],
        lambda rows: [*rows[:-1], [0.5, 0.5, 0.5]],
        lambda rows: [0.5] * (2 * len(rows)),
        *(lambda _, bad=bad: bad for bad in (None, 1.0, "text", {}, b"bytes", [], (), object())),
    ],
)
def test_wrong_shapes_are_refused(task, rows):
    value = [np.asarray(part).tolist() for part in task.initial()]
    wrong = rows(first_array(value))
    with pytest.raises(ValueError, match="expected"):
        task.score([wrong, *value[1:]] if len(value) == 3 else wrong)


def test_the_evaluator_stands_alone(task):
    """A log embeds the file, so it may import nothing but NumPy and the standard library."""
    tree = ast.parse((task.folder / "evaluator.py").read_text())
    modules = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert modules <= {"numpy"} | sys.stdlib_module_names


def test_the_statement_names_the_entry_point_and_the_time_limit(task):
    for entry in task.config["entry"]:
        assert f"{entry}()" in task.config["statement"]
    assert f"within {task.config['limits']['seconds']} seconds" in task.config["statement"]
    assert task.config["entry"][0] in task.program
