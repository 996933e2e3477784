"""Errors that say what to do show the user's own code, and little of ours."""

import traceback
from pathlib import Path

import pytest

import evo
from evo.models.client import EndpointDown
from evo.runs.budget import BudgetError
from evo.runs.tracebacks import shorten


def files_of(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("slots", [1, 4])
def test_a_model_that_stays_down_ends_a_run_in_a_short_traceback(
    tmp_path: Path, slots: int
) -> None:
    def down(messages: object) -> str:
        raise evo.TryAgain(seconds=0.01)

    with pytest.raises(EndpointDown, match="'down' does not answer") as raised:
        evo.run(
            "mmd", model=down, generations=2, children=4, log=tmp_path / "a.jsonl",
            max_concurrent=slots, retries=1, progress=False,
        )  # fmt: skip
    assert [Path(file).name for file in files_of(raised.value)] == [Path(__file__).name, "verbs.py"]
    assert len(traceback.format_exception(raised.value)) <= 5
    assert raised.value.__cause__ is None


def pay(kind: type[Exception]) -> None:
    try:
        evo.run("mmd", budget={"money": 1})
    except BudgetError as cause:
        raise kind("cannot be paid") from cause


@pytest.mark.parametrize("kind", [BudgetError, ValueError])
def test_frames_of_the_users_code_and_causes_stay_and_errors_of_others_are_left(
    kind: type[Exception],
) -> None:
    with pytest.raises(kind, match="cannot be paid") as raised:
        pay(kind)
    error, cause = raised.value, raised.value.__cause__
    assert cause is not None
    before = files_of(error)
    shorten(error)
    assert files_of(error) == before == [__file__, __file__]
    assert error.__cause__ is cause
    ours = [file for file in files_of(cause) if file != __file__]
    assert len(files_of(cause)) > len(ours)
    assert (ours == []) == (kind is BudgetError)
