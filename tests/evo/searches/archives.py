"""Archives for tests of searches, and the streams that their plans are drawn from."""

from evo.keyed import KeyedStream
from evo.searches import Member


def stream(children: int, number: int) -> KeyedStream:
    return KeyedStream("search", 7, children, number)


def archive_of(fitness: list[list[float | None]]) -> list[list[Member]]:
    return [
        [Member((g, i), value) for i, value in enumerate(row)]
        for g, row in enumerate(fitness, start=1)
    ]
