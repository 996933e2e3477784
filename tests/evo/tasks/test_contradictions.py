"""Keys of a task that cannot stand together, each by a record in which nothing else is wrong."""

import math

import msgspec
import pytest

from evo.logs.languages import LANGUAGES
from evo.logs.records import StageRecord, TaskRecord
from evo.tasks.contradictions import check_record
from evo.tasks.folder import TaskError

ROWS = '{"id": "a", "prompt": "p", "input": 1}\n{"id": "b", "prompt": "p", "input": 1}\n'
HELD = ROWS.replace("}", ', "check": true}')
SOME = ROWS.replace("}", ', "check": true}', 1)
PLAIN = TaskRecord(
    name="t", hash="",
    files={"p.py": "", "e.py": "", "rows": ROWS, "held": HELD, "some": SOME, "h.py": "x = 1"},
    program_file="p.py", evaluator_file="e.py", statement="s", entry=("solve",),
)  # fmt: skip
TEXT = msgspec.structs.replace(PLAIN, evolves="text", instances_file="rows", entry=())
CRITIC = msgspec.structs.replace(TEXT, score="critic", evaluator_file="", rubric="r")
LANGUAGE = next(iter(LANGUAGES))

SOUND = {
    "plain": (PLAIN, {}),
    "text": (TEXT, {}),
    "critic": (CRITIC, {}),
    "shared without an entry": (PLAIN, {"isolation": "shared", "entry": ()}),
    "one language": (PLAIN, {"language": LANGUAGE}),
    "rows": (PLAIN, {"instances_file": "rows"}),
    "rows and a harness": (PLAIN, {"instances_file": "rows", "harness_file": "h.py"}),
    "any scores": (PLAIN, {"instances_file": "rows", "scores": "any", "missing": -1.0}),
    "some rows to try": (PLAIN, {"instances_file": "some"}),
    "stages": (PLAIN, {"stages": (StageRecord(function="score"),)}),
}


@pytest.mark.parametrize("kind", SOUND)
def test_what_fits_together_is_a_task(kind):
    record, fields = SOUND[kind]
    check_record(msgspec.structs.replace(record, **fields), "here")


WRONG = {
    "no name": (PLAIN, {"name": ""}, "key 'name': expected a plain name"),
    "a path": (PLAIN, {"name": "a/b"}, "key 'name'"),
    "another path": (PLAIN, {"name": "a\\b"}, "key 'name'"),
    "a hidden file": (PLAIN, {"name": ".a"}, "key 'name'"),
    "no printable name": (PLAIN, {"name": "a\nb"}, "key 'name'"),
    "a language": (PLAIN, {"language": "klingon"}, "key 'language': expected one of .*'klingon'"),
    "a text's language": (
        TEXT, {"language": LANGUAGE, "instances_file": ""}, "for a program of one file"),
    "files in a language": (
        PLAIN, {"language": LANGUAGE, "program_files": ("a",)}, "for a program of one file"),
    "no entry": (PLAIN, {"entry": ()}, "expected a key `entry`"),
    "a critic unasked": (PLAIN, {"critic": "m"}, 'these need score = "critic"'),
    "a rubric unasked": (PLAIN, {"rubric": "r"}, 'these need score = "critic"'),
    "a critic of programs": (PLAIN, {"score": "critic"}, 'score = "critic" is for a text'),
    "a critic beside an evaluator": (CRITIC, {"evaluator_file": "e.py"}, 'score = "critic" is for'),
    "shared rows": (PLAIN, {"isolation": "shared", "instances_file": "rows"}, "no isolation 'sha"),
    "stages of a text": (TEXT, {"stages": (StageRecord(function="s"),)}, "growing batches"),
    "several texts": (TEXT, {"program_files": ("a",)}, "asked instances under one text"),
    "a harness of a text": (TEXT, {"harness_file": "h.py"}, "a harness is for programs"),
    "a harness without rows": (PLAIN, {"harness_file": "h.py"}, r"function harness\(function\)"),
    "missing without rows": (PLAIN, {"scores": "any", "missing": 0.0}, "missing: this is for"),
    "missing of shares": (PLAIN, {"instances_file": "rows", "missing": 0.0}, "missing: this is"),
    "no finite missing": (
        PLAIN, {"instances_file": "rows", "scores": "any", "missing": math.inf}, "a finite number"),
    "nothing to try": (PLAIN, {"instances_file": "held"}, "all instances are for checking"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_what_contradicts_itself_is_said(kind):
    record, fields, message = WRONG[kind]
    where = r"^held: " if kind == "nothing to try" else r"^here: "
    with pytest.raises(TaskError, match=where) as refused:
        check_record(msgspec.structs.replace(record, **fields), "here")
    with pytest.raises(TaskError, match=message):
        raise refused.value
