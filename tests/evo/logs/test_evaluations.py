"""A program has a fitness if and only if it is ok."""

import msgspec
import pytest

from evo.logs.evaluations import Evaluation, Instance
from evo.logs.literals import STATUSES


@pytest.mark.parametrize("status", [*STATUSES, None])
@pytest.mark.parametrize("fitness", [None, 0.0, -1.5])
def test_only_what_is_ok_has_a_fitness(status, fitness):
    if (status == "ok") == (fitness is not None):
        found = Evaluation(status=status, fitness=fitness)
        assert msgspec.json.decode(msgspec.json.encode(found), type=Evaluation) == found
        return
    with pytest.raises(ValueError, match=f"got status {status!r} and fitness {fitness!r}"):
        Evaluation(status=status, fitness=fitness)


def test_a_log_that_states_both_is_refused_when_it_is_read():
    with pytest.raises(msgspec.ValidationError, match="if and only if its status is 'ok'"):
        msgspec.json.decode(b'{"status":"error","fitness":0.5}', type=Evaluation)


def test_defaults_take_no_room_in_a_log_and_instances_come_back():
    assert msgspec.json.encode(Evaluation(status="ok", fitness=0.5)) == (
        b'{"status":"ok","fitness":0.5}'
    )
    found = Evaluation(
        status="ok", fitness=0.5, stages=(0.25,),
        instances=(Instance(id="a", status="ok", score=1.0), Instance(id="b", status="invalid")),
    )  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(found), type=Evaluation) == found
