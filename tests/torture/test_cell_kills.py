"""A cell's run and a Searcher, killed between any two of their steps: nothing paid is lost.

Steps are seen from within: each line of the log before and after it is written, each call of the
model and of the evaluator before and after it is made.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from forked import PROCESSES
from tiers import thorough_after

import evo
from evo.logs.journal import Writer
from evo.models.offline.endpoint import respond
from evo.runs.ask import child_seed
from evo.sandbox import evaluator

pytestmark = pytest.mark.slow

PROGRAM = "def value():\n    a = 1.5\n    b = 2.5\n    return a * b\n"
NO_KILL = -1


def answer(messages: Any, seed: int) -> str:
    """A reply of the offline model."""
    body = {"model": "offline", "messages": messages, "seed": seed}
    made = respond("POST", "/v1/chat/completions", json.dumps(body).encode())
    return str(json.loads(made.content)["choices"][0]["message"]["content"])


class Steps:
    """Counts the steps, says which is being made, and kills the process at one of them."""

    def __init__(self, folder: Path, at: int) -> None:
        self.folder, self.at, self.numbers = folder, at, itertools.count()

    def __call__(self, name: str) -> None:
        number = next(self.numbers)
        if number == self.at:
            (self.folder / "killed").write_text(name)
            os.kill(os.getpid(), signal.SIGKILL)

    def paid(self, seed: int) -> None:
        """Notes that a reply was paid for."""
        with open(self.folder / "paid", "a") as file:
            file.write(f"{seed}\n")

    def around_lines(self, append: Callable[..., None]) -> Callable[..., None]:
        """Returns how lines are appended with a step before and after."""

        def appends(writer: Writer, *records: Any) -> None:
            kinds = "+".join(type(each).__name__ for each in records)
            self(f"before {kinds}")
            append(writer, *records)
            self(f"after {kinds}")

        return appends


def by_run(folder: Path, steps: Steps) -> None:
    """A run whose model is a function, and whose task is evaluated here."""

    def llm(messages: Any, seed: int) -> str:
        steps("before a call")
        reply = answer(messages, seed)
        steps.paid(seed)
        steps("after a call")
        return reply

    model = evo.Model("llm", call=llm)
    evo.run(made_task(steps), model=model, generations=1, children=2, max_concurrent=1, workers=1,
            log=folder / "a.jsonl", progress=False)  # fmt: skip


def by_hand(folder: Path, steps: Steps) -> None:
    """A Searcher that is told replies."""
    how = {"generations": 1, "children": 2, "workers": 1}
    with evo.Searcher(made_task(steps), log=folder / "a.jsonl", **how) as searcher:
        for prompt in searcher.waiting:
            steps("again")
            tell(searcher, prompt, steps)
        while not searcher.done:
            for prompt in searcher.ask():
                steps("asked")
                tell(searcher, prompt, steps)


def tell(searcher: evo.Searcher, prompt: evo.Asked, steps: Steps) -> None:
    reply = answer(prompt.messages, prompt.seed)
    steps.paid(prompt.seed)
    steps("after a call")
    searcher.tell(prompt, reply)
    steps("told")


def made_task(steps: Steps) -> evo.Task:
    def judged(text: str) -> float:
        steps("before an evaluation")
        fitness = len(set(text)) / 100
        steps("after an evaluation")
        return fitness

    # A text is not run: the sessions need no sandbox.
    given: dict[str, Any] = {"evolves": "text", "where": "here", "statement": "s"}
    return evo.task("toy", initial_program=PROGRAM, evaluate=judged, **given)


WAYS = {"run": by_run, "searcher": by_hand}


def session(way: str, folder: str, at: int) -> None:
    """Makes one session."""
    steps = Steps(Path(folder), at)
    Writer.append = steps.around_lines(Writer.append)  # type: ignore[method-assign]
    evaluator.Evaluator.protections = ()  # type: ignore[assignment] # asks a sandbox, started for it
    WAYS[way](Path(folder), steps)
    (Path(folder) / "steps").write_text(str(next(steps.numbers)))


def killed(way: str, folder: Path, at: int) -> bool:
    """Makes a session in a process of its own; whether it was killed before its end."""
    process = PROCESSES.Process(target=session, args=(way, str(folder), at))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def paid(folder: Path) -> list[int]:
    path = folder / "paid"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def logged(path: Path) -> set[int]:
    """Seeds of the replies that a log holds."""
    if not path.exists() or not path.read_bytes():
        return set()
    log = evo.read_log(path)
    run, made = log.header, {(each.generation, each.index, each.draft) for each in log.children}
    return {child_seed(run.seed, run.children, *key) for key in made | set(log.replies)}


def plain(path: Path) -> list[object]:
    """The children of a log without their times."""
    return [
        msgspec.structs.replace(
            child, attempts=(), evaluation=msgspec.structs.replace(child.evaluation, seconds=None)
        )
        for child in evo.read_log(path).children
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("way", thorough_after(1, WAYS))
def test_a_kill_at_any_step_loses_nothing_paid(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare_sandboxes: type
) -> None:
    monkeypatch.setattr(evaluator, "_Pool", spare_sandboxes)  # for what goes on in this process
    whole = tmp_path / "whole"
    whole.mkdir()
    assert not killed(way, whole, NO_KILL)
    count = int((whole / "steps").read_text())
    seeds, children = paid(whole), plain(whole / "a.jsonl")
    assert len(seeds) == len(set(seeds)) == len(children) == 2
    names = set[str]()
    for at in range(count):
        folder = tmp_path / str(at)
        folder.mkdir()
        assert killed(way, folder, at)
        name, before = (folder / "killed").read_text(), paid(folder)
        names.add(name)
        lost = set(before) - logged(folder / "a.jsonl")
        assert len(lost) == (name in ("after a call", "before ReplyLine")), (at, name)
        WAYS[way](folder, Steps(folder, NO_KILL))  # it goes on where it was
        assert plain(folder / "a.jsonl") == children, (at, name)
        again = paid(folder)[len(before) :]
        assert sorted(again) == sorted(set(seeds) - set(before) | lost), (at, name)
        assert not evo.verify(folder / "a.jsonl").faults
    assert names >= {"before ReplyLine", "after ReplyLine", "before Child", "after Child",
                     "before Child+Generation", "after Child+Generation", "after an evaluation",
                     "after a call"}  # fmt: skip
