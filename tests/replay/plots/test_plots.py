import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from looks import complaints
from plotted import (
    CONSTRUCTIONS,
    TABLE,
    WORDS,
    made_curves,
    made_effects,
    made_ledger,
    made_pulls,
    made_runs,
    made_times,
    marks,
    raced,
    words,
)
from synthetic_runs import chain_runs, sweep_runs

import replay
from replay import plots
from replay.planning.bilinear import fit_bilinear
from replay.plots import charts
from replay.plots.output import in_dark

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def drawn(runs, grid, planned):
    """One of each figure, by name."""
    theme = "light"
    models = pd.concat([made_runs(), made_runs(8, model="qwen3-8b"), made_runs(model="qwen3-14b")])
    table = pd.DataFrame({"deep": [0.1, 0.2, 0.4], "broad": [0.1, np.nan, 0.3]}, index=[1, 2, 4])
    in_flops = replay.envelope(pd.concat([runs, runs.assign(model="b", flops=1e12)]), axis="flops")
    return {
        "trajectories": plots.trajectories(made_runs(), theme=theme),
        "models": plots.trajectories(models, x="flops", theme=theme),
        "policy_curves": plots.policy_curves(made_curves(), theme=theme),
        "pulls_per_arm": plots.pulls_per_arm(made_pulls(), theme=theme),
        "threshold_times": plots.threshold_times(made_times(), theme=theme),
        "pool_vs_allocation": plots.pool_vs_allocation(made_effects(), theme=theme),
        "heatmap": plots.heatmap(grid, theme=theme),
        "fit": plots.heatmap(grid, fit=fit_bilinear(runs), theme=theme),
        "slices": plots.slices(grid, theme=theme),
        "value_of_knowing": plots.value_of_knowing(grid, theme=theme),
        "regimes": plots.regime_probabilities(fit_bilinear(runs), theme=theme),
        "envelope": plots.envelope_curves(replay.envelope(runs), theme=theme),
        "envelope in flops": plots.envelope_curves(in_flops, theme=theme),
        **{f"plan {k}": ax for k, ax in enumerate(plots.planner_card(planned, theme=theme))},
        "main_effects": plots.main_effects(sweep_runs(), theme=theme),
        "depth_breadth_slice": plots.depth_breadth_slice(sweep_runs(), theme=theme),
        "configurations": plots.parallel_coordinates(sweep_runs(), theme=theme),
        "cost_and_fitness": plots.cost_and_fitness(sweep_runs(), theme=theme),
        "race": plots.race(raced(), theme=theme),
        "verdicts": plots.verdicts(made_ledger(), theme=theme),
        "odds": plots.odds(replay.fit_kernel(chain_runs(budget=16)[1]), draws=3, theme=theme),
        "lines": plots.lines(table, y="fitness", scale="doublings", theme=theme, **WORDS),
        "estimates": plots.estimates(TABLE, groups="task", bound=0, theme=theme, **WORDS),
        **{
            name: plots.construction(name, value, theme=theme)
            for name, value in CONSTRUCTIONS.items()
        },
    }


@pytest.mark.thorough
def test_all_that_is_written_can_be_read_in_both_themes(drawn):
    found = {}
    for name, ax in drawn.items():
        found[name] = complaints(ax.get_figure())
        around = [each.get_path_effects() for each in ax.get_figure().findobj()]
        with in_dark(ax.get_figure()):
            found[f"{name} in the dark"] = complaints(ax.get_figure())
        assert [each.get_path_effects() for each in ax.get_figure().findobj()] == around
    assert not {name: wrong for name, wrong in found.items() if wrong}


def test_every_figure_of_runs_says_how_many(drawn):
    for name, ax in drawn.items():
        if name not in {*CONSTRUCTIONS, "lines", "estimates", "regimes", "verdicts"} | {
            "plan 1",
            "plan 2",
        }:
            assert "n = " in words(ax) or "runs" in words(ax) or "seeds" in words(ax), name


def test_figures_made_on_threads_are_those_made_one_by_one(tmp_path):
    def drawn(number):
        ax = plots.trajectories(made_runs(seed=number))
        return plots.save(ax, tmp_path / f"{number}.png", dpi=50).read_bytes()

    one_by_one = [drawn(number) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(drawn, range(4))) == one_by_one


def test_importing_is_light_and_pyplot_is_never_loaded():
    code = (
        "import sys; from replay import plots; import pandas as pd\n"
        "assert 'matplotlib' not in sys.modules\n"
        "run = {'run': ['a'], 'generation': [0], 'best_fitness': [1.0]}\n"
        "plots.trajectories(pd.DataFrame(run))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_best_tenth_of_configurations_is_thick():
    chart = charts.parallel_coordinates(sweep_runs())
    _, lines = marks(chart, "polylines")
    assert sum(width == 3.0 for width in lines.widths) == 3
    said = words(chart.draw())
    assert "30 configurations coloured by fitness, the best 3 thick" in said


def test_bad_choices_list_the_good_ones():
    with pytest.raises(ValueError, match=r"generation, calls, .*got 'time'"):
        plots.trajectories(made_runs(), x="time")
    with pytest.raises(ValueError, match=r"light, dark, neutral, got 'solarized'"):
        plots.trajectories(made_runs(), theme="solarized")
    with pytest.raises(ValueError, match=r"circles, points, triangle, got ''"):
        plots.construction("", [])
    with pytest.raises(ValueError, match=r"pool and allocation, got \['luck'\]"):
        plots.pool_vs_allocation(made_effects().assign(effect="luck"))


@pytest.mark.parametrize("gap", [False, True])
def test_the_table_of_a_chart_has_values_and_not_places_in_strips(gap):
    frame = pd.concat([made_runs(5, model=name, seed=k) for k, name in enumerate("ab")])
    table = charts.trajectories(frame, gap=gap).table()
    for name in "ab":
        rows = frame[frame["model"] == name]
        median = rows.groupby("generation")["best_fitness"].median()
        own = table[table["label"] == name]
        np.testing.assert_allclose(own["y"], median)
    lines = table[(table["label"] == "") & (table["mark"] == "line")]
    assert sorted(lines["y"].round(9)) == sorted(frame["best_fitness"].round(9))
    curves = made_curves()
    again = charts.policy_curves(curves).table()
    for name, part in curves.groupby("policy"):
        own = again[again["label"] == name]
        for column, wanted in (("y", "value"), ("low", "low"), ("high", "high")):
            np.testing.assert_allclose(own[column], part[wanted])
