"""What a task would do before any model is paid."""

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


def test_a_check_shows_what_a_model_would_be_asked() -> None:
    found = on_rows().check()
    assert found.evaluation.fitness == -1
    assert "def double" in found.messages[-1]["content"]
    assert repr(found) == str(found)
    assert "feedback=True" in str(found)
    assert "def distance" in str(found)
    assert "<summary>user message</summary>" in found._repr_html_()


def test_a_check_says_that_the_offline_model_answered_the_rows() -> None:
    def right(reply, row):
        "Whether the reply holds the answer."
        return float(row["want"] in reply)

    settings = {"initial_program": "Answer.", "evaluate": right}
    settings["instances"] = [{"prompt": "What is 1 + 1?", "want": "2"}]
    task = evo.task("sums", **settings)
    assert "answered by the offline model, which is no LLM" in str(task.check())
    assert "offline" not in str(task.check(model=lambda messages: "2"))
    asking = evo.task("sums", asks=evo.Model("two", call=lambda messages: "2"), **settings)
    assert "offline" not in str(asking.check())
    assert asking.check().evaluation.fitness == 1
