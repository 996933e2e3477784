"""Messages of a channel come back whole, in order, however they were cut; an end is said."""

import socket
import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.records import Evaluation, Limits
from evo.sandbox.messages import (
    ClosedError,
    ProgramAnswer,
    ProgramRequest,
    Ready,
    ScorerRequest,
    receive,
    send,
)


@pytest.fixture
def channel():
    one, other = socket.socketpair()
    with one, other:
        yield one, other


@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=5))
def test_messages_come_in_their_order_and_whole(values):
    one, other = socket.socketpair()
    with one, other:
        for value in values:
            send(one, ScorerRequest(value=value, key=b"k", keep_value=True))
        for value in values:
            found = msgspec.msgpack.decode(receive(other), type=ScorerRequest)
            assert found == ScorerRequest(value=value, key=b"k", keep_value=True)


def test_a_message_larger_than_the_channel_is_read_while_it_is_sent(channel):
    one, other = channel
    message = ProgramAnswer(value=bytes(5_000_000), printed="said", seconds=0.5)
    sending = threading.Thread(target=send, args=(one, message))
    sending.start()
    assert msgspec.msgpack.decode(receive(other), type=ProgramAnswer) == message
    sending.join(30)
    assert not sending.is_alive()


def test_every_field_survives(channel):
    one, other = channel
    evaluated = ProgramAnswer(evaluation=Evaluation(status="ok", fitness=0.5, notes="n"))
    for message in (
        ProgramRequest(task=None, program="x = '\ud7ff'", limits=Limits(seconds=2), key=b"\0\xff"),
        Ready(protections=("a",), missing={"b": "why"}, folder=""),
        evaluated,
    ):
        send(one, message)
        assert msgspec.msgpack.decode(receive(other), type=type(message)) == message


@pytest.mark.parametrize("sent", [b"", b"\x05\0\0", b"\x05" + bytes(7), b"\x05" + bytes(7) + b"ab"])
def test_an_end_in_the_middle_of_a_message_is_said(channel, sent):
    one, other = channel
    one.sendall(sent)
    one.close()
    with pytest.raises(ClosedError, match="the other end closed the channel"):
        receive(other)


def test_nothing_can_be_sent_to_who_is_gone(channel):
    one, other = channel
    other.close()
    message = ScorerRequest(value=bytes(100_000), key=b"", keep_value=False)
    with pytest.raises(ClosedError):
        send(one, message)


def test_a_message_without_content_is_an_empty_one(channel):
    one, other = channel
    one.sendall(bytes(8))
    assert receive(other) == b""
