import random
import threading

import msgspec
import pytest

import evo
from evo.models.client import ModelClient
from evo.models.limits import Slots
from evo.models.registry import find_model, resolve_sampling

OFFLINE = find_model("offline")


class Replies:
    """The offline model, asked by hand."""

    def __init__(self) -> None:
        self.client = ModelClient(OFFLINE, resolve_sampling(OFFLINE), slots=Slots(8))

    def __call__(self, prompt: evo.Asked) -> str | None:
        generation, index = prompt.place
        made = self.client.call(
            prompt.messages, seed=prompt.seed, generation=generation, index=index
        )
        return made.reply


@pytest.fixture(scope="module")
def replies():
    return Replies()


def plain(log: evo.Log) -> list[object]:
    """The children without their times and attempts, by place."""
    children = sorted(log.children, key=lambda child: (child.generation, child.index))
    return [
        msgspec.structs.replace(
            child,
            attempts=(),
            evaluation=msgspec.structs.replace(child.evaluation, seconds=None),
        )
        for child in children
    ]


CONDITIONS = {
    "greedy": {},
    "population": {"search": "population", "inspirations": 1},
    "islands": {"search": "islands"},
    "filters": {"filters": ["same_program", "near_duplicates"], "feedback": True},
    "drafts": {"drafts": 2, "critic": "offline-2"},
    "draws": {"draws": 2, "confirm": 2},
}


def by_hand(path, replies, *, order: random.Random | None = None, **options: object) -> evo.Log:
    with evo.Searcher("mmd", log=path, children=3, generations=3, seed=7, **options) as searcher:
        while not searcher.done:
            prompts = searcher.ask()
            if order is not None:
                order.shuffle(prompts)
            for prompt in prompts:
                searcher.tell(prompt, replies(prompt))
        return searcher.log


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_searcher_driven_by_hand_gives_the_children_of_run(tmp_path, replies, condition) -> None:
    options = CONDITIONS[condition]
    log = by_hand(tmp_path / "hand.jsonl", replies, order=random.Random(1), **options)
    run = evo.run(
        "mmd", log=tmp_path / "run.jsonl", children=3, generations=3, seed=7, progress=False,
        **options,
    )  # fmt: skip
    assert plain(log) == plain(run)
    assert log.trajectory.tolist() == run.trajectory.tolist()
    assert log.header.model.name == "by hand"
    assert evo.rerun(log.path).same


def test_it_can_be_closed_at_any_child_and_opened_again(tmp_path, replies) -> None:
    whole = by_hand(tmp_path / "whole.jsonl", replies, search="population")
    options = {"children": 3, "generations": 3, "seed": 7, "search": "population"}
    for stop in range(1, 9, 3):
        path, told = tmp_path / f"{stop}.jsonl", 0
        searcher = evo.Searcher("mmd", log=path, **options)
        while told < stop:
            for prompt in searcher.ask(1):
                searcher.tell(prompt, replies(prompt))
                told += 1
        searcher.close()
        assert len(evo.read_log(path).children) == stop
        with evo.Searcher("mmd", log=path, **options) as again:
            assert len(again.waiting) == -stop % 3 or 3
            while not again.done:
                for prompt in again.ask():
                    again.tell(prompt, replies(prompt))
        assert plain(evo.read_log(path)) == plain(whole)


def test_prompts_say_what_a_model_would_be_sent_and_wait_until_they_are_told(
    tmp_path, replies
) -> None:
    with evo.Searcher("mmd", log=tmp_path / "a.jsonl", children=3, generations=2) as searcher:
        first = searcher.ask(2)
        assert [each.place for each in first] == [(1, 0), (1, 1)]
        assert first[0].parents == ((0, 0),)
        assert first[0].model == "by hand"
        assert first[0].messages[0]["role"] == "system"
        (third,) = searcher.ask()
        assert searcher.ask() == []
        assert searcher.waiting == [*first, third]
        found = searcher.tell(first[1], replies(first[1]))
        assert found.status
        assert searcher.waiting == [first[0], third]
        with pytest.raises(ValueError, match="generation 1, child 1, draft 0 was told already"):
            searcher.tell(first[1], "again")
        assert searcher.tell(first[0], None).status == "no_reply"
        assert not searcher.done
        assert len(searcher.log.children) == 2
        assert searcher.best.fitness is not None


def test_a_program_or_an_evaluation_of_ones_own_fills_a_place(tmp_path) -> None:
    task = evo.load_task("mmd")
    own = task.initial_program.replace("def ", "# mine\ndef ", 1)
    with evo.Searcher(task, log=tmp_path / "a.jsonl", children=3, generations=1) as searcher:
        first = searcher.tell(None, program=own)
        assert first.status == "ok"
        (second, third) = searcher.ask()
        with pytest.raises(ValueError, match="the program that it is of"):
            searcher.tell(second, evaluation=0.9)
        made = searcher.tell(second, f"```python\n{own}\n# b\n```", evaluation=(0.9, "measured"))
        assert (made.fitness, made.notes) == (0.9, "measured")
        assert searcher.tell(third, "no program here").status == "no_program"
        assert searcher.done
        log = searcher.log
    assert log.children[0].program.strip() == own.strip()
    assert log.children[0].attempts == ()
    assert log.best.fitness == 0.9
    with evo.Searcher("mmd", log=tmp_path / "b.jsonl", children=1, draws=2) as noisy:
        (prompt,) = noisy.ask()
        with pytest.raises(ValueError, match="with draws or confirm"):
            noisy.tell(prompt, "x", evaluation=1.0)


MISTAKES = [
    ({"program": 3}, TypeError, "program: expected source text, got 3"),
    ({"program": " "}, ValueError, "program: expected a program or text that is not empty"),
    ({"program": "x = 1", "reply": "y"}, ValueError, "program: it stands in place of a reply"),
    ({"program": "x = 1", "evaluation": "good"}, TypeError, "evaluation: an evaluator must return"),
    ({"program": "x = 1", "evaluation": float("nan")}, ValueError, "fitness is not finite"),
    ({"program": "x = 1", "evaluation": RuntimeError("down")}, TypeError, "a failure is told as"),
]


def test_a_place_for_a_program_of_ones_own_stays_to_be_asked_for_after_a_mistake(tmp_path) -> None:
    with evo.Searcher("mmd", log=tmp_path / "a.jsonl", children=2, generations=1) as searcher:
        for given, error, words in MISTAKES:
            with pytest.raises(error, match=words):
                searcher.tell(None, **given)
        assert [prompt.place for prompt in searcher.ask()] == [(1, 0), (1, 1)]
        with pytest.raises(ValueError, match="prompt: none can be planned now"):
            searcher.tell(None, program="x = 1")


def test_how_many_prompts_are_asked_for_is_a_whole_number(tmp_path) -> None:
    with evo.Searcher("mmd", log=tmp_path / "a.jsonl", children=2, generations=1) as searcher:
        for n in (1.5, "2"):
            with pytest.raises(TypeError, match="n: expected a whole number, got"):
                searcher.ask(n)
        with pytest.raises(ValueError, match="n: expected at least 1, got 0"):
            searcher.ask(0)
        assert len(searcher.ask(1)) == 1
        assert len(searcher.ask()) == 1


def test_a_reply_is_told_as_a_text_or_with_what_it_used_and_nothing_else(tmp_path, replies) -> None:
    used = {"prompt_tokens": 9, "completion_tokens": 4}
    with evo.Searcher("mmd", log=tmp_path / "log.jsonl", children=3, seed=7) as searcher:
        plainly, fully, silent = searcher.ask()
        for wrong in (3, ["text"], evo.Reply):
            with pytest.raises(TypeError, match="expected a text"):
                searcher.tell(plainly, wrong)
        with pytest.raises(TypeError, match=r"prompt: expected one that ask\(\) returned, got 'x'"):
            searcher.tell("x", replies(plainly))  # type: ignore[arg-type]
        reply = replies(plainly)
        first = searcher.tell(plainly, reply)
        second = searcher.tell(fully, evo.Reply(reply, usage=used, finish_reason="stop"))
        assert (first.status, first.fitness) == (second.status, second.fitness)
        assert searcher.tell(silent, evo.Reply(None)).status == "no_reply"
    told = sorted(searcher.log.children, key=lambda child: child.index)
    assert [child.attempts[0].usage for child in told[:2]] == [None, used]


def test_replies_may_be_told_from_many_threads(tmp_path, replies) -> None:
    with evo.Searcher(
        "mmd", log=tmp_path / "a.jsonl", children=8, generations=2, seed=7
    ) as searcher:
        while not searcher.done:
            threads = [
                threading.Thread(target=lambda p=prompt: searcher.tell(p, replies(p)))
                for prompt in searcher.ask()
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        log = searcher.log
    run = evo.run(
        "mmd", log=tmp_path / "b.jsonl", children=8, generations=2, seed=7, progress=False
    )
    assert plain(log) == plain(run)


def test_drafts_are_told_one_by_one(tmp_path, replies) -> None:
    options = {"children": 2, "generations": 1, "drafts": 2, "critic": "offline-2"}
    with evo.Searcher("mmd", log=tmp_path / "a.jsonl", **options) as searcher:
        prompts = searcher.ask()
        assert [(p.place, p.draft) for p in prompts] == [
            ((1, 0), 0), ((1, 0), 1), ((1, 1), 0), ((1, 1), 1)
        ]  # fmt: skip
        assert searcher.tell(prompts[0], replies(prompts[0])) is None
        assert searcher.tell(prompts[1], replies(prompts[1])).status


def test_a_searcher_of_the_same_process_is_taken_over(tmp_path, replies) -> None:
    options = {"children": 2, "generations": 2, "seed": 7, "log": tmp_path / "a.jsonl"}
    first = evo.Searcher("mmd", **options)
    (prompt,) = first.ask(1)
    first.tell(prompt, replies(prompt))
    with pytest.warns(UserWarning, match=r"a\.jsonl: another search .* had it open"):
        second = evo.Searcher("mmd", **options)
    with pytest.raises(ValueError, match="ask: this search was closed, since another search"):
        first.ask()
    with pytest.raises(ValueError, match=r"tell: .* took its log over; evo\.Searcher.* goes on"):
        first.tell(prompt, "a reply")
    with second:
        while not second.done:
            for prompt in second.ask():
                second.tell(prompt, replies(prompt))
        assert len(second.log.children) == 4
    assert first.done


def test_a_closed_searcher_says_so_and_one_at_its_end_has_nothing_to_ask(tmp_path, replies) -> None:
    options = {"children": 1, "generations": 2, "log": tmp_path / "a.jsonl"}
    with evo.Searcher("mmd", **options) as searcher:
        (prompt,) = searcher.ask()
    for verb, call in (("ask", searcher.ask), ("tell", lambda: searcher.tell(prompt, "a reply"))):
        with pytest.raises(ValueError, match=rf"{verb}: this search was closed; evo\.Searcher"):
            call()
    with evo.Searcher("mmd", **options) as again:
        while not again.done:
            for each in again.ask():
                again.tell(each, replies(each))
    assert again.ask() == []
    with pytest.raises(ValueError, match="was told already"):
        again.tell(prompt, "a reply")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_while_all_prompts_are_out_there_is_none_to_ask_for_until_one_is_told(
    tmp_path, replies, asynchronous
) -> None:
    how = {"children": 2, "generations": 2, "log": tmp_path / "a.jsonl"}
    with evo.Searcher("mmd", asynchronous=asynchronous, **how) as searcher:
        first, second = searcher.ask()
        assert (searcher.ask(), searcher.done) == ([], False)
        searcher.tell(second, replies(second))
        assert len(searcher.ask()) == asynchronous
        searcher.tell(first, replies(first))
        assert len(searcher.ask()) == 2 - asynchronous
        assert (searcher.ask(), searcher.done) == ([], False)
        for prompt in searcher.waiting:
            searcher.tell(prompt, replies(prompt))
        for prompt in searcher.ask():  # without a barrier the last one
            searcher.tell(prompt, replies(prompt))
        assert (searcher.ask(), searcher.done) == ([], True)


def test_a_task_that_asks_a_model_needs_one(tmp_path) -> None:
    task = evo.task(
        "words", initial_program="Answer.", evaluate=lambda reply, row: float(len(reply)),
        instances=[{"prompt": "What is 3 plus 4?"}], statement="s",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"model=... or evo.task\(..., asks=...\)"):
        evo.Searcher(task, log=tmp_path / "a.jsonl")
    with evo.Searcher(
        task, log=tmp_path / "b.jsonl", model="offline", children=1, generations=1
    ) as searcher:
        (prompt,) = searcher.ask()
        assert searcher.tell(prompt, program="Answer in words.").status == "ok"
        assert searcher.log.instance_calls


def test_a_program_that_is_tried_on_instances_needs_no_model(tmp_path, monkeypatch) -> None:
    for name in ("OPENAI_BASE_URL", "LLM_API_BASE"):
        monkeypatch.delenv(name, raising=False)

    def following(x: int) -> int:
        return x

    def score(value: int, row: dict[str, int]) -> float:
        return float(value == row["input"] + 1)

    rows = [{"input": number} for number in range(3)]
    task = evo.task("following", initial_program=following, evaluate=score, instances=rows,
                    statement="s")  # fmt: skip
    with evo.Searcher(task, children=1, generations=1, log=tmp_path / "a.jsonl") as searcher:
        [prompt] = searcher.ask()
        made = searcher.tell(prompt, "```python\ndef following(x):\n    return x + 1\n```")
        assert made is not None
        assert made.fitness == 1


def test_a_text_is_tried_with_the_model_that_its_task_asks(tmp_path, monkeypatch) -> None:
    for name in ("OPENAI_BASE_URL", "LLM_API_BASE"):
        monkeypatch.delenv(name, raising=False)

    def asked(messages: object) -> str:
        return "4"

    def score(reply: str, row: dict[str, str]) -> float:
        return float(reply == row["answer"])

    rows = [{"prompt": "2 + 2", "answer": "4"}, {"prompt": "1 + 2", "answer": "3"}]
    task = evo.task("sums", initial_program="Say a number.", evaluate=score, instances=rows,
                    statement="s", asks=asked)  # fmt: skip
    with evo.Searcher(task, children=1, generations=1, log=tmp_path / "a.jsonl") as searcher:
        [prompt] = searcher.ask()
        made = searcher.tell(prompt, "```\nSay it now.\n```")
        assert made is not None
        assert made.fitness == 0.5
