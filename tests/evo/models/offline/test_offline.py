"""The offline model from inside; what it answers is frozen in `test_offline_freeze`."""

from __future__ import annotations

import gc
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from offline_requests import PARENTS, SEARCH_REPLACE, TAGGED, TASKS, TOY, ask, showing

from evo.models.critics import Triple, critic_messages, read_score
from evo.models.offline.problems import read_problem
from evo.models.offline.program import parse
from evo.models.offline.second import ACCURACY, HEEDED
from evo.prompt import build_messages
from evo.tasks.instances import read_instances
from evo.tasks.task import load_task

SEEDS = range(100)


@pytest.mark.parametrize("name", [*TASKS, "toy"])
def test_formats_of_other_tools_carry_the_same_program(name: str) -> None:
    parent, ambiguous = PARENTS.get(name, TOY), 0
    for seed in SEEDS:
        plain = ask(showing(parent), seed=seed)
        if plain.program is None:  # truncation draws differently in each format
            continue
        tagged = ask(showing(parent, system=TAGGED), seed=seed)
        assert re.search(r"^<NAME>.*^<DESCRIPTION>.*^<CODE>\n```python", tagged.text, re.M | re.S)
        assert tagged.program == plain.program
        for system in (SEARCH_REPLACE, SEARCH_REPLACE + "<NAME>"):
            text = ask(showing(parent, system=system), seed=seed).text
            block = re.search(r"<{7} SEARCH\n(.*?)\n={7}\n(.*?)\n>{7} REPLACE", text, re.DOTALL)
            assert block is not None
            assert ("<NAME>" in text) == ("<NAME>" in system)
            old, new = block.groups()
            assert old in parent
            if parent.count(old) == 1:
                assert parent.replace(old, new).rstrip() == plain.program.rstrip()
            else:
                ambiguous += 1
    assert ambiguous < 0.15 * len(SEEDS)


def test_a_program_in_a_block_without_a_language_is_found_before_what_is_known_of_it() -> None:
    """As GEPA shows it."""
    known = "# Example 1\n## status\nok\n\n## fitness\n0.25\n"
    for seed in SEEDS:
        plain = ask(showing(TOY), seed=seed)
        prompt = f"The component:\n```\n{TOY}```\nIts data:\n```\n{known}```\nImprove it."
        assert ask([{"role": "user", "content": prompt}], seed=seed).program == plain.program


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


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns while a tree is being made."""

    def give_way(*_: object) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(give_way)
    gc.set_threshold(20)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(give_way)


@pytest.mark.usefixtures("restless")
def test_many_threads_may_parse_at_once() -> None:
    deep = "value = " + "(" * 60 + "1" + " + 1)" * 60
    sources = [f"{deep}\nname_{k} = {k}\n" for k in range(24)]
    ready = threading.Barrier(4)

    def work(first: int) -> int:
        ready.wait()
        return sum(parse(source) is not None for source in sources[first::4])

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == len(sources)
