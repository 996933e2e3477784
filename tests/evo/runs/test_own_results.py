"""What is told to a searcher, and the log that holds it."""

import math
import types

import numpy as np
import pytest

import evo

WITHOUT_A_PLACE_IN_A_LOG = [
    {"evaluation": evo.Evaluation(status="ok", fitness=math.nan)},
    {"evaluation": evo.Evaluation(status="ok", fitness=1.0, metrics={"loss": math.inf})},
    {"evaluation": evo.Evaluation(status="failed")},  # type: ignore[arg-type]
    {"evaluation": evo.Evaluation(status="error", error=3)},  # type: ignore[arg-type]
    {"reply": evo.Reply("text", usage=[1])},  # type: ignore[arg-type]
]


@pytest.mark.parametrize("told", WITHOUT_A_PLACE_IN_A_LOG, ids=str)
def test_what_a_log_cannot_hold_is_refused_and_the_log_stays_sound(tmp_path, told) -> None:
    with evo.Searcher("mmd", log=tmp_path / "a.jsonl", children=1, generations=1) as searcher:
        [prompt] = searcher.ask()
        with pytest.raises((TypeError, ValueError), match=r"evaluation: .*failure|usage: expected"):
            searcher.tell(prompt, **{"reply": "text", **told})
        assert searcher.tell(prompt, "no program").status == "no_program"
        assert len(searcher.log.children) == 1


class Usage:
    """As that of a client's completion."""

    def model_dump(self) -> dict[str, int]:
        return {"prompt_tokens": 9, "completion_tokens": 4}


def test_a_client_s_own_objects_and_any_text_are_told_as_an_endpoint_sends_them(tmp_path) -> None:
    reply = types.SimpleNamespace(text="half \ud800", usage=Usage(), finish_reason=3, reasoning=[])
    found = evo.Evaluation(status="ok", fitness=np.float32(0.5), value=object())
    with evo.Searcher("mmd", log=tmp_path / "a.jsonl", children=2, generations=1) as searcher:
        first, second = searcher.ask()
        searcher.tell(first, reply)
        program = "def construct(seed: int):\n    return []\n"
        assert searcher.tell(second, program=program, evaluation=found).fitness == 0.5
    one, other = searcher.log.children
    assert one.attempts[0].usage == Usage().model_dump()
    assert (one.attempts[0].finish_reason, one.reply) == (None, "half ?")
    assert other.evaluation.value is None
