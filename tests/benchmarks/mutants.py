"""How many small faults in the code its own tests find, in samples of three parts of it.

    pip install cosmic-ray coverage
    python tests/benchmarks/mutants.py search --count 40    # searches, filters, prompt
    python tests/benchmarks/mutants.py runs
    python tests/benchmarks/mutants.py claims --quick       # claims, statistics

A mutant is the code with one operator, number, comparison, decorator, loop or exception changed by
an operator of cosmic-ray. Of each part up to 100 places that can be changed are drawn by a fixed
seed, and of what can be done there one change. Each place has its rank from what stands in its
line, so that a prefix is a fair sample and a change of the code elsewhere leaves the sample as it
is. A change of annotations alone is none. A mutant is judged in a copy of the checkout by the fast
tests of its part until one fails: by those of the files closest to its module, and if none of them
fails, by all that run its line. It lives if none does. With `--quick` the second step, for which
all tests are measured once, is left out. One by which a test takes far too long counts as found.

Neither runner could do this: a session of cosmic-ray has one command for all mutants, changes the
checkout in place and draws by no seed; mutmut 3 puts all mutants of a function into it, behind a
switch that the programs' sandbox and the workers do not see. So the operators are cosmic-ray's and
the driver is below. Each mutant is judged in a fork of the driver, which has loaded what the tests
load from elsewhere.

What was judged is kept in `mutants.csv` beside this file; a second call goes on where the first
ended, and `--again` judges those that live once more. The column `equivalent` is written by hand:
why no test can tell a mutant from the code.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import functools
import hashlib
import importlib
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import Coverage

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).with_suffix(".csv")
SEED, COUNT = 36, 100
SECONDS = 30
"""Seconds of processor time that a fast test may take; none takes a third of it otherwise."""

WAITS = 300
"""Seconds that it may take by the clock, on a machine that others use too."""

MEMORY = 6 << 30
"""Bytes that one process may take; a loop that a mutant leaves open would take all there are."""

ELSEWHERE = (
    *("numpy", "pandas", "scipy.stats", "matplotlib.figure"),
    *("hypothesis.strategies", "openai", "aiohttp", "joblib"),
)
"""What the driver loads, so that the tests of a mutant need not."""

PARTS = {
    "search": (
        ("evo/searches", "evo/filters", "evo/prompt"),
        ("tests/evo/searches", "tests/evo/filters", "tests/evo/prompt"),
    ),
    "runs": (("evo/runs",), ("tests/evo/runs",)),
    "claims": (
        ("replay/claims", "replay/statistics"),
        ("tests/replay/claims", "tests/replay/statistics"),
    ),
}
"""Of each part its code and its tests."""

GENERAL = {
    "search": (),
    "runs": ("tests/evo/runs/test_loop.py",),
    "claims": ("tests/replay/claims/test_tasks.py", "tests/replay/claims/test_judging.py"),
}
"""Tests of each part that run most of it."""

CLOSE = 3
"""Files by which a module is judged first, beside those that run most of its part."""

PYTEST = (
    *("-q", "-x", "-m", "not slow", "--tb=short", "-o", f"timeout={WAITS}"),
    *("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:anyio"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # hypothesis is loaded already
)


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
    def key(self) -> tuple[str, str, str]:
        """Which change it is."""
        return (self.module, self.operator, self.change)

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


def key(*of: object) -> int:
    """Returns a number drawn by the seed for what is given."""
    return int.from_bytes(hashlib.sha256(repr((SEED, *of)).encode()).digest()[:8], "big")


def draw(part: str, count: int) -> list[Mutant]:
    """Returns the mutants of a part: places drawn by the seed, and at each a change."""
    ranked = list[tuple[int, str, int, list[tuple[str, int]]]]()
    for module in files(PARTS[part][0], "*.py"):
        source = (ROOT / module).read_text()
        nodes, lines = [*ast_nodes(get_ast(source))], source.splitlines()
        places = defaultdict[tuple[tuple[int, int], str], list[tuple[str, int]]](list)
        for name in operator_names():
            if get_operator(name).arguments():
                continue
            positions = get_operator(name)().mutation_positions
            found = (start for node in nodes for start, _ in positions(node))
            for occurrence, start in enumerate(found):
                places[start, name.split("_")[0]].append((name, occurrence))
        seen = Counter[tuple[str, str]]()
        for (start, kind), changes in sorted(places.items()):
            text = lines[start[0] - 1].strip(), kind
            ranked.append((key(module, *text, seen[text]), module, start[0], changes))
            seen[text] += 1
    drawn = list[Mutant]()
    for rank, module, line, changes in sorted(ranked):
        operator, occurrence = changes[rank % len(changes)]
        source = (ROOT / module).read_text()
        # cosmic-ray cannot change an exception with a dot in its name.
        with contextlib.suppress(SyntaxError, AttributeError):
            changed = mutated(module, operator, occurrence)
            if meaning(source) != meaning(changed):
                pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
                was, now = next((a, b) for a, b in pairs if a != b)
                change = f"{was.strip()} -> {now.strip()}"
                drawn.append(Mutant(part, module, line, operator, occurrence, change))
        if len(drawn) == count:
            break
    return drawn


def copy_to(folder: Path) -> None:
    """Copies what mutants change and tests look at, and links the rest."""
    for path in ROOT.iterdir():
        if path.name in {"evo", "replay", "tests"}:
            shutil.copytree(path, folder / path.name)
        elif path.name[0] != ".":
            (folder / path.name).symlink_to(path)


@dataclass
class Chosen:
    """A plugin of pytest that runs some tests or files, in their order, and notes what fails.

    A test that takes too long ends the process.
    """

    tests: list[str]
    failed: list[str] = field(default_factory=list)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leaves what was chosen."""
        rank = {name: number for number, name in enumerate(self.tests)}
        last = len(rank)

        def place(item: pytest.Item) -> int:
            return rank.get(item.nodeid, rank.get(item.nodeid.partition("::")[0], last))

        items[:] = sorted((item for item in items if place(item) < last), key=place)

    def pytest_runtest_logstart(self) -> None:
        """Limits the processor's time of the test that begins."""
        # Only the soft limit, which the sandbox may raise for what it starts.
        limit = int(time.process_time()) + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a test that failed."""
        if report.failed:
            self.failed.append(report.nodeid)


@dataclass
class Measured:
    """A plugin of pytest that notes how long each test takes and which lines run under its name.

    What runs elsewhere, as modules are loaded and fixtures made, runs under the name of the file.
    """

    coverage: Coverage
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Names the file of a test."""
        self.coverage.switch_context(item.nodeid.partition("::")[0])
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Names a test and takes its time."""
        began = time.perf_counter()
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context(item.nodeid.partition("::")[0])
            self.seconds[item.nodeid] = time.perf_counter() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a test that failed."""
        if report.failed:
            self.failed.append(report.nodeid)


@dataclass(frozen=True)
class Tested:
    """How long each test takes, and which tests run which lines of a module.

    `lines` has a list of tests and files by module and line; under the empty name stands what ran
    as modules were loaded.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]

    def of(self, module: str, line: int) -> list[str]:
        """Returns the tests that run a line, those of its namesake first, then the short ones."""
        run_it = set(self.lines.get(module, {}).get(str(line), ()))
        known = [
            name for name in self.seconds
            if "" in run_it or name in run_it or name.partition("::")[0] in run_it
        ]  # fmt: skip
        own = f"test_{Path(module).stem}"
        return sorted(
            known, key=lambda n: (Path(n.partition("::")[0]).stem != own, self.seconds[n])
        )


def begin(folder: Path) -> None:
    """Makes this process, a fork of the driver, one that tests a copy of the checkout."""
    os.setsid()
    os.chdir(folder)
    out = os.open("printed.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ |= {"PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    sys.path[:0] = [str(folder)]
    sys.argv = ["pytest"]


def measure(part: str, folder: Path) -> Tested:
    """Returns what the fast tests of a part run, as the code is."""
    code, tests = PARTS[part]
    kept = folder / "measured.json"
    if not (child := os.fork()):
        begin(folder)
        coverage = Coverage(data_file=None, include=[f"{folder / each}/*" for each in code])
        plugin = Measured(coverage)
        coverage.start()
        arguments = [each for each in PYTEST if each != "-x"]
        pytest.main([*arguments, *files(tests, "test_*.py")], plugins=[plugin])
        coverage.stop()
        data = coverage.get_data()
        lines = {
            str(Path(name).relative_to(folder)): data.contexts_by_lineno(name)
            for name in data.measured_files()
        }
        seconds = {k: v for k, v in plugin.seconds.items() if k not in plugin.failed}
        print("left out, since they fail as the code is:", *plugin.failed)
        kept.write_text(json.dumps({"seconds": seconds, "lines": lines}))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    print((folder / "printed.txt").read_text()[-1000:], flush=True)
    return Tested(**json.loads(kept.read_text()))


def named(part: str, module: str) -> list[str]:
    """Returns the test files closest to a module: those that mirror it, import it, use its names.

    They are looked for in the part, else beside it. Those that run most of the part follow.
    """
    dotted, stem = module.removesuffix(".py").replace("/", "."), Path(module).stem
    defined = {
        node.name for node in ast.parse((ROOT / module).read_text()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[0] != "_"
    }  # fmt: skip
    close = list[tuple[tuple[bool, bool, int], str]]()
    for tests in (PARTS[part][1], (f"tests/{dotted.partition('.')[0]}",)):
        for name in () if close else files(tests, "test_*.py"):
            text = (ROOT / name).read_text()
            used = len(defined & set(re.findall(r"\w+", text)))
            rank = (Path(name).stem == f"test_{stem}", f"{dotted} import" in text, used)
            if any(rank):
                close.append((rank, name))
    nearest = [name for _, name in sorted(close, reverse=True)[:CLOSE]]
    return [*dict.fromkeys([*nearest, *GENERAL[part]])]


def judge(mutant: Mutant, tests: list[str], folder: Path) -> str:
    """Returns which of some files or tests finds a mutant, or that it lives."""
    path, source = folder / mutant.module, (ROOT / mutant.module).read_text()
    cached = Path(importlib.util.cache_from_source(str(path)))
    told = folder / "told.json"
    told.unlink(missing_ok=True)
    path.write_text(mutated(mutant.module, mutant.operator, mutant.occurrence))
    cached.unlink(missing_ok=True)
    if not (child := os.fork()):
        begin(folder)
        signal.alarm(WAITS)  # as modules are loaded
        plugin = Chosen(tests)
        code = pytest.main(
            [*PYTEST, *dict.fromkeys(name.partition("::")[0] for name in tests)], plugins=[plugin]
        )
        told.write_text(json.dumps([int(code), plugin.failed]))
        os._exit(0)
    os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it started
    path.write_text(source)
    cached.unlink(missing_ok=True)
    if not told.exists():
        return "took too long"
    code, failed = json.loads(told.read_text())
    if code == 0:
        return "lives"
    return str(failed[0]) if failed else "tests do not start"


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
    parser.add_argument("--count", type=int, default=COUNT, help=f"how many (default {COUNT})")
    parser.add_argument(
        "--quick", action="store_true", help="by the tests closest to the module alone"
    )
    parser.add_argument("--again", action="store_true", help="those that live, once more")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where verdicts are kept")
    given = parser.parse_args()
    part, path = given.part, given.kept
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))  # for all that it starts
    for name in ELSEWHERE:
        importlib.import_module(name)
    judged = {each.key: each for each in read(path) if each.part == part}
    if given.again:
        judged = {k: each for k, each in judged.items() if not each.lives or each.equivalent}
    drawn = draw(part, given.count)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        copy_to(folder)
        tested = functools.cache(lambda: measure(part, folder))
        for number, mutant in enumerate(drawn, start=1):
            if mutant.key in judged:
                continue
            began, verdict = time.perf_counter(), "lives: no test is close to its module"
            if close := named(part, mutant.module):
                verdict = judge(mutant, close, folder)
            if verdict.startswith("lives") and not given.quick:
                run_it = tested().of(mutant.module, mutant.line)
                verdict = "lives: no test runs its line"
                if run_it:
                    verdict = judge(mutant, run_it, folder)
            judged[mutant.key] = replace(mutant, verdict=verdict)
            keep([*judged.values()], part, path)
            took = time.perf_counter() - began
            print(
                f"{number:4d}  {took:6.1f} s  {mutant.module}:{mutant.line}  {verdict}", flush=True
            )
    known = [judged[each.key] for each in drawn]
    alive = [each for each in known if each.lives and not each.equivalent]
    same = sum(bool(each.equivalent) for each in known)
    print(f"{part}: {len(alive)} of {len(known)} live, and {same} are equivalent")
    for each in alive:
        print(f"{each.module}:{each.line}  {each.change}")


if __name__ == "__main__":
    main()
