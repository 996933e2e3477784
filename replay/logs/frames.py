"""What a frame of runs must be: which rows are one run, and what may stand together."""

from __future__ import annotations

import os
import shlex
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from evo.models.offline import OFFLINE_MODELS
from evo.policies.rewards import UNIT_SCALE
from evo.warning import warn
from replay.logs.columns import FAMILY, NESTED, in_order, varies
from replay.logs.given import check_loaded
from replay.logs.versions import told_apart, what_differs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FAILURES = (
    "The value of a run is the best fitness among its initial program and its children. If none of "
    "them was ever ok, the run counts as minus infinity, below all others, and has no mean. A "
    "child that the endpoint did not answer, or whose evaluation was cut short, has no fitness and "
    "is never scored as zero."
)
"""The rule for failures, as tables state it."""

GREEDY = "greedy"


class ReplayWarning(UserWarning):
    """An analysis left out runs, or a replay reached the end of the logs: read its numbers so."""


class Brief:
    """A dataclass of tables and arrays whose repr shows their shapes."""

    def __repr__(self) -> str:
        """Render as `Replay(pulls=(1000, 64), ...)`."""
        shown = [each.name for each in fields(self) if each.repr]  # type: ignore[arg-type]
        shapes = (f"{name}={_shape_of(getattr(self, name))!r}" for name in shown)
        return f"{type(self).__name__}({', '.join(shapes)})"


def _shape_of(value: object) -> object:
    if isinstance(value, dict):
        return {name: _shape_of(each) for name, each in value.items()}
    return getattr(value, "shape", value)


def distinct_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame in which no name stands for two runs, as where two loads are put together.

    A run of a log is known by its path and its header; where nothing tells of these, the frame's
    own names are taken at their word.
    """
    keys = [name for name in ("source", "header") if name in frame]
    if "header" not in keys or frame["run"].isna().any():
        return frame
    if "source" in keys:
        frame = _one_path_each(frame)
    logged = frame["header"].notna()
    known = frame.loc[logged, ["run", *keys]].drop_duplicates()
    twice = known["run"].duplicated(keep=False)
    if not twice.any():
        return frame
    named = known["run"].astype(str).where(~twice, known[keys].astype(str).agg("#".join, axis=1))
    new = frame[["run", *keys]].merge(known.assign(named=named), how="left", on=["run", *keys])
    run = new["named"].where(new["named"].notna(), new["run"]).to_numpy()
    if "repeat_of" in frame:
        frame = frame.assign(repeat_of=_renamed_originals(frame, run))
    return frame.assign(run=run)


def _renamed_originals(frame: pd.DataFrame, run: NDArray[np.object_]) -> pd.Series[str]:
    """Column `repeat_of` with the new names of the runs, of runs of one name that with its seed."""
    new = dict(zip(zip(frame["run"], frame["seed"], strict=True), run, strict=True))
    named = [
        new.get((of, seed), of)
        for of, seed in zip(frame["repeat_of"].fillna(""), frame["seed"], strict=True)
    ]
    return pd.Series(named, index=frame.index)


def _one_path_each(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame in which each log has one path and one name, however it was named when it was read.

    Of rows that stand there twice, since a log was loaded twice, the later ones stay.
    """
    paths = {path: os.path.realpath(path) for path in frame["source"].unique() if path}
    if len(set(paths.values())) == len(paths):
        return frame
    first: dict[str, str] = {}
    for path, real in paths.items():
        first.setdefault(real, path)
    source = frame["source"].map(lambda path: first[paths[path]] if path else path)
    frame = frame.assign(source=source)
    logged = frame["header"].notna() & (source != "")
    name = frame[logged].groupby(["source", "header"], sort=False)["run"].transform("first")
    frame = frame.assign(run=name.reindex(frame.index).fillna(frame["run"]))
    places = [each for each in ("source", "header", "run", "generation", "index") if each in frame]
    return frame[~(frame.duplicated(places, keep="last") & logged)]


def split_repeats(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Returns the rows that count, and the number of runs that were left out as repeats.

    A repeat counts where the run that it repeats is not in the frame; of several such repeats of
    one run the longest does.
    """
    if "repeat_of" not in frame or not frame["repeat_of"].fillna("").astype(bool).any():
        return frame, 0
    depth = "generations" if "generations" in frame else "generation"
    runs = frame.groupby("run", sort=False).agg(of=("repeat_of", "first"), depth=(depth, "max"))
    is_repeat = runs["of"].fillna("") != ""
    ordered = runs.assign(
        is_repeat=is_repeat, group=runs["of"].where(is_repeat, runs.index)
    ).sort_values(["is_repeat", "depth"], ascending=[True, False], kind="stable")
    left = ordered.index[ordered["is_repeat"] & ordered["group"].duplicated()]
    return frame[~frame["run"].isin(left)], len(left)


def counted_once(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame without the runs that repeat others in it.

    Args:
        frame: As from `load` or `children`.

    Warns:
        ReplayWarning: Runs were left out; says how many.
    """
    kept, left = split_repeats(frame)
    if left:
        warn(repeats_note(left, frame["run"].nunique()), ReplayWarning)
    return kept


def repeats_note(left: int, runs: int) -> str:
    """What to say where so many of the runs were left out as repeats."""
    verb, be = ("repeats another", "is") if left == 1 else ("repeat others", "are")
    which = "same configuration, seed and children; see the column repeat_of"
    return f"{left} of {runs} runs {verb} here ({which}) and {be} counted once"


def begun_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame without the runs that have no complete generation; whole where no run has one.

    Args:
        frame: As from `load`.

    Warns:
        ReplayWarning: Runs were left out; says how many.
    """
    empty = frame.groupby("run", sort=False)["generation"].transform("max") < 1
    if not empty.any() or empty.all():
        return frame
    left, runs = frame.loc[empty, "run"].nunique(), frame["run"].nunique()
    warn(empty_note(left, runs), ReplayWarning)
    return frame[~empty]


def empty_note(left: int, runs: int) -> str:
    """What to say where so many of the runs were left out since nothing is complete in them."""
    return f"{left} of {runs} runs have no complete generation and are not counted"


def independent_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of runs that are independent of each other, for intervals over whole runs.

    A fork shares generations with the run that it left, and a rescored log is the same run as its
    original: beside others they would count a run twice, so they are left out with a warning. A
    frame of forks alone was selected as such and is returned whole, with a warning that intervals
    hold given the states that were forked. Runs that repeat others count once. Beside others, a
    run without a complete generation, which crashed or has just begun, is no run.

    Args:
        frame: As from `load`.

    Warns:
        ReplayWarning: The frame holds forks, logs that were rescored beside their originals, runs
            that repeat others, or runs without a complete generation.
    """
    frame = begun_runs(unrepeated(frame))
    if "forked_from" not in frame:
        return frame
    forks = frame["forked_from"].fillna("").astype(bool)
    if forks.all() and len(frame):
        states = frame["forked_from"].nunique()
        warn(
            f"all {frame['run'].nunique()} runs are forks of {states} "
            f"{'state' if states == 1 else 'states'}: intervals hold given what was forked",
            ReplayWarning,
        )
        return frame
    what = "are forks, which repeat a part of another run"
    return _without(frame, forks, what, "forked_from != ''")


def unrepeated(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame without runs that repeat others, and without rescored logs beside their originals."""
    return originals(counted_once(frame))


def originals(frame: pd.DataFrame, *, quiet: bool = False) -> pd.DataFrame:
    """A frame without logs that evaluate the programs of other runs in it again.

    Warns:
        ReplayWarning: Such logs were left out, and not `quiet`; says how many.
    """
    if "rescored" not in frame:
        return frame
    left = frame["rescored"].fillna(False).astype(bool)
    if quiet:
        return frame if left.all() else frame[~left]
    what = "are rescored logs of other runs that are here too"
    return _without(frame, left, what, "rescored")


def _without(frame: pd.DataFrame, left: pd.Series[bool], what: str, select: str) -> pd.DataFrame:
    """A frame without some of its runs, with a warning that says what they are."""
    if not left.any() or left.all():
        return frame
    many = f"{frame.loc[left, 'run'].nunique()} of {frame['run'].nunique()} runs"
    warn(
        f"{many} {what}, and are left out; frame[frame.{select}], or their logs given alone, "
        "analyses them",
        ReplayWarning,
    )
    return frame[~left]


def one_family(frame: pd.DataFrame, what: str) -> None:
    """Checks that a frame holds runs that agree in FAMILY, as far as it has these columns.

    Raises:
        ValueError: They do not; says in what they differ.
    """
    for column in FAMILY:
        if column in frame and varies(frame, column).any():
            raise ValueError(f"{what} on runs of {one_of(column, frame)}")


def one_of(column: str, frame: pd.DataFrame, *, groups: bool = True) -> str:
    """What was expected of a column of FAMILY, what a frame has there, and what to do.

    Args:
        column: The column.
        frame: Rows that differ in it.
        groups: Whether to advise a comparison of groups of runs.
    """
    values = [value for value in frame[column].unique() if pd.notna(value)]
    if column == "task_version":
        return what_differs(frame)
    shown = repr if column == "settings" else str
    found = [shown(each) for each in in_order(sorted(values))]
    advice = f"select one with frame[frame.{column} == ...] or `--where {column}=VALUE`"
    if groups and column != "task":
        plain = (value.item() if isinstance(value, np.generic) else value for value in values[:2])
        one, other = ({column: value} for value in plain)
        advice += f", or compare groups of runs: replay.judge(frame, {one!r}, {other!r})"
        named = (shlex.quote(f"{column}={value}") for value in values[:2])
        advice += f" or `replay judge {' '.join(named)} LOGS`"
    kind = "configuration (column settings, '' being all by default)"
    return f"one {kind if column == 'settings' else column}, got {', '.join(found)}; {advice}"


def require_alike(frame: pd.DataFrame, what: str) -> None:
    """Raises ValueError where runs differ in the version of their task, or in settings."""
    for name in NESTED:
        if name in frame and varies(frame, name).any():
            raise ValueError(f"{what} of {one_of(name, frame, groups=False)}")


def models_apart(frame: pd.DataFrame) -> pd.Series[str]:
    """The model of each row, with whatever else keeps its runs from those of the same task.

    That is the version of the task, the search and its settings, where there are several of them.
    Groups by task and this hold runs whose fitness can be taken together, but for their N.

    Example:
        >>> from replay.logs.frames import models_apart
        >>> runs = pd.DataFrame({"task": "t", "model": "m", "search": ["greedy", "islands"]})
        >>> models_apart(runs).tolist()
        ['m, search greedy', 'm, search islands']
    """
    model = frame["model"].astype(str)
    label = model
    for column in ("task_version", "search", "settings"):
        if column not in frame:
            continue
        several = varies(frame, column)
        if column == "search":
            of = frame[column].groupby([frame["task"], model], dropna=False)
            several = of.transform("nunique") > 1
        if several.any():
            words = told_apart(column, frame.loc[several, column])
            label = label.where(~several, label + ", " + words.reindex(frame.index).fillna(""))
    return label


def tasks_apart(frame: pd.DataFrame) -> pd.Series[str]:
    """The task of each row, with its version where a task has runs of several.

    Example:
        >>> from replay.logs.frames import tasks_apart
        >>> tasks_apart(pd.DataFrame({"task": "t", "task_version": ["1.a", "2.a"]})).tolist()
        ['t, task version 1.a', 't, task version 2.a']
    """
    task = frame["task"].astype(str)
    if "task_version" not in frame or not (several := varies(frame, "task_version")).any():
        return task
    return task.where(~several, task + ", " + told_apart("task_version", frame["task_version"]))


def possible_in(frame: pd.DataFrame) -> tuple[float, float] | None:
    """Lowest and highest fitness that axes show for the tasks of runs, where it is known.

    Tasks say so themselves (column `unit_scale`); for the shipped constructions 1 is the best
    published value, which bounds no interval, since it can be surpassed.
    """
    stated = "unit_scale" in frame and bool(frame["unit_scale"].eq(True).all())
    shipped = "task" in frame and bool(frame["task"].isin(UNIT_SCALE).all())
    return (0.0, 1.0) if len(frame) and (stated or shipped) else None


def bounds_of(frame: pd.DataFrame) -> tuple[float, float]:
    """Lowest and highest best fitness that runs of one task can have, as far as it is known.

    Fitness on the scale [0, 1] (column `unit_scale`) stays on it, and the best so far is never
    below the initial program, where that has the same fitness in all runs. Bounds beyond which a
    run lies are none.

    Example:
        >>> from replay.logs.frames import bounds_of
        >>> bounds_of(frame)
        (0.05, inf)
    """
    fitness = frame["best_fitness"]
    low, high = -np.inf, np.inf
    if "unit_scale" in frame and frame["unit_scale"].eq(True).all():
        low, high = 0.0, 1.0
    first = frame.loc[frame["generation"] == 0]
    initial = first["best_fitness"].unique()
    if len(initial) == 1 and first["run"].nunique() == frame["run"].nunique():
        low = max(low, float(initial[0]))  # NaN where it failed in all of them, which is no bound
    return (
        -np.inf if (fitness < low).any() else float(low),
        np.inf if (fitness > high).any() else float(high),
    )


def require_greedy(frame: pd.DataFrame, what: str) -> None:
    """Checks that children are rewrites of the best so far.

    Raises:
        ValueError: Some runs are of another search, or of another tool.
    """
    others = [] if "search" not in frame else sorted({*frame["search"].dropna()} - {GREEDY})
    if others:
        own = "; a table of such runs says so in a column 'search'" if "table" in others else ""
        of = ", ".join(others) + own
        raise ValueError(
            f"{what} needs runs of this project's search {GREEDY!r}, in which every child rewrites "
            f"the best program so far; these are of {of}. Runs of any "
            "search or tool can be asked with `replay judge` and `replay report --policies`, or "
            "replay.judge and replay.diagnose"
        )


def run_lengths(frame: pd.DataFrame) -> NDArray[np.int64]:
    """Generations of each run, in order of first appearance, (runs,)."""
    depth = frame.groupby("run", sort=False)["generation"].max()
    return depth.to_numpy(dtype=np.int64)


def warn_of_short_runs(frame: pd.DataFrame, depth: int) -> None:
    """Warns where runs are compared after so many generations since some end there.

    Args:
        frame: As from `load`, of one N.
        depth: The generation at which they are compared.

    Warns:
        ReplayWarning: Some runs end at that depth, and others go further.
    """
    ends = frame.groupby("run", sort=False)["generation"].max()
    further = int((ends > depth).sum())
    if further and ends.min() == depth:
        warn(
            f"{further} of {len(ends)} runs go further than generation {depth}, at which runs are "
            f"compared since {ends.idxmin()!r} ends there; go on with it (`evo resume`) or leave "
            "it out to compare at greater depth",
            ReplayWarning,
        )


COST_COLUMNS = {
    "calls": "n_calls",
    "tokens": "tokens",
    "flops": "flops",
    "dollars": "dollars",
    "seconds": "seconds",
}
"""Units of cost and their columns in a frame of `load`."""


def fitness_matrix(frame: pd.DataFrame, *, repeats: bool = False) -> Floats:
    """Returns best fitness so far by run and generation.

    Args:
        frame: As from `load`.
        repeats: Whether runs that repeat others here (column `repeat_of`) have rows of their own.

    Returns:
        Shape (runs, generations + 1), runs in order of first appearance; NaN after a run's end.

    Warns:
        ReplayWarning: Runs were left out, since they repeat others.

    Example:
        >>> replay.fitness_matrix(replay.load(path, progress=False)).shape
        (1, 3)
    """
    check_loaded("fitness_matrix", frame, "replay.load")
    return matrix_of(_distinct(frame, repeats), "best_fitness")


def _distinct(frame: pd.DataFrame, repeats: bool) -> pd.DataFrame:
    """Distinct runs for a public function, with or without those that repeat others."""
    frame = distinct_runs(frame)
    return frame if repeats else unrepeated(frame)


def is_stand_in(model: object) -> bool:
    """Whether a model of this name is no LLM; its FLOPs and dollars are invented."""
    return str(model) in OFFLINE_MODELS


def cost_matrices(frame: pd.DataFrame, *, repeats: bool = False) -> dict[str, Floats]:
    """Returns what each generation cost, by unit, in the shape of `fitness_matrix`.

    Args:
        frame: As from `load`.
        repeats: Whether runs that repeat others here have rows of their own.

    Returns:
        For calls, tokens, flops, dollars and seconds an array (runs, generations + 1); NaN where
        unknown and after a run's end.

    Example:
        >>> replay.cost_matrices(frame)["calls"].shape
        (18, 9)
    """
    check_loaded("cost_matrices", frame, "replay.load")
    frame = _distinct(frame, repeats)
    return {
        unit: matrix_of(frame, column) for unit, column in COST_COLUMNS.items() if column in frame
    }


def matrix_of(frame: pd.DataFrame, column: str) -> Floats:
    """A column by run, as of distinct runs in order, and generation; NaN after a run's end."""
    rows, _ = frame["run"].factorize()
    generation = frame["generation"].to_numpy(dtype=np.int64)
    shape = (int(rows.max()) + 1, int(generation.max()) + 1) if len(frame) else (0, 0)
    matrix = np.full(shape, np.nan)
    matrix[rows, generation] = frame[column].to_numpy(dtype=np.float64)
    return matrix
