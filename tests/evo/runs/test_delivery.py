"""Events reach every listener, whatever a listener does."""

import asyncio

import pytest

from evo.runs.delivery import Delivery


class Unspeakable(BaseException):
    """An error that cannot be shown."""

    def __repr__(self) -> str:
        raise self


def test_a_listener_whose_error_cannot_be_shown_gets_later_events() -> None:
    heard = []

    def listen(event: int) -> None:
        heard.append(event)
        raise Unspeakable

    delivery = Delivery([listen])
    for event in range(3):
        delivery.put(event)
    with pytest.warns(UserWarning, match="listen: raised Unspeakable; the run goes on"):
        delivery.close()
    assert heard == [0, 1, 2]


def test_a_listener_that_is_async_runs_to_its_end_with_each_event() -> None:
    heard = []

    async def listen(event: int) -> None:
        await asyncio.sleep(0)
        heard.append(event)
        if event == 1:
            raise ValueError("not that one")

    delivery = Delivery([listen])
    for event in range(3):
        delivery.put(event)
    with pytest.warns(UserWarning, match=r"listen: raised ValueError\('not that one'\)"):
        delivery.close()
    assert heard == [0, 1, 2]
