"""What a program returns, or forges, becomes an evaluation that a log can hold."""

from __future__ import annotations

import msgspec
import pytest
from toy import LIMITS, make_task

from evo.logs.records import Evaluation
from evo.sandbox import Evaluator

ANY = make_task("def score(value):\n    return {'fitness': 1.0}\n", picture="circles")
SHARED = make_task(
    "import importlib.util\n\n"
    "def evaluate(program_path):\n"
    "    spec = importlib.util.spec_from_file_location('program', program_path)\n"
    "    module = importlib.util.module_from_spec(spec)\n"
    "    spec.loader.exec_module(module)\n"
    "    return {'combined_score': module.construct()}\n",
    isolation="shared",
    picture="circles",
)
FORGE = """
import os

import msgspec


def construct():
    forged = {{"status": "ok", "fitness": 1.0, **{fields}}}
    data = memoryview(msgspec.msgpack.encode(forged))
    while data:
        data = data[os.write(3, data):]
    os._exit(0)
"""


def is_held(evaluation: Evaluation) -> bool:
    encoded = msgspec.json.encode(evaluation)
    return len(encoded) < 1 << 20 and msgspec.json.decode(encoded, type=Evaluation) == evaluation


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("{None: 3}", {"null": 3}),
        ("{(1, 2): 3}", {"(1, 2)": 3}),
        ("{1: 2, 2.5: [3]}", {"1": 2, "2.5": [3]}),
        ("[float('nan'), float('inf')]", [None, None]),
        ("np.zeros(150_000, bool)", None),
        ("[1] * 190_000", None),
        ("functools.reduce(lambda inner, _: [inner], range(900), 1)", None),
        ("np.ones((2, 2))", [[1.0, 1.0], [1.0, 1.0]]),
    ],
)
def test_a_returned_value_is_kept_as_json_or_not_at_all(value: str, kept: object) -> None:
    program = f"import functools\n\nimport numpy as np\n\n\ndef construct():\n    return {value}\n"
    with Evaluator(1) as evaluator:
        found = evaluator.evaluate(ANY, program, LIMITS)
    assert (found.status, found.value) == ("ok", kept)
    assert is_held(found)


@pytest.mark.parametrize(
    "fields",
    [
        "{'value': [None] * (7 << 20)}",
        "{'value': '\\x01' * (7 << 20)}",
        "{'value': {None: 1}}",
        "{'error': 'x' * (7 << 20), 'draws': 10**15}",
        "{'value': __import__('functools').reduce(lambda inner, _: [inner], range(400), 1)}",
    ],
)
def test_a_forged_evaluation_brings_no_construction(fields: str) -> None:
    with Evaluator(1) as evaluator:
        found = evaluator.evaluate(SHARED, FORGE.format(fields=fields), LIMITS)
    assert found.value is None
    assert found.draws == 1
    assert is_held(found)
