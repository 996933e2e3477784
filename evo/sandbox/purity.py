"""Makes a program's value a function of its content: every source of randomness is keyed."""

from __future__ import annotations

import os
import random
from hashlib import sha256
from typing import Any

import numpy as np

_SEED = random.Random.seed


def key_of(program: str) -> bytes:
    """The key of a program's randomness, 32 bytes."""
    return sha256(program.encode("utf-8", "surrogatepass")).digest()


def seed_everything(key: bytes) -> None:
    """Key the global generators and the operating system's entropy of the calling process.

    Reaches `random`, NumPy's global state, `numpy.random.default_rng()`, `os.urandom`, `secrets`
    and `uuid.uuid4`. Hash seed and time zone are fixed by the process's environment.
    """
    entropy = random.Random(key)

    def urandom(size: int, /) -> bytes:
        return entropy.randbytes(size)

    def getrandom(size: int, flags: int = 0) -> bytes:
        return entropy.randbytes(size)

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        _SEED(self, entropy.getrandbits(256) if a is None else a, version)

    replacements: tuple[tuple[Any, str, object], ...] = (
        (os, "urandom", urandom),
        (os, "getrandom", getrandom),
        (random, "_urandom", urandom),
        (random.Random, "seed", seed),
        (random, "seed", lambda a=None, version=2: random._inst.seed(a, version)),
    )
    for owner, name, replacement in replacements:
        setattr(owner, name, replacement)
    random.seed(key)
    np.random.seed(np.frombuffer(key, dtype=np.uint32))  # noqa: NPY002 - it is the global state
