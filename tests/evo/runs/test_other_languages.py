"""Runs of a task whose programs are in C, and what prompts, replies, filters and viewers do."""

from pathlib import Path

import pytest
from evo_runs import QUIET

import evo
from evo.filters import ProtectedRegions, SameProgram
from evo.keyed import KeyedStream
from evo.logs.records import Evaluation
from evo.models.offline.edits import edit_numbers
from evo.prompt import build_messages, parse_reply
from evo.prompt.messages import TriedProgram, feedback
from evo.sandbox.compiled import find_tool
from evo.searches.base import Member
from replay.markup import difference, program

TASK = evo.load_task("tsp_c")
needs_c = pytest.mark.skipif(find_tool("c") is None, reason="apt-get install gcc libc6-dev")
CORPUS = Path(__file__).resolve().parents[3] / "logs" / "corpus"


@needs_c
def test_a_search_finds_a_better_program_in_c_and_its_log_reruns(tmp_path: Path) -> None:
    log = evo.run(
        TASK, generations=2, children=5, seed=0, feedback=True, log=tmp_path / "a.jsonl",
        filters=["same_program", "protected_regions"], **QUIET,
    )  # fmt: skip
    assert log.trajectory[-1] > log.trajectory[0] + 1e-3
    assert not evo.rerun(log.path).differences
    (fork,) = evo.fork(log, at=1, generations=2, log_dir=tmp_path / "f", **QUIET)
    assert fork.finished
    assert log.status_counts["ok"] > 5
    assert "check_fitness" in log.best.evaluation.metrics


def test_prompts_and_replies_use_the_fence_of_the_language() -> None:
    system, user = build_messages(TASK.record, TASK.initial_program, 0.5)
    assert "one c code block" in system["content"]
    assert "```c\n" in user["content"]
    assert "what it prints" in user["content"]
    reply = "First:\n```python\nprint(1)\n```\nthen\n```C\nint main;\n```\nand\n```bash\ncc\n```\n"
    assert parse_reply(reply, language="c") == "int main;\n"
    assert parse_reply("```\nint main;\n```", language="c") == "int main;\n"
    assert parse_reply("```cpp\nint main;\n```", language="c") is None
    assert parse_reply("```c\nint main;\n", language="c") is None


@needs_c
def test_what_the_compiler_says_is_told_to_the_model() -> None:
    broken = TASK.initial_program.replace("return 0;", "return 0")
    found = TASK.evaluate(broken)
    assert found.status == "error"
    parent = Evaluation(status="ok", fitness=0.5)
    told = feedback(TASK.record, parent, [TriedProgram(found)])
    assert "does not compile: program.c:" in told
    assert "expected ';'" in told


def test_filters_look_at_a_program_in_c_as_they_do_at_one_in_python() -> None:
    first = TASK.initial_program
    archive = [Member(place=(0, 0), fitness=0.5, parents=(), program=first)]
    same = first.replace("\n\n", "\n \n\n")
    assert "is the same" in (SameProgram().check(same, archive) or "")
    other = first.replace("1.0 *", "2.0 *")
    assert SameProgram().check(other, archive) is None
    assert ProtectedRegions().check(other, archive) is None
    outside = first.replace("return 0;", "return 1;")
    assert "return" in (ProtectedRegions().check(outside, archive) or "")


def test_the_offline_model_changes_numbers_and_nothing_else() -> None:
    source = '// 1 comment\n#define N 5\ndouble x1 = 2.5; /* 7 */ char *s = "3";\n'
    for seed in range(20):
        changed, words = edit_numbers(source, KeyedStream("test", seed))
        assert changed.startswith("// 1 comment\n#define N 5\ndouble x1 = ")
        assert changed.endswith('; /* 7 */ char *s = "3";\n')
        assert words == "I change a constant."
    assert edit_numbers("int f();", KeyedStream("test", 0)) == (
        "int f();",
        "I found nothing to change.",
    )


def test_a_program_in_c_is_shown_in_its_own_colours() -> None:
    text = 'int f(void) { return strlen("a"); } // note\n'
    assert "<i class='c'>// note</i>" in program(text, "c")
    assert "<i class='c'>// note</i>" not in program(text)
    shown, added, removed = difference("int a;\n", "int b; // x\n", language="c")
    assert (added, removed) == (1, 1)
    assert "<i class='c'>// x</i>" in shown
    assert "color" in TASK._repr_html_()


def test_a_task_keeps_its_hash_between_a_cell_and_a_folder(tmp_path: Path) -> None:
    def itself(value):
        return value

    task = evo.task("c", initial_program="int main;", language="c", evaluate=itself, statement="x")
    assert evo.load_task(task.save(tmp_path / "c")).record == task.record
    assert "evolves c" in repr(task)


def test_tasks_in_python_have_the_hashes_of_their_earlier_logs() -> None:
    path = next(iter(sorted(CORPUS.rglob("*.jsonl*"))))
    header = evo.read_log(path).header
    assert header.task.language == ""
    assert evo.load_task(header.task.name).record.hash == header.task.hash
