"""Asking for a child: its seed, its program, and drafts among which a critic chooses."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evo.logs.records import CriticCall, Planned
from evo.models.client import Call
from evo.models.critics import Triple
from evo.runs.ask import Drafts, OneCall, child_seed, reply_line, score_of
from evo.runs.configuration import make_header
from evo.runs.items import Prompt, ScoreItem, complete
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
