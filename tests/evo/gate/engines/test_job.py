"""What engines share: the judge, the marks of what may be rewritten, the registry."""

import json
import urllib.error
import urllib.request

import pytest

import evo
from evo.gate.engines.job import ProgramJudge, in_block, plain_lines
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
