"""The data set of a task: what each line must hold, and what its mistakes are called."""

import msgspec
import pytest

from evo.logs.records import TaskRecord
from evo.tasks.folder import TaskError
from evo.tasks.instances import calls_of_evaluation, checks_of, read_instances


def task(text, **fields):
    plain = TaskRecord(
        name="t", hash="", files={"rows": text}, program_file="", evaluator_file="", statement="",
        instances_file="rows",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


def test_lines_without_an_id_are_numbered_and_whole_numbers_are_texts():
    found = read_instances(task('{"input": 1}\n\n  \n{"input": 2, "id": 9}\n{"input": 3}\n'))
    assert [each["id"] for each in found] == ["1", "9", "3"]
    assert [each["input"] for each in found] == [1, 2, 3]


def test_another_column_stands_for_the_input_or_the_prompt():
    [found] = read_instances(task('{"question": "q", "input": "old"}', column="question"))
    assert found["input"] == "q"
    [found] = read_instances(task('{"question": "q"}', column="question", evolves="text"))
    assert found["prompt"] == "q"


def test_an_evaluator_in_this_process_may_be_given_any_row():
    [found] = read_instances(task('{"x": 1}', given_text=True, evolves="text"))
    assert found == {"x": 1, "id": "1"}


@pytest.mark.parametrize(
    ("text", "fields", "message"),
    [
        ('{"input": 1}\n{', {}, "rows:2: not JSON"),
        ("[" * 100_000, {}, "rows:1: not JSON"),
        ("[1]", {}, r"rows:1: expected an object with a key 'input', any value, got \[1\]"),
        ('{"a": 1}', {}, "a key 'input', any value"),
        ('{"prompt": 1}', {"evolves": "text"}, "a key 'prompt', a text, got"),
        ('{"input": 1}', {"column": "q"}, "a key 'q', any value"),
        ('{"input": 1, "id": "a"}\n{"input": 1, "id": "a"}', {}, "rows:2: .*of its own.*got 'a'"),
        ('{"input": 1, "id": "2"}\n{"input": 1}', {}, "rows:2: expected an id of its own"),
        ('{"input": 1, "id": [1]}', {}, r"a text, got \[1\]"),
        ("\n \n", {}, "expected at least one instance"),
    ],
)
def test_a_mistake_names_its_line(text, fields, message):
    with pytest.raises(TaskError, match=message):
        read_instances(task(text, **fields))


def test_more_instances_than_a_line_of_a_log_holds_are_refused(monkeypatch):
    monkeypatch.setenv("EVO_MAX_ELEMENTS", "16")
    two = '{"input": 1}\n{"input": 2}\n'
    assert len(read_instances(task(two))) == 2
    with pytest.raises(TaskError, match=r"3 instances, expected at most 2.*instances=2"):
        read_instances(task(two + '{"input": 3}'))


def test_calls_are_those_of_a_text_and_held_out_instances_are_apart():
    rows = '{"prompt": "a"}\n{"prompt": "b", "check": true}\n{"prompt": "c", "check": false}\n'
    text = task(rows, evolves="text")
    assert (calls_of_evaluation(text), checks_of(text)) == (2, 1)
    program = task(rows, column="prompt")
    assert (calls_of_evaluation(program), checks_of(program)) == (0, 0)
