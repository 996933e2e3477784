"""Keyed random draws for many replicates at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evo.policies.base import Floats

BLOCK = 64
"""Replicates that share a generator. Part of what a seed means: changing it changes results."""

_AHEAD = 1 << 14
"""Numbers that a generator makes at once, at most; only speed depends on it."""


class Draws:
    """Random numbers keyed by (seed, block of replicates, draw number), and by the use of a seed.

    Replicate i gets the same numbers however many replicates there are and however they are cut
    into chunks; `first` is the number of the first of these. Methods are those of a NumPy
    generator, with shapes that begin with the number of replicates. Draws of different kind or
    width come from streams of their own.

    Example:
        >>> few, many = (evo.policies.Draws(seed=0, replicates=n) for n in (2, 100))
        >>> (few.random(2) == many.random(100)[:2]).all().item()
        True
    """

    def __init__(self, seed: int, replicates: int, *, first: int = 0, key: int = 0) -> None:
        if seed < 0:
            raise ValueError(f"expected a seed of 0 or more, got {seed!r}")
        self._seed = seed
        self._key = key
        self._replicates = replicates
        self._skipped = first % BLOCK  # replicates of the first block that others draw for
        self._blocks = range(first // BLOCK, -(-(first + replicates) // BLOCK))
        self._streams: dict[tuple[int, int], _Stream] = {}

    def random(self, size: int | tuple[int, ...]) -> Floats:
        """Uniform on [0, 1), shape (replicates,) or (replicates, width)."""
        return self._draw(0, size)

    def standard_normal(self, size: int | tuple[int, ...]) -> Floats:
        """Standard normal, shape (replicates,) or (replicates, width)."""
        return self._draw(1, size)

    def _draw(self, kind: int, size: int | tuple[int, ...]) -> Floats:
        shape = (size,) if isinstance(size, int) else tuple(size)
        if len(shape) not in (1, 2) or shape[0] != self._replicates:
            raise ValueError(
                f"expected a shape ({self._replicates},) or ({self._replicates}, width), one row "
                f"for each replicate, got {size!r}"
            )
        width = shape[1] if len(shape) == 2 else 1
        stream = self._streams.get((kind, width))
        if stream is None:
            keys = [(self._key, kind, width, block) for block in self._blocks]
            seeds = [np.random.SeedSequence(self._seed, spawn_key=key) for key in keys]
            made = [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]
            self._streams[kind, width] = stream = _Stream(made, kind, width)
        rows = slice(self._skipped, self._skipped + self._replicates)
        return stream.next()[rows].reshape(shape)


class _Stream:
    """Draws of one kind and width, made ahead for several rounds at once.

    The first is made alone, then twice as many each time: some streams are drawn from only once.
    """

    def __init__(self, generators: list[np.random.Generator], kind: int, width: int) -> None:
        self._fill: list[Callable[..., Floats]] = [
            g.standard_normal if kind else g.random for g in generators
        ]
        self._most = max(1, _AHEAD // (BLOCK * width))
        self._buffer = np.empty((len(generators), 0, BLOCK, width))
        self._used = 0

    def next(self) -> Floats:
        """The next draw, shape (replicates of whole blocks, width)."""
        blocks, ahead, _, width = self._buffer.shape
        if self._used == ahead:
            ahead = min(max(1, 2 * ahead), self._most)
            if ahead > self._buffer.shape[1]:
                self._buffer = np.empty((blocks, ahead, BLOCK, width))
            for fill, part in zip(self._fill, self._buffer, strict=True):
                fill(out=part)
            self._used = 0
        draw = self._buffer[:, self._used].reshape(blocks * BLOCK, width)
        self._used += 1
        # With one block the reshape is a view, which the next filling would overwrite.
        return draw.copy() if blocks == 1 else draw
