"""The parser is called by many threads at once."""

import ast
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from evo.parsing import parsed

SOURCE = "def f(x):\n" + "".join(f"    y{k} = [x, (x + {k}) * (1 - x)]\n" for k in range(200))


def test_threads_that_take_turns_at_every_chance_parse_alike():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(parsed, [SOURCE] * 64))
    finally:
        sys.setswitchinterval(interval)
    assert {ast.unparse(each) for each in made} == {ast.unparse(ast.parse(SOURCE))}


def test_a_fault_of_the_source_is_raised_as_ever():
    with pytest.raises(SyntaxError) as found:
        parsed("def f(:\n", "program.py")
    assert found.value.filename == "program.py"
