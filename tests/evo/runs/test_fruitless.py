"""A run of which no child is ok is warned of early, and only then."""

import warnings

import pytest

import evo
from evo.runs.fruitless import FRUITLESS

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
