"""The command `replay bench`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from evo.cli.options import Count, Flag, Seed
from evo.cli.tables import table
from evo.warning import and_more

if TYPE_CHECKING:
    from evo.policies import PolicyClass

NAMED = 3
"""Pools of a policy that are named in the table."""


def bench(
    file: Annotated[str | None, Parameter(name="FILE.py")] = None,
    *,
    logs: Annotated[list[str] | None, Parameter(negative=())] = None,
    no_logs: Flag = False,
    replicates: Count = None,
    seed: Seed | None = None,
    csv: Flag = False,
) -> int:
    """Judges policies against one run, in worlds whose truth is known and on logged runs.

    Args:
        file: A Python file with policies, classes that have `ask` and `tell`, or a dictionary
            POLICIES of them; it is run. FILE.py:CLASS judges one of them. By default all shipped
            policies are judged.
        logs: Logs or folders in place of the shipped ones.
        no_logs: Judge in the worlds alone.
        replicates: Replicates of each policy and pool; 4000 by default.
        seed: Of all draws; 0 by default.
        csv: Print one row per policy and pool as CSV.
    """
    from replay.claims.bench import bench as judge_all

    made = judge_all(
        None if file is None else _policies(file),
        logs=[] if no_logs else logs,
        replicates=4000 if replicates is None else replicates,
        seed=0 if seed is None else seed,
        progress=True,
    )
    if csv:
        print(made.table.to_csv(index=False), end="")
        return 0
    worlds = made.table[made.table["where"] == "world"]
    names = list(dict.fromkeys(worlds["pool"]))
    gains = worlds.set_index(["policy", "pool"])
    rows = []
    for row in made.summary.to_dict("records"):
        policy = row["policy"]
        own = gains.loc[policy].loc[names]
        shown = [
            "failed" if math.isnan(gain) else f"{gain:+.3f} {_mark(verdict)}"
            for gain, verdict in zip(own["gain"], own["verdict"], strict=True)
        ]
        counts = (str(row[name]) for name in ("greater", "less", "undetermined"))
        gained = "" if math.isnan(row["logs"]) else f"{row['logs']:+.2f}"
        rows.append((policy, *shown, *counts, gained, f"{row['seconds']:.1f}"))
    head = ("policy", *names, "greater", "less", "undetermined", "logs, in sd", "seconds")
    print(table(rows, head))
    print("gain over one run (single); > greater, < less, ~ undetermined by its 95 % interval")
    for row in made.summary.to_dict("records"):
        for verb in ("wins", "loses"):
            where = [each for each in str(row[verb]).split(", ") if each and each not in names]
            if where:
                print(f"{row['policy']} {verb} on {and_more(where, NAMED)}")
    return 0


def _policies(given: str) -> Sequence[str] | Mapping[str, PolicyClass]:
    """The policies of a file, or the one that is named after it."""
    from evo.cli.own import known_name
    from replay.claims.bench import policies_in

    if ".py:" in given:
        return [known_name("policy", given, "bench ")]
    if not Path(given).is_file():
        raise ValueError(
            "FILE.py: expected a Python file that defines policies, or FILE.py:CLASS, got "
            f"{given!r}"
        )
    return policies_in(given)


def _mark(verdict: object) -> str:
    return {"greater": ">", "less": "<"}.get(str(verdict), "~")
