import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from replay import figures
from replay.statistics import curve_band

ROOT = Path(__file__).parents[2]
THEMES = ["light", "dark", "neutral"]
POLICIES = ["single", "random", "ucb1 (c = 0.1)", "thompson", "successive_halving"]


def made_runs(n=10, generations=16, *, model="offline", children=16, task="circle_packing", seed=0):
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0, 0.05, (n, generations + 1)) * (rng.random((n, generations + 1)) < 0.3)
    steps[:, 0] = 0.36
    fitness = steps.cumsum(axis=1)
    count = generations + 1
    later = np.tile(np.arange(count) > 0, n)
    return pd.DataFrame(
        {
            "run": np.repeat([f"{task}-{model}-{children}-{k}" for k in range(n)], count),
            "task": task,
            "model": model,
            "children": children,
            "generation": np.tile(np.arange(count), n),
            "best_fitness": fitness.ravel(),
            "n_calls": later * children,
            "prompt_tokens": later * 700.0,
            "completion_tokens": later * rng.uniform(200, 900, n * count).round(),
            "flops": np.where(later, rng.uniform(1e12, 2e12, n * count), np.nan),
            "dollars": np.nan,
            "seconds": rng.uniform(1, 3, n * count),
        }
    )


def made_curves():
    parts = []
    for k, policy in enumerate(POLICIES):
        steps = np.random.default_rng(k).uniform(0, 0.02, (20, 50))
        band = curve_band(0.3 + steps.cumsum(axis=1), statistic="mean", first=1)
        parts.append(band.assign(policy=policy, round=band.index))
    return pd.concat(parts, ignore_index=True)


def made_pulls():
    rows = [
        {"policy": p, "rank": r, "value": v, "low": v * 0.8, "high": v * 1.2, "n": 25}
        for k, p in enumerate(POLICIES)
        for r, v in enumerate(np.full(10, 0.1) + np.linspace(0.02, -0.02, 10) * k, start=1)
    ]
    return pd.DataFrame(rows)


def made_times():
    rows = []
    for k, policy in enumerate(POLICIES):
        for tau in (0.8, 0.9):
            never = k == 0 and tau == 0.9
            rows.append(
                {
                    "policy": policy,
                    "tau": tau,
                    "time": np.inf if never else 20.0 + 5 * k,
                    "low": 15.0 + 4 * k,
                    "high": np.inf if k < 2 else 40.0 + 5 * k,
                    "share": 0.9,
                    "share_reached": 0.62,
                    "n": 25,
                }
            )
    return pd.DataFrame(rows)


def made_effects():
    rows = [
        {"policy": p, "effect": e, "value": v, "low": v - 0.02, "high": v + 0.03, "n": 25}
        for k, p in enumerate(POLICIES)
        for e, v in (("pool", 0.1), ("allocation", 0.04 - 0.02 * k))
    ]
    return pd.DataFrame(rows)


CONSTRUCTIONS = {
    "circles": (np.random.default_rng(0).random((26, 2)), np.linspace(0, 0.1, 26), 1.3),
    "points": np.random.default_rng(1).standard_normal((16, 2)).tolist(),
    "triangle": [[0.1 + 0.07 * k, 0.02 * k**1.5 / 3] for k in range(11)],
}


def all_figures(theme="light"):
    """One of each figure, by name."""
    models = pd.concat([made_runs(), made_runs(8, model="qwen3-8b"), made_runs(model="qwen3-14b")])
    drawn = {
        "trajectories": figures.trajectories(made_runs(), theme=theme),
        "models": figures.trajectories(models, x="flops", theme=theme),
        "policy_curves": figures.policy_curves(made_curves(), theme=theme),
        "pulls_per_arm": figures.pulls_per_arm(made_pulls(), theme=theme),
        "threshold_times": figures.threshold_times(made_times(), theme=theme),
        "pool_vs_allocation": figures.pool_vs_allocation(made_effects(), theme=theme),
    }
    for picture, value in CONSTRUCTIONS.items():
        drawn[picture] = figures.construction(picture, value, theme=theme)
    return drawn


def texts(ax):
    """Every text that is seen, after a layout."""
    found = [*ax.texts, ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]
    if ax.get_legend():
        found += ax.get_legend().get_texts()
    if ax.axison:
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            low, high = sorted(limits)
            found += [t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
    return [text for text in found if text.get_text() and text.get_visible()]


def words(ax):
    return " | ".join(text.get_text() for text in texts(ax)).replace("\n", " ")


@pytest.mark.parametrize("theme", THEMES)
def test_no_text_overlaps_another_or_leaves_the_figure(theme):
    for name, ax in all_figures(theme).items():
        figure = ax.get_figure()
        figure.draw_without_rendering()
        boxes = [(t.get_text(), Text.get_window_extent(t)) for t in texts(ax)]
        for (a, one), (b, other) in itertools.combinations(boxes, 2):
            assert not one.padded(-1).overlaps(other.padded(-1)), (name, a, b)
        for text, box in boxes:
            inside = figure.bbox.padded(1)
            assert inside.x0 <= box.x0, (name, text)
            assert box.x1 <= inside.x1, (name, text)
            assert inside.y0 <= box.y0, (name, text)
            assert box.y1 <= inside.y1, (name, text)


def test_every_figure_of_runs_says_how_many():
    for name, ax in all_figures().items():
        if name not in CONSTRUCTIONS:
            assert "n = " in words(ax), name


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_every_figure_can_be_saved(tmp_path, suffix, theme):
    ax = figures.policy_curves(made_curves(), theme=theme)
    data = figures.save(ax, tmp_path / f"figure{suffix}").read_bytes()
    assert data.startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix])


def test_the_neutral_theme_is_transparent_and_the_others_are_not(tmp_path):
    from PIL import Image

    for theme in THEMES:
        path = figures.save(figures.trajectories(made_runs(), theme=theme), tmp_path / "f.png")
        alpha = np.asarray(Image.open(path).convert("RGBA"))[..., 3]
        assert (alpha.min() == 0) == (theme == "neutral")


def test_figures_made_on_threads_are_those_made_one_by_one(tmp_path):
    def drawn(number):
        ax = figures.trajectories(made_runs(seed=number))
        return figures.save(ax, tmp_path / f"{number}.png", dpi=50).read_bytes()

    one_by_one = [drawn(number) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(drawn, range(4))) == one_by_one


def test_importing_is_light_and_pyplot_is_never_loaded():
    code = (
        "import sys; from replay import figures; import pandas as pd\n"
        "assert 'matplotlib' not in sys.modules\n"
        "run = {'run': ['a'], 'generation': [0], 'best_fitness': [1.0]}\n"
        "figures.trajectories(pd.DataFrame(run))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_trajectories_draw_every_run_and_their_median():
    frame = made_runs(7)
    ax = figures.trajectories(frame)
    wide = frame.pivot(index="run", columns="generation", values="best_fitness").to_numpy()
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
    for run in wide:
        assert any(np.array_equal(run, line) for line in drawn)
    assert sum(np.allclose(np.median(wide, axis=0), line) for line in drawn) == 2
    assert len(drawn) == 7 + 2


def test_the_order_of_rows_does_not_matter(tmp_path):
    frame = made_runs()
    mixed = frame.groupby("run", sort=False).sample(frac=1, random_state=1)
    pictures = [
        figures.save(figures.trajectories(f), tmp_path / f"{k}.png").read_bytes()
        for k, f in enumerate((frame, mixed))
    ]
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize(("x", "columns"), [
    ("calls", ["n_calls"]),
    ("tokens", ["prompt_tokens", "completion_tokens"]),
    ("flops", ["flops"]),
    ("seconds", ["seconds"]),
])  # fmt: skip
def test_costs_add_up_over_generations(x, columns):
    frame = made_runs(4)
    ax = figures.trajectories(frame, x=x)
    totals = frame.groupby("run")[columns].sum().sum(axis=1)
    ends = [line.get_xdata()[-1] for line in ax.lines[:4]]
    assert sorted(ends) == pytest.approx(sorted(totals))


def test_an_unknown_cost_is_not_drawn_as_none():
    with pytest.raises(ValueError, match="does not say its dollars in 16 generations"):
        figures.trajectories(made_runs(), x="dollars")


def test_groups_are_whatever_differs():
    both = pd.concat([made_runs(3), made_runs(5, children=4)])
    said = words(figures.trajectories(both))
    assert "N = 16 (n = 3)" in said
    assert "N = 4 (n = 5)" in said
    tasks = pd.concat([made_runs(3), made_runs(3, task="heilbronn_triangle")])
    said = words(figures.trajectories(tasks))
    assert "heilbronn_triangle (n = 3)" in said
    assert "n = 3 each" in said


def test_a_group_without_any_fitness_is_named(tmp_path):
    failed = made_runs(4, model="qwen3-8b").assign(best_fitness=np.nan)
    ax = figures.trajectories(pd.concat([made_runs(3), failed]))
    assert "qwen3-8b (n = 4, nothing ok)" in words(ax)
    unnamed = made_runs(2, model=None)
    assert "(n = 2)" in words(figures.trajectories(pd.concat([made_runs(3), unnamed])))
    figures.save(ax, tmp_path / "failed.png")


def test_the_offline_model_is_said_to_be_no_llm():
    assert "not an LLM" in words(figures.trajectories(made_runs()))
    assert "not an LLM" not in words(figures.trajectories(made_runs(model="qwen3-8b")))


def test_the_median_is_dashed_where_some_runs_have_no_value():
    frame = made_runs(5)
    first = frame["run"] == frame["run"].iloc[0]
    frame = frame[~first | (frame["generation"] <= 10)].copy()
    frame.loc[
        (frame["run"] == frame["run"].iloc[-1]) & (frame["generation"] < 3), "best_fitness"
    ] = np.nan
    ax = figures.trajectories(frame)
    solid = np.asarray(ax.lines[-1].get_ydata(), dtype=float)
    assert np.array_equal(np.flatnonzero(np.isfinite(solid)), np.arange(3, 11))
    assert np.isfinite(np.asarray(ax.lines[-2].get_ydata(), dtype=float)).all()
    assert "dashed where only some have a value" in words(ax)
    assert "dashed" not in words(figures.trajectories(made_runs(5)))


@pytest.mark.parametrize("frame", [
    made_runs()[:0],
    made_runs().assign(best_fitness=np.nan),
])  # fmt: skip
def test_nothing_to_draw_is_said_in_a_sentence(frame, tmp_path):
    ax = figures.trajectories(frame)
    assert "No run has a program that is ok." in words(ax)
    figures.save(ax, tmp_path / "empty.png")


@pytest.mark.parametrize(
    ("function", "table"),
    [
        (figures.policy_curves, made_curves()),
        (figures.pulls_per_arm, made_pulls()),
        (figures.threshold_times, made_times()),
        (figures.pool_vs_allocation, made_effects()),
    ],
)
def test_empty_tables_give_a_sentence_and_missing_columns_an_error(function, table):
    assert words(function(table[:0])).startswith("No ")
    for column in table.columns:
        with pytest.raises(ValueError, match=f"{column} missing"):
            function(table.drop(columns=column))


@pytest.mark.parametrize("generations", [0, 1])
def test_a_single_short_run_has_no_interval(generations, tmp_path):
    ax = figures.trajectories(made_runs(1, generations))
    assert "no interval" in words(ax)
    figures.save(ax, tmp_path / "short.png")


def test_bad_choices_list_the_good_ones():
    with pytest.raises(ValueError, match=r"generation, calls, .*got 'time'"):
        figures.trajectories(made_runs(), x="time")
    with pytest.raises(ValueError, match=r"light, dark, neutral, got 'solarized'"):
        figures.trajectories(made_runs(), theme="solarized")
    with pytest.raises(ValueError, match=r"circles, points, triangle, got ''"):
        figures.construction("", [])
    with pytest.raises(ValueError, match=r"pool and allocation, got \['luck'\]"):
        figures.pool_vs_allocation(made_effects().assign(effect="luck"))


def test_an_unreached_threshold_says_how_many_do():
    said = words(figures.threshold_times(made_times()))
    assert said.count("only 62 % do") == 1
    said = words(figures.threshold_times(made_times().assign(time=np.inf, low=np.inf, high=np.inf)))
    assert said.count("only 62 % do") == len(made_times())


def test_constructions_say_what_they_are_worth():
    _, radii, _ = CONSTRUCTIONS["circles"]
    ax = figures.construction("circles", CONSTRUCTIONS["circles"])
    assert f"{sum(radii):.6f}" in words(ax)
    assert len(ax.collections[0].get_paths()) == 26
    square = [(x, y) for x in range(4) for y in range(4)]
    ax = figures.construction("points", square)
    assert f"{1 / np.sqrt(18):.6f}" in words(ax)
    assert len(ax.lines) == 2 + 24 + 1  # diagonals, sides of the unit squares, points
    ax = figures.construction("triangle", [[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
    assert "1.000000" in words(ax)


@pytest.mark.parametrize(("picture", "value"), [
    ("circles", ([[0.5, 0.5]] * 26, [0.0] * 26)),
    ("points", [[1.0, 2.0]] * 16),
    ("triangle", [[0.0, 0.0]] * 11),
])  # fmt: skip
def test_degenerate_constructions_are_drawn(picture, value, tmp_path):
    figures.save(figures.construction(picture, value), tmp_path / "picture.png")


def test_axes_of_a_page_can_be_given():
    figure, axes = figures.subplots(2, 2)
    assert figures.policy_curves(made_curves(), ax=axes[2]) is axes[2]
    assert figures.construction("points", CONSTRUCTIONS["points"], ax=axes[0]) is axes[0]
    assert len(figure.axes) == 4
