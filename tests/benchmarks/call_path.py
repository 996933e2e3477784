"""How much of the package one run of one child passes through.

    python tests/benchmarks/call_path.py [-v]

Prints the number of functions and files of `evo` that `evo.run` of one child with the offline model
calls in a warm process, comprehensions and lambdas apart, of each child in the midst of a run,
and the frames of `evo` from the caller to the model's call; -v lists the first and the last.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

import evo
from evo.models.client import ModelClient

PACKAGE = f"{Path(evo.__file__).parent}/"
OFFLINE = ("models/offline/", "keyed.py")  # the stand-in for a model


def name_of(frame: FrameType) -> str | None:
    """Returns the file and name of a frame's function; None outside the package."""
    code = frame.f_code
    if not code.co_filename.startswith(PACKAGE) or code.co_name.startswith("<"):
        return None
    return f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_firstlineno} {code.co_qualname}"


def without_offline(names: set[str]) -> set[str]:
    """Returns the names of functions that are no part of the offline model."""
    return {name for name in names if not name.startswith(OFFLINE)}


def in_the_midst(log: str) -> list[set[str]]:
    """Returns what is called from the model's call of each child to that of the next."""
    seen: list[set[str]] = [set()]

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (name := name_of(frame)) is not None:
            if frame.f_code is ModelClient.call.__code__:
                seen.append(set())
            seen[-1].add(name)

    threading.setprofile(note)
    sys.setprofile(note)
    evo.run("mmd", generations=12, children=1, log=log)
    sys.setprofile(None)
    threading.setprofile(None)
    return seen[1:-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", "--verbose", action="store_true")
    verbose = parser.parse_args().verbose
    seen, path = set[str](), list[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or (name := name_of(frame)) is None:
            return
        seen.add(name)
        if frame.f_code is ModelClient.call.__code__ and not path:
            at: FrameType | None = frame
            while at is not None:
                path.extend([found] if (found := name_of(at)) else [])
                at = at.f_back

    with tempfile.TemporaryDirectory() as folder:
        for seed in (1, 2):  # the first one loads what is loaded late
            if seed == 2:
                threading.setprofile(note)
                sys.setprofile(note)
            evo.run("mmd", generations=1, children=1, seed=seed, log=f"{folder}/{seed}.jsonl")
        sys.setprofile(None)
        threading.setprofile(None)
        children = [without_offline(each) for each in in_the_midst(f"{folder}/longer.jsonl")]
    for what, names in (("functions", seen), ("without the offline model", without_offline(seen))):
        files = {name.split(":")[0] for name in names}
        print(f"{what}: {len(names)} in {len(files)} files")
    print("of one child in the midst of a run:", *(len(each) for each in children))
    print(f"frames to the model's call: {len(path)}")
    if verbose:
        print("\n".join([*sorted(seen), "", *reversed(path)]))


if __name__ == "__main__":
    main()
