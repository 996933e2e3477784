"""The offline model as an adviser: it says what it is, and draws points that fit the program."""

from __future__ import annotations

import evo
from evo.models.offline.advice import advise, is_asked

MMD = evo.load_task("mmd")


def shown(program: str, tag: str = "python") -> str:
    return f"The best program so far:\n\n```{tag}\n{program}\n```\n"


def points(text: str) -> list[str]:
    lines = text.splitlines()
    assert all(line.startswith("- ") for line in lines)
    return lines


def test_it_is_asked_by_what_a_run_with_advice_asks(tmp_path: object) -> None:
    searcher = evo.Searcher(
        MMD, children=2, generations=2, advice=1, log=f"{tmp_path}/a.jsonl", progress=False
    )
    with searcher:
        while not (asked := next((each for each in searcher.ask() if each.advice), None)):
            for prompt in searcher.waiting:
                searcher.tell(prompt, "no program")
        system = str(asked.messages[0]["content"])
        assert is_asked(system)
        [rewrite] = [str(m["content"]) for m in prompt.messages if m["role"] == "system"]
        assert not is_asked(rewrite)


def test_it_says_first_that_it_is_no_llm() -> None:
    for prompt in ("", "anything", shown(MMD.initial_program)):
        assert points(advise(prompt, 1))[0].endswith(
            "the offline model, a stand-in and not an LLM."
        )


def test_the_same_prompt_and_key_are_given_the_same_advice_and_others_differ() -> None:
    prompt = shown(MMD.initial_program)
    assert advise(prompt, 7) == advise(prompt, 7)
    assert len({advise(prompt, key) for key in range(20)}) > 1
    assert len({advise(f"{k}\n{prompt}", 7) for k in range(20)}) > 1


def test_a_program_that_it_knows_is_given_ideas_of_its_own_and_others_general_ones() -> None:
    own = {tuple(points(advise(shown(MMD.initial_program), key))[2:]) for key in range(20)}
    assert all(len(each) == 2 for each in own)
    for other in (shown("def unknown():\n    return 1\n"), shown("x,y\n1,2", "text"), ""):
        assert len(points(advise(other, 1))) == 2
