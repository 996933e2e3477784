"""Steps: all that one asks for is done in order, and what is raised reaches who asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evo.runs.items import DrawItem, Item, Once, Step, complete


class Performed:
    """Does items by their number, and notes the order; draws from 100 on fail."""

    def __init__(self) -> None:
        self.order: list[int] = []

    def __call__(self, item: Item) -> int:
        assert isinstance(item, DrawItem)
        self.order.append(item.draw)
        if item.draw >= 100:
            raise OSError(f"draw {item.draw}")
        return 10 * item.draw


def draw(number: int) -> DrawItem:
    return DrawItem("program", number)


def single(number: int) -> Step[str]:
    found = yield draw(number)
    return f"single {found}"


def asking(wanted: Any) -> Step[Any]:
    return (yield wanted)


@pytest.mark.parametrize(
    ("wanted", "result", "order"),
    [
        (draw(1), 10, [1]),
        ([draw(2), draw(1)], [20, 10], [2, 1]),
        ([], [], []),
        (single(3), "single 30", [3]),
        ([single(3), [draw(5), single(6)]], ["single 30", [50, "single 60"]], [3, 5, 6]),
        (Once("key", lambda: single(7)), "single 70", [7]),
        ([Once("key", lambda: single(8)), draw(9)], ["single 80", 90], [8, 9]),
    ],
)  # fmt: skip
def test_what_is_wanted_comes_back_in_its_shape(
    wanted: Any, result: object, order: Sequence[int]
) -> None:
    perform = Performed()
    assert complete(asking(wanted), perform) == result
    assert perform.order == order


def test_a_step_that_wants_nothing_returns_at_once() -> None:
    def nothing() -> Step[str]:
        yield from ()
        return "done"

    assert complete(nothing(), Performed()) == "done"


def test_an_error_reaches_the_step_that_asked_which_may_go_on() -> None:
    def careful() -> Step[list[object]]:
        found: list[object] = [(yield draw(1))]
        try:
            found.append((yield [draw(2), draw(100), draw(3)]))
        except OSError as error:
            found.append(str(error))
        found.append((yield draw(4)))
        return found

    perform = Performed()
    assert complete(careful(), perform) == [10, "draw 100", 40]
    assert perform.order == [1, 2, 100, 4]  # what stands behind a failure is not begun


def test_an_error_that_nobody_heeds_ends_the_step() -> None:
    perform = Performed()
    with pytest.raises(OSError, match="draw 101"):
        complete(asking([single(101), draw(1)]), perform)
    assert perform.order == [101]
