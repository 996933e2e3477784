"""Frames and figures of sweeps."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.text import Text
from synthetic_runs import sweep_runs as made

import evo
import replay
from evo.logs.journal import LogError
from replay import plots as figures
from replay.planning.sweeps import by_configuration, main_effects, pareto_front, swept_fields
from replay.plots.output import save

FIGURES = [
    figures.main_effects,
    figures.parallel_coordinates,
    figures.depth_breadth_slice,
    figures.cost_and_fitness,
]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> evo.Sweep:
    """A real sweep that a budget cut short."""
    return evo.sweep(
        {"generations": [1, 2], "children": [1, 2]}, task="mmd", seeds=[1, 2],
        budget={"calls": 10}, max_concurrent=1, progress=False,
        log_dir=tmp_path_factory.mktemp("s") / "s",
    )  # fmt: skip


def test_one_row_per_configuration_and_seed(swept: evo.Sweep) -> None:
    frame = replay.load_sweep(swept)
    assert len(frame) == 8
    assert not frame.duplicated(["configuration", "seed"]).any()
    assert sorted(frame["status"].unique()) == ["completed", "pending"]
    assert (frame["status"] == "completed").sum() == swept.summary.completed
    over = frame[frame["status"] == "completed"]
    assert (over["n_calls"] == over["generations"] * over["children"]).all()
    assert (over["done"] == over["generations"]).all()
    assert (over["tokens"] == over["prompt_tokens"] + over["completion_tokens"]).all()
    assert frame.loc[frame["status"] == "pending", "fitness"].isna().all()
    assert sorted(swept_fields(frame)) == ["children", "generations"]
    logs = replay.load(*over["log"].unique())
    for _, row in over.iterrows():
        run = logs[(logs["seed"] == row["seed"]) & (logs["children"] == row["children"])]
        at = run[run["generation"] == row["generations"]]
        assert at["best_fitness"].item() == row["fitness"]


def test_what_is_no_sweep_is_said(tmp_path) -> None:
    with pytest.raises(LogError, match="not the folder of a sweep"):
        replay.load_sweep(tmp_path)
    with pytest.raises(ValueError, match="load_sweep makes it: no column 'status'"):
        by_configuration(pd.DataFrame({"run": ["a"]}))
    with pytest.raises(ValueError, match="attrs name no fields"):
        swept_fields(pd.DataFrame())


def test_main_effects_find_what_was_put_in() -> None:
    table = main_effects(made(400, 6)).set_index(["field", "setting"])
    gap = table.loc[("model", "a"), "value"] - table.loc[("model", "b"), "value"]
    assert gap == pytest.approx(0.1, abs=0.02)
    assert (table["low"] <= table["value"]).all()
    assert (table["value"] <= table["high"]).all()
    assert (table["seeds"] == 6).all()
    assert table.loc["model"]["runs"].sum() == 2400
    assert list(table.loc["top_p"].index) == ["0.9", "1", "not asked"]
    assert len(table.loc["max_tokens"]) == 4


def test_configurations_are_means_over_seeds() -> None:
    frame = made()
    table = by_configuration(frame)
    assert len(table) == 30
    means = frame.groupby("configuration")["fitness"].mean()
    assert table["fitness"].tolist() == pytest.approx(means.tolist())
    assert (table["n"] == 4).all()
    assert table["fitness_low"].isna().all()  # four seeds have no interval
    five = by_configuration(made(seeds=5))
    assert ((five["fitness_low"] < five["fitness"]) & (five["n"] == 5)).all()


@pytest.mark.parametrize("named", [{"unit_scale": True}, {"task": "min_max_distance"}])
def test_intervals_of_fitness_keep_to_what_is_possible(named: dict[str, object]) -> None:
    frame = made(3, seeds=5).assign(task="mine", unit_scale=False)
    swing = np.where(frame["seed"] == frame["seed"].min(), 0.01, 0.99)
    frame["fitness"] = np.where(frame["status"] == "completed", swing, np.nan)
    free, kept = by_configuration(frame), by_configuration(frame.assign(**named))
    highest = 1.0 if "unit_scale" in named else np.inf  # a best published value can be surpassed
    assert free["fitness_high"].max() > 1
    assert kept["fitness_high"].tolist() == free["fitness_high"].clip(upper=highest).tolist()
    assert kept["fitness_low"].tolist() == free["fitness_low"].clip(lower=0).tolist()
    assert (main_effects(frame.assign(**named))["high"].max() > 1) == np.isinf(highest)
    beyond = frame.assign(**named, fitness=2 * frame["fitness"])
    assert by_configuration(beyond)["fitness_high"].max() > 1.98


def test_no_row_of_the_front_is_beaten_and_every_other_is() -> None:
    table = by_configuration(made(60))
    front = pareto_front(table, "tokens")

    def beaten(row: pd.Series) -> bool:
        better = (table["tokens"] <= row["tokens"]) & (table["fitness"] >= row["fitness"])
        return bool((better & (table["configuration"] != row["configuration"])).any())

    assert not front.apply(beaten, axis=1).any()
    assert table.drop(front.index).apply(beaten, axis=1).all()


def test_of_rows_as_cheap_or_as_fit_the_front_takes_the_better_alone() -> None:
    table = pd.DataFrame(
        {"tokens": [1, 1, 2, 2, 3, 3], "fitness": [0.2, 0.3, 0.3, 0.5, 0.5, None], "at": range(6)}
    )
    assert pareto_front(table, "tokens")["at"].tolist() == [1, 3]


def test_fitness_below_zero_is_on_the_front_and_a_configuration_that_found_nothing_is_not() -> None:
    table = pd.DataFrame(
        {"tokens": [1, 2, 3, 4], "fitness": [-np.inf, -3.0, -4.0, -1.0], "at": range(4)}
    )
    assert pareto_front(table, "tokens")["at"].tolist() == [1, 3]


def test_the_fitness_axis_of_parallel_coordinates_is_linear_and_its_colours_have_a_bar() -> None:
    """The heights of lines at the last axis, put back into the units of its ticks."""
    frame = made()
    ax = figures.parallel_coordinates(frame)
    end = len(swept_fields(frame))
    notes = [text for text in ax.texts if end < getattr(text, "xy", (0,))[0] < end + 0.2]
    places, values = [note.xy[1] for note in notes], [float(note.get_text()) for note in notes]
    assert len(notes) >= 3
    slope, start = np.polyfit(places, values, 1)
    means = sorted(by_configuration(frame)["fitness"].dropna())
    found = [each for each in ax.collections if isinstance(each, LineCollection)]
    outlines, lines = (each for each in found if len(each.get_segments()[0]) == end + 1)
    heights = np.array([line[-1, 1] for line in lines.get_segments()])
    np.testing.assert_allclose(np.sort(start + slope * heights), means, atol=1e-6)
    widths = np.array(lines.get_linewidths())
    best = len(means) // 10
    thick = heights[widths == widths.max()]
    assert sorted(thick) == sorted(heights)[-best:]
    assert sorted(line[-1, 1] for line in outlines.get_segments()) == sorted(thick)
    [bar] = ax.images
    left, right, low, high = bar.get_extent()
    assert end < left < right  # beside the axis, which it does not hide
    np.testing.assert_allclose(start + slope * np.array([low, high]), (means[0], means[-1]))
    of_lines, of_bar = lines.get_colors(), bar.cmap(bar.norm(bar.get_array()))[:, 0]
    rows = (heights - low) / (high - low) * len(of_bar) - 0.5
    beside = of_bar[np.clip(np.rint(rows), 0, len(of_bar) - 1).astype(int)]
    np.testing.assert_allclose(of_lines, beside, atol=0.02)  # a line has the bar's colour beside it


@pytest.mark.parametrize("draw", FIGURES)
def test_figures_say_what_they_rest_on(draw, tmp_path) -> None:
    ax = draw(made(), theme="dark")
    save(ax, tmp_path / "a.png", dpi=40)
    said = " ".join(text.get_text().replace("\n", " ") for text in ax.figure.findobj(Text))
    assert "without an interval, as there are 4 seeds and intervals need 5" in said
    assert "n = " in said or "30 configurations" in said
    assert "without an interval, as there is 1 seed" in " ".join(
        text.get_text().replace("\n", " ") for text in draw(made(seeds=1)).figure.findobj(Text)
    )


@pytest.mark.parametrize("draw", FIGURES)
def test_figures_of_a_real_sweep_that_is_not_over(draw, swept: evo.Sweep) -> None:
    frame = replay.load_sweep(swept)
    assert draw(frame).get_title(loc="left")


def test_unknown_costs_are_said() -> None:
    with pytest.raises(ValueError, match="expected a cost among tokens"):
        figures.cost_and_fitness(made(), cost="money")
    with pytest.raises(ValueError, match="flops: unknown"):
        figures.cost_and_fitness(made(), cost="flops")
