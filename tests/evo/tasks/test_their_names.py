"""Arguments in the words of other tools are answered with ours."""

import inspect
import re

import pytest

import evo
from evo.tasks.their_names import OF_RUNS, OF_TASKS


def points():
    return [1.0, 2.0]


def score(value):
    """The sum."""
    return sum(value)


@pytest.mark.parametrize("name", OF_TASKS)
def test_a_task_answers_with_the_argument_that_it_has(name):
    with pytest.raises(TypeError, match=f"unknown argument '{name}'; here: ") as said:
        evo.task("sum", initial_program=points, evaluate=score, **{name: 1})
    ours = re.findall(r"(\w+)=", str(said.value).partition("here: ")[2].partition(" (known")[0])
    assert set(ours) & set(inspect.signature(evo.task).parameters)


def test_other_arguments_of_a_task_are_answered_with_all_that_are_known():
    with pytest.raises(TypeError, match="did you mean 'statement'") as said:
        evo.task("sum", initial_program=points, evaluate=score, statment="The sum.")
    for name in inspect.signature(evo.task).parameters:
        assert re.search(rf"known: .*\b{name}\b", str(said.value))


@pytest.mark.parametrize("name", OF_RUNS)
def test_a_run_answers_with_the_argument_that_it_has(name):
    with pytest.raises(TypeError, match=re.escape(f"unknown argument '{name}'; here: ")) as said:
        evo.run("mmd", **{name: 1})
    ours = re.findall(r"(\w+)=", str(said.value).partition("here: ")[2].partition(" (known")[0])
    taken = {*inspect.signature(evo.run).parameters, *inspect.signature(evo.task).parameters}
    assert set(ours) & taken
    assert name not in inspect.signature(evo.run).parameters


VERBS = {
    evo.run: ("mmd",),
    evo.run_many: ("mmd",),
    evo.run_grid: ("mmd",),
    evo.start: ("mmd",),
    evo.estimate: ("mmd",),
    evo.evaluate: ("mmd", "x = 1"),
    evo.resume_many: ([],),
    evo.allocate_live: ("mmd", "ucb1"),
    evo.sweep: ({"children": [1]},),
    evo.select_best: ([{"a": 1}, {"a": 2}],),
}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_what_is_listed_as_known_is_all_that_is_taken(verb):
    given = {"seeds": [1]} if verb in (evo.run_many, evo.estimate) else {}
    if verb is evo.sweep:
        given = {"task": "mmd", "seeds": [1]}
    if verb is evo.select_best:
        given = {"evaluate": score, "data": [1]}
    with pytest.raises(TypeError, match="unknown argument 'colour'") as said:
        verb(*VERBS[verb], **given, colour=1)
    listed = set(re.search(r"\(known: (.*)\)", str(said.value))[1].split(", "))
    keywords = {
        name
        for name, each in inspect.signature(verb).parameters.items()
        if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    }
    assert keywords <= listed


def test_other_names_and_what_packages_add_are_listed(monkeypatch):
    with pytest.raises(ValueError, match="'ucb', 'ucb1'"):
        evo.policies.find_policy("nothing")
    with pytest.raises(ValueError, match=r"known: .*llama-8b"):
        evo.run("mmd", model="nothing")
