"""A search on fitness so small that nothing counts as better says so, once, and only then."""

import warnings
from pathlib import Path
from typing import Any

import pytest

import evo


def reply(messages: object) -> str:
    """A program that returns a new number each time."""
    reply.count += 1  # type: ignore[attr-defined]
    return f"```python\ndef answer():\n    return {reply.count}\n```"  # type: ignore[attr-defined]


def small(scale: float, first: float) -> Any:
    def evaluate(value: float) -> float:
        return scale * value

    first_program = f"def answer():\n    return {first}"
    return evo.task("small", initial_program=first_program, evaluate=evaluate, where="here",
                    statement="A number.")  # fmt: skip


def run(task: Any, tmp_path: Path, **settings: Any) -> evo.Log:
    reply.count = 1  # type: ignore[attr-defined]
    how = {"generations": 5, "children": 4, "max_concurrent": 1, "progress": False}
    how |= {"model": reply, **settings}
    made: evo.Log = evo.run(task, log=tmp_path / "a.jsonl", **how)
    return made


def test_a_small_initial_fitness_is_warned_of_at_the_start(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"initial program's fitness is 1e-11.*min_improvement"):
        log = run(small(1e-11, 1), tmp_path)
    assert len(set(log.trajectory)) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(run(small(1e-11, 1), tmp_path / "b", min_improvement=0.0).trajectory) == 6


def test_children_that_are_better_by_too_little_are_warned_of(tmp_path: Path) -> None:
    expected = r"first 8 children differs .* 8 of them are better, but none by enough"
    with pytest.warns(UserWarning, match=expected) as found:
        run(small(1e-11, 0), tmp_path)
    assert len(found) == 1


@pytest.mark.parametrize(("scale", "first"), [(1.0, 1), (2e-6, 1), (0.0, 0), (-1e-11, 0)])
def test_a_fitness_of_another_size_and_children_that_are_worse_are_not(
    tmp_path: Path, scale: float, first: float
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(small(scale, first), tmp_path)


def test_one_that_is_better_by_a_rounding_error_among_many_alike_is_not(tmp_path: Path) -> None:
    """Which of them is evaluated first is chance, and so would be the warning."""

    def rarely(messages: object) -> str:
        reply.count += 1  # type: ignore[attr-defined]
        return f"```python\ndef answer():\n    return {int(reply.count % 4 == 0)}\n```"  # type: ignore[attr-defined]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(small(1e-17, 0), tmp_path, model=rarely)
