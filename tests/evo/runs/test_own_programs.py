"""A program of one's own that is told in place of a reply is the child, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import evo


def length(text: object) -> float:
    """A fitness of any text, or of several."""
    return float(len(str(text)))


def text_task(initial: object) -> evo.Task:
    return evo.task("text", initial_program=initial, evaluate=length, where="here", statement="-")


HEADED = "A head\n=======\nSay it.\n"
TOLD = {
    "a line of seven signs": ("Say it.\n", HEADED),
    "such a line that goes": (HEADED + "Again.\n" * 9, "A head\n=======\nSay it.\nAt length.\n"),
    "fences": ("Say it.\n", "```\n````\n`````\n~~~~~\nas in these\n"),
    "empty lines": ("a\n\n\n", "\n\nb\n\n\nc"),
    "line ends of Windows": ("a\n", "b\r\nc\r\n"),
}


@pytest.mark.parametrize("edits", ["rewrite", "diff"])
@pytest.mark.parametrize(("initial", "own"), TOLD.values(), ids=TOLD)
def test_a_program_of_ones_own_is_the_child_whatever_marks_of_replies_it_holds(
    tmp_path: Path, edits: str, initial: str, own: str
) -> None:
    task = text_task(initial)
    with evo.Searcher(task, log=tmp_path / "a.jsonl", children=1, edits=edits) as searcher:
        assert searcher.tell(None, program=own, evaluation=0.5).fitness == 0.5
        (child,) = searcher.log.children
    assert child.program.rstrip() == own.replace("\r\n", "\n").rstrip()


@pytest.mark.parametrize("edits", ["rewrite", "diff"])
@pytest.mark.parametrize("initial", ["Say it.\n", {"a.txt": "Say it.", "b.txt": "Well."}])
def test_a_program_that_no_reply_can_state_is_refused_and_its_place_stays_open(
    tmp_path: Path, edits: str, initial: object
) -> None:
    task = text_task(initial)
    with evo.Searcher(task, log=tmp_path / "a.jsonl", children=1, edits=edits) as searcher:
        (prompt,) = searcher.ask()
        whole = task.initial_program
        for own, words in (
            (whole.replace("Say", "<think>Say</think>"), "marks of replies"),
            (" \n", "that is not empty"),
        ):
            with pytest.raises(ValueError, match=f"program: .*{words}"):
                searcher.tell(prompt, program=own)
        assert searcher.waiting == [prompt]
        better = whole.replace("Say", "Do say")
        assert searcher.tell(prompt, program=better).status == "ok"
        assert searcher.best.program == better


def test_blocks_do_not_state_what_replaces_a_line_that_divides_them(tmp_path: Path) -> None:
    own = "Other\n=======\nSay it well.\n"
    for edits in ("diff", "rewrite"):
        log = tmp_path / f"{edits}.jsonl"
        with evo.Searcher(text_task(HEADED), log=log, children=1, edits=edits) as searcher:
            if edits == "diff":
                with pytest.raises(ValueError, match=r"program: .* marks of replies.* tell it as"):
                    searcher.tell(None, program=own)
            else:
                assert searcher.tell(None, program=own).fitness == len(own)
