"""The verdicts of pairs of configurations over several tasks."""

import numpy as np
from synthetic_runs import tasks

import replay
from replay.claims.pairs import holm_shares


def test_holm_verdicts_and_intervals_agree():
    frame = tasks(0.9, seed=5, names=("a", "b", "c"))
    table = replay.compare(frame, by="search").verdicts
    assert len(table) == 3
    for row in table.to_dict("records"):
        assert (row["p_holm"] <= 0.05) == (row["low"] > 0 or row["high"] < 0)


def test_after_a_pair_that_is_not_rejected_all_others_share_what_it_had():
    np.testing.assert_allclose(holm_shares(np.array([0.001, 0.9, 0.02]), 0.05), [1 / 3, 1, 0.5])
    np.testing.assert_allclose(holm_shares(np.array([0.04, 0.9, np.nan]), 0.05), [0.5, 0.5, 1])


def test_where_no_run_of_a_side_differs_from_another_there_is_no_interval():
    frame = tasks(1.0)
    alike = frame.assign(best_fitness=np.where(frame["search"] == "a", 0.8, 0.2))
    found = replay.compare(alike, by="search")
    [row] = found.verdicts.to_dict("records")
    assert (row["verdict"], row["why"]) == ("greater", "")
    assert np.isnan([row["low"], row["high"], row["alone_low"], row["alone_high"]]).all()
    assert "sd (no run of a side differs from another: no spread) on 6 tasks" in found.paragraph
    found.figure().draw_without_rendering()
