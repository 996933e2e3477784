"""The planner judged on logged sweeps: `python tests/benchmarks/planner_backtest.py LOGS`.

Prints, for each task and model, the mean regret of the planner and of fixed rules, over pilots cut
out of the sweep.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from backtests import backtest, summarise

from replay.forecast import plan
from replay.logs import children, load

sys.path.insert(0, str(Path(__file__).parents[1] / "replay"))
from synthetic_runs import chain_runs


def family(pilots: int, kernels: int, *, calls: int = 64) -> pd.DataFrame:
    """How often plans of pilots of 16 calls a seed leave T = N, by its true lead in margins.

    Chains whose children are better at the same rate whatever their parent: the smaller the rate,
    the less depth gains over T = N, since a generation then seldom wastes a better child.
    """
    rows = []
    for rate in (0.05, 0.2, 0.5):
        world = {"rate": rate, "hardening": 0.0, "step": 0.05}
        ends = []
        for N in (1, 8):
            settings = {"sizes": (N,), "budget": calls, "seeds": range(300)}
            truth = chain_runs(**settings, **world)[0]
            ends.append(truth[truth["generation"] == calls // N]["best_fitness"].mean())
        for seeds in (4, 8, 16):
            found = []
            for number in range(pilots):
                rng = np.random.default_rng([number, seeds])
                runs = {"sizes": (1, 4), "budget": 8, "seeds": range(seeds), "rng": rng}
                frame, children = chain_runs(**runs, **world)
                made = plan(frame, children=children, budget=calls, arms=(), kernels=kernels)
                margin = made.options.set_index("children").loc[1, "margin"]
                found.append((made.choice.children != 8, (ends[0] - ends[1]) / margin))
            left, margins = np.mean(found, axis=0)
            rows.append((rate, seeds, ends[0] - ends[1], margins, left))
    return pd.DataFrame(rows, columns=["rate", "seeds", "lead", "margins", "leaves"])


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="*")
    parser.add_argument("--family", action="store_true", help="where depth is ahead of T = N")
    parser.add_argument("--budgets", type=int, nargs="+", default=[64, 128, 256, 512])
    parser.add_argument("--seeds", type=int, default=4, help="seeds of a pilot, of 16 calls each")
    parser.add_argument("--pilots", type=int, default=20)
    parser.add_argument("--kernels", type=int, default=24)
    options = parser.parse_args()
    pd.set_option("display.width", 160)
    if options.family:
        print(family(options.pilots, options.kernels).round(4).to_string(index=False))
        return
    frame, logged = load(*options.logs), children(*options.logs)
    table = backtest(
        frame,
        logged,
        budgets=options.budgets,
        seeds=options.seeds,
        pilots=options.pilots,
        kernels=options.kernels,
    )
    print(table.pivot_table(index=["task", "calls"], columns="rule", values="regret").round(4))
    print(summarise(table).round(4).to_string(index=False))
    wide = table.pivot(index=["task", "model", "pilot", "calls"], columns="rule")
    left = wide["children"]["plan"] != wide["children"]["square"]
    gain = (wide["regret"]["square"] - wide["regret"]["plan"])[left].mean()
    print(f"the plan leaves T = N in {left.sum()} of {len(left)} choices, gain there {gain:.4f}")


if __name__ == "__main__":
    main()
