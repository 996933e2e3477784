"""How long several seeds take with a budget, which they spend in waves, and without one.

    python tests/benchmarks/waves.py

Six runs of 8 children over 8 generations, calls of lognormal length, evaluations without a
duration. The budget, in dollars, is three times what they cost, or hardly more than that. Each is
paired with a session without a budget, so that what else the machine does weighs on both; printed
are seconds, and the ratio with the least and the largest of the pairs.
"""

import statistics
import tempfile
import time
from pathlib import Path

from throughput import Answers, Instant

from evo.gate.server import Latency
from evo.models.client import ModelClient
from evo.models.limits import Slots
from evo.runs.budget import Ledger
from evo.runs.configuration import make_header
from evo.runs.handle import Control
from evo.runs.resources import Resources
from evo.runs.session import RunJob, run_jobs
from evo.runs.settings import Goal, Settings
from evo.runs.state import costs_of_log

SEEDS, CHILDREN, GENERATIONS, PAIRS = 6, 8, 8, 3


def measure(slots: int, spread: float, dollars: float | None = None) -> tuple[float, float]:
    """Returns the seconds of a session, and the dollars that it cost."""
    headers = [make_header("mmd", children=CHILDREN, seed=seed) for seed in range(SEEDS)]
    shared = Slots(slots)
    answers = Answers(Latency(0.1, spread))
    client = ModelClient(headers[0].model, headers[0].sampling, slots=shared, wire=answers)
    client.call([{"role": "user", "content": "warm"}], seed=0)
    settings = Settings(max_concurrent=slots, progress=False)
    resources = Resources(settings, shared, Instant(), Control(), only=client)
    with tempfile.TemporaryDirectory() as folder:
        jobs = [
            RunJob(Path(folder) / f"{header.seed}.jsonl", header, Goal(GENERATIONS))
            for header in headers
        ]
        ledger = None if dollars is None else Ledger({"dollars": dollars})
        began = time.perf_counter()
        done = run_jobs(jobs, resources, ledger=ledger)
        seconds = time.perf_counter() - began
        logs = [each.log for each in done if each.log is not None and each.log.finished]
        assert len(logs) == SEEDS
        paid = sum(cost["dollars"] for log in logs for cost in costs_of_log(log))
    return seconds, paid


def main() -> None:
    print("slots  spread  budget  without s  with s  ratio")
    for slots in (16, 48):
        for spread in (0.0, 0.5, 1.0):
            _, paid = measure(slots, spread)
            for share in (3.0, 1.001):
                pairs = [
                    (measure(slots, spread)[0], measure(slots, spread, share * paid)[0])
                    for _ in range(PAIRS)
                ]
                without, held = (statistics.median(each) for each in zip(*pairs, strict=True))
                ratios = sorted(b / a for a, b in pairs)
                print(f"{slots:5}  {spread:6}  {share:6}  {without:9.2f}  {held:6.2f}", end="")
                print(f"  {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
