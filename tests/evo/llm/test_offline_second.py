"""Version 2 of the offline model: what it does besides version 1, and how often."""

import re

from offline_requests import PARENTS, TEXT, ask, showing

from evo.critics import Triple, critic_messages, read_score
from evo.llm.offline.problems import read_problem
from evo.llm.offline.program import read_chain
from evo.llm.offline.second import ACCURACY, HEEDED
from evo.prompt import Shown, build_messages, parse_reply
from evo.task import load_task, read_instances

WP = load_task("wp").record
PROBLEMS = [each["prompt"] for each in read_instances(WP)]
DEFECTIVE = "You solve problems. Give the answer in words."
COUNT = 400


def within(share: float, wanted: float, count: int) -> bool:
    """Whether a share of that many draws is within four standard errors."""
    return abs(share - wanted) < 4 * (wanted * (1 - wanted) / count) ** 0.5


def second(messages: list, seed: int = 0) -> str:  # type: ignore[type-arg]
    return ask(messages, model="offline-2", seed=seed).text


def test_without_news_it_is_as_version_1_in_kind() -> None:
    for seed in range(20):
        reply = second(showing(PARENTS["cp"]), seed)
        assert reply == second(showing(PARENTS["cp"]), seed)
    solved = "Think step by step. End with 'Answer: <number>'."
    asked = [{"role": "system", "content": solved}, {"role": "user", "content": PROBLEMS[0]}]
    assert second(asked) == ask(asked, seed=0).text


def test_it_rewrites_the_current_text_whatever_comes_before() -> None:
    others = [Shown((1, k), 0.1, f"Other text number {k}. It is of no use.") for k in range(3)]
    plain = build_messages(WP, TEXT, 0.5)
    told = build_messages(WP, TEXT, 0.5, inspirations=others)
    for seed in range(10):
        assert second(told, seed) == second(plain, seed)
    last = [plain[0], {"role": "user", "content": told[1]["content"].replace("Another", "Current")}]
    assert second(last) != second(plain)


def test_two_parents_are_mixed() -> None:
    other = "Check the result before you answer. Use simple words. Read the question twice."
    messages = build_messages(WP, TEXT, 0.5)
    mixing = f"Another text, to mix in (fitness 0.500000):\n```text\n{other}\n```\n"
    messages[1]["content"] = mixing + messages[1]["content"]
    texts = [parse_reply(second(messages, seed), evolves="text") or "" for seed in range(60)]
    both = [t for t in texts if "number." in t and "simple words" in t]
    assert len(both) > 15
    program = PARENTS["ht"]
    chains = [ask(showing(program), seed=seed, temperature=1.0).program for seed in range(40)]
    partner = next(c for c in chains if c and (chain := read_chain(c)) and len(chain.moves) > 1)
    wanted = read_chain(partner)
    assert wanted is not None
    messages = showing(program)
    before = f"Another program, to mix in (fitness 0.5):\n```python\n{partner}```\n"
    messages[0]["content"] = f"{before}Current program:\n{messages[0]['content']}"
    moves = {move.function for move in wanted.moves}
    made = [ask(messages, model="offline-2", seed=seed).program or "" for seed in range(40)]
    mixed = [p for p in made if any(re.search(rf"= {name}\(", p) for name in moves)]
    assert len(mixed) > 10


def test_feedback_is_used_as_often_as_stated() -> None:
    feedback = "What went wrong lately:\n- instance a: score 0, expected 67, got six seven\n"
    messages = build_messages(WP, DEFECTIVE, 0.0, feedback=feedback)
    mended = ["in words" not in second(messages, seed) for seed in range(COUNT)]
    blind = ["in words" not in second(build_messages(WP, DEFECTIVE, 0.0), seed)
             for seed in range(COUNT)]  # fmt: skip
    by_chance = sum(blind) / COUNT
    assert within(sum(mended) / COUNT, HEEDED + (1 - HEEDED) * by_chance, COUNT)


def test_a_defective_prompt_gets_answers_without_digits() -> None:
    for k, problem in enumerate(PROBLEMS[:20]):
        asked = [{"role": "system", "content": DEFECTIVE}, {"role": "user", "content": problem}]
        assert not re.search(r"\d", second(asked, k))
        assert re.search(r"\d", ask(asked, seed=k).text)


def test_a_critics_accuracy_is_as_stated() -> None:
    right = 0
    for seed in range(COUNT):
        problem = PROBLEMS[seed % len(PROBLEMS)]
        reading = read_problem(problem)
        assert reading is not None
        good = seed % 2 == 0
        reply = f"It is 3, no: {reading.value + (not good):g}"
        score = read_score(second(critic_messages("Right?", Triple("s", problem, reply)), seed))
        assert score is not None
        right += (score > 0.5) == good
    assert within(right / COUNT, ACCURACY, COUNT)


def test_it_prefers_replies_with_a_sound_program() -> None:
    query = showing(PARENTS["cp"])[0]["content"]
    replies = {True: f"```python\n{PARENTS['cp']}```", False: "```python\ndef f(:\n```"}
    for good, reply in replies.items():
        messages = critic_messages("Is it sound?", Triple("", query, reply))
        scores = [read_score(second(messages, seed)) or 0.0 for seed in range(100)]
        assert within(sum((s > 0.5) == good for s in scores) / 100, ACCURACY, 100)


def test_texts_in_other_languages_are_left_alone() -> None:
    rust = 'fn main() {\n    let total: u32 = (1..10).sum();\n    println!("{}", total);\n}\n'
    for model in ("offline", "offline-2"):
        for language in ("rust", "text"):
            replies = [ask(showing(rust, language=language), model=model, seed=seed)
                       for seed in range(60)]  # fmt: skip
            found = [parse_reply(r.text, finish_reason=r.finish_reason, evolves="text")
                     for r in replies]  # fmt: skip
            assert {text for text in found if text is not None} == {rust}
            assert sum(text is not None for text in found) > 40
