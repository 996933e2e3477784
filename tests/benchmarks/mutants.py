"""How many small faults in the code its own tests find, in samples of three parts of it.

    pip install cosmic-ray coverage
    python tests/benchmarks/mutants.py search     # searches, filters, prompt
    python tests/benchmarks/mutants.py runs
    python tests/benchmarks/mutants.py claims     # claims, statistics

A mutant is the code with one operator, number, comparison, decorator, loop or exception changed by
an operator of cosmic-ray. Of each part 100 places that can be changed are drawn by a fixed seed,
and of what can be done there one change. A change of annotations alone is none. A mutant is judged
in a copy of the checkout by the fast tests of its part: the files that run its line, its namesake
first, until one fails. It lives if none does. One that takes longer than twice what its tests take
otherwise, and half a minute, counts as found.

Neither runner could do this: a session of cosmic-ray has one command for all mutants, changes the
checkout in place and draws by no seed; mutmut 3 puts all mutants of a function into it, behind a
switch that the programs' sandbox and the workers do not see. So the operators are cosmic-ray's and
the driver is below.

What was judged is kept in `mutants.csv` beside this file; a second call goes on where the first
ended, and `--again` judges those that live once more. The column `equivalent` is written by hand:
why no test can tell a mutant from the code.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import importlib.util
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).with_suffix(".csv")
SEED, COUNT = 36, 100
SPARE = 30.0
"""Seconds that a mutant may take beyond twice what its tests take."""

MEMORY = 6 << 30
"""Bytes that one process may take; a loop that a mutant leaves open would take all there are."""

PARTS = {
    "search": (
        ("evo/searches", "evo/filters", "evo/prompt"),
        (
            "tests/evo/searches",
            "tests/evo/filters",
            "tests/evo/test_prompt.py",
            "tests/evo/test_replies_of_files.py",
        ),
    ),
    "runs": (("evo/runs",), ("tests/evo/runs",)),
    "claims": (
        ("replay/claims", "replay/statistics"),
        ("tests/replay/claims", "tests/replay/statistics"),
    ),
}
"""Of each part its code and its tests."""

PYTEST = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow")


@dataclass(frozen=True)
class Mutant:
    """A change of one place, and what came of it."""

    part: str
    module: str
    line: int
    operator: str
    occurrence: int
    change: str
    verdict: str = ""
    equivalent: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        """Which change it is."""
        return (self.module, self.operator, self.occurrence)

    @property
    def lives(self) -> bool:
        """Whether no test found it."""
        return self.verdict.startswith("lives")


def files(paths: tuple[str, ...], pattern: str) -> list[str]:
    """Returns the files that match below some paths, relative to the checkout."""
    found = (p for each in paths for p in ([ROOT / each], sorted((ROOT / each).rglob(pattern))))
    return [str(p.relative_to(ROOT)) for several in found for p in several if p.is_file()]


def meaning(source: str) -> str:
    """Returns the syntax tree of a source without its annotations."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def mutated(module: str, operator: str, occurrence: int) -> str:
    """Returns the source of a module with one change."""
    return str(mutate_code((ROOT / module).read_text(), get_operator(operator)(), occurrence))


def draw(part: str) -> list[Mutant]:
    """Returns the mutants of a part: places drawn by the seed, and at each a change."""
    places = defaultdict[tuple[str, str, tuple[int, int]], list[tuple[str, int]]](list)
    for module in files(PARTS[part][0], "*.py"):
        tree = get_ast((ROOT / module).read_text())
        for name in operator_names():
            if get_operator(name).arguments():
                continue
            found = (
                start for node in ast_nodes(tree)
                for start, _ in get_operator(name)().mutation_positions(node)
            )  # fmt: skip
            for occurrence, start in enumerate(found):
                places[module, name.split("_")[0], start].append((name, occurrence))
    rng = random.Random(SEED)
    order, drawn = sorted(places), list[Mutant]()
    rng.shuffle(order)
    for place in order:
        module, _, (line, _) = place
        operator, occurrence = rng.choice(places[place])
        source = (ROOT / module).read_text()
        # cosmic-ray cannot change an exception with a dot in its name.
        with contextlib.suppress(SyntaxError, AttributeError):
            changed = mutated(module, operator, occurrence)
            if meaning(source) != meaning(changed):
                pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
                was, now = next((a, b) for a, b in pairs if a != b)
                change = f"{was.strip()} -> {now.strip()}"
                drawn.append(Mutant(part, module, line, operator, occurrence, change))
        if len(drawn) == COUNT:
            break
    return drawn


def copy_to(folder: Path) -> None:
    """Copies what mutants change and tests look at, and links the rest."""
    for path in ROOT.iterdir():
        if path.name in {"evo", "replay", "tests"}:
            shutil.copytree(path, folder / path.name)
        elif path.name[0] != ".":
            (folder / path.name).symlink_to(path)


def run(command: list[str], folder: Path, limit: float | None = None) -> tuple[str, str]:
    """Returns what came of a command in a folder, and what it printed.

    What came of it is "passed", "failed" or "took too long", which ends it and its children.
    """

    environment = {**os.environ, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = process.communicate(timeout=limit)
        return "failed" if process.returncode else "passed", printed
    except subprocess.TimeoutExpired:
        return "took too long", ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@dataclass(frozen=True)
class Tested:
    """How long a file of tests takes, and which lines of which modules it runs."""

    seconds: float
    lines: dict[str, set[int]]


def measure(part: str, folder: Path) -> dict[str, Tested]:
    """Returns the test files of a part, each run once as the code is."""
    code, tests = PARTS[part]
    found = {}
    for name in files(tests, "test_*.py"):
        began = time.perf_counter()
        data, as_json = folder / "coverage", folder / "coverage.json"
        coverage = [sys.executable, "-m", "coverage"]
        ran = ["run", f"--data-file={data}", f"--include={','.join(files(code, '*.py'))}"]
        status, printed = run([*coverage, *ran, *PYTEST[1:], name], folder)
        took = time.perf_counter() - began
        if status != "passed":
            print(f"left out, since it fails as the code is: {name}\n{printed[-2000:]}", flush=True)
            continue
        run([*coverage, "json", "-q", f"--data-file={data}", "-o", str(as_json)], folder)
        lines = {}
        if as_json.exists():
            listed = json.loads(as_json.read_text())["files"]
            lines = {module: set(each["executed_lines"]) for module, each in listed.items()}
            as_json.unlink()
        data.unlink(missing_ok=True)
        found[name] = Tested(took, lines)
        print(f"{took:6.1f} s  {name}", flush=True)
    return found


def judge(mutant: Mutant, tested: dict[str, Tested], folder: Path) -> str:
    """Returns which test finds a mutant, or that it lives."""
    stem = Path(mutant.module).stem
    run_it = [
        name for name, each in tested.items() if mutant.line in each.lines.get(mutant.module, ())
    ]
    run_it.sort(key=lambda name: (Path(name).stem != f"test_{stem}", tested[name].seconds))
    if not run_it:
        return "lives: no test runs its line"
    path, source = folder / mutant.module, (ROOT / mutant.module).read_text()
    limit = SPARE + 2 * sum(tested[name].seconds for name in run_it)
    try:
        path.write_text(mutated(mutant.module, mutant.operator, mutant.occurrence))
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
        status, printed = run([*PYTEST, *run_it], folder, limit)
    finally:
        path.write_text(source)
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
    if status == "passed":
        return "lives"
    if status == "took too long":
        return status
    told = [line.split()[1] for line in printed.splitlines() if line[:6] in ("FAILED", "ERROR ")]
    return told[0] if told else "tests do not start"


def read(path: Path) -> list[Mutant]:
    """Returns what is kept."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = ("line", "occurrence")
    return [Mutant(**{k: int(v) if k in numbers else v for k, v in row.items()}) for row in rows]


def keep(mutants: list[Mutant], part: str, path: Path) -> None:
    """Writes the mutants of one part, and what is kept of the others."""
    others = [each for each in read(path) if each.part != part]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Mutant)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(each) for each in [*others, *mutants])


def main() -> None:
    """Judges the mutants of a part that are not judged yet, and prints those that live."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--again", action="store_true", help="those that live, once more")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where verdicts are kept")
    given = parser.parse_args()
    part, path = given.part, given.kept
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))  # for all that it starts
    judged = {each.key: each for each in read(path) if each.part == part}
    if given.again:
        judged = {key: each for key, each in judged.items() if not each.lives}
    drawn = draw(part)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_to(folder)
        tested = measure(part, folder)
        for number, mutant in enumerate(drawn, start=1):
            if mutant.key not in judged:
                began = time.perf_counter()
                judged[mutant.key] = replace(mutant, verdict=judge(mutant, tested, folder))
                keep([*judged.values()], part, path)
                took = time.perf_counter() - began
                verdict = judged[mutant.key].verdict
                print(
                    f"{number:4d}  {took:6.1f} s  {mutant.module}:{mutant.line}  {verdict}",
                    flush=True,
                )
    known = [judged[each.key] for each in drawn]
    alive = [each for each in known if each.lives and not each.equivalent]
    same = sum(bool(each.equivalent) for each in known)
    print(f"{part}: {len(alive)} of {len(known)} live, and {same} are equivalent")
    for each in alive:
        print(f"{each.module}:{each.line}  {each.change}")


if __name__ == "__main__":
    main()
