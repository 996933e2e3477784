"""The paper's claims on other people's logs: `python tests/benchmarks/paper_ledger.py PATH ...`.

A path is a folder of logs, of this package or of a tool that `replay import` reads, or the table of
CodeEvolve's public experiments (columns config, island, epoch, child_fitness, outcome). Of that
table, configurations that ran the same algorithm are pooled. Prints the ledger, and for the table a
backtest of arms and policies: what a choice made on some arms is worth on the others.
"""

import argparse
import tempfile
from pathlib import Path

import pandas as pd
from backtests import backtest_arms, summarise_arms

import replay
from replay.claims import ledger
from replay.importers import Imported, detect, read, write
from replay.importers import table as tables

Tables = tuple[pd.DataFrame, pd.DataFrame]
"""Generations and children."""

TASKS = {"cp": "circle_packing", "mmd": "min_max_distance", "ht": "heilbronn_triangle"}
"""Names of the tasks by those of the paper's code."""
ALGORITHMS = {
    "gemini_insp": "islands",
    "gemini_no_mp_or_insp": "islands",
    "gemini_mp": "islands, meta-prompts",
    "gemini_mp_insp": "islands, meta-prompts",
    "gemini_no_evolve": "no evolution",
}
"""Islands of one arm each exchange nothing before the end, so inspiration changes nothing."""


def table(path: Path) -> dict[str, Tables]:
    """Tables of islands, one pair per algorithm."""
    runs = tables.read(
        path,
        columns={
            "run": ["config", "island"],
            "order": "epoch",
            "fitness": "child_fitness",
            "status": "outcome",
        },
        task="circle_packing",
        model="gemini",
    )
    generations, children = _loaded(runs)
    found = {}
    for part in (generations, children):
        part["model"] = part["run"].str.extract(r"(gemini_.+)_\d+", expand=False).map(ALGORITHMS)
    for name in generations["model"].unique():
        mine = generations["model"] == name
        found[f"gemini, {name}"] = generations[mine], children[children["model"] == name]
    return found


def _loaded(runs: list[Imported]) -> Tables:
    """Runs of others; a seed of their own where they are told apart by name alone."""
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            write(run, Path(folder) / f"{run.name}.jsonl")
        found = replay.load_tables(folder, progress=False)
    # Where others do not name the parent, the best so far stands for it: islands of one child.
    children = found.children.assign(search="greedy", parent_fitness=found.children["best_fitness"])
    tables = found.generations.replace({"task": TASKS}), children.replace({"task": TASKS})
    if tables[0].groupby("seed")["run"].nunique().eq(len(runs)).all():
        tables[0]["seed"] = tables[0]["run"].factorize()[0]
    return tables


def sources(path: Path) -> dict[str, Tables]:
    """Generations and children by name of the source."""
    if path.is_file():
        return table(path)
    if any(path.rglob("*.jsonl*")):
        found = replay.load_tables(path, progress=False)
        return {path.name: (found.generations, found.children)}
    return {f"{path.name} ({detect(path)})": _loaded(read(path))}


def main() -> None:
    """Print the ledger of all paths, and the backtest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--pilots", type=int, default=4, help="pilots per run left out")
    options = parser.parse_args()
    pd.set_option("display.width", 250, "display.max_colwidth", 80, "display.max_rows", None)
    found = {name: tables for path in options.paths for name, tables in sources(path).items()}
    checked = ledger({name: frame for name, (frame, _) in found.items()})
    for name, part in checked.groupby("source", sort=False):
        print(f"\n{name}")
        print(part.drop(columns="source").round(4).to_string(index=False))
    pooled = {name: tables for name, tables in found.items() if name.startswith("gemini")}
    if not pooled:
        return
    groups = {name: tables for name, tables in pooled.items() if tables[0]["run"].nunique() >= 10}
    together = (pd.concat(part).assign(model="all") for part in zip(*pooled.values(), strict=True))
    groups["all of them"] = tuple(together)
    print("\nArms and policy: regret against the best choice in hindsight on the same runs")
    for generations, children in groups.values():
        judged = backtest_arms(generations, children, pilots=options.pilots)
        print(summarise_arms(judged).round(5).to_string(index=False))
        chosen = judged[judged["rule"] == "plan"].groupby(["arms", "policy"]).size()
        print(f"the plan chose\n{chosen.to_string()}\n")


if __name__ == "__main__":
    main()
