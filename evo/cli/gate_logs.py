"""What commands show of the log of a gate."""

from __future__ import annotations

from pathlib import Path

from evo.cli.tables import dollars_of, number, say_who_is_no_llm, table
from evo.gate.log import GateLog, read_gate_log
from evo.logs.records import Attempt, CriticRecord, Sampling
from evo.runs.progress import Tally


def show_gate(path: Path) -> None:
    """Shows the log of a gate, by client."""
    log = read_gate_log(path)
    sent = len(log.passed)
    were = "1 call was" if sent == 1 else f"{sent:,} calls were"
    print(f"{path}\na gate before {log.model.name}: {were} sent")
    if log.of_budget:
        print(log.of_budget)
    rows, tallies = list[tuple[object, ...]](), list[Tally]()
    clients = {each.sent.client for each in log.passed} | {each.client for each in log.kept}
    for client in sorted(clients):
        calls = [each for each in log.passed if each.sent.client == client]
        kept = sum(each.client == client for each in log.kept)
        tally = tally_of_gate(log, client)
        ok = sum(each.attempt is not None and each.attempt.status == "ok" for each in calls)
        unknown = sum(each.attempt is None for each in calls)
        counts = (len(calls), ok, len(calls) - ok - unknown, unknown, kept)
        tallies.append(tally)
        rows.append((client, *counts, number(tally.tokens, ",.0f", "unknown"), dollars_of(tally)))
    print(
        table(
            rows,
            ("client", "calls", "ok", "failed", "not settled", "cached", "tokens", "dollars"),
        )
    )
    say_who_is_no_llm(tallies)


def tally_of_gate(log: GateLog, client: str | None = None) -> Tally:
    """Returns the totals of the calls of a gate's log, or of one of its clients."""
    tally = Tally()
    sampling = Sampling(temperature=None, top_p=None, max_tokens=None)  # each client has its own
    asked = CriticRecord(model=log.model, sampling=sampling, rubric="")
    for passed in log.passed:
        if client in (None, passed.sent.client):
            unknown = Attempt(status="error", latency=None, error="no outcome is logged")
            tally.add([passed.attempt or unknown], asked)
    for kept in log.kept:
        if client in (None, kept.client):
            tally.add([Attempt(status="ok", latency=0.0, cached=True)], asked)
    return tally
