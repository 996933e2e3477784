"""Redis servers that sessions on several machines share: their addresses, and connecting to one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import redis

SCHEMES = ("redis", "rediss", "unix")
_SECONDS = 5.0  # for an answer


def is_shared(place: object) -> bool:
    """Whether a place is the address of a Redis server, such as redis://host:6379/0."""
    return isinstance(place, str) and place.partition("://")[0] in SCHEMES and "://" in place


def hidden(address: str) -> str:
    """Returns an address without its password."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def connect(address: str, purpose: str) -> redis.Redis:
    """Connects to a server.

    Args:
        address: Such as redis://host:6379/0.
        purpose: What the server is to be, in messages.

    Raises:
        ValueError: The address is not one, or the package `redis` is missing.
        OSError: The server does not answer, or refuses.
    """
    name = hidden(address)
    try:
        import redis
    except ImportError:
        raise ValueError(
            f"{name}: this needs the package redis: pip install 'evo-replay[redis]'"
        ) from None
    try:
        client = redis.Redis.from_url(
            address, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS
        )
    except ValueError as error:
        raise ValueError(f"{name}: expected such as redis://host:6379/0: {error}") from None
    try:
        client.ping()
    except redis.RedisError as error:
        client.close()
        raise OSError(f"{name}: cannot be used as {purpose}: {error}") from None
    return client
