"""Stages of an evaluator: where they are found, what each decides, and what OpenEvolve's are."""

import warnings

import pytest
from cascades import CASCADES, NUMBERS, program

import evo

PROGRAM = "def pair():\n    return [0.6, 0.9]\n"


def cheap(value):
    """Two numbers."""
    return value[0], "cheap"


def thorough(value):
    return {"fitness": value[1], "sum": sum(value), "notes": "thorough"}


def staged(**changes):
    given = {"evaluate": [cheap, thorough], "thresholds": [0.5], **changes}
    return evo.task("pairs", initial_program=PROGRAM, statement="s", **given)


def pair(first: float, second: float) -> str:
    return f"def pair():\n    return [{first}, {second}]\n"


@pytest.mark.parametrize("where", ["sandbox", "here"])
def test_a_program_below_a_threshold_costs_no_later_stage(where: str) -> None:
    task = staged(where=where)
    whole = task.evaluate()
    assert (whole.status, whole.fitness, whole.stages) == ("ok", 0.9, (0.6, 0.9))
    assert (whole.metrics, whole.notes) == ({"sum": 1.5}, "cheap\nthorough")
    refused = task.evaluate(pair(0.4, 0.9))
    assert (refused.status, refused.fitness, refused.stages) == ("partial", None, (0.4,))
    assert refused.error == "stage 1 of 2: 0.4 is below 0.5"
    assert "sum" not in refused.metrics


def test_a_failure_names_its_stage_and_keeps_what_came_before() -> None:
    failed = staged().evaluate("def pair():\n    return [0.7, None]\n")
    assert (failed.status, failed.stages) == ("error", (0.7,))
    assert failed.error is not None
    assert failed.error.startswith("in stage 2 of 2: ")


def test_each_stage_has_its_limits() -> None:
    def slow(value):
        import time

        time.sleep(1.5)
        return value[1]

    task = staged(evaluate=[cheap, slow], limits=[{"seconds": 20}, {"seconds": 0.5}])
    assert [each.limits.seconds for each in task.record.stages] == [20, 0.5]
    assert task.evaluate().error.startswith("in stage 2 of 2: ")
    assert task.evaluate(pair(0.1, 0.9)).status == "partial"


def test_a_saved_folder_is_the_same_task_and_a_text_may_state_stages(tmp_path) -> None:
    task = staged(limits=[{"seconds": 20}, {"seconds": 30}])
    folder = task.save(tmp_path / "pairs")
    assert evo.load_task(folder).record == task.record
    assert "thresholds = [0.5]" in (folder / "task.toml").read_text()
    text = task.record.files["evaluator.py"]
    assert text.endswith("stages = [cheap, thorough]\n")
    assert staged(evaluate=text).evaluate().stages == (0.6, 0.9)
    plain = evo.task("pairs", initial_program=PROGRAM, statement="s", evaluate=cheap)
    assert plain.record.stages == ()


def test_stages_on_rows_and_with_a_harness() -> None:
    def double(x):
        return 2 * x

    def first(value, row):
        return float(value == row["double"])

    def second(value, row):
        return first(value, row) / 2

    rows = [{"input": k, "double": 2 * k} for k in range(3)]
    task = evo.task("rows", initial_program=double, evaluate=[first, second], thresholds=[0.9],
                    instances=rows, statement="s")  # fmt: skip
    assert task.evaluate().stages == (1.0, 0.5)
    wrong = task.evaluate("def double(x):\n    return 2\n")
    assert (wrong.status, wrong.stages) == ("partial", (pytest.approx(1 / 3),))

    def called(function):
        return [function(1), function(2)]

    harnessed = evo.task("h", initial_program=double, evaluate=[cheap, thorough], thresholds=[0.5],
                         harness=called, statement="s")  # fmt: skip
    assert harnessed.evaluate().stages == (2, 4)


WRONG = {
    "too few": ({"thresholds": []}, "thresholds: expected 1, one for each of the 2 stages but"),
    "a number alone": (
        {"thresholds": 0.5},
        r"thresholds: expected a list, such as \[0\.5\], got 0.5",
    ),
    "a text alone": ({"thresholds": "parent"}, "thresholds: expected a list, .* got 'parent'"),
    "no number": ({"thresholds": ["best"]}, "expected finite numbers or \"parent\", got 'best'"),
    "nan": ({"thresholds": [float("nan")]}, "expected finite numbers"),
    "one function": ({"evaluate": cheap}, "evaluate=.cheap, thorough."),
    "a list of one": ({"evaluate": [cheap]}, "a list of two or more functions"),
    "texts": ({"evaluate": ["a", "b"]}, "a list of two or more functions"),
    "limits": ({"limits": [{"seconds": 3}]}, "expected one for each of the 2 stages, got 1"),
    "unlike": ({"evaluate": [cheap, lambda program_path: 1]}, "to be given the same"),
    "no list": ({"evaluate": "stages = tuple()\n"}, "stages: expected a list of two or more"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_stages_are_answered_in_words(kind: str) -> None:
    changes, words = WRONG[kind]
    with pytest.raises(ValueError, match=words):
        staged(**changes)


def test_limits_in_a_list_need_stages() -> None:
    with pytest.raises(ValueError, match="a list of them goes with stages"):
        evo.task("t", initial_program=PROGRAM, evaluate=cheap, limits=[{"seconds": 3}])


@pytest.mark.parametrize("name", CASCADES)
def test_cascades_reach_the_stages_that_openevolve_runs_with_its_metrics(name, tmp_path) -> None:
    cascade = CASCADES[name]
    task = evo.load_task(cascade.write(tmp_path / "task"))
    count = len(task.record.stages)
    for number in NUMBERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = evo.evaluate(task, program(number))
        expected = cascade.metrics[number]
        score = found.stages[-1] if found.stages else found.fitness
        combined = {"combined_score": score} if "combined_score" in expected else {}
        assert found.metrics | combined == expected
        assert (found.status == "ok") == (len(found.stages) == count)
    seconds = 20.0 if "timeout" in cascade.config else 60.0
    assert task.limits.seconds == seconds


def test_a_task_shows_its_stages() -> None:
    assert "cheap (at least 0.5), thorough" in staged()._repr_html_()
    relative = staged(thresholds=["parent"])._repr_html_()
    assert "cheap (better than its parent), thorough" in relative


def test_a_text_that_a_model_is_asked_under_has_batches_and_no_stages() -> None:
    def first(reply, row):
        return 1.0

    rows = [{"prompt": "What is 3 plus 4?"}]
    with pytest.raises(ValueError, match="batches="):
        evo.task("t", initial_program="Answer.", evaluate=[first, first], thresholds=[0.5],
                 instances=rows, statement="s")  # fmt: skip
