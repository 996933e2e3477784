"""Events reach every listener, whatever a listener does."""

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
