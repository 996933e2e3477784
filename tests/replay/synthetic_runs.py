"""Runs with known truth, for tests and benchmarks of the grid, the kernel and the planner."""

import numpy as np
import pandas as pd


def as_frame(best, *, children, seeds, task="toy", model="chain"):
    """Frame of runs of one N from their best fitness so far, (runs, generations + 1)."""
    runs, columns = best.shape
    generation = np.tile(np.arange(columns), runs)
    return pd.DataFrame(
        {
            "run": np.repeat([f"{task}-{model}-{children}-{seed}" for seed in seeds], columns),
            "task": task,
            "model": model,
            "seed": np.repeat(np.asarray(seeds), columns),
            "children": children,
            "generation": generation,
            "best_fitness": best.ravel(),
            "n_calls": np.where(generation > 0, children, 0),
            "seconds": np.where(generation > 0, 2.0, 0.0),
            "flops": np.nan,
            "source": "",
        }
    )


def bilinear_runs(
    coefficients=(-0.5, -0.2, -0.1, -0.04),
    *,
    budget=512,
    seeds=range(10),
    run_noise=0.3,
    generation_noise=0.1,
    rng=None,
):
    """Runs with the bilinear log(1 - V) of `coefficients` (b0, a, b, c), noise per run and per T."""
    rng = rng or np.random.default_rng(0)
    b0, a, b, c = coefficients
    frames = []
    for power in range(budget.bit_length()):
        N = 2**power
        t = np.log(np.arange(1, budget // N + 1))
        line = b0 + a * t + b * np.log(N) + c * t * np.log(N)
        noise = rng.normal(0, run_noise, (len(seeds), 1))
        noise = noise + rng.normal(0, generation_noise, (len(seeds), len(t)))
        best = np.column_stack([np.zeros(len(seeds)), 1 - np.exp(line + noise)])
        frames.append(as_frame(best, children=N, seeds=seeds))
    return pd.concat(frames, ignore_index=True)
