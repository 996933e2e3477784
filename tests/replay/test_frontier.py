import numpy as np
import pandas as pd
import pytest
from synthetic_runs import bilinear_runs

from replay.frontier import envelope


def test_the_envelope_rises_and_says_what_it_was_chosen_from():
    found = envelope(bilinear_runs(budget=64))
    points = found.points
    assert points["maximum"].is_monotonic_increasing
    assert points["cost"].is_monotonic_increasing
    assert points["cost"].is_unique
    assert points["splits"].is_monotonic_increasing
    assert points["splits"].iloc[-1] <= 7 * 8 // 2
    assert (points["value"] <= points["maximum"] + 1e-12).all()
    assert "the best of" in str(found)


def test_calls_are_depth_times_breadth():
    points = envelope(bilinear_runs(budget=32)).points
    assert (points["cost"] == points["generations"] * points["children"]).all()


def test_tokens_are_summed_over_generations():
    frame = bilinear_runs(budget=32)
    calls, tokens = envelope(frame).points, envelope(frame, axis="tokens").points
    np.testing.assert_allclose(tokens["cost"], 150 * calls["cost"])
    np.testing.assert_allclose(tokens["maximum"], calls["maximum"])


def test_wall_time_favours_breadth_where_generations_cost_alike():
    points = envelope(bilinear_runs((-0.5, -0.2, -0.2, 0), budget=64), axis="seconds").points
    assert points["children"].iloc[0] > 1


def test_unknown_costs_are_refused_with_the_known_axes():
    with pytest.raises(ValueError, match=r"knows its flops.*\['calls', 'tokens', 'seconds'\]"):
        envelope(bilinear_runs(budget=8), axis="flops")
    with pytest.raises(ValueError, match="'calls', 'tokens', 'flops', 'dollars', 'seconds'"):
        envelope(bilinear_runs(budget=8), axis="euros")


def test_models_on_one_curve_collapse_and_others_do_not():
    def of(name, level, seed):
        rng = np.random.default_rng(seed)
        frame = bilinear_runs((level, -0.2, -0.2, 0), run_noise=0.02, rng=rng)
        return frame.assign(model=name, run=frame["run"] + name)

    alike = pd.concat([of("small", -0.5, 1), of("large", -0.5, 2)])
    apart = pd.concat([of("small", -0.2, 1), of("large", -1.5, 2)])
    assert envelope(alike).collapse["r2"].item() > 0.97
    assert envelope(apart).collapse["r2"].item() < 0.8
    assert envelope(apart).collapse["models"].item() == 2
