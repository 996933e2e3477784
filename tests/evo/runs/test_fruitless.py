"""A run of which no child is ok is warned of early, and only then."""

import warnings

import pytest

import evo
from evo.runs.fruitless import FRUITLESS, in_a_line, worded

JUNK = {
    "I am sorry, I cannot help with that.": "none of the first 8 replies holds a program",
    "```python\nraise ValueError('never')\n```": r"none of the first 8 programs is ok \(8 error\)",
    None: "none of the first 8 calls got a reply",
}


@pytest.mark.parametrize("reply", JUNK, ids=("no program", "an error", "no reply"))
def test_a_model_that_returns_only_junk_is_warned_of_once_in_python(tmp_path, reply):
    with pytest.warns(UserWarning, match=JUNK[reply]) as said:
        log = evo.run(
            "mmd",
            model=lambda messages: reply,
            generations=3,
            children=4,
            log=tmp_path / "a.jsonl",
            progress=False,
        )
    assert len(said) == 1
    assert f"`evo show {log.path}` shows them" in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evo.rerun(log.path).same


def test_it_is_said_while_the_run_is_under_way(tmp_path):
    made = []

    def model(messages):
        made.append(messages)
        return "no"

    settings = {"model": model, "generations": 9, "children": 4, "max_concurrent": 1}
    settings |= {"log": tmp_path / "a.jsonl", "progress": False}
    with pytest.raises(UserWarning, match="the last: the reply has no program: no complete block"):
        evo.run("mmd", **settings)
    assert len(made) == FRUITLESS


def test_one_child_that_is_ok_suffices_also_one_of_an_earlier_session(tmp_path):
    task = evo.load_task("mmd")
    replies = iter([f"```python\n{task.initial_program}\n```"] + ["no"] * 40)
    settings = {
        "model": lambda messages: next(replies),
        "children": 5,
        "log": tmp_path / "a.jsonl",
        "max_concurrent": 1,
        "progress": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evo.run("mmd", generations=2, **settings)
        assert len(evo.run("mmd", generations=4, **settings).outcomes) == 20


def test_runs_that_are_fruitless_alike_are_warned_of_once_where_they_were_begun(tmp_path):
    with pytest.warns(UserWarning, match="none of the first 8 replies") as said:
        evo.run_many(
            "mmd",
            seeds=range(3),
            model=lambda messages: "no",
            generations=4,
            children=2,
            log_dir=tmp_path,
            progress=False,
        )
    assert [each.filename for each in said] == [__file__]


def test_an_error_is_told_by_its_exception_and_in_the_words_of_what_evolves():
    trace = 'Traceback (most recent call last):\n  File "e.py", line 1\n    f()\nKeyError: 1\nmore'
    assert in_a_line(f"the evaluator failed: {trace}") == "the evaluator failed: KeyError: 1"
    assert in_a_line("plain words\nand more") == "plain words"
    assert in_a_line("") == ""
    words = "the reply has no program: no complete block"
    assert worded(words, "python") == words
    assert worded(words, "text") == "the reply has no text that could evolve: no complete block"


def test_an_evaluator_that_fails_on_every_child_is_told_by_its_exception(tmp_path):
    def judge(value):
        return {}["missing"] if value else 1.0

    task = evo.task(
        "t", initial_program="def f():\n    return 0\n", evaluate=judge, where="here", statement="s"
    )
    settings = {"model": lambda messages: "```python\ndef f():\n    return 1\n```"}
    settings |= {"log": tmp_path / "a.jsonl", "progress": False}
    with pytest.warns(UserWarning, match="the evaluator failed: KeyError: 'missing'; the run"):
        evo.run(task, generations=3, children=4, **settings)
