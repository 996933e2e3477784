"""Asking for a child: its seed, its program, and drafts among which a critic chooses."""

import hashlib
import itertools
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.records import Attempt, CriticCall, Planned, ReplyLine
from evo.models.client import Call, CallCancelled, EndpointError
from evo.models.critics import Triple
from evo.runs.ask import (
    Drafts,
    OneCall,
    child_seed,
    failure_of,
    program_in,
    reply_line,
    score_of,
)
from evo.runs.configuration import make_header
from evo.runs.items import CallItem, Prompt, ScoreItem, complete
from evo.runs.state import State


class Says:
    """A scorer of texts by what they say; it keeps what it is asked for."""

    def __init__(self, **scores: float | None) -> None:
        self.scores, self.places = scores, list[tuple[int, int]]()

    def score(self, triple: Triple, *, generation: int, index: int) -> CriticCall:
        self.places.append((generation, index))
        return CriticCall(
            generation=generation, program="", index=index, attempts=(),
            score=self.scores[triple.reply],
        )  # fmt: skip


def test_of_the_drafts_of_a_child_the_one_with_the_highest_score_is_taken() -> None:
    header = make_header("mmd", children=4, drafts=3, critic="offline-2")
    prompt = Prompt(
        (2, 3), Planned(parents=((0, 0),)),
        [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}], "", "x = 0\n",
    )  # fmt: skip
    texts = [f"```python\nx = {name!r}\n```" for name in "abc"]
    calls = [Call((), text, draft=number) for number, text in enumerate(texts)]
    scorer = Says(**dict(zip(texts, (0.2, 0.7, None), strict=True)))

    def perform(item: object) -> object:
        assert isinstance(item, ScoreItem)
        return score_of(scorer, item)

    drafts = Drafts(OneCall(header, lambda _: None), scored=True)
    state = State(header)
    state.replies.update({(2, 3, k): reply_line(prompt, call) for k, call in enumerate(calls)})
    assert complete(drafts(prompt, state), perform).draft == 1
    # The critic's calls are told apart from those of a data set by places behind the children's.
    assert scorer.places == [(2, 4 + 3)] * 3
    unknown = replace(drafts, scored=False)
    assert complete(unknown(prompt, state), perform).draft == 0


@given(st.integers(0, 2**40), st.integers(1, 512), st.integers(1, 512), st.integers(0, 511))
def test_child_seeds_are_below_2_31(seed: int, children: int, generation: int, index: int) -> None:
    assert 0 <= child_seed(seed, children, generation, index) < 2**31


def test_a_seed_rests_on_run_size_and_place_alone() -> None:
    """Frozen, since logs are resumed and rerun with them: SHA-256 of the words, by hand."""

    def by_hand(words: str) -> int:
        return int(hashlib.sha256(words.encode()).hexdigest()[:8], 16) // 2

    assert child_seed(7, 16, 3, 5) == by_hand("7/16/3/5")
    assert child_seed(7, 16, 3, 5, draft=2) == by_hand("7/16/3/5/draft 2")
    assert child_seed(7, 16, 3, 5, draft=0) == child_seed(7, 16, 3, 5)
    places = itertools.product(range(3), (1, 2), range(3), (0, 1))
    assert len({child_seed(*place) for place in places}) == 3 * 2 * 3 * 2


PYTHON = "```python\nx = 2\n```"
DOWN = Attempt(status="error", latency=0.1, error="502")
BLOCK = "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE"


def asked(**options) -> tuple:
    header = make_header("mmd", **options)
    return Prompt((2, 1), Planned(parents=((0, 0),)), [], "", "x = 1\n"), header


@pytest.mark.parametrize(
    ("options", "call", "program", "error"),
    [
        ({}, Call((), PYTHON), "x = 2\n", None),
        ({}, Call((), PYTHON, finish_reason="length"), None, "truncated"),
        ({}, Call((), "I cannot."), None, "no complete block"),
        ({"edits": "diff"}, Call((), BLOCK), "x = 2\n", None),
        ({"edits": "diff"}, Call((), BLOCK, finish_reason="length"), None, "truncated"),
        ({"edits": "diff"}, Call((), BLOCK.replace("1", "3")), None, "block 1 does not match .*3"),
        ({"edits": "diff"}, Call((), "I cannot."), None, "no SEARCH/REPLACE block"),
    ],
)  # fmt: skip
def test_a_reply_has_a_program_or_a_reason_why_it_has_none(options, call, program, error) -> None:
    prompt, header = asked(**options)
    assert program_in(call, prompt, header) == program
    if error is not None:
        failed = failure_of(call, prompt, header)
        assert failed.status == "no_program"
        assert re.fullmatch(f"the reply has no program: {error}.*", failed.error)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (Call(()), "the reply is empty"),
        (Call((DOWN,)), "502"),
        (Call((DOWN,), rejected="too long"), "too long"),
    ],
)  # fmt: skip
def test_without_a_reply_the_reason_is_that_of_the_refusal_or_of_the_last_attempt(
    call, error
) -> None:
    failed = failure_of(call, *asked())
    assert (failed.status, failed.error) == ("no_reply", error)


def made(reply: str | None = PYTHON, **fields) -> Call:
    return Call((Attempt(status="ok", latency=0.1, finish_reason="stop"),), reply, **fields)


def test_a_call_is_made_once_logged_at_once_and_afterwards_read_from_the_log() -> None:
    prompt, header = asked(seed=9, children=4)
    lines: list[ReplyLine] = []
    items: list[CallItem] = []

    def perform(item: CallItem) -> Call:
        items.append(item)
        return made()

    ask, state = OneCall(header, lines.append), State(header)
    call = complete(ask(prompt, state, 1), perform)
    [item], [line] = items, lines
    assert (item.seed, item.draft) == (child_seed(9, 4, 2, 1, 1), 1)
    assert (line.generation, line.index, line.draft, line.reply) == (2, 1, 1, PYTHON)
    state.replies[2, 1, 1] = line
    again = complete(ask(prompt, state, 1), perform)
    assert again == replace(call, finish_reason="stop")
    assert len(items) == len(lines) == 1


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize("error", [EndpointError, CallCancelled])
def test_a_call_that_ends_the_run_is_logged_only_if_something_was_sent(error, sent) -> None:
    prompt, header = asked()
    lines: list[ReplyLine] = []
    state = State(header)
    state.failed[prompt.place] = -2
    attempt = Attempt(status="error", latency=0.1, sent=sent)

    def perform(item: CallItem) -> Call:
        raise error("down", [attempt])

    with pytest.raises(error, match="down"):
        complete(OneCall(header, lines.append)(prompt, state), perform)
    assert [line.draft for line in lines] == ([-3] if sent else [])  # below those of before


def test_a_refused_call_gets_a_draft_below_those_that_were_refused_before() -> None:
    prompt, header = asked()
    lines: list[ReplyLine] = []
    for before, draft in ((None, -1), (-1, -2)):
        state = State(header)
        if before is not None:
            state.failed[prompt.place] = before
        refused = complete(
            OneCall(header, lines.append)(prompt, state), lambda _: made(None, rejected="no")
        )
        assert (refused.draft, lines[-1].draft) == (draft, draft)


@pytest.mark.parametrize(
    ("replies", "chosen"),
    [
        ((None, "I cannot.", None), 1),  # a reply tells more than none
        ((None, None, None), 0),
        (("I cannot.", PYTHON, PYTHON), 1),  # equal programs are nothing to choose among
        ((None, PYTHON, "no"), 1),
    ],
)
def test_with_fewer_than_two_programs_no_critic_is_asked(replies, chosen) -> None:
    prompt, header = asked(children=4, drafts=3, critic="offline-2")
    state = State(header)
    for k, reply in enumerate(replies):
        state.replies[2, 1, k] = reply_line(prompt, made(reply, draft=k))
    drafts = Drafts(OneCall(header, lambda _: None), scored=True)
    assert complete(drafts(prompt, state), lambda item: pytest.fail("asked")).draft == chosen
