"""A line that was cut out of a log is missed, though every line that is left is sound."""

from pathlib import Path

import pytest
from evo_runs import QUIET

import evo
from evo.logs.journal import Reader, encode_line
from evo.logs.log import line_decoder
from evo.logs.missing import missing_lines
from evo.logs.records import CriticCall, Header, InheritableLine, Line
from evo.runs.verification import verify

RUNS = {
    "greedy": ("mmd", {}),
    "a plan and drafts": ("mmd", {"search": "population", "drafts": 2, "critic": "offline-2"}),
    "no barrier": ("mmd", {"asynchronous": True}),
    "calls of an evaluation": (evo.load_task("word_problems", instances=4), {}),
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
