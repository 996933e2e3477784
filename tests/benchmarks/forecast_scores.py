"""Forecasts of runs left out: `python tests/benchmarks/forecast_scores.py`.

Of each source of `paper_ledger.py`, task and model every seed is left out in turn (every run
where seeds tell no runs apart); the others are the pilot. Forecast is whether a run left out
reaches tau in the cells (T, N), T = 1, 2, 4, ..., that the pilot covers (`Kernel.inside`), for five
tau at quantiles of the pilot's cells. Printed, over whole runs:

- gain: the mean log score less that of climatology, the share of the pilot's runs of that cell that
  reach tau, (k + 1/2) / (n + 1), with its one-sided lower 90 % limit (Student's t);
- reliability: mean absolute difference of forecast and observed frequency over ten bins, and the
  95th percentile of what a perfectly calibrated forecaster would show on the same runs: each run is
  replaced by one that is drawn from the kernel, all its events together, and the kernel's forecast
  is judged on it. (Forecasts take the pilot's own runs as well: that moves the bar up a little.)

At the end, all that is not the offline model's is pooled.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from paper_ledger import sources

from replay.planning.choices import Choice, chance
from replay.planning.grid import FloatArray, GridSweep, cells, one_sweep
from replay.planning.kernel import Kernel, fit_kernel
from replay.planning.planner import own_runs, simulate_choice

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
BINS = 10


@dataclass(frozen=True)
class Forecasts:
    """Events of one run: forecast, climatology and outcome, (events,) each.

    `drawn` holds the outcomes of the same events in runs that the forecast regards as alike,
    (draws, events).
    """

    run: str
    forecast: FloatArray
    climatology: FloatArray
    outcome: NDArray[np.bool_]
    drawn: NDArray[np.bool_]


def leave_out(
    frame: pd.DataFrame, children: pd.DataFrame, *, kernels: int = 12, runs: int = 50
) -> Iterator[Forecasts]:
    """Forecast each run of one task and model from those of the other seeds."""
    told_apart = 1 < frame["seed"].nunique() < frame["run"].nunique()
    key = frame["seed"] if told_apart else frame["run"].factorize()[0]
    for fold in np.unique(key):
        held, rest = frame[key == fold], frame[key != fold]
        pilot = one_sweep(rest)
        kernel = fit_kernel(children[children["run"].isin(pilot.runs)])
        worlds = list(kernel.resampled(kernels))
        known = cells(pilot).values
        known = known[np.isfinite(known)]
        levels = np.unique(np.quantile(known, SHARES, method="lower"))
        levels = levels[levels > known.min()]
        if not len(levels):
            continue
        for run, part in held.groupby("run", sort=False):
            found = _forecast(str(run), part, pilot, worlds, levels, runs)
            if found is not None:
                yield found


def _forecast(
    run: str,
    part: pd.DataFrame,
    pilot: GridSweep,
    worlds: list[Kernel],
    levels: FloatArray,
    runs: int,
) -> Forecasts | None:
    """Forecasts of one run, None if the pilot covers none of its cells."""
    own = part.sort_values("generation")["best_fitness"].to_numpy(np.float64)
    N, T = int(part["children"].iloc[0]), len(own) - 1
    while T and not worlds[0].inside(T, N):
        T -= 1
    if not T:
        return None
    at = np.array([2**power for power in range(T.bit_length())])
    paths = simulate_choice(worlds, Choice(generations=T, children=N), rounds=T, runs=runs)
    same = pilot.values[pilot.children == N]

    def reach(values: FloatArray) -> NDArray[np.bool_]:
        return (values[:, :, None] >= levels).reshape(len(values), -1)

    drawn = reach(paths[:, at - 1])
    n = np.repeat((pilot.depth[pilot.children == N][:, None] >= at).sum(axis=0), len(levels))
    k = reach(same[:, at]).sum(axis=0) if len(same) else np.zeros(len(n))
    mine = own_runs(pilot, T, N)
    forecast = np.stack([chance(paths[:, at - 1], mine[:, at - 1], tau) for tau in levels], axis=1)
    return Forecasts(run, forecast.ravel(), (k + 0.5) / (n + 1), reach(own[None, at])[0], drawn)


def log_score(chance: FloatArray, outcome: NDArray[np.bool_]) -> FloatArray:
    """Log probability of what came, at odds of at most 200."""
    chance = np.clip(chance, 0.005, 0.995)
    return np.log(np.where(outcome, chance, 1 - chance))


def unreliability(chance: FloatArray, outcome: NDArray[np.bool_]) -> float:
    """Mean absolute difference of forecast and frequency over bins, weighted by their events."""
    at = np.minimum((chance * BINS).astype(int), BINS - 1)
    away = np.bincount(at, chance - outcome, minlength=BINS)
    return float(np.abs(away).sum() / len(chance))


def scores(found: list[Forecasts], *, draws: int = 400, seed: int = 0) -> dict[str, float]:
    """What is printed of forecasts of whole runs."""
    from scipy.stats import t

    gains = [
        float(np.mean(log_score(f.forecast, f.outcome) - log_score(f.climatology, f.outcome)))
        for f in found
    ]
    stated = np.concatenate([f.forecast for f in found])
    rng = np.random.default_rng(seed)
    perfect = np.concatenate([f.drawn.mean(axis=0) for f in found])
    alike = [
        unreliability(perfect, np.concatenate([f.drawn[rng.integers(len(f.drawn))] for f in found]))
        for _ in range(draws)
    ]
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    return {
        "runs": len(found),
        "events": len(stated),
        "gain": np.mean(gains),
        "low": np.mean(gains) - t.ppf(0.9, len(gains) - 1) * error,
        "forecast": stated.mean(),
        "observed": np.concatenate([f.outcome for f in found]).mean(),
        "unreliability": unreliability(stated, np.concatenate([f.outcome for f in found])),
        "perfect_95": np.quantile(alike, 0.95),
    }


def main() -> None:
    """Print one row per task and model, and one of all that are not the offline model's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=12)
    options = parser.parse_args()
    rows, real = {}, []
    for name, (frame, children) in sources().items():
        for (task, model), part in frame.groupby(["task", "model"], sort=False):
            mine = children[children["run"].isin(part["run"])]
            if part["run"].nunique() < 5 or not mine["improved"].any():
                continue
            found = list(leave_out(part, mine, kernels=options.kernels))
            if len(found) < 2:
                print(f"{name}: {task}, {model}: nothing is forecast")
                continue
            rows[f"{name}: {task}, {model}"] = scores(found)
            real += found if model != "offline" else []
            print(pd.DataFrame(rows).T.tail(1).round(4).to_string(header=len(rows) == 1))
    if real:
        print(pd.DataFrame({"real arms together": scores(real)}).T.round(4).to_string())


if __name__ == "__main__":
    main()
