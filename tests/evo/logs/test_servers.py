"""Addresses of Redis servers: recognised, shown without a password, refused in words."""

import sys

import pytest

from evo.logs.servers import connect, hidden, is_shared


@pytest.mark.parametrize(
    ("place", "shared"),
    [
        ("redis://host:6379/0", True),
        ("rediss://host", True),
        ("unix:///run/redis.sock", True),
        ("redis", False),
        ("redis:/host", False),
        ("http://host", False),
        ("logs/redis://x", False),
        ("", False),
        (None, False),
        (b"redis://host", False),
    ],
)
def test_an_address_begins_with_the_name_of_its_way(place, shared):
    assert is_shared(place) is shared


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("redis://user:secret@host:6379/0", "redis://host:6379/0"),
        ("redis://:p@ss@host/1", "redis://host/1"),
        ("redis://host/0?password=secret", "redis://host/0"),
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("unix:///run/redis.sock?password=x", "unix:///run/redis.sock"),
    ],
)
def test_no_password_is_shown(address, shown):
    assert hidden(address) == shown


def test_without_the_package_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ValueError, match=r"^redis://host: .*pip install 'evo-replay\[redis\]'"):
        connect("redis://:secret@host", "a cache")


def test_a_server_that_does_not_answer_is_named_without_its_password():
    pytest.importorskip("redis")
    with pytest.raises(OSError, match="cannot be used as a cache") as refused:
        connect("redis://:secret@127.0.0.1:9", "a cache")
    assert str(refused.value).startswith("redis://127.0.0.1:9: ")
    assert "secret" not in str(refused.value)


def test_a_wrong_address_says_what_was_expected():
    pytest.importorskip("redis")
    with pytest.raises(ValueError, match="expected such as redis://host:6379/0"):
        connect("redis://:secret@host:port/0", "a cache")
