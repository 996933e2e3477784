"""A line that was cut out of a log is missed, though every line that is left is sound."""

from pathlib import Path
from typing import Any

import pytest
from embedding_samples import grams
from evo_runs import QUIET

import evo
from evo.logs.journal import Reader, encode_line
from evo.logs.log import line_decoder
from evo.logs.missing import missing_lines
from evo.logs.records import CriticCall, EmbeddingCall, Header, InheritableLine, Line
from evo.runs.verification import verify

ALIKE = evo.filters.NearEmbeddings(embed=grams, threshold=0.9999)
RUNS: dict[str, tuple[str | evo.Task, dict[str, Any]]] = {
    "greedy": ("mmd", {}),
    "a plan and drafts": ("mmd", {"search": "population", "drafts": 2, "critic": "offline-2"}),
    "no barrier": ("mmd", {"asynchronous": True}),
    "calls of an evaluation": (evo.load_task("word_problems", instances=4), {}),
    "embeddings": ("mmd", {"filters": ["near_duplicates", ALIKE]}),
}


def lines_of(path: Path) -> list[Line]:
    return list(Reader(path, line_decoder, first=Header).follow())


@pytest.mark.parametrize("kind", RUNS)
def test_verify_misses_every_line_that_is_cut_out(kind: str, tmp_path: Path) -> None:
    task, options = RUNS[kind]
    log = evo.run(task, generations=2, children=2, log=tmp_path / "a.jsonl", **options, **QUIET)
    assert not verify(log.path).faults
    lines = lines_of(log.path)
    cut = [k for k, line in enumerate(lines) if isinstance(line, InheritableLine)]
    cut = [k for k in cut if not isinstance(lines[k], CriticCall)]
    seen = set()
    for number in cut:
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(b"".join(encode_line(x) for k, x in enumerate(lines) if k != number))
        assert verify(path).faults, lines[number]
        seen.add(type(lines[number]).__name__)
    assert seen >= {"Initial", "ReplyLine", "Child", "Generation"}


def test_embeddings_are_missed_where_the_filter_was_asked_and_nowhere_else(tmp_path: Path) -> None:
    plain = evo.run("mmd", generations=2, children=4, log=tmp_path / "a.jsonl", **QUIET)
    (fork,) = evo.fork(plain.path, at=1, filters=ALIKE, log_dir=tmp_path, **QUIET)
    assert fork.embedding_calls
    assert list(missing_lines(fork)) == []
    path = tmp_path / "b.jsonl"
    left = [each for each in lines_of(fork.path) if not isinstance(each, EmbeddingCall)]
    path.write_bytes(b"".join(map(encode_line, left)))
    first, *others = missing_lines(evo.read_log(path))
    assert first == "the embedding of the initial program is missing"
    compared = [c.index for c in fork.children if c.generation == 2 and c.program is not None]
    assert others == [f"the embedding of child {k} of generation 2 is missing" for k in compared]


def test_a_fork_and_a_compact_log_of_replies_that_were_told_miss_nothing(tmp_path: Path) -> None:
    task = evo.load_task("mmd")
    program = task.record.files[task.record.program_file]
    with evo.Searcher("mmd", children=2, generations=2, log=tmp_path / "a.jsonl") as searcher:
        while not searcher.done:
            for number, prompt in enumerate(searcher.ask()):
                if number:
                    searcher.tell(prompt, f"```python\n{program}```\n")
                else:
                    searcher.tell(prompt, program=f"{program}\n# {prompt.seed}\n")
    (fork,) = evo.fork(searcher.path, at=1, log_dir=tmp_path, model="offline", **QUIET)
    small = evo.compact(searcher.path, tmp_path / "small.jsonl")
    for log in (searcher.log, fork, small):
        assert list(missing_lines(log)) == []
