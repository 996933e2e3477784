"""Fixtures shared by all tests."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"

# A slow machine is no failure, and the same tree gives the same verdict. EVO_TORTURE=5 tries five
# times as many examples, new ones in every run.
settings.register_profile(
    "ours",
    deadline=None,
    derandomize="EVO_TORTURE" not in os.environ,
    max_examples=50 * int(os.environ.get("EVO_TORTURE", "1")),
)
settings.load_profile("ours")

# A parent that ignores Ctrl-C, such as nohup or a background job, would hand that on to what the
# tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The workers of pytest share the machine: each starts one sandbox, not one for every core, and
# threads of BLAS that wait for work would spin on the cores that the other workers need.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.cpu_count = lambda: 1
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Tests start hundreds of processes that import the packages.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What checks formats in notebooks parses 38 grammars where this can be imported, for 10 seconds.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

sys.path.insert(0, str(Path(__file__).parent))

# Cycles are looked for seldom: what tests leave is little beside the modules, which stay anyway.
gc.set_threshold(50_000, 20, 20)


def files_of_the_checkout() -> set[str]:
    """Files that tests could leave behind: all but caches, environments and the user's own logs."""
    others = {".git", ".venv", "venv", "__pycache__", "build", "local", "reference"}
    found = set()
    for folder, names, files in os.walk(ROOT):
        names[:] = [name for name in names if name not in others and not name.endswith("cache")]
        names[:] = [n for n in names if n not in (".hypothesis", ".ipynb_checkpoints")]
        found |= {os.path.relpath(os.path.join(folder, file), ROOT) for file in files}
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Notes which files there are before the first test, and prepares what workers share."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[BEFORE] = files_of_the_checkout()
        if session.config.getoption("numprocesses", None):
            with contextlib.suppress(ImportError, AttributeError):  # it is private to pytest
                from rewriting import rewrite_new_tests

                rewrite_new_tests(session.config)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails if tests have left files in the checkout: they write in folders of their own."""
    before = session.config.stash.get(BEFORE, None)
    if before is not None and (left := sorted(files_of_the_checkout() - before)):
        print(f"\ntests left files in the checkout: {', '.join(left[:10])}", file=sys.stderr)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


BEFORE = pytest.StashKey[set[str]]()

ALONE = {"tests/test_corpus.py", "tests/torture/test_hostile.py"}
"""Files whose tests share nothing and are long."""
IN_JUPYTERLAB = {
    "test_access.py", "test_explorers.py", "test_keys.py", "test_keys_of_runs.py", "test_runs.py",
    "test_sweeps.py",
}  # fmt: skip
"""Files of tests in a browser that share one JupyterLab; the others share a browser without one."""
LONGEST = {"test_notebooks.py"}
"""Files that take minutes, beside those in a browser."""


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker whether all tests were asked for, which it cannot see."""
    node.workerinput["whole"] = is_whole(node.config)


def is_whole(config: pytest.Config) -> bool:
    """Whether neither files nor the thorough tier were asked for."""
    if worker := getattr(config, "workerinput", None):
        return bool(worker["whole"])
    return config.args_source != pytest.Config.ArgsSource.ARGS and (
        "thorough" not in config.option.markexpr
    )


def pytest_collection() -> None:
    """While tests are collected, next to nothing is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Modules and tests are there until the end: no search for garbage passes through them."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the thorough tier out of a whole run, and sorts what is left.

    Files with slow tests come first, the longest before all, so that none is waited for; at the
    end stand short ones.
    """
    if is_whole(config):
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(
        key=lambda item: (
            "browser" not in item.path.parts,
            item.path.name not in LONGEST,
            item.path not in slow,
        )
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """With `-n`, tests of one file share a worker, and so what was made for all of them once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file in ALONE:
                return nodeid
            if not file.startswith("tests/browser/"):
                return file
            return f"tests/browser/{'lab' if Path(file).name in IN_JUPYTERLAB else 'pages'}"

    config.option.loadscopereorder = False
    return ByFile(config, log)  # type: ignore[arg-type]


OF_EVALUATIONS = {
    "test_compiled.py", "test_foreign.py", "test_foreign_conventions.py", "test_forged_values.py",
    "test_purity.py", "test_scores.py", "test_stops.py",
}  # fmt: skip
"""Tests of the sandbox that ask what comes of an evaluation, wherever it is made."""


@pytest.fixture(scope="session")
def spare_sandboxes() -> Iterator[type]:
    """The pool of sandboxes that tests of other things than the sandbox use."""
    from spare_sandboxes import SparePool, stop_spares

    yield SparePool
    stop_spares()


@pytest.fixture(autouse=True)
def sandboxes_are_used_again(request: pytest.FixtureRequest) -> Iterator[None]:
    """Outside the tests of the sandbox itself and those of attacks, sandboxes run on."""
    apart = not {"sandbox", "torture"}.isdisjoint(request.path.parts)
    if apart and request.path.name not in OF_EVALUATIONS:
        yield
        return
    from evo.sandbox import evaluator

    pool = request.getfixturevalue("spare_sandboxes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator, "_Pool", pool)
        yield


@pytest.fixture(autouse=True)
def explorers_rest_with_their_test() -> Iterator[None]:
    """What an explorer draws once nothing moves any more is not drawn beside the next test.

    Its thread would see what that test puts in place of things, and change filters of warnings.
    """
    yield
    drawing = [each for each in threading.enumerate() if each.name == "Debounce._run"]
    if drawing:
        from replay.explorers import debounce

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(debounce, "exiting", lambda: True)
            for thread in drawing:
                thread.join(60)
                assert not thread.is_alive(), "an explorer goes on drawing"


@pytest.fixture
def own_engines() -> Iterator[None]:
    """Forgets the engines that a test registers."""
    import evo

    known = dict(evo.ENGINES)
    yield
    evo.ENGINES.clear()
    evo.ENGINES.update(known)


@pytest.fixture
def shared_data() -> Path:
    """Real logs kept outside the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real logs are not there ({SHARED_DATA.name} beside the project)")
    return SHARED_DATA
