"""Budgets of whole sweeps under random latencies: kept, nothing lost, and gone on with.

    python tests/benchmarks/sweep_budget.py [--budgets 200]

Each budget, in calls or in tokens, cuts a small sweep of the offline model over HTTP, whose
latency is lognormal. Checked of each: what was spent exceeds the budget by no more than the calls
that were in flight when it ran out (a budget in calls: by nothing); every call that the server
answered is in a log; the sweep, gone on with, comes to the same fitnesses as one without a budget.
Sweeps share the sandbox's evaluations through a folder, to save time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path

import evo
import replay
from evo.llm.offline.latency import Latency
from evo.llm.server import OfflineServer

MODEL = '["served"]\nid = "offline"\nbase_url = "{url}/v1"\n'
KEYS = ["configuration", "seed", "fitness", "tokens"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budgets", type=int, default=200)
    count = parser.parse_args().budgets
    began, draws, overrun, faults = time.monotonic(), random.Random(0), 0.0, 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        log = place / "requests.jsonl"
        latency = Latency(0.01, 1.0)
        with OfflineServer(request_log=log, latency=latency) as server:
            (place / "models.toml").write_text(MODEL.format(url=server.url.removesuffix("/v1")))
            os.environ["EVO_MODELS"] = str(place / "models.toml")

            def make(folder: str, budget: dict[str, float]) -> evo.Sweep:
                return evo.sweep(
                    {"children": [2, 4], "generations": [1, 2]}, task="mmd", seeds=[1, 2],
                    model="served", log_dir=place / folder, budget=budget, progress=False,
                    max_concurrent=draws.randint(2, 12),
                )  # fmt: skip

            whole = replay.load_sweep(make("whole", {}))
            calls, tokens = 24, float(whole.drop_duplicates("log", keep="last")["tokens"].sum())
            for number in range(count):
                unit = draws.choice(["calls", "tokens"])
                limit = max(1, round(draws.random() * (calls if unit == "calls" else tokens)))
                log.write_bytes(b"")
                sweep = make(f"s{number}", {unit: limit})
                rows = [json.loads(line) for line in log.read_text().splitlines()]
                runs = [evo.read_log(path) for path in sweep.folder.glob("runs/*.jsonl")]
                lost = sorted(row["seed"] for row in rows) != sorted(
                    outcome.seed for run in runs for outcome in run.outcomes
                )
                amounts = [
                    1 if unit == "calls" else row["usage"]["total_tokens"]
                    for row in sorted(rows, key=lambda row: row["received"])
                ]
                last = max(row["received"] for row in rows)
                flying = sum(
                    1 if unit == "calls" else row["usage"]["total_tokens"]
                    for row in rows
                    if row["answered"] >= last
                )
                over = sum(amounts) - limit
                overrun = max(overrun, over / max(1, flying))
                sweep.resume(budget={})
                sweep.wait()
                same = replay.load_sweep(sweep)[KEYS].equals(whole[KEYS])
                broken = lost or not same or over > (0 if unit == "calls" else flying)
                faults += broken
                if broken:
                    print(f"{unit} {limit}: over {over}, flying {flying}, {lost=}, {same=}")
    print(
        f"{count} budgets, {faults} broken; the most spent beyond a budget was {overrun:.0%} of "
        f"what was in flight when it ran out; {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
