import numpy as np
import pytest
from synthetic_runs import chain_runs

from replay.calibration import METHODS, errors, leave_one_size_out


@pytest.fixture(scope="module")
def corpus():
    return chain_runs(sizes=(1, 2, 4, 8, 16), budget=16)


@pytest.fixture(scope="module")
def table(corpus):
    return leave_one_size_out(*corpus, kernels=8)


def test_every_cell_is_predicted_by_every_method(table):
    assert set(table["method"]) == set(METHODS)
    assert (table.groupby("method").size() == 5 * 6 // 2).all()
    kernel = table[table["method"] == "kernel"]
    assert (kernel["low"] <= kernel["predicted"]).all()
    assert (kernel["predicted"] <= kernel["high"]).all()
    assert (kernel["n"] == 10).all()


def test_the_cells_predicted_are_not_used(corpus, table):
    frame, children = corpus
    changed = frame.copy()
    out = changed["children"] == 4
    changed.loc[out, "best_fitness"] = changed.loc[out, "best_fitness"] / 2
    again = leave_one_size_out(changed, children, kernels=8)
    of_four = [part[part["children"] == 4]["predicted"] for part in (table, again)]
    np.testing.assert_array_equal(*of_four)


def test_the_nearest_cells_are_those_at_half_and_twice_n(table):
    part = table.set_index(["method", "children", "generations"])
    observed = part.loc["nearest"]["observed"]
    nearest = part.loc["nearest"]["predicted"]
    assert nearest.loc[(2, 4)] == pytest.approx((observed.loc[(1, 4)] + observed.loc[(4, 4)]) / 2)
    assert nearest.loc[(1, 8)] == pytest.approx(observed.loc[(2, 8)])
    assert np.isnan(nearest.loc[(1, 16)])


def test_errors_are_over_cells_that_all_methods_predict(table):
    found = errors(table).set_index("method")
    assert (found["cells"] == 14).all()
    assert found["coverage"].between(0, 1).all()
    assert found["floor"].nunique() == 1
    assert found.loc["kernel", "error"] < found.loc["bilinear", "error"] * 1.5
