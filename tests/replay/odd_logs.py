"""Logs of which there is little to show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from samples import make_log_bytes, sample_child, sample_lines

from evo.logs.journal import encode_line
from evo.logs.records import Evaluation, Generation, Initial, Line


def write(path: Path, *lines: Line) -> Path:
    """A log of these lines."""
    path.write_bytes(b"".join(map(encode_line, lines)))
    return path


def odd_logs(folder: Path) -> Iterator[Path]:
    """Unfinished, failed, torn and damaged ones; the last alone cannot be read."""
    whole = sample_lines(generations=2, children=2)
    header, session, initial = whole[:3]
    failed = Initial(evaluation=Evaluation(status="error", error="boom"))
    none = [sample_child(1, k, None) for k in range(2)]
    sad = Generation(generation=1, best_fitness=None, best=(0, 0), improved=False, seconds=1.0)
    yield write(folder / "header.jsonl", header)
    yield write(folder / "no-initial.jsonl", header, session)
    yield write(folder / "initial.jsonl", header, session, initial)
    yield write(folder / "one-child.jsonl", header, session, initial, sample_child(1, 1, 0.5))
    yield write(folder / "no-ok.jsonl", header, session, failed, *none, sad)
    torn = folder / "torn.jsonl"
    torn.write_bytes(make_log_bytes()[:-30])
    yield torn
    damaged = folder / "damaged.jsonl"
    damaged.write_bytes(make_log_bytes().replace(b"ok", b"OK", 1))
    yield damaged
