"""Small logs made by hand, for tests that need no search."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from evo.logs.journal import encode_line
from evo.logs.records import (
    Attempt,
    Child,
    Evaluation,
    Generation,
    Header,
    Initial,
    Line,
    Model,
    RunEnd,
    Sampling,
    Session,
)
from evo.tasks.task import load_task


def sample_header(children: int = 3, seed: int = 7, *, source: str = "evo") -> Header:
    return Header(
        task=load_task("mmd").record,
        model=Model(name="sample", active_parameters=10, input_price=1.0, output_price=2.0),
        sampling=Sampling(temperature=0.6, top_p=0.95, max_tokens=100),
        children=children,
        seed=seed,
        versions={"evo-replay": "0.0"},
        source=source,
    )


def sample_child(generation: int, index: int, fitness: float | None) -> Child:
    evaluation = Evaluation(status="error", error="boom", seconds=0.1)
    if fitness is not None:
        metrics = {"objective": fitness / 2}
        evaluation = Evaluation(status="ok", fitness=fitness, metrics=metrics, seconds=0.01)
    usage = {"prompt_tokens": 50, "completion_tokens": 10 + index, "total_tokens": 60 + index}
    usage |= {"prompt_tokens_details": {"cached_tokens": 20}}
    return Child(
        generation=generation,
        index=index,
        seed=generation * 1000 + index,
        prompt_hash="0" * 64,
        attempts=(
            Attempt(status="timeout", latency=9.0, error="gave up"),
            Attempt(status="ok", latency=0.5, usage=usage, finish_reason="stop", http_status=200),
        )[index % 2 :],
        evaluation=evaluation,
        reply=f"reply {generation} {index}",
        program=f"program {generation} {index}",
    )


def sample_lines(
    *,
    generations: int = 3,
    children: int = 3,
    seed: int = 7,
    shuffle: random.Random | None = None,
) -> list[Line]:
    """Lines of a finished log whose children fail now and then."""
    draws = random.Random(seed)
    best: float | None = 0.1
    place = (0, 0)
    lines: list[Line] = [
        sample_header(children, seed),
        Session(generations=generations, started="2026-01-01T00:00:00+00:00", max_concurrent=4),
        Initial(evaluation=Evaluation(status="ok", fitness=best, seconds=0.01)),
    ]
    for g in range(1, generations + 1):
        members = [
            sample_child(g, i, None if draws.random() < 0.3 else draws.random())
            for i in range(children)
        ]
        top = max(members, key=lambda child: child.evaluation.fitness or -1.0)
        improved = (top.evaluation.fitness or -1.0) > (best or 0.0)
        if improved:
            best, place = top.evaluation.fitness, (g, top.index)
        if shuffle:
            shuffle.shuffle(members)
        lines += members
        lines.append(
            Generation(generation=g, best_fitness=best, best=place, improved=improved, seconds=1.5)
        )
    lines.append(RunEnd(reason="completed", stats={"generations": float(generations)}))
    return lines


def make_log_bytes(**how: Any) -> bytes:
    """`sample_lines` of these arguments as a file."""
    return b"".join(map(encode_line, sample_lines(**how)))


def write_sample(path: Path, **how: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(make_log_bytes(**how))
    return path


def write_lines(path: Path, lines: Iterable[Line]) -> Path:
    """Writes a log of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(encode_line(line) for line in lines))
    return path


def changed(lines: Iterable[Line], kind: type, **fields: Any) -> list[Line]:
    """The lines with the first record of a kind changed."""
    lines = list(lines)
    at = next(i for i, line in enumerate(lines) if isinstance(line, kind))
    lines[at] = msgspec.structs.replace(lines[at], **fields)
    return lines
