"""Keys the randomness of a program, so that its value is a function of its content.

Uses the standard library only, because interpreters that a program starts run this file's text
before anything else (`for_subprocesses`).
"""

from __future__ import annotations

import os
import random
import sys
from hashlib import sha256

_seed_method = random.Random.seed
_Seed = int | float | str | bytes | bytearray | None
KEY = "EVO_KEY_OF_RANDOMNESS"
"""Variable of the environment that holds the key where it differs from call to call."""

_entropy = random.Random(0)  # stands in for the operating system's


def key_of(program: str, task: str = "", *, draw: int = 0, seed: int = 0) -> bytes:
    """The key of an evaluation: of draw 0 by the program's text, of later ones by all else."""
    text = f"{task}/{seed}/{draw}" if draw else program
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def seed_everything(key: bytes) -> None:
    """Key the global generators and the operating system's entropy of the calling process.

    Reaches `random`, NumPy's global state, `numpy.random.default_rng()`, `os.urandom`, `secrets`
    and `uuid.uuid4`. Hash seed and time zone are fixed by the process's environment. Clocks,
    `uuid.uuid1`, addresses of objects and hashes made of them, the files `/dev/random` and
    `/dev/urandom`, turns of threads and processes, interpreters with `-I`, `-E` or `-S`, and
    programs that are not Python are not keyed; nor is what a process keeps between two calls.
    """
    _seed_method(_entropy, key)
    if os.urandom is not _urandom:
        _install()
    random.seed(key)
    if "numpy.random" in sys.modules:  # else it will seed itself from the keyed entropy
        # One word: an array of seeds would touch 100 more pages of a forked process.
        sys.modules["numpy.random"].seed(int.from_bytes(key[:4], "little"))


def for_subprocesses(key: bytes | None) -> str:
    """Text of a module `sitecustomize` that does the same in a new interpreter.

    Without a key it is that which the environment holds then.
    """
    digits = f"os.environ.get({KEY!r}, '')" if key is None else repr(key.hex())
    return f"{_OWN_TEXT}\n\nseed_everything(bytes.fromhex({digits}))\n"


def _install() -> None:
    replacements: tuple[tuple[object, str, object], ...] = (
        (os, "urandom", _urandom),
        (os, "getrandom", _getrandom),
        (random, "_urandom", _urandom),
        (random.Random, "seed", _seed),
        (random, "seed", _seed_global),
    )
    for owner, name, replacement in replacements:
        setattr(owner, name, replacement)
    os.register_at_fork(after_in_child=_seed_global)  # comes after that of `random` itself


def _urandom(size: int, /) -> bytes:
    return _entropy.randbytes(size)


def _getrandom(size: int, flags: int = 0) -> bytes:
    return _entropy.randbytes(size)


def _seed(self: random.Random, a: _Seed = None, version: int = 2) -> None:
    _seed_method(self, _entropy.getrandbits(256) if a is None else a, version)


def _seed_global(a: _Seed = None, version: int = 2) -> None:
    random._inst.seed(a, version)


if "__file__" in globals():
    with open(__file__, encoding="utf-8") as _file:
        _OWN_TEXT = _file.read()
