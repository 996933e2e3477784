import dataclasses
import itertools
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from looks import complaints, texts
from matplotlib.collections import PatchCollection
from synthetic_runs import as_frame, bilinear_runs, chain_runs, sweep_runs

import replay
from replay import plots
from replay.claims.decision import VERDICTS as OUTCOMES
from replay.planning.bilinear import fit_bilinear
from replay.plots import charts
from replay.plots.output import in_dark
from replay.plots.policies import EFFECTS, VERDICTS, outcome
from replay.plots.style import THEMES
from replay.statistics.intervals import curve_band

ROOT = Path(__file__).parents[3]
POLICIES = ["single", "random", "ucb1 (c = 0.1)", "thompson", "successive_halving"]


def made_runs(n=10, generations=16, *, model="offline", children=16, task="circle_packing", seed=0):
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0, 0.05, (n, generations + 1)) * (rng.random((n, generations + 1)) < 0.3)
    steps[:, 0] = 0.36
    frame = as_frame(
        steps.cumsum(axis=1), children=children, seeds=range(n), task=task, model=model
    )
    later = frame["generation"] > 0
    flops = np.where(later, rng.uniform(1e12, 2e12, len(frame)), np.nan)
    tokens = later * rng.uniform(200, 900, len(frame)).round()
    return frame.assign(flops=flops, prompt_tokens=later * 700.0, completion_tokens=tokens)


def made_curves():
    parts = []
    for k, policy in enumerate(POLICIES):
        steps = np.random.default_rng(k).uniform(0, 0.02, (20, 50))
        band = curve_band(0.3 + steps.cumsum(axis=1), statistic="mean", first=1)
        parts.append(band.drop(columns="coverage").assign(policy=policy, round=band.index))
    return pd.concat(parts, ignore_index=True)


def made_pulls():
    table = pd.DataFrame(itertools.product(POLICIES, range(1, 11)), columns=["policy", "rank"])
    value = 0.12 - 0.004 * table["rank"]
    return table.assign(value=value, low=value * 0.8, high=value * 1.2, n=25)


def made_times():
    table = pd.DataFrame(itertools.product(POLICIES, (0.8, 0.9)), columns=["policy", "tau"])
    table = table.assign(time=20.0, low=15.0, high=40.0, share=0.9, share_reached=0.62, n=25)
    table.loc[:3, "high"] = np.inf
    table.loc[1, "time"] = np.inf
    return table


def made_effects():
    table = pd.DataFrame(itertools.product(POLICIES, EFFECTS), columns=["policy", "effect"])
    return table.assign(value=0.1, low=0.08, high=0.13, n=25)


def made_ledger():
    verdicts = ["greater", "less", "undetermined", "does not apply", "within margin"]
    claims = ["one", "one", "two", "two", "three"]
    table = pd.DataFrame({"claim": claims, "verdict": verdicts, "n": 10})
    return table.assign(source="logs", task=["a", "b", "a", "b", "a"])


CONSTRUCTIONS = {
    "circles": (np.random.default_rng(0).random((26, 2)), np.linspace(0, 0.1, 26), 1.3),
    "points": np.random.default_rng(1).standard_normal((16, 2)).tolist(),
    "triangle": [[0.1 + 0.07 * k, 0.02 * k**1.5 / 3] for k in range(11)],
}
WORDS = {"title": "A title", "about": "About ten runs.", "x": "budget (calls)"}
TABLE = pd.DataFrame(
    {
        "value": [0.1, 0.2, 0.3, np.nan],
        "low": [0.0, 0.1, np.nan, np.nan],
        "high": [0.2, 0.3, np.nan, np.nan],
        "task": ["a", "b", "a", "b"],
    },
    index=["deep", "deep", "broad", "broad"],
)


@pytest.fixture(scope="module")
def runs():
    return bilinear_runs(budget=64)


@pytest.fixture(scope="module")
def grid(runs):
    return replay.depth_breadth(runs)


@pytest.fixture(scope="module")
def planned():
    frame, children = chain_runs(sizes=(1, 2, 4, 8), budget=8)
    return replay.plan(frame, children=children, budget=16, tau=0.5, kernels=4, arms=(2,))


def raced():
    rewards = np.clip(np.random.default_rng(1).normal([[0.2], [0.8], [0.7]], 0.1, (3, 40)), 0, 1)
    return replay.select(rewards)


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


def marks(chart, kind, **look):
    """The marks of a kind in the only panel of a chart, that have these attributes."""
    [panel] = chart.panels
    return [
        mark
        for mark in panel.marks
        if mark.kind == kind and all(getattr(mark, name) == value for name, value in look.items())
    ]


def words(ax):
    return " | ".join(text.get_text() for text in texts(ax)).replace("\n", " ")


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


def test_too_few_runs_for_an_interval_are_said():
    curves = made_curves()
    assert "Mean and 95 % interval over runs" in words(plots.policy_curves(curves))
    measured = curves.assign(coverage=0.917)
    assert "Mean and 92 % interval over runs" in words(plots.policy_curves(measured))
    few = curves.assign(low=np.nan, high=np.nan, n=3)
    assert "too few runs for an interval; n = 3 runs" in words(plots.policy_curves(few))


def test_facets_say_once_what_all_say_and_give_a_name_one_colour():
    tasks = ["circle_packing", "min_max_distance", "third"]
    frame = pd.concat([made_runs(4, task=t, model=m) for t in tasks for m in ("b", "a")])
    parts = dict(list(frame.groupby("task")))
    draw = lambda task, ax: plots.trajectories(parts[task], by="model", ax=ax)  # noqa: E731
    figure = plots.facets(tasks, draw, columns=2)
    shown = replay.show(figure)
    assert repr(shown) == f"Best so far, N = 16; {'; '.join(tasks)}"
    assert "thin: every run; n = 4 each" in figure.get_supxlabel()
    assert not complaints(figure)
    parts["third"] = parts["third"].query("model == 'a'")
    figure = plots.facets(tasks, draw)
    named = [
        [text.get_text() for text in ax.texts if text.get_text() in "ab"] for ax in figure.axes
    ]
    assert named == [[], ["a", "b"], ["a"]]  # strips side by side are named at the right
    wide = [{line.get_color() for line in ax.lines if line.get_lw() > 2} for ax in figure.axes]
    assert list(map(len, wide)) == [2, 2, 1]
    assert wide[2] < wide[0] == wide[1]


def test_facets_of_rows_share_their_names_and_their_legend():
    effects = made_effects()
    draw = lambda name, ax: plots.pool_vs_allocation(effects, of=name, ax=ax)  # noqa: E731
    figure = plots.facets(["one", "two"], draw)
    replay.show(figure)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one", "two"]
    assert [ax.get_legend() for ax in figure.axes] == [None, None]
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(EFFECTS.values())
    seen = [ax.yaxis.get_major_ticks()[0].label1.get_visible() for ax in figure.axes]
    assert seen == [True, False]


def test_facets_of_heatmaps_name_their_colours_once_and_can_be_read_on_a_narrow_page(grid):
    figure = plots.facets(["one", "two", "three"], lambda _, ax: plots.heatmap(grid, ax=ax))
    bars = [ax.get_ylabel() for ax in figure.axes[3:]]
    assert bars == ["", "", "mean best fitness"]
    replay.show(figure)
    assert not complaints(figure)
    shown = 715 / figure.get_figwidth() / 72  # pixels of a point where JupyterLab has 900
    assert min(text.get_fontsize() for ax in figure.axes for text in texts(ax)) * shown > 9


def test_verdicts_are_coloured_and_only_those_that_apply():
    chart = charts.verdicts(made_ledger(), columns=["task"])
    ax = chart.draw()
    found = {
        (round(mark.x0[0] + 0.48, 6), round(mark.y0[0] + 0.44, 6)): mark.color
        for mark in marks(chart, "spans", opacity=1.0)
    }
    kinds = ("greater", "less", "undetermined", "within margin")
    assert set(kinds) == set(OUTCOMES)
    colours = [VERDICTS[kind] for kind in kinds]
    assert len(set(colours)) == len(kinds)
    assert found == dict(zip([(0, 0), (1, 0), (0, 1), (0, 2)], colours, strict=True))
    assert [each.get_text() for each in ax.get_xticklabels()] == ["a", "b"]
    long = [made_ledger().assign(source=f"a_model-of-{k}b-parameters") for k in range(4)]
    assert not complaints(plots.verdicts(pd.concat(long)).get_figure())


def test_pulls_and_references_lie_where_they_were_made():
    made = SimpleNamespace(pulls=np.array([0, 2, 1, -1]), arms=[None] * 3)
    points = plots.pulls(made).collections[0].get_offsets()
    assert points.tolist() == [[1, 1], [2, 3], [3, 2]]
    ax = plots.trajectories(made_runs(3), references={"nearest_neighbour": 0.5})
    assert ax.lines[-1].get_ydata() == [0.5, 0.5]
    assert "nearest neighbour" in words(ax)


def test_shares_of_pulls_are_in_percent():
    table = made_pulls()
    for line, policy in zip(marks(charts.pulls_per_arm(table), "line"), POLICIES, strict=True):
        own = table.loc[table["policy"] == policy, "value"]
        np.testing.assert_allclose(line.y, 100 * own)


def test_odds_are_those_of_the_kernels_of_resampled_runs():
    kernel = replay.fit_kernel(chain_runs(budget=16)[1])
    [line] = [each for each in plots.odds(kernel, draws=5).lines if each.get_linewidth() > 1]
    seen = kernel.seen & np.isfinite(kernel.fitness)
    seen[0] = False
    shares = [each.better[seen] for each in kernel.resampled(5)]
    np.testing.assert_allclose(line.get_ydata(), 100 * np.median(shares, axis=0))
    np.testing.assert_allclose(line.get_xdata(), kernel.fitness[seen])


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


def test_trajectories_draw_every_run_and_their_median():
    frame = made_runs(7)
    ax = plots.trajectories(frame)
    wide = frame.pivot(index="run", columns="generation", values="best_fitness").to_numpy()
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
    for run in wide:
        assert any(np.array_equal(run, line) for line in drawn)
    assert sum(np.allclose(np.median(wide, axis=0), line) for line in drawn) == 2
    assert len(drawn) == 7 + 2


def test_of_many_groups_in_one_panel_only_medians_and_bands_are_drawn():
    frame = pd.concat([made_runs(4, model=f"m{k}") for k in range(8)])
    ax = plots.trajectories(frame, together=True)
    assert len(ax.lines) == 2 * 8
    assert "thin" not in words(ax)


def spans(ax):
    """Lowest and highest points of the bands that are drawn, from below."""
    bands = [each.get_paths()[0].vertices[:, 1] for each in ax.collections if each.get_paths()]
    return sorted((band.min(), band.max()) for band in bands if np.ptp(band) > 0)


def test_bands_of_several_lines_never_overlap_but_in_one_panel():
    apart = spans(plots.policy_curves(made_curves()))
    assert len(apart) == len(POLICIES)
    assert all(lower[1] < upper[0] for lower, upper in itertools.pairwise(apart))
    table = made_curves().rename(columns={"policy": "by"})
    one = plots.lines(table, y="fitness", by="by", at="round", together=True, **WORDS)
    together = spans(one)
    assert any(lower[1] > upper[0] for lower, upper in itertools.pairwise(together))
    band = table[["low", "high"]].to_numpy()
    assert one.get_ylim()[0] <= band.min() < band.max() <= one.get_ylim()[1]


def test_every_strip_has_the_same_range_its_ticks_its_name_and_the_other_medians():
    frame = pd.concat([made_runs(8, model=f"m{k}", seed=k) for k in range(4)])
    ax = plots.trajectories(frame, references={"known": 0.9})
    ax.figure.draw_without_rendering()
    ticks = [text.get_text() for text in ax.get_yticklabels()]
    assert ticks == ticks[: len(ticks) // 4] * 4
    heights = np.reshape(ax.get_yticks(), (4, -1))
    assert np.allclose(np.diff(heights, axis=0), -1)  # one strip is one unit high
    low, high = float(ticks[0]), float(ticks[len(ticks) // 4 - 1])
    unit = (heights[0, -1] - heights[0, 0]) / (high - low)
    wide = [line for line in ax.lines if line.get_lw() > 2]
    faint = [each for each in ax.lines if each.get_color() == THEMES["light"].faint]
    grey = [each.get_ydata() for each in faint if len(each.get_ydata()) > 2]
    assert len(grey) == 4  # one mark for each strip: where its lines cross it gets no darker
    for k, line in enumerate(wide):
        runs = frame[frame["model"] == f"m{k}"]
        median = runs.groupby("generation")["best_fitness"].median().to_numpy()
        assert np.allclose(line.get_ydata(), heights[k, 0] + unit * (median - low))
        others = [each.get_ydata() - (k - order) for order, each in enumerate(wide) if order != k]
        assert np.allclose(grey[k], np.hstack([[*each, np.nan] for each in others]), equal_nan=True)
    names = {text.get_text(): text.xy[1] for text in ax.texts if text.get_text()}
    assert [math.floor(names[f"m{k}"]) for k in range(4)] == [3, 2, 1, 0]
    assert math.floor(names["known"]) == 3
    assert not complaints(ax.figure)


def test_the_medians_of_other_tasks_are_not_shown_and_many_strips_fit_a_screen():
    tasks = [made_runs(2, task=task, seed=k) for k, task in enumerate(("circle_packing", "other"))]
    few = charts.trajectories(pd.concat(tasks))
    assert not [
        mark for mark in few.panels[0].marks if mark.kind == "line" and mark.color == "faint"
    ]
    sizes = [made_runs(2, children=2**k, seed=k) for k in range(10)]
    assert charts.trajectories(pd.concat(sizes)).panels[0].height == 600
    assert charts.trajectories(pd.concat(sizes[:4])).panels[0].height == 4 * 85


@pytest.mark.parametrize("level", [0.0, 0.7])
def test_a_task_of_one_level_has_no_negative_axis(level):
    models = pd.concat([made_runs(3, model=name) for name in "ab"]).assign(best_fitness=level)
    alone = plots.trajectories(models[models["model"] == "a"])
    assert 0 <= alone.get_ylim()[0] <= level < alone.get_ylim()[1]
    ticks = [text.get_text() for text in plots.trajectories(models).get_yticklabels()]
    assert ticks
    assert min(map(float, ticks)) >= 0


@pytest.mark.parametrize("count", [2, 10])
def test_strips_can_be_read_however_many_there_are(count):
    frame = pd.concat([made_runs(3, 3, children=2**k, seed=k) for k in range(count)])
    assert not complaints(plots.trajectories(frame, x="calls").figure)
    [ax] = plots.subplots(height=4.6)[1]
    plots.trajectories(frame, x="calls", ax=ax)
    assert not complaints(ax.figure)


@pytest.mark.parametrize(("x", "columns"), [
    ("calls", ["n_calls"]),
    ("tokens", ["prompt_tokens", "completion_tokens"]),
    ("flops", ["flops"]),
    ("seconds", ["seconds"]),
])  # fmt: skip
def test_costs_add_up_over_generations(x, columns):
    frame = made_runs(4)
    ax = plots.trajectories(frame, x=x)
    totals = frame.groupby("run")[columns].sum().sum(axis=1)
    ends = [line.get_xdata()[-1] for line in ax.lines[:4]]
    assert sorted(ends) == pytest.approx(sorted(totals))


@pytest.mark.parametrize("generations", [1, 5])
@pytest.mark.parametrize(("x", "size"), [("generation", 1), ("calls", 24)])
def test_no_trajectory_passes_its_last_position(generations, x, size):
    """Best of 24 is a step up to a dot; a bar shows the interval of the last value."""
    frame = made_runs(6, generations=generations, children=24)
    chart = charts.trajectories(frame, x=x)
    for line in marks(chart, "line"):
        assert line.x[-1] == size * generations
    ends, median, bar = marks(chart, "points")
    assert list(ends.x) == [size * generations] * 6
    assert list(median.x) == list(bar.x) == [size * generations]
    assert bar.y_low[0] < bar.y_high[0]
    alone = charts.trajectories(frame[frame["generation"] == 0])
    assert all(len(set(line.x)) == 1 for line in marks(alone, "line"))


def test_forks_are_drawn_as_gains_over_the_state_that_they_left():
    frame = made_runs(6, generations=8, children=4)
    frame = frame.assign(
        forked_from="a state", n_calls=frame["n_calls"] * (frame["generation"] > 3)
    )
    ax = plots.worth(frame)
    assert "interval over copies; thin: every copy" in words(ax)
    assert ax.get_ylabel() == "gain over the state of the fork"
    wide = frame.pivot(index="run", columns="generation", values="best_fitness").to_numpy()
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
    for run in wide:
        assert any(np.array_equal(run[3:] - run[3], line) for line in drawn)
    for line in ax.lines:  # five generations of four calls
        assert line.get_xdata()[-1] == 5 * 4
    others = frame.assign(forked_from=frame["run"].str[-1])
    with pytest.raises(ValueError, match="forks of one state"):
        plots.worth(others)


def test_an_unknown_cost_is_not_drawn_as_none():
    with pytest.raises(ValueError, match="does not say its dollars in 16 generations"):
        plots.trajectories(made_runs(), x="dollars")


def test_a_group_without_any_fitness_is_named(tmp_path):
    failed = made_runs(4, model="qwen3-8b").assign(best_fitness=np.nan)
    ax = plots.trajectories(pd.concat([made_runs(3), failed]))
    assert "qwen3-8b (n = 4, nothing ok)" in words(ax)
    unnamed = made_runs(2, model=None)
    assert "(n = 2)" in words(plots.trajectories(pd.concat([made_runs(3), unnamed])))
    plots.save(ax, tmp_path / "failed.png")


def test_groups_are_whatever_differs_and_the_offline_model_is_no_llm():
    said = words(plots.trajectories(pd.concat([made_runs(3), made_runs(5, children=4)])))
    assert "N = 16 (n = 3)" in said
    assert "N = 4 (n = 5)" in said
    assert "no interval" in words(plots.trajectories(made_runs(1, 0)))
    assert "not an LLM" in words(plots.trajectories(made_runs()))
    assert "not an LLM" not in words(plots.trajectories(made_runs(model="qwen3-8b")))


def test_the_median_is_dashed_where_some_runs_have_no_value():
    frame = made_runs(5)
    first = frame["run"] == frame["run"].iloc[0]
    frame = frame[~first | (frame["generation"] <= 10)].copy()
    frame.loc[
        (frame["run"] == frame["run"].iloc[-1]) & (frame["generation"] < 3), "best_fitness"
    ] = np.nan
    ax = plots.trajectories(frame)
    solid = np.asarray(ax.lines[-1].get_ydata(), dtype=float)
    assert np.array_equal(np.flatnonzero(np.isfinite(solid)), np.arange(3, 11))
    assert np.isfinite(np.asarray(ax.lines[-2].get_ydata(), dtype=float)).all()
    assert "dashed where only some have a value" in words(ax)
    assert "dashed" not in words(plots.trajectories(made_runs(5)))
    half = made_runs(4)
    gone = half["run"].isin(half["run"].unique()[:2]) & (half["generation"] > 10)
    of_half = plots.trajectories(half[~gone]).lines[-2].get_ydata()
    assert np.isfinite(np.asarray(of_half, dtype=float)).all()


def test_the_best_tenth_of_configurations_is_thick():
    chart = charts.parallel_coordinates(sweep_runs())
    _, lines = marks(chart, "polylines")
    assert sum(width == 3.0 for width in lines.widths) == 3
    said = words(chart.draw())
    assert "30 configurations coloured by fitness, the best 3 thick" in said


@pytest.mark.parametrize(
    ("function", "table"),
    [
        (plots.policy_curves, made_curves()),
        (plots.pulls_per_arm, made_pulls()),
        (plots.threshold_times, made_times()),
        (plots.pool_vs_allocation, made_effects()),
    ],
)
def test_empty_tables_give_a_sentence_and_missing_columns_an_error(function, table):
    assert words(function(table[:0])).startswith("No ")
    for column in table.columns:
        with pytest.raises(ValueError, match=f"{column} missing"):
            function(table.drop(columns=column))


def test_runs_without_a_program_that_is_ok_are_a_sentence():
    for frame in (made_runs()[:0], made_runs().assign(best_fitness=np.nan)):
        assert "No run has a program that is ok." in words(plots.trajectories(frame))


def test_bad_choices_list_the_good_ones():
    with pytest.raises(ValueError, match=r"generation, calls, .*got 'time'"):
        plots.trajectories(made_runs(), x="time")
    with pytest.raises(ValueError, match=r"light, dark, neutral, got 'solarized'"):
        plots.trajectories(made_runs(), theme="solarized")
    with pytest.raises(ValueError, match=r"circles, points, triangle, got ''"):
        plots.construction("", [])
    with pytest.raises(ValueError, match=r"pool and allocation, got \['luck'\]"):
        plots.pool_vs_allocation(made_effects().assign(effect="luck"))


def test_an_unreached_threshold_says_how_many_do():
    said = words(plots.threshold_times(made_times()))
    assert "not reached by single: 62 % reach 0.9" in said
    assert "Fitness 0.8" in words(plots.threshold_times(made_times().query("tau == 0.8")))
    never = made_times().assign(time=np.inf, low=np.inf, high=np.inf)
    assert words(plots.threshold_times(never)).count(": 62 %") == len(never)


@pytest.mark.parametrize("limits", [np.nan, np.inf])
def test_a_policy_that_never_reaches_the_threshold_has_an_arrow(limits):
    """Also where there are too few runs for an interval; a row without a mark says nothing."""
    times = made_times().query("tau == 0.8").assign(time=30.0, low=20.0, high=40.0)
    times.loc[times["policy"] == "random", ["time", "low", "high"]] = [np.inf, limits, limits]
    chart = charts.threshold_times(times)
    [arrows], [dots] = (marks(chart, "points", shape=shape) for shape in ("later", "dot"))
    assert np.flatnonzero(np.isfinite(arrows.x)).tolist() == [1]  # the row of `random`
    assert np.flatnonzero(np.isfinite(dots.x)).tolist() == [0, 2, 3, 4]
    assert dots.y == [0, 1, 2, 3, 4]


def test_a_race_has_a_winner_only_where_that_is_certain():
    race = SimpleNamespace(winner=1, labels=["a", "b"])
    for end, found in (
        ("certain", "winner b"),
        ("exhausted", "not certain, as there are no further samples; b was ahead"),
        ("budget", "not certain, as the budget is spent; b was ahead"),
        ("stopped", "not certain, as it was stopped; b was ahead"),
    ):
        race.end = end
        assert outcome(race, 40) == found
    race.winner = None
    assert outcome(race, 40) == "no configuration is left"


def test_constructions_say_what_they_are_worth():
    _, radii, _ = CONSTRUCTIONS["circles"]
    ax = plots.construction("circles", CONSTRUCTIONS["circles"])
    assert f"{sum(radii):.6f}" in words(ax)
    [discs] = marks(charts.construction("circles", CONSTRUCTIONS["circles"]), "discs")
    assert len(discs.r) == 26
    square = [(x, y) for x in range(4) for y in range(4)]
    chart = charts.construction("points", square)
    assert f"{1 / np.sqrt(18):.6f}" in words(chart.draw())
    diagonals, sides = marks(chart, "segments")
    assert (len(diagonals.x0), len(sides.x0)) == (2, 24)
    assert "undefined" in words(plots.construction("points", [[1.0, 2.0]] * 16))
    ax = plots.construction("triangle", [[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
    assert "1.000000" in words(ax)


def test_the_heatmap_shows_each_cell_once_and_frames_what_may_be_best(grid):
    ax = plots.heatmap(grid)
    cells, _ = [each for each in ax.collections if isinstance(each, PatchCollection)]
    boxes = [path.get_extents() for path in cells.get_paths()]
    at = list(zip(np.log2(grid.cells["generations"]), np.log2(grid.cells["children"]), strict=True))
    assert sorted(((b.x0 + b.x1) / 2, (b.y0 + b.y1) / 2) for b in boxes) == sorted(at)
    [frames] = marks(charts.heatmap(grid), "spans")
    assert len(frames.x0) == (grid.cells["p_best"] >= 0.1).sum()
    drawn = {
        text.get_position(): text.get_text() for text in ax.texts if type(text).__name__ == "Text"
    }
    for place, value in zip(at, grid.cells["value"], strict=True):
        assert float(drawn[place]) == pytest.approx(value, abs=0.006)
    assert "n = 10 runs per cell" in words(ax)


def test_slices_show_the_asked_budgets_with_intervals(grid):
    chart = charts.slices(grid, budgets=[64, 16])
    assert [len(each.y_low) for each in marks(chart, "points")] == [5, 7]
    assert "C = 16" in words(chart.draw())
    with pytest.raises(ValueError, match=r"got \[48\]"):
        plots.slices(grid, budgets=[48])


def test_a_task_must_be_named_where_there_are_several(runs):
    both = pd.concat([runs, runs.assign(task="other", run=runs["run"] + "-b")])
    grid = replay.depth_breadth(both, resamples=10)
    with pytest.raises(ValueError, match=r"expected a task among \['toy', 'other'\]"):
        plots.heatmap(grid)
    assert "other" in words(plots.heatmap(grid, task="other"))
    with pytest.raises(ValueError, match="got 'none'"):
        plots.heatmap(grid, task="none")


def test_the_card_has_a_third_panel_only_with_tau_and_one_where_nothing_is_forecast(planned):
    forecast = dataclasses.replace(planned, inside=True)
    assert len(plots.planner_card(dataclasses.replace(forecast, tau=None))) == 2
    assert "0.5" in words(plots.planner_card(forecast)[2])
    [alone] = plots.planner_card(planned)
    assert "No forecast" in words(alone)


def test_regimes_add_up_to_one_at_every_budget(runs):
    chart = charts.regime_probabilities(fit_bilinear(runs), budgets=(8, 64))
    drawn = np.array([line.y for line in marks(chart, "line")])
    np.testing.assert_allclose(drawn.sum(axis=0), 1.0)
    ax = chart.draw()
    assert "draws of the coefficients from the multivariate t distribution" in words(ax)
    assert "resample" not in words(ax)


@pytest.mark.parametrize(("scale", "places"), [
    ("plain", [[0.75, 3.75], [1.25, 4.25]]),
    ("doublings", [[2**-0.25, 2**1.75], [2**0.25, 2**2.25]]),
])  # fmt: skip
def test_lines_are_moved_apart_in_the_units_of_their_axis_with_their_bars(scale, places):
    rows = [("a", 1, 0.5, 0.2, 0.9), ("a", 4, 0.6, 0.3, 1.0)]
    rows += [("b", *row[1:]) for row in rows]
    table = pd.DataFrame(rows, columns=["line", "x", "value", "low", "high"])
    drawn = {"by": "line", "limits": "bars", "apart": 0.5, "scale": scale}
    chart = charts.lines(table, y="fitness", **drawn, **WORDS)
    assert [line.x.tolist() for line in marks(chart, "line")] == [pytest.approx(p) for p in places]
    for bars, each in zip(marks(chart, "points"), places, strict=True):
        np.testing.assert_allclose(bars.x, each)
        np.testing.assert_allclose(bars.y_low, [0.2, 0.3])
        np.testing.assert_allclose(bars.y_high, [0.9, 1.0])


def test_each_estimate_has_its_row_and_each_group_its_colour():
    ax = plots.estimates(TABLE, groups="task", **WORDS)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["deep", "broad"]
    a, b = marks(charts.estimates(TABLE, groups="task", **WORDS), "points")
    assert a.x.tolist() == [0.1, 0.3]
    assert b.x[0] == 0.2
    assert [round(y) for y in a.y] == [0, 1]
    assert a.color != b.color
    with pytest.raises(ValueError, match="low, high missing"):
        plots.estimates(TABLE[["value"]], **WORDS)


@pytest.mark.parametrize("value", [
    [[0.0, 1.0]] * 2_000, [[0.0, np.inf]] * 16, [[1.0] * 3] * 16, "<b>", {"a": 1}, None, [[[]]],
])  # fmt: skip
@pytest.mark.parametrize("picture", CONSTRUCTIONS)
def test_a_value_that_is_no_construction_is_refused(picture, value):
    with pytest.raises(ValueError, match="no picture of"):
        plots.construction(picture, value)


def test_the_triangle_that_is_marked_is_the_smallest():
    value = [[0, 0], [1, 0], [0.5, 0.8], [0.5, 0.01]]
    ax = plots.construction("triangle", value)
    corners = {tuple(corner) for corner in ax.patches[-1].get_xy().tolist()}
    assert corners == {(0, 0), (1, 0), (0.5, 0.01)}


def test_configurations_of_a_race_can_be_told_apart():
    found = replay.select(sweep_runs(12, 8, noise=0.05))
    ax = plots.race(found)
    names = [name.rpartition(" (n")[0] for name in vars(ax)["rows"]]
    assert len(set(names)) == len(names) == len(found.labels)
    said = " ".join(text.get_text().replace("\n", " ") for text in ax.texts)
    assert "named by model, temperature, children" in said
    [first, *_] = vars(plots.race(raced()))["rows"]
    assert first.startswith("configuration")  # short names stay as they are


def test_a_race_shows_each_configuration_up_to_the_round_in_which_it_was_retired():
    found = raced()
    texts = [text for bars in marks(charts.race(found), "bars") for text in bars.texts]
    alive = np.array([each.alive[0] for each in found.rounds])
    assert not alive[-1].all()
    for k, label in enumerate(found.labels):
        words = [text for text in texts if text.startswith(f"{label}\n")]
        last = max(int(text.split("round ")[1].split(":")[0]) for text in words)
        retired = np.flatnonzero(~alive[:, k])
        assert last == (retired[0] + 1 if len(retired) else len(found.rounds))


def test_slices_show_the_largest_budget_and_smaller_ones_each_a_quarter_of_the_next(grid):
    known = set(grid.cells.loc[grid.cells["p_best"].notna(), "calls"])
    wanted = [C for C in (max(known) // 4**k for k in range(4)) if C in known]
    assert len(known) > len(wanted) > 1
    ax, stated = plots.slices(grid), plots.slices(grid, budgets=wanted)
    assert words(ax) == words(stated)
    assert len(ax.lines) == len(stated.lines) < len(plots.slices(grid, budgets=known).lines)


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


def test_what_is_missing_to_the_optimum_is_drawn_on_a_logarithmic_axis():
    frame = made_runs(4)
    frame["best_fitness"] = 1 - 10 ** (-20 * frame["best_fitness"])
    chart = charts.trajectories(frame, gap=True, references={"known": 0.999})
    [panel] = chart.panels
    line = marks(chart, "line")[0]
    first = frame[frame["run"] == frame["run"].iloc[0]]["best_fitness"]
    wanted = -np.log10(np.maximum(1 - first, 1e-9))
    np.testing.assert_allclose(line.y, wanted, atol=1e-9)
    assert dict(panel.y.ticks)[3.0] == "0.001" or min(dict(panel.y.ticks)) > 3
    [rule] = marks(chart, "rule")
    assert rule.y == pytest.approx(3.0)
    assert panel.y.label == "1 - best fitness"


def test_groups_stand_in_the_order_of_their_numbers_and_no_curve_pools_several_n():
    curve = np.linspace(0.1, 0.9, 5)
    parts = [
        as_frame(np.stack([curve, curve]), children=size, seeds=range(2), model=model)
        for model in ("m", "a") for size in (16, 1, 4)
    ]  # fmt: skip
    frame = pd.concat(parts, ignore_index=True)

    def names(chart):
        return list(filter(None, dict.fromkeys(chart.table()["label"].dropna())))

    one = frame[frame["model"] == "m"]
    assert names(plots.charts.trajectories(one)) == ["N = 1", "N = 4", "N = 16"]
    pooled = names(plots.charts.trajectories(frame, by="model"))
    assert pooled == [f"{model}, N = {size}" for model in ("m", "a") for size in (1, 4, 16)]
    assert names(plots.charts.trajectories(one, by="model")) == pooled[:3]
    words = {"title": "", "about": "", "x": "x", "y": "y", "by": "K", "at": "x"}
    table = pd.DataFrame({"K": [2, 5, 3], "x": 1.0, "value": 0.0, "low": 0.0, "high": 0.0})
    assert names(plots.charts.lines(table, **words)) == ["2", "3", "5"]
