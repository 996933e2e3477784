"""The log as the model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.records import Attempt, Child, Evaluation, Model, Sampling
from evo.models.client import Caller, prompt_hash
from evo.models.recorded import RecordedModel, ReplyMissing

PROMPT = [{"role": "system", "content": "s"}, {"role": "user", "content": "µ"}]
USAGE = {"prompt_tokens": 3, "completion_tokens": 4}
ATTEMPTS = (
    Attempt(status="timeout", latency=1.0, error="no answer"),
    Attempt(status="ok", latency=0.5, usage=USAGE, finish_reason="length", http_status=200),
)


def child(generation: int, index: int, **fields: object) -> Child:
    fields = {
        "prompt_hash": prompt_hash(PROMPT),
        "attempts": ATTEMPTS,
        "evaluation": Evaluation(status="no_program"),
        "reply": f"reply {generation}.{index}",
        "reasoning": "because",
    } | fields
    return Child(generation=generation, index=index, seed=1, **fields)


def recorded(*children: Child, **settings: object) -> RecordedModel:
    sampling = Sampling(temperature=0.6, top_p=0.9, max_tokens=5)
    return RecordedModel(children, model=Model(name="m"), sampling=sampling, **settings)


def test_each_child_gets_its_own_reply_and_differing_prompts_are_listed_in_order_and_once():
    model: Caller = recorded(child(2, 0), child(1, 1), child(1, 0))
    other = [*PROMPT, {"role": "user", "content": "more"}]
    for generation, index, prompt in [(2, 0, other), (1, 1, other), (1, 0, PROMPT), (2, 0, other)]:
        call = model.call(prompt, seed=99, generation=generation, index=index)
        assert call.reply == f"reply {generation}.{index}"
        assert (call.attempts, call.reasoning) == (ATTEMPTS, "because")
        assert call.finish_reason == "length"
    assert model.differing == [(1, 1), (2, 0)]


def test_what_the_log_does_not_hold_is_an_error():
    with pytest.raises(ReplyMissing, match="no child 3 of generation 1"):
        recorded(child(1, 0)).call(PROMPT, seed=1, generation=1, index=3)
    with pytest.raises(ReplyMissing, match="compact"):
        recorded(child(1, 0, reply=None), compact=True).call(PROMPT, seed=1, generation=1, index=0)


messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "system"]), "content": st.text()})
)


@given(messages, messages)
def test_hashes_are_equal_exactly_for_equal_messages(one, other):
    turned = [dict(reversed(message.items())) for message in one]
    assert prompt_hash(one) == prompt_hash(turned)
    assert (prompt_hash(one) == prompt_hash(other)) == (one == other)
    assert len(prompt_hash(one)) == 64
