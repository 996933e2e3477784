"""Runs of 96 and 576 calls beside those of an earlier commit, in pairs.

    python tests/benchmarks/against_commit.py COMMIT [PAIRS] [LATER]

With a later commit, that is measured in place of the checkout, so that one change can be told from
all others.

Each run is a process of its own that makes 16 children a generation with the offline model, 16
calls at a time, after one of one child that warms it up. The order within a pair changes each time,
and both sides have their bytecode stored first, as an installed package has.
Prints the ratios of processor time, that of the whole process with all that it starts, such as the
servers of programs and evaluators, and of wall time from the call of `evo.run` to its return; the
goal is a median of at most 1.03.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pairs import print_medians

ROOT = Path(__file__).resolve().parents[2]
RUN = """
import sys, tempfile, time
import evo

generations, source = int(sys.argv[1]), sys.argv[2]
assert evo.__file__.startswith(source), evo.__file__
how = {"model": "offline", "progress": False, "workers": 2, "max_concurrent": 16}
with tempfile.TemporaryDirectory() as folder:
    evo.run("mmd", generations=1, children=1, log=f"{folder}/warm.jsonl", **how)
    began = time.perf_counter()
    evo.run("mmd", generations=generations, children=16, log=f"{folder}/a.jsonl", **how)
    print(time.perf_counter() - began)
"""
ENVIRONMENT = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
SUBREAPER = 36
"""Of `prctl`: orphans of what this process started are its children, so that their time counts."""


def measured(source: Path, generations: int) -> tuple[float, float]:
    """Returns wall and processor time of a run of the package in a folder, seconds."""
    before = reaped()
    command = [sys.executable, "-c", RUN, str(generations), str(source)]  # imported from its folder
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=source, env=ENVIRONMENT)
    return float(done.stdout), reaped() - before


def reaped() -> float:
    """Returns the processor time of all that was started, once it has ended, seconds."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    used = os.times()
    return used.children_user + used.children_system


def main() -> None:
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    commit, pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    git, now = ["git", "-C", str(ROOT), "worktree"], ROOT
    with tempfile.TemporaryDirectory() as folder:
        made = {Path(folder) / "earlier": commit}
        earlier = next(iter(made))
        if len(sys.argv) > 3:
            now = Path(folder) / "later"
            made[now] = sys.argv[3]
        try:
            for place, each in made.items():
                subprocess.run([*git, "add", "-q", "--detach", place, each], check=True)
            for place in (earlier, now):
                compiled = [sys.executable, "-m", "compileall", "-q", "evo", "replay"]
                subprocess.run(compiled, check=True, cwd=place)
            for generations in (6, 36):
                ratios: list[tuple[float, float]] = []
                for pair in range(pairs):
                    order = [earlier, now] if pair % 2 else [now, earlier]
                    found = {source: measured(source, generations) for source in order}
                    (wall, cpu), (wall_before, cpu_before) = found[now], found[earlier]
                    ratios.append((cpu / cpu_before, wall / wall_before))
                    print(
                        f"{16 * generations} calls: processor {cpu_before:.2f} s, now {cpu:.2f} s; "
                        f"wall {wall_before:.2f} s, now {wall:.2f} s", flush=True,
                    )  # fmt: skip
                print_medians(f"{16 * generations} calls", ("processor", "wall"), ratios)
        finally:
            for place in made:
                subprocess.run([*git, "remove", "--force", place], check=True)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
