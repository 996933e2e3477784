"""The shipped data set and its evaluator."""

import pytest

import evo
from evo.models.offline.problems import read_problem
from evo.tasks.instances import read_instances
from evo.tasks.task import load_task

TASK = load_task("wp")
BEST = (
    "Think step by step. Write down the unit of every number. List the known quantities first. "
    "Check the result before you answer. End with a line of the form 'Answer: <number>'."
)


def test_the_generator_gives_the_shipped_bytes() -> None:
    files = TASK.record.files
    made = {}
    exec(compile(files["generate.py"], "generate.py", "exec"), made)
    assert made["generate"]() == files["instances.jsonl"]


def test_sixty_problems_of_six_kinds_that_the_offline_model_can_read() -> None:
    instances = read_instances(TASK.record)
    assert len(instances) == len({each["prompt"] for each in instances}) == 60
    kinds = [each["id"].split("-")[0] for each in instances]
    assert all(kinds.count(kind) == 10 for kind in kinds)
    assert len(set(kinds[:6])) == 6  # the first ones are of all kinds
    for instance, kind in zip(instances, kinds, strict=True):
        reading = read_problem(instance["prompt"].removeprefix("Problem: "))
        assert reading is not None
        assert (reading.kind, reading.value) == (kind, instance["answer"])


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("Answer: 1200", 1.0),
        ("so 3 x 400 = 1,200.", 1.0),
        ("\\boxed{1200.00}", 1.0),
        ("1200, starting from 3", 0.0),
        ("-1200", 0.0),
        ("12000", 0.0),
        ("twelve hundred", 0.0),
        ("", 0.0),
    ],
)
def test_the_last_number_counts(reply: str, score: float) -> None:
    made = {}
    exec(compile(TASK.record.files["evaluator.py"], "evaluator.py", "exec"), made)
    assert made["score"](reply, {"answer": 1200}) == score


def test_prompts_that_ask_for_more_score_better() -> None:
    fitness = [
        evo.evaluate("wp", text).fitness
        for text in (TASK.initial_program, "End with a line of the form 'Answer: <number>'.", BEST)
    ]
    assert fitness[0] < 0.35
    assert fitness[0] < fitness[1] < fitness[2]
    assert fitness[2] > 0.7


@pytest.mark.slow
@pytest.mark.thorough
def test_evolution_improves_the_prompt(tmp_path) -> None:
    log = evo.run("wp", generations=6, children=8, log=tmp_path / "a.jsonl", progress=False)
    assert log.trajectory[-1] > log.trajectory[0] + 0.2
