import functools
import json
import types
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evo
from evo.tasks.functions import task

ROWS = [{"input": k, "want": 2 * k + 1} for k in range(4)]


def double(x):
    """Maps a number to another one."""
    return x * 2


def distance(value, row):
    if value is None:
        raise ValueError("expected a number")
    return -abs(value - row["want"]), f"off by {value - row['want']:g}"


def on_rows(**more: object) -> evo.Task:
    return task("line", initial_program=double, evaluate=distance, instances=ROWS, **more)


def test_a_function_a_text_and_a_file_make_the_same_task(tmp_path) -> None:
    def pair():
        """Two numbers."""
        return [1.0, 2.0]

    def spread(value):
        return abs(value[0] - value[1])

    whole = task("spread", initial_program=pair, evaluate=spread)
    program, evaluator = whole.initial_program, whole.record.files["evaluator.py"]
    (tmp_path / "a.py").write_text(program)
    (tmp_path / "b.py").write_text(evaluator)
    texts = task("spread", initial_program=program, evaluate=evaluator)
    files = task("spread", initial_program=tmp_path / "a.py", evaluate=tmp_path / "b.py")
    assert whole.record == texts.record == files.record
    assert whole.evaluate().fitness == 1.0
    assert whole.statement == "Two numbers."


def test_evaluate_in_a_text_is_given_what_its_first_parameter_names(tmp_path) -> None:
    program = "def three():\n    return 3\n"
    texts = (
        "import math\n\n\ndef half(x):\n    return x / 2\n\n\n"
        "def evaluate(value):\n    return half(value)\n",
        "def evaluate(value):\n    return value / 2\n",
        "def anything(value):\n    return value / 2\n",
        "def evaluate(path):\n    return open(path).read().count('3') * 1.5\n",
        "def evaluate(value):\n    return 0.0\n\n\ndef score(value):\n    return value / 2\n",
    )
    (tmp_path / "evaluator.py").write_text(texts[0])
    for number, text in enumerate((*texts, tmp_path / "evaluator.py")):
        made = task("half", initial_program=program, evaluate=text, statement="Half of it.")
        assert made.evaluate().fitness == 1.5
        assert evo.load_task(made.save(tmp_path / str(number))).evaluate().fitness == 1.5
    rows = task(
        "rows", initial_program="Answer shortly.", instances=[{"prompt": "1 + 1?", "answer": "2"}],
        evaluate="def evaluate(reply, row):\n    return float(reply == row['answer'])\n",
        statement="Sums.", asks=lambda prompt: "2",
    )  # fmt: skip
    assert rows.evaluate().fitness == 1.0


def test_a_saved_folder_is_the_same_task(tmp_path) -> None:
    made = on_rows(held_out=[{"input": 9, "want": 19}], missing=-3, private=["loss"])
    folder = made.save(tmp_path / "line")
    loaded = evo.load_task(folder)
    assert loaded.record == made.record
    assert loaded.limits == made.limits
    assert loaded.evaluate().fitness == made.evaluate().fitness == -1
    with pytest.raises(evo.TaskError, match="new or an empty folder"):
        made.save(folder)


def test_scores_may_be_any_numbers_and_one_failure_leaves_no_fitness() -> None:
    made = on_rows()
    found = made.evaluate()
    assert (found.status, found.fitness) == ("ok", -1.0)
    assert found.notes == "instance 0: off by -1"
    assert [each.score for each in found.instances] == [-1.0] * 4
    failing = "def double(x):\n    return 2 * x + 1 if x else 1 / x\n"
    found = made.evaluate(failing)
    assert (found.status, found.fitness) == ("error", None)
    assert "ZeroDivisionError" in found.error
    assert "on the input of instance 0" in found.error
    illegal = "def double(x):\n    return None\n"
    assert made.evaluate(illegal).status == "invalid"
    missing = on_rows(missing=-7).evaluate(failing)
    assert missing.fitness == -7 / 4
    assert missing.instances[0].status == "error"
    assert missing.instances[0].score == -7


def test_a_task_whose_scores_lie_between_0_and_1_may_say_so(tmp_path) -> None:
    def made(**more):
        evaluate = "def score(value):\n    return value\n"
        program = "def make():\n    return 0.5\n"
        return task("m", initial_program=program, evaluate=evaluate, statement="x", **more)

    silent, unit = made(), made(scale="unit")
    hashes = [each.record.hash for each in (silent, made(scale=None), unit)]
    assert hashes[0] == hashes[1] != hashes[2]
    unit.save(tmp_path / "m")
    for each in (unit, evo.load_task(tmp_path / "m")):
        assert evo.rewards.default_reward(each.record) == "best_fitness"
    assert evo.rewards.default_reward(silent.record) == "rank"
    with pytest.raises(ValueError, match="scale: expected 'unit' or None, got 'half'"):
        made(scale="half")


@pytest.mark.parametrize("where", ["sandbox", "here"])
def test_scores_of_rows_on_the_unit_scale_are_checked(where: str) -> None:
    def of_half(value, row):
        return value / 2 if value else True

    def made(**more):
        return task("m", initial_program=double, evaluate=of_half, instances=ROWS[:2],
                    where=where, scale="unit", **more)  # fmt: skip

    found = made().evaluate()
    assert (found.fitness, [each.score for each in found.instances]) == (1.0, [1.0, 1.0])
    assert made(missing=0).record == made().record
    with pytest.warns(UserWarning, match="m: the evaluator returned 1.5 on instance 1, and this"):
        found = made().evaluate("def double(x):\n    return 3 * x\n")
    assert [each.status for each in found.instances] == ["ok", "error"]
    assert found.fitness == 0.5
    found = made().evaluate("def double(x):\n    return 3\n")
    assert (found.status, found.fitness) == ("error", None)
    assert "expected 0 to 1, got 1.5" in found.error
    with pytest.raises(ValueError, match=r"missing: with scale='unit' a row .* counts 0, got -1"):
        made(missing=-1)


@pytest.mark.parametrize("where", ["sandbox", "here"])
@pytest.mark.parametrize("staged", [False, True])
def test_fitness_on_the_unit_scale_is_checked_without_rows_too(where: str, staged: bool) -> None:
    def half():
        return 0.5

    def cheap(value):
        return 7.0

    def itself(value):
        return value

    made = task("m", initial_program=half, statement="x", scale="unit", where=where,
                evaluate=[cheap, itself] if staged else itself,
                **({"thresholds": [5.0]} if staged else {}))  # fmt: skip
    assert made.evaluate().fitness == 0.5
    assert made.evaluate("def half():\n    return True\n").fitness == 1
    found = made.evaluate("def half():\n    return 1.5\n")
    assert (found.status, found.fitness) == ("error", None)
    assert "the evaluator failed: expected 0 to 1, got 1.5; return a fitness from" in found.error


def test_a_run_whose_fitness_leaves_the_unit_scale_is_told_before_the_first_call(tmp_path) -> None:
    def much():
        return 1.5

    def itself(value):
        return value

    made = task("m", initial_program=much, evaluate=itself, statement="x", scale="unit")
    with pytest.raises(evo.TaskError, match=r"evaluator fails .*: expected 0 to 1, got 1\.5"):
        evo.run(made, log=tmp_path / "a.jsonl", progress=False)
    with pytest.raises(evo.TaskError, match=r"evaluator fails .*: expected 0 to 1, got 1\.5"):
        evo.run(made.save(tmp_path / "m"), log=tmp_path / "b.jsonl", progress=False)


def test_a_task_of_rows_on_the_unit_scale_is_saved_as_such(tmp_path) -> None:
    made = on_rows(scale="unit")
    assert evo.load_task(made.save(tmp_path / "line")).record == made.record


def test_held_out_rows_decide_nothing() -> None:
    made = on_rows(held_out=[{"input": -1, "want": 5}])
    assert made.evaluate().metrics["check_fitness"] == -7
    failing = made.evaluate("def double(x):\n    return 2 * x + 1 if x >= 0 else 1 / 0\n")
    assert failing.fitness == 0
    assert "check_fitness" not in failing.metrics


def test_a_harness_is_given_the_function_and_the_input_and_never_the_row() -> None:
    def thrice(function, x):
        return [function(x) for _ in range(3)]

    def total(value, row):
        return {"fitness": -abs(sum(value) - 3 * row["want"]), "calls": len(value)}

    made = task("thrice", initial_program=double, evaluate=total, instances=ROWS, harness=thrice)
    found = made.evaluate()
    assert found.fitness == -3
    assert found.metrics["calls"] == 3

    def alone(function):
        return function(5)

    def plain(value):
        return value

    assert task("a", initial_program=double, evaluate=plain, harness=alone).evaluate().fitness == 10


def test_a_harness_may_call_the_function_with_any_arguments_in_every_draw(tmp_path):
    def added(one, *, other):
        return one + other

    def twice(function, number):
        return function(number, other=number)

    def alone(function):
        return function(1, other=2)

    def plain(value):
        return value

    def of_row(value, row):
        return value

    how = {"initial_program": added, "statement": "s"}
    for number, made in enumerate((
        task("alone", harness=alone, evaluate=plain, **how),
        task("twice", harness=twice, evaluate=of_row, instances=[{"input": 1.5}], **how),
    )):  # fmt: skip
        log = evo.run(made, generations=1, children=1, draws=3, progress=False,
                      log=tmp_path / f"{number}.jsonl")  # fmt: skip
        assert log.best.fitness == 3
        assert log.best.evaluation.draws == 3


def test_a_harness_and_a_program_may_use_the_same_names() -> None:
    program = (
        "SCALE = 2\n\ndef helper(x):\n    return SCALE * x\n\ndef run(x):\n    return helper(x)\n"
    )
    harness = "SCALE = 100\n\ndef helper(x):\n    return x / SCALE\n\n" \
        "def harness(function, x):\n    return helper(function(x))\n"  # fmt: skip

    def value_alone(value, row):
        return value

    made = task(
        "names", initial_program=program, evaluate=value_alone, harness=harness, entry="run",
        instances=[{"input": 50}], statement="s",
    )  # fmt: skip
    assert made.evaluate().fitness == 1.0


RETURNED = {
    "a number": (3, 3.0),
    "a boolean": (True, 1.0),
    "a number of NumPy": (np.float32(0.5), 0.5),
    "a dict": ({"fitness": 2, "size": 7}, 2.0),
    "a number and words": ((4, "well"), 4.0),
    "a number and a dict of words": ((4, {"a": "x", "b": 3}), 4.0),
}


@pytest.mark.parametrize("kind", RETURNED)
def test_an_evaluator_returns_a_number_a_dict_or_notes_too(kind: str) -> None:
    returned, fitness = RETURNED[kind]
    text = "import numpy as np\n" if "NumPy" in kind else ""
    shown = "np.float32(0.5)" if "NumPy" in kind else repr(returned)
    made = task(
        "returned", initial_program="def f():\n    return 1\n", statement="s",
        evaluate=f"{text}def score(value):\n    return {shown}\n",
    )  # fmt: skip
    found = made.evaluate()
    assert found.fitness == fitness
    if isinstance(returned, tuple):
        assert found.notes in ("well", "a: x\nb: 3")


def test_an_evaluator_of_a_file_returns_a_number_too() -> None:
    def size(program_path):
        with open(program_path) as file:
            return len(file.read()), "as it is"

    found = task("size", initial_program="x = 1\n", evaluate=size, statement="s").evaluate()
    assert (found.status, found.fitness, found.notes) == ("ok", 6.0, "as it is")


@pytest.mark.parametrize("returned", ["'0.5'", "None", "[1]", "{'score': 1}", "(1, 2, 3)"])
def test_anything_else_is_a_fault_of_the_evaluator(returned: str) -> None:
    made = task(
        "returned", initial_program="def f():\n    return 1\n", statement="s",
        evaluate=f"def score(value):\n    return {returned}\n",
    )  # fmt: skip
    found = made.evaluate()
    assert found.status == "error"
    assert "must return a number, a dict with the key 'fitness', or (number, notes)" in found.error


def test_what_evolves_is_seen_or_said() -> None:
    def length(text):
        """The longer the better."""
        return len(text)

    def by_path(program_path):
        with open(program_path) as file:
            return {"combined_score": len(file.read())}

    assert (
        task("t", initial_program="Be brief.", evaluate=length, statement="s").record.evolves
        == "text"
    )
    python = task("t", initial_program="x = 1\n", evaluate=by_path, statement="s")
    assert (python.record.evolves, python.record.isolation) == ("python", "shared")
    assert python.evaluate().fitness == 6
    as_text = task("t", initial_program="def f(): pass", evaluate=length, evolves="text")
    assert as_text.evaluate().fitness == 13
    with pytest.raises(ValueError, match="name the one to call, entry='NAME'"):
        task("t", initial_program="def f(): pass\ndef g(): pass\n", evaluate=length)
    for program, words in {
        "def f(:\n    return 1\n": "not valid Python",
        "import os\ndef f(:\n": "not valid Python",
        "x = 1": "defines no function",
        "program.py": "there is no file",
    }.items():
        with pytest.raises(ValueError, match=f"{words}.*evolves='text'"):
            task("t", initial_program=program, evaluate=length, statement="s")
        meant = task("t", initial_program=program, evaluate=length, statement="s", evolves="text")
        assert meant.record.evolves == "text"
    prose = "Complete this function:\n\ndef f(x):\n    ..."
    assert task("t", initial_program=prose, evaluate=length).record.evolves == "text"
    several = "def f():\n    return 'a'\n\ndef g():\n    return 'bb'\n"
    assert task("t", initial_program=several, evaluate=length, entry="g").evaluate().fitness == 2


def test_rows_come_from_dicts_a_frame_or_a_file(tmp_path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "rows.csv").write_text(pd.DataFrame(ROWS).to_csv(index=False))
    kinds = [ROWS, iter(ROWS), pd.DataFrame(ROWS), tmp_path / "rows.jsonl", tmp_path / "rows.csv"]
    made = [
        task("line", initial_program=double, evaluate=distance, instances=rows) for rows in kinds
    ]
    assert len({each.record.hash for each in made}) == 1
    renamed = [
        {"x": row["input"], "want": row["want"], "id": f"r{k}"} for k, row in enumerate(ROWS)
    ]
    named = task("line", initial_program=double, evaluate=distance, instances=renamed, prompt="x")
    assert [each.id for each in named.evaluate().instances] == ["r0", "r1", "r2", "r3"]
    arrays = [{"input": np.arange(3), "want": 1}]
    made_of_arrays = task(
        "line", initial_program=lambda x: x[2], evaluate=distance, instances=arrays, statement="s"
    )
    assert made_of_arrays.evaluate().fitness == -1


def test_without_words_for_the_model_there_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="told nothing"):
        task("t", initial_program=lambda: 1, evaluate=lambda value: value)


class Client:
    def ask(self, x: float) -> float:
        return x + 1


CLIENT = Client()
COUNT = 0


def counts(value):
    global COUNT  # noqa: PLW0603
    COUNT += 1
    return value


LOST = types.FunctionType(compile("lambda value: value", "<deleted>", "eval").co_consts[0], {})

WRONG = {
    "a file's name": (
        {"initial_program": __file__}, "is the name of a file that exists; to read it write Path"
    ),
    "an async evaluator": ({"evaluate": "ASYNC"}, "is async.*where='here'"),
    "a function from a deleted cell": (
        {"evaluate": LOST}, "the source of .* cannot be had: define it in a file"
    ),
    "one that changes a global": ({"evaluate": counts}, "changes 'COUNT', which"),
    "a method": ({"evaluate": Client().ask}, "is a method"),
    "a number": ({"evaluate": 3}, "evaluate: expected a function"),
    "an evaluator's name": ({"evaluate": "judge.py"}, r"if it is the name .*Path\('judge.py'\)"),
    "the name of rows": (
        {"instances": "rows.csv", "evaluate": distance}, r"a file is Path\('rows.csv'\)"
    ),
    "rows that are gone": (
        {"instances": Path("gone.csv"), "evaluate": distance}, "instances: cannot read 'gone.csv'"
    ),
    "what is built in": ({"initial_program": len}, "'len' is imported from elsewhere"),
    "what is installed": ({"initial_program": json.loads}, "'loads' is imported from elsewhere"),
    "no program": ({"initial_program": " "}, "expected a program or a text, got nothing"),
    "a client": ({"evaluate": lambda value: 1 + CLIENT.ask(value)}, "uses 'CLIENT', a Client"),
    "rows without input": (
        {"instances": [{"question": 1}], "evaluate": distance},
        "has question, and no 'input'; prompt='NAME'"
    ),
    "rows for an evaluator of values": (
        {"instances": [{"input": 1}]}, r"evaluate\(value, row\), .* and '<lambda>' takes \(value\)"
    ),
    "an evaluator of rows without any": (
        {"evaluate": lambda value, row: 1},
        r"evaluate\(value\), and '<lambda>' takes \(value, row\)"
    ),
    "numbers to ask": (
        {"initial_program": "be kind", "instances": [{"prompt": 5}], "evaluate": distance},
        "instances: row 0: a model is asked its 'prompt', which has to be a text, got 5",
    ),
    "no rows": ({"instances": [], "evaluate": distance}, "expected at least one row"),
    "held out alone": ({"held_out": ROWS}, "held_out: this goes with instances="),
    "a limit": ({"limits": {"minutes": 3}}, "there are: seconds"),
    "a place": ({"where": "there"}, "expected 'sandbox' or 'here', got 'there'"),
    "a name": ({"name": "a/b"}, "expected a plain name"),
    "a key": ({"initial_program": "def f():\n    return 'sk-aaaaaaaaaaaaaaaaaaaaaaaa'"}, "a key"),
    "a harness": ({"harness": lambda function, x: 1}, "it is called as harness.function., and"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_calls_are_answered_in_words(kind: str) -> None:
    changes, words = WRONG[kind]

    async def waits(value):
        return 1

    given = {
        "name": "t", "initial_program": "def f():\n    return 1\n", "statement": "s",
        "evaluate": lambda value: value, **changes,
    }  # fmt: skip
    if given["evaluate"] == "ASYNC":
        given["evaluate"] = waits
    with pytest.raises(ValueError, match=words):
        task(**given)


@pytest.mark.parametrize("given", [double, "def f():\n    return 1\n", "Be kind.", 3, {"a": 1}])
def test_a_run_of_what_is_no_task_says_how_to_make_one(given, tmp_path) -> None:
    with pytest.raises(
        evo.TaskError, match=r"evo\.task\(name, initial_program=..., evaluate=...\)"
    ):
        evo.run(given, log=tmp_path / "a.jsonl")


def test_a_run_of_a_task_is_played_again_without_the_notebook(tmp_path) -> None:
    made = on_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = evo.run(made, generations=2, children=3, log=tmp_path / "a.jsonl", progress=False)
    assert evo.rerun(log.path).same
    assert evo.rescore(log.path).best.fitness == log.best.fitness
    assert evo.evaluate(made, log.best.program).fitness == log.best.fitness
    assert Path(log.path).exists()


def test_a_run_whose_evaluator_is_here_is_played_from_its_log_and_goes_on_with_the_function(
    tmp_path,
) -> None:
    def judged(value):
        return CLIENT.ask(float(value))

    made = task("here", initial_program="def f():\n    return 1.5\n", evaluate=judged,
                where="here", statement="s")  # fmt: skip
    options = {"children": 3, "progress": False}
    log = evo.run(made, generations=2, log=tmp_path / "a.jsonl", **options)
    assert log.header.task.isolation == "here"
    assert "CLIENT.ask" in log.header.task.files["evaluator.py"]
    assert evo.rerun(log.path).same
    with pytest.raises(evo.TaskError, match=r"task=evo.task"):
        evo.rescore(log.path)
    assert evo.rescore(log.path, task=made).best.fitness == log.best.fitness
    longer = evo.resume(log.path, generations=3, task=made, progress=False)
    assert len(longer.generations) == 3
    (forked,) = evo.fork(log.path, at=1, generations=2, task=made, progress=False)
    assert [c.program for c in forked.children] == [c.program for c in log.children]


def test_a_function_as_entry_is_answered_with_its_name():
    def solve():
        return 1.0

    with pytest.raises(TypeError, match=r"entry: expected the name of a function.*entry='solve'"):
        evo.task("entry", initial_program=solve, evaluate=float, entry=solve)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": 3}, "name: expected a text, got 3"),
        ({"name": double}, "name: expected a text, got <function"),
        ({"statement": 3}, "statement: expected a text, got 3"),
        ({"entry": 3}, "entry: expected the name of a function of the initial program, got 3"),
        ({"entry": [double]}, "entry: expected the name of a function of the initial program"),
    ],
)
def test_what_should_be_a_text_and_is_none_is_named(wrong, message: str) -> None:
    given = {"name": "t", "initial_program": "def f():\n    return 1\n", "evaluate": float}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match=message):
            task(**{**given, **wrong})


def test_an_evaluator_may_be_a_function_with_arguments_given_beforehand() -> None:
    def near(limit, value, scale=1.0):
        return -abs(value - limit) * scale

    made = task(
        "t", initial_program="def f():\n    return 1\n", statement="s",
        evaluate=functools.partial(near, 4, scale=2.0),
    )  # fmt: skip
    assert made.evaluate().fitness == -6.0


def test_a_function_that_needs_arguments_is_told_how_it_gets_them() -> None:
    given = {"initial_program": "def fib(n):\n    return n\n", "statement": "s"}
    with pytest.warns(UserWarning, match=r"fib\(\) is called without .* needs n; .* program_path"):
        evo.task("fib", evaluate=lambda path: {"score": 1.0 if path else 0.0}, **given)
    rows = [{"input": 1, "want": 1}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evo.task("fib", evaluate=lambda program_path: {"combined_score": 1.0}, **given)
        evo.task("fib", evaluate=lambda value, row: value == row["want"], instances=rows, **given)
        evo.task("fib", evaluate=lambda value: value, harness=lambda function: function(1), **given)
        given["initial_program"] = "def fib(n=1):\n    return n\n"
        evo.task("fib", evaluate=lambda value: value, **given)


@pytest.mark.parametrize(
    "wrong", [None, 1, 1.5, True, b"objective", [None], [1.0], Path("objective")], ids=repr
)
def test_private_metrics_are_named_by_texts(wrong: object) -> None:
    """A name that is no text is that of no metric, which prompts would show."""
    with pytest.raises(TypeError, match=r"private: expected names of metrics, such as .*, got"):
        on_rows(private=wrong)
    named = [on_rows(private=given).record.private for given in ("a", ["a"], iter(["a"]))]
    assert named == [("a",)] * 3


@pytest.mark.parametrize("wrong", [["c"], {"c": 1}, 1, b"c"], ids=repr)
def test_a_language_has_a_name(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"language: expected one of c, .*, got"):
        task("hello", initial_program="int main() {}", evaluate=abs, language=wrong)


def test_files_of_a_program_have_names() -> None:
    with pytest.raises(TypeError, match="initial_program: expected the names of files and their"):
        task("files", initial_program={1: "x = 1"}, evaluate=len)
