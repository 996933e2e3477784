"""What engines share: the judge, the marks of what may be rewritten, the registry."""

import json
import urllib.error
import urllib.request

import pytest

import evo
from evo.gate.engines.job import Engine, Job, ProgramJudge, in_block, plain_lines
from evo.sandbox import EvaluatorClosed


def test_the_judge_tells_what_is_public_and_our_sandbox_found():
    task = evo.load_task("tsp_construct")

    def evaluate(program):
        if program == "late":
            raise EvaluatorClosed("the sandbox is closed")
        return evo.evaluate(task, program)

    with ProgramJudge(evaluate) as judge:

        def ask(program):
            request = urllib.request.Request(judge.url, program.encode())
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)

        known = evo.evaluate(task, task.initial_program)
        found = ask(task.initial_program)
        assert found == {"status": "ok", "fitness": known.fitness, "error": None}
        assert task.record.private  # and of those nothing is told
        with pytest.raises(urllib.error.HTTPError, match="503"):
            ask("late")


def test_a_program_is_marked_once_and_its_marks_do_not_count():
    marked = in_block("x = 1\n")
    assert marked.splitlines() == ["# EVOLVE-BLOCK-START", "x = 1", "# EVOLVE-BLOCK-END"]
    assert in_block(f"import math\n{marked}") == f"import math\n{marked}"
    assert plain_lines(marked) == plain_lines("\nx = 1  \n\n") == "x = 1"


@pytest.fixture
def job(tmp_path):
    return Job(
        folder=tmp_path, python="python3", task=evo.load_task("mmd"), model="offline",
        endpoint="http://127.0.0.1:1", judge="http://127.0.0.1:2", calls=2, children=1, seed=0,
    )  # fmt: skip


@pytest.mark.parametrize("wrong", [None, "python3 engine.py", [], ["python3", 3], 7])
def test_a_command_is_a_list_of_texts(job, wrong):
    engine = Engine("mine", lambda job: wrong)
    with pytest.raises(TypeError, match="engine 'mine': expected `prepare` to return the command"):
        engine.command(job)


def test_a_command_may_name_paths_and_what_prepare_raises_names_the_engine(job):
    engine = Engine("mine", lambda job: [job.python, job.folder / "engine.py"])
    assert engine.command(job) == ["python3", str(job.folder / "engine.py")]
    with pytest.raises(ValueError, match="the engine 'mine' failed: KeyError: 'no'"):
        Engine("mine", lambda job: {}["no"]).command(job)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"prepare": 3}, "prepare: expected a function of a job, got 3"),
        ({"parent": "("}, "parent: .* is no regular expression: missing"),
        ({"parent": "def .*"}, "parent: .* which has no group"),
    ],
)
def test_what_no_engine_can_have_is_refused_where_it_is_made(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Engine(**{"name": "mine", "prepare": lambda job: ["true"], **wrong})
