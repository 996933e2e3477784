"""Which share of the programs of logs each filter refuses that compares programs.

Usage: python tests/benchmarks/filters_apart.py LOGS...

Each child with a program is put to each filter as in a run, with the programs of the generations
before it, as the log has them: nothing that a filter refuses is taken away. The embedding counts
hashed character 4-grams, 512 numbers; that of a model sees more than letters, and its cosines are
others. Shares are means over whole runs with their interval.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Sequence

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import replay
from evo import read_log
from evo.filters import Filter, NearDuplicates, NearEmbeddings, SameProgram
from evo.logs.vectors import decode_vector, encode_vector
from evo.runs.state import state_of
from evo.searches import Member

SIZE, LENGTH = 512, 4
THRESHOLDS = (0.95, 0.98, 0.99, 0.995, 0.999)


def grams(texts: Sequence[str]) -> list[list[float]]:
    """Counts hashed character n-grams; the first number is at least 1."""
    found = []
    for text in texts:
        words = (text[k : k + LENGTH].encode() for k in range(len(text) - LENGTH + 1))
        counts = np.bincount([0, *(zlib.crc32(word) % SIZE for word in words)], minlength=SIZE)
        found.append(counts.astype(float).tolist())
    return found


def shares_of(path: str) -> dict[str, object] | None:
    """Returns a run's shares of refused programs; None: its log holds no programs of children."""
    log = read_log(path)
    members = state_of(log).members if not log.header.compact else []
    refused = pd.DataFrame(
        refusals([m for step in members[:number] for m in step], each.program)
        for number, step in enumerate(members)
        for each in step
        if number and each.program is not None
    )
    if refused.empty:
        return None
    task, model = log.header.task.name, log.header.model.name
    first = {"task": task, "model": model, "programs": len(refused)}
    text = refused["same_program"] | refused["near_duplicates"]
    alone = {f"alone {t}": (refused[f"embedding {t}"] & ~text).mean() for t in THRESHOLDS}
    return {**first, **refused.mean().to_dict(), **alone}


def refusals(archive: Sequence[Member], program: str) -> dict[str, bool]:
    """Returns whether each filter refuses a program."""
    earlier = [member for member in archive if member.program is not None]
    plain: dict[str, Filter] = {"same_program": SameProgram(), "near_duplicates": NearDuplicates()}
    found = {name: each.check(program, earlier) is not None for name, each in plain.items()}
    own, *others = (vector_of(text) for text in (program, *(m.program for m in earlier)))
    places = [member.place for member in earlier]
    for threshold in THRESHOLDS:
        alike = NearEmbeddings(embed="n-grams", threshold=threshold)
        reason = alike.compare(own, list(zip(places, others, strict=True)))
        found[f"embedding {threshold}"] = reason is not None
    return found


_vectors: dict[str, np.ndarray] = {}


def vector_of(text: str) -> np.ndarray:
    """Returns the vector of a text as a log holds it."""
    if text not in _vectors:
        _vectors[text] = decode_vector(encode_vector(grams([text])[0]))
    return _vectors[text]


def main() -> None:
    """Prints a table by task and model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+")
    paths = replay.find_logs(*parser.parse_args().logs)
    rows = Parallel(n_jobs=2)(delayed(shares_of)(str(path)) for path in paths)
    frame = pd.DataFrame([row for row in rows if row is not None])
    for (task, model), group in frame.groupby(["task", "model"]):
        print(f"{task}, {model}: {len(group)} runs, {group['programs'].sum()} programs")
        for name in frame.columns[3:]:
            shown = replay.interval(group[name]) if len(group) > 1 else group[name].mean()
            print(f"  {name:<18}{shown}")


if __name__ == "__main__":
    main()
