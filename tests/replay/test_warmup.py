"""Imports made ahead of the first picture, and reading without the collector of cycles."""

import gc
import subprocess
import sys

import pytest
from samples import write_sample

import replay


@pytest.mark.parametrize("kernel", [True, False])
def test_an_idle_kernel_imports_what_pictures_need_and_nothing_else_does(kernel):
    code = f"""
import asyncio, sys
from replay.warmup import PICTURES, prepare_pictures
if {kernel}:
    sys.modules["ipykernel"] = sys
async def idle():
    prepare_pictures()
    assert "matplotlib" not in sys.modules  # the cell goes on first
    while {kernel} and PICTURES[-1] not in sys.modules:
        await asyncio.sleep(0.05)
prepare_pictures()
asyncio.run(idle())
print(sorted(set(PICTURES) & set(sys.modules)) == sorted(PICTURES), "matplotlib" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == [str(kernel)] * 2, done.stderr


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_of_cycles_is_as_it_was_after_reading(tmp_path, collecting):
    path = write_sample(tmp_path / "a.jsonl")
    try:
        if not collecting:
            gc.disable()
        replay.load(path)
        assert gc.isenabled() == collecting
    finally:
        gc.enable()
