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
            "tokens": np.where(generation > 0, 150.0 * children, 0.0),
            "dollars": np.nan,
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
    """Runs with the bilinear log(1 - V) of (b0, a, b, c), noise per run and per generation."""
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


def chain_runs(
    *,
    sizes=tuple(2**power for power in range(7)),
    budget=64,
    seeds=range(10),
    start=0.2,
    failed=0.2,
    rate=0.3,
    hardening=0.5,
    step=0.3,
    frailty=None,
    luck=None,
    rng=None,
    task="toy",
):
    """A greedy chain that is Markov in fitness, as (frame, children).

    A child of a parent with gap g = 1 - fitness fails with probability `failed`, is better with
    probability rate * g**hardening, and is otherwise a copy; the gap that a better child leaves is
    g * exp(-step * E), E standard exponential. With `frailty` s, each parent's probability is drawn
    anew from a beta distribution of that mean and concentration s. With `luck` v, each run's rate
    is multiplied by a factor of its own, gamma distributed with mean 1 and variance v.
    """
    rng = rng or np.random.default_rng(0)
    frames, rows = [], []
    for N in sizes:
        best = np.full((len(seeds), budget // N + 1), start)
        for at, seed in enumerate(seeds):
            own = min(rate * (rng.gamma(1 / luck, luck) if luck else 1), 0.99 - failed)
            fitness, better = start, own * (1 - start) ** hardening
            for generation in range(1, budget // N + 1):
                kind = rng.random(N)
                ok = rng.random(N) >= failed
                gap = (1 - fitness) * np.exp(-step * rng.standard_exponential(N))
                child = np.where(kind < better / (1 - failed), 1 - gap, fitness)
                child = np.where(ok, child, np.nan)
                rows += [(N, seed, generation, i, fitness, child[i]) for i in range(N)]
                top = np.nanmax(child, initial=fitness)
                if top > fitness + 1e-9:
                    fitness, better = top, own * (1 - top) ** hardening
                    if frailty:
                        better = rng.beta(frailty * better, frailty * (1 - better))
                best[at, generation] = fitness
        frames.append(as_frame(best, children=N, seeds=seeds, task=task))
    names = ["children", "seed", "generation", "index", "parent_fitness", "fitness"]
    children = pd.DataFrame(rows, columns=names)
    return pd.concat(frames, ignore_index=True), children.assign(
        run=[f"{task}-chain-{row.children}-{row.seed}" for row in children.itertuples()],
        task=task,
        model="chain",
        status=np.where(children["fitness"].isna(), "error", "ok"),
        improved=children["fitness"] > children["parent_fitness"] + 1e-9,
        prompt_tokens=100.0,
        completion_tokens=50.0,
        call_seconds=2.0,
        evaluation_seconds=0.5,
    )


SWEPT = ["model", "temperature", "children", "generations", "max_tokens", "top_p"]


def sweep_runs(configurations: int = 30, seeds: int = 4, *, noise: float = 0.01) -> pd.DataFrame:
    """A frame as of a random sweep whose fitness is known."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(configurations):
        model, temperature = rng.choice(["a", "b"]), rng.choice([0.2, 1.0])
        N, T = int(rng.choice([4, 8])), int(rng.choice([2, 6]))
        tokens = int(np.exp(rng.uniform(6, 9)))
        top_p = rng.choice([0.9, 1.0]) if model == "b" else np.nan
        for seed in range(seeds):
            fitness = 0.3 + 0.1 * (model == "a") + 0.01 * N + 0.02 * T + rng.normal(0, noise)
            rows.append(
                {
                    "configuration": f"c{k:03}", "trial": k, "seed": seed, "status": "completed",
                    "model": model, "temperature": temperature, "children": N, "generations": T,
                    "max_tokens": tokens, "top_p": top_p, "fitness": fitness,
                    "tokens": N * T * (200.0 + tokens), "n_calls": float(N * T), "flops": np.nan,
                }
            )  # fmt: skip
    frame = pd.DataFrame(rows)
    frame.attrs = {"fields": SWEPT}
    return frame


def tasks(effect, *, runs=5, count=6, seed=0, paired=False, names=("a", "b")):
    """Runs of some configurations on tasks of scales of their own; the first is better."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(count):
        scale = float(np.exp(rng.normal())) / 100
        for k, name in enumerate(names):
            gain = effect[number] if np.ndim(effect) else effect
            end = 0.5 + scale * (rng.normal(size=runs) + (gain if k == 0 else 0))
            best = np.stack([np.full(runs, 0.2), (end + 0.2) / 2, end], axis=1)
            seeds = range(runs) if paired else range(100 * k, 100 * k + runs)
            part = as_frame(best, children=4, seeds=seeds, task=f"t{number}", model=name)
            parts.append(part.assign(search=name))
    return pd.concat(parts, ignore_index=True)
