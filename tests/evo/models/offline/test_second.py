"""The offline model that uses feedback."""

from __future__ import annotations

from offline_requests import ask

from evo.models.critics import Triple, critic_messages, read_score
from evo.models.offline.problems import read_problem
from evo.models.offline.second import ACCURACY, HEEDED
from evo.prompt import build_messages
from evo.tasks.instances import read_instances
from evo.tasks.task import load_task


def within(share: float, wanted: float, count: int) -> bool:
    """Whether a share of that many draws is within four standard errors."""
    return abs(share - wanted) < 4 * (wanted * (1 - wanted) / count) ** 0.5


def test_feedback_is_used_and_critics_are_right_as_often_as_stated() -> None:
    task, count = load_task("wp").record, 400
    problems = [each["prompt"] for each in read_instances(task)]
    told = "What went wrong lately:\n- instance a: score 0, expected 67, got six seven\n"

    def second(messages: list, seed: int) -> str:  # type: ignore[type-arg]
        return ask(messages, model="offline-2", seed=seed).text

    right, mended, blind = 0, 0, 0
    for seed in range(count):
        text = "You solve problems. Give the answer in words."
        mended += "in words" not in second(build_messages(task, text, 0.0, feedback=told), seed)
        blind += "in words" not in second(build_messages(task, text, 0.0), seed)
        reading, good = read_problem(problems[seed % len(problems)]), seed % 2 == 0
        assert reading is not None
        triple = Triple(
            "s", problems[seed % len(problems)], f"3, no: {reading.value + (not good):g}"
        )
        score = read_score(second(critic_messages("Right?", triple), seed))
        assert score is not None
        right += (score > 0.5) == good
    assert within(right / count, ACCURACY, count)
    assert within(mended / count, HEEDED + (1 - HEEDED) * blind / count, count)
