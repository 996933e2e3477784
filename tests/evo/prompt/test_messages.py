"""What a model is sent: the wording of prompts, what they show, and what they never do."""

import json
from pathlib import Path

import msgspec
import pytest
from evo_runs import write_task

import evo
from evo.logs.languages import LANGUAGES
from evo.logs.log import read_log
from evo.logs.records import Evaluation, Instance
from evo.models.client import prompt_hash
from evo.prompt import ShownProgram, TriedProgram, build_messages, feedback, inspire, parse_reply
from evo.prompt.messages import ENDS, _quoted, words_for
from evo.tasks.instances import read_instances
from evo.tasks.task import load_task

PROGRAM = "def f():\n    return 1\n"


@pytest.mark.parametrize(("text", "longest"), [("x", 0), ("`", 1), ("```", 3), ("a ```` `` b", 4)])
def test_a_fence_is_one_longer_than_any_in_a_program_and_of_three_marks_at_least(
    text: str, longest: int
) -> None:
    task = load_task("wp").record
    [fence, *rest] = [
        line.removesuffix("text")
        for line in build_messages(task, text, None)[-1]["content"].splitlines()
        if line.startswith("```") and line != text
    ]
    assert fence == "`" * max(3, longest + 1)
    assert set(rest) == {fence}


def test_last_bit_of_fitness_does_not_change_the_prompt() -> None:
    task = load_task("cp").record
    assert build_messages(task, PROGRAM, 0.3) == build_messages(task, PROGRAM, 0.1 + 0.2)
    assert build_messages(task, PROGRAM, 0.3) != build_messages(task, PROGRAM, 0.4)


def test_the_plain_wording_is_that_of_every_shipped_log() -> None:
    path = next(Path("logs/corpus/qwen2.5-coder-1.5b/min_max_distance").glob("*s40*"))
    log = read_log(path)
    messages = build_messages(
        log.header.task, log.parent.program or "", log.trajectory[-2]
    )  # the last generation's, if it did not improve
    assert not log.generations[-1].improved
    assert prompt_hash(messages) == log.outcomes[-1].prompt_hash
    told = build_messages(log.header.task, PROGRAM, 0.5, feedback="", inspirations=())
    assert told == build_messages(log.header.task, PROGRAM, 0.5)


FEEDBACK = """\
Its metrics: objective 0.123457, strict_fitness 0.5.
What went wrong lately:
- error: ValueError: bad shape (3, 2) in [...] at [...] after [...]: 1.23457e+07
- timeout: it did not finish within [...]
- invalid: points must be finite, got nan
"""


def test_the_wording_of_feedback_is_frozen() -> None:
    task = load_task("mmd").record
    error = (
        'Traceback (most recent call last):\n  File "/tmp/a/program.py", line 3, in f\n'
        "ValueError: bad shape (3, 2) in /tmp/jail-1/x.py at 0x7f3a12 after 1.25 s: 12345678.9\n"
        "--- stdout\nsecret output"
    )
    failures = [
        Evaluation(status="error", error=error),
        Evaluation(status="ok", fitness=0.1),
        Evaluation(status="no_reply", error="connection to http://host:80 refused"),
        Evaluation(status="error", error=error),
        Evaluation(status="timeout", error="it did not finish within 60 s"),
        Evaluation(status="invalid", error="points must be finite, got nan"),
        Evaluation(status="invalid", error="a fourth one"),
    ]
    metrics = {"strict_fitness": 0.5, "objective": 0.12345678, "check_fitness": 0.777}
    parent = Evaluation(status="ok", fitness=0.5, metrics=metrics)
    said = feedback(task, parent, [TriedProgram(each) for each in failures])
    assert said == FEEDBACK.replace("1.23457e+07", "12345679")
    before = feedback(task, parent, [TriedProgram(each) for each in failures], version=2)
    assert before == FEEDBACK
    user = build_messages(task, PROGRAM, 0.5, feedback=said)[-1]["content"]
    plain = build_messages(task, PROGRAM, 0.5)[-1]["content"]
    assert user == plain.replace("```\nRewrite", f"```\n{said}Rewrite")


def test_failures_on_instances_are_told_with_expected_and_got() -> None:
    task = load_task("wp").record
    found = (
        Instance(id="1", status="ok", score=1.0),
        Instance(id="2", status="ok", score=0.0),
        Instance(id="3", status="no_reply"),
    )
    instances = [{"id": "1", "answer": 3}, {"id": "2", "answer": 4.25}, {"id": "3", "answer": 5}]
    tried = TriedProgram(
        Evaluation(status="ok", fitness=0.5, instances=found), {"2": "so it is\n 3.14159265"}
    )
    said = feedback(task, Evaluation(status="ok", fitness=0.5), [tried], instances)
    assert '- instance 2: score 0, expected 4.25, got "so it is\\n 3.14159265"\n' in said
    for length in (160, 161):  # of a longer one 80 characters at either end
        reply = ("ab" * 200)[:length]
        told = feedback(
            task, tried.evaluation, [TriedProgram(tried.evaluation, {"2": reply})], instances
        )
        shown = reply if length == 160 else f"{reply[:80]} [...] {reply[-80:]}"
        assert f"expected 4.25, got {shown}\n" in told
    held = [{**each, "check": True} for each in instances]
    assert feedback(task, Evaluation(status="ok", fitness=0.5), [tried], held) == ""
    long = feedback(
        task, tried.evaluation, [TriedProgram(Evaluation(status="error", error="x" * 5000))]
    )
    assert max(map(len, long.splitlines())) == len("- ") + 400


def test_programs_that_differ_in_the_last_bit_rank_by_their_place() -> None:
    one, other = ShownProgram((1, 0), 0.3, "a"), ShownProgram((2, 0), 0.1 + 0.2, "b")
    assert other.fitness > one.fitness  # type: ignore[operator]
    assert sorted([other, one], key=lambda each: each.rank) == [one, other]
    better, none = ShownProgram((3, 0), 0.3001, "c"), ShownProgram((0, 0), None, "d")
    assert sorted([none, other, better], key=lambda each: each.rank) == [better, other, none]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_a_prompt_version_tells_what_those_before_it_told_and_more(version: int) -> None:
    shared = msgspec.structs.replace(load_task("wp").record, isolation="shared")
    found = (Instance(id="7", status="ok", score=0.0),)
    parent = Evaluation(status="ok", fitness=0.5, metrics={"n": 1234567.0}, notes="1234567 in all")
    tried = TriedProgram(
        Evaluation(status="ok", fitness=0.5, instances=found), {"7": "in 7 minutes"}
    )
    answers = [{"id": "7", "answer": "1234567 " * 100}]
    said = feedback(shared, parent, [tried], answers, version=version)
    assert ("in all" in said) == (version >= 3)
    exact = version >= 4
    assert ("n 1234567." in said) == exact
    assert ("1234567 in all" in said) == exact
    assert ("got in 7 minutes" in said) == exact
    ends = TriedProgram(tried.evaluation, {"7": "a" + "\n" * 200 + "z"})
    answers = [{"id": "7", "answer": "\n" * 200}]
    assert feedback(shared, parent, [ends], answers, version=version).endswith('z"\n') == exact


@pytest.mark.parametrize(
    ("written", "before"),
    [
        ("1e400", "inf"), ("1.50", "1.5"), ("2.0", "2"), ("-0.0", "-0"), ("1e5", "100000"),
        ("0.333333333333", "0.333333"), ("1234567", "1234567"), ("0.000012345600", "1.23456e-05"),
    ],
)  # fmt: skip
def test_short_numbers_of_notes_are_told_as_they_are_written(written: str, before: str) -> None:
    """An answer that a note states must be told as it is."""
    task = load_task("mmd").record
    parent = Evaluation(status="ok", fitness=0.5, notes=f"expected {written}, got x")
    digits = sum(map(str.isdigit, written.lstrip("-0.").partition("e")[0]))
    now = written if digits <= 6 else before
    assert f"expected {now}, got" in feedback(task, parent, [])
    assert f"expected {before}, got" in feedback(task, parent, [], version=4)


def test_inspirations_are_the_best_others_and_come_first() -> None:
    task = load_task("mmd").record
    archive = [
        ShownProgram((0, 0), 0.1, "worst"),
        ShownProgram((1, 0), 0.4, PROGRAM),
        ShownProgram((1, 1), 0.3, "best"),
        ShownProgram((2, 0), 0.3, "best\n"),
        ShownProgram((2, 1), 0.2, "second"),
    ]
    archive.sort(key=lambda shown: shown.rank)
    chosen = inspire(archive, [PROGRAM], 2)
    assert [each.program for each in chosen] == ["second", "best"]
    assert inspire(archive, [PROGRAM], 0) == []
    user = build_messages(task, PROGRAM, 0.4, inspirations=chosen)[-1]["content"]
    assert user.index("second") < user.index("best") < user.index("Current program")
    assert parse_reply(user.rpartition("\nRewrite")[0]) == PROGRAM


SENTINEL = 0.777123


def test_what_is_held_out_reaches_no_prompt(tmp_path: Path) -> None:
    toml = 'entry = ["f"]\ninstances = "i.jsonl"\nprivate = ["secret"]\nstatement = "double it"\n'
    judge = (
        "def score(value, instance):\n    return 1.0 if value == 2 * instance['input'] else 0.25\n"
    )
    folder = write_task(tmp_path / "task", "def f(x):\n    return 0\n", judge, toml)
    lines = [{"input": 1}, {"input": 2}, {"input": SENTINEL, "check": True, "id": "sentinel"}]
    (folder / "i.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    task = load_task(folder)
    tried = evo.evaluate(task, task.initial_program)
    assert tried.metrics["check_fitness"] == 0.25
    assert [each.id for each in tried.instances] == ["1", "2"]
    tried.metrics["secret"] = SENTINEL
    tried.metrics["check_fitness"] = SENTINEL
    instances = read_instances(task.record)
    said = feedback(task.record, tried, [TriedProgram(tried)], instances)
    messages = build_messages(task.record, task.initial_program, tried.fitness, feedback=said)
    assert "objective" in said
    assert "0.777" not in str(messages)
    assert "sentinel" not in str(messages)


def test_the_prompt_for_a_diff_shows_the_parent_once() -> None:
    task = load_task("cp").record
    system, user = build_messages(task, "x = 1\n" * 2000, 0.5, edits="diff")
    assert "SEARCH/REPLACE blocks" in system["content"]
    assert user["content"].count("x = 1\n" * 2000) == 1
    assert user["content"].endswith("lines in their place\n>>>>>>> REPLACE")
    whole = build_messages(task, PROGRAM, 0.5, edits="rewrite")
    assert whole == build_messages(task, PROGRAM, 0.5)
    assert "SEARCH" not in str(whole)


def test_of_a_long_line_its_ends_are_quoted() -> None:
    whole = "a" * ENDS + "b" * ENDS
    assert len(whole) == 160
    assert _quoted(whole) == whole
    assert _quoted(whole + "c") == f"{'a' * 80} [...] {'b' * 79}c"
    assert json.loads(_quoted("two\nlines")) == "two\nlines"


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_code_is_shown_behind_the_first_word_of_its_language(language: str) -> None:
    task = msgspec.structs.replace(load_task("mmd").record, language=language)
    assert words_for(task) == ("program", LANGUAGES[language].fences[0])
