"""Steps, and which of their items are ready, without a run around them."""

import random

import pytest

from evo.runs.flow import Flow
from evo.runs.items import DrawItem, Once, Step, complete


def one(name: str) -> Step[str]:
    found = yield DrawItem(name, 0)
    return f"<{found}>"


def several(*names: str) -> Step[list[str]]:
    found = yield [one(name) for name in names]
    return found


def composed() -> Step[list[object]]:
    first = yield from one("a")
    both = yield [DrawItem("b", 0), one("c")]
    shared = yield [again(), again()]
    nothing = yield []
    return [first, *both, *shared, nothing]


def again() -> Step[str]:
    found = yield Once("key", lambda: one("d"))
    return found


def told(step: Step[object], order: random.Random) -> tuple[list[object], int]:
    """Leads a step whose items are told in some order; returns its result and the items done."""
    flow, results, done = Flow(), [], 0

    def outer() -> Step[None]:
        results.append((yield from step))

    flow.start(outer())
    open_items = []
    while not flow.idle:
        open_items += flow.ask(order.randint(0, 3))
        order.shuffle(open_items)
        if open_items:
            item = open_items.pop()
            flow.tell(item, item.program.upper())
            done += 1
    (result,) = results
    return result, done


@pytest.mark.parametrize("seed", range(5))
def test_a_step_returns_the_same_in_whatever_order_its_items_are_told(seed: int) -> None:
    result, done = told(composed(), random.Random(seed))
    assert result == complete(composed(), lambda item: item.program.upper())
    assert result == ["<A>", "B", "<C>", "<D>", "<D>", []]
    assert done == 4  # what several want is done once


def test_a_failure_reaches_the_step_that_asked_and_ends_the_others_calmly() -> None:
    flow, caught = Flow(), []

    def careful() -> Step[None]:
        try:
            yield DrawItem("a", 0)
        except ValueError as error:
            caught.append(str(error))
        yield DrawItem("b", 0)

    flow.start(careful())
    flow.start(several("c", "d"))
    first, *rest = flow.ask(9)
    flow.tell(first, ValueError("no"))
    assert caught == ["no"]
    assert flow.failure is None
    flow.tell(rest[0], OSError("gone"))
    assert isinstance(flow.failure, OSError)
    assert flow.draining
    (last,) = flow.ask(9)  # an evaluation; no further call would be handed out
    flow.tell(last, "b")
    flow.tell(rest[1], "d")
    assert flow.idle
