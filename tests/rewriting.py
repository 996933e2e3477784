"""Assertions of tests are rewritten once, before workers start that would each do so for itself.

That takes 5 seconds of each worker in a fresh clone; later the rewritten files are in a cache.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

PROCESSES = 2


def rewrite_new_tests(config: pytest.Config) -> None:
    """Put those tests into the cache of rewritten ones that are not in it yet."""
    folder = Path(__file__).parent
    files = [*folder.rglob("test_*.py"), *folder.rglob("conftest.py")]
    caches = [rewrite.get_cache_dir(each) / f"{each.stem}{rewrite.PYC_TAIL}" for each in files]
    new = [pair for pair in zip(files, caches, strict=True) if not pair[1].exists()]
    children = []
    for number in range(PROCESSES if new else 0):
        if child := os.fork():
            children.append(child)
            continue
        try:
            for file, cache in new[number::PROCESSES]:
                rewrite.try_makedirs(cache.parent)
                stat, code = rewrite._rewrite_test(file, config)
                rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, stat, cache)
        finally:
            os._exit(0)  # what is left undone each worker does for itself
    for child in children:
        os.waitpid(child, 0)
