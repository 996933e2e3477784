"""The ledger over all sources: `python tests/benchmarks/paper_ledger.py [DATA]`.

The shipped logs, and out of DATA (../shared/data by default) what is there: the public table of
CodeEvolve's runs with Gemini, up to the first migration, and the runs in the paper's layout. One
table, which `replay.plots.verdicts` draws.
"""

import argparse
import tempfile
from pathlib import Path

import pandas as pd

import replay
from replay.importers import read, table, write
from replay.importers.foreign import Imported

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
TASKS = {"cp": "circle_packing", "mmd": "min_max_distance", "ht": "heilbronn_triangle"}
"""Names of the tasks by those of the paper's code."""
ALGORITHMS = {
    "gemini_insp": "islands",
    "gemini_no_mp_or_insp": "islands",
    "gemini_mp": "islands, meta-prompts",
    "gemini_mp_insp": "islands, meta-prompts",
    "gemini_no_evolve": "no evolution",
}
"""Of CodeEvolve's table: islands exchange nothing at first, so inspiration changes nothing."""
MIGRATION = 99
"""Epoch of the table, its last, from which islands may hold programs of others."""

Tables = tuple[pd.DataFrame, pd.DataFrame]
"""Generations and children."""


def sources(data: Path = DATA) -> dict[str, Tables]:
    """Generations and children by name of the source, of what is there."""
    corpus = ROOT / "logs" / "corpus"
    folders = {"offline": corpus / "offline", "local-tsp": corpus / "local-tsp"}
    found = {name: replay.load_tables(path, progress=False) for name, path in folders.items()}
    return {name: (each.generations, each.children) for name, each in found.items()} | beside(data)


def beside(data: Path = DATA) -> dict[str, Tables]:
    """Those that do not ship with the project."""
    tables: dict[str, Tables] = {}
    if (gemini := data / "codeevolve_circle_packing_26.csv.gz").exists():
        names = {
            "run": ["config", "island"], "order": "epoch", "fitness": "child_fitness",
            "prompt_tokens_so_far": "prompt_tokens_cum",
            "completion_tokens_so_far": "completion_tokens_cum",
        }  # fmt: skip
        runs = table.read(
            gemini, columns=names | {"status": "outcome"}, task="circle_packing", model="gemini"
        )
        for part in zip(*(_gemini(each) for each in _loaded(runs)), strict=True):
            tables[f"Gemini, {part[0]['model'].iloc[0]}"] = part
    if (paper := data / "paper_format").exists():
        tables["Qwen, the paper's layout"] = _loaded(read(paper))
    return tables


def _gemini(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """One frame per algorithm."""
    config = frame["run"].str.extract(r"(gemini_.+)_\d+", expand=False)
    frame = frame.assign(model=config.map(ALGORITHMS), mixed=float(MIGRATION))
    return [frame[frame["model"] == name] for name in dict.fromkeys(ALGORITHMS.values())]


def _loaded(runs: list[Imported]) -> Tables:
    """Runs of others; a seed of their own where they are told apart by name alone."""
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            write(run, Path(folder) / f"{run.name}.jsonl")
        found = replay.load_tables(folder, progress=False)
    # Where others do not name the parent, the best so far stands for it: islands of one child.
    children = found.children.assign(search="greedy", parent_fitness=found.children["best_fitness"])
    generations, children = (
        found.generations.replace({"task": TASKS}),
        children.replace({"task": TASKS}),
    )
    if generations.groupby("seed")["run"].nunique().eq(len(runs)).all():
        generations["seed"] = generations["run"].factorize()[0]
    return generations, children


def main() -> None:
    """Print the ledger, and verdicts by claim and source."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    pd.set_option("display.width", 250, "display.max_colwidth", 60, "display.max_rows", None)
    found = sources(parser.parse_args().data)
    checked = replay.ledger({name: frame for name, (frame, _) in found.items()})
    shown = ["source", "task", "claim", "value", "low", "high", "n", "p_holm", "verdict", "why"]
    print(checked[shown].round(4).to_string(index=False))
    print(checked.pivot(index="claim", columns=["source", "task"], values="verdict").fillna("-").T)


if __name__ == "__main__":
    main()
