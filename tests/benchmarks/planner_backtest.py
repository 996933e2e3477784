"""The planner judged on logged sweeps: `python tests/benchmarks/planner_backtest.py LOGS`.

Prints, for each task and model, the mean regret of the planner and of fixed rules, over pilots cut
out of the sweep.
"""

import argparse

import pandas as pd
from backtests import backtest, summarise

from replay.logs import children, load


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--budgets", type=int, nargs="+", default=[64, 128, 256, 512])
    parser.add_argument("--seeds", type=int, default=4, help="seeds of a pilot, of 16 calls each")
    parser.add_argument("--pilots", type=int, default=20)
    parser.add_argument("--kernels", type=int, default=24)
    options = parser.parse_args()
    pd.set_option("display.width", 160)
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


if __name__ == "__main__":
    main()
