"""The examples in the docstrings of public names run and print what they show.

A toy stands in for OpenEvolve, which need not be installed.
"""

import doctest
import inspect
import itertools
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from synthetic_runs import chain_runs
from tiers import thorough_after
from toy_engine import toy_engine

import evo
import replay


def documented(module: types.ModuleType) -> Iterator[tuple[str, object]]:
    """Yields the public names of a package and of its public modules, with their objects."""
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.ismodule(thing):
            yield from ((f"{module.__name__}.{full}", each) for full, each in inside(thing, name))
        else:
            yield f"{module.__name__}.{name}", thing


def inside(module: types.ModuleType, name: str) -> Iterator[tuple[str, object]]:
    for each in module.__all__:
        thing = getattr(module, each)
        if inspect.ismodule(thing):
            yield from inside(thing, f"{name}.{each}")
        else:
            yield f"{name}.{each}", thing


def examples() -> dict[str, doctest.DocTest]:
    parser, found = doctest.DocTestParser(), dict[str, doctest.DocTest]()
    for name, thing in itertools.chain(documented(evo), documented(replay)):
        text = inspect.getdoc(thing) or ""
        if callable(thing) and ">>>" in text:
            found[name] = parser.get_doctest(text, {}, name, None, None)
    return found


EXAMPLES = examples()


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What examples may use: a log and its path, six runs with their children, a grid, paths."""
    mpl.use("agg")
    folder: Path = tmp_path_factory.mktemp("examples")
    numbers = itertools.count()
    log = evo.run("mmd", generations=2, children=1, log=folder / "log.jsonl", progress=False)
    frame, children = chain_runs(sizes=(1, 2, 4), budget=8, seeds=range(6))
    return {
        "np": np,
        "evo": evo,
        "replay": replay,
        "log": log,
        "path": log.path,
        "frame": frame,
        "children": children,
        "grid": replay.depth_breadth(frame),
        "fitness": np.sort(np.random.default_rng(0).random((6, 9)), axis=1),
        "new": lambda ending=".jsonl": folder / f"{next(numbers)}{ending}",
    }


def needs_example(thing: object) -> bool:
    """Whether a name is a class or a function of this project; an error explains itself."""
    if inspect.isclass(thing):
        return not issubclass(thing, BaseException)
    return inspect.isfunction(thing)


def test_every_public_name_has_an_example() -> None:
    every = itertools.chain(documented(evo), documented(replay))
    lacking = [name for name, thing in every if needs_example(thing) and name not in EXAMPLES]
    assert not lacking


@pytest.mark.parametrize("name", thorough_after(60, EXAMPLES))
def test_the_example_runs(
    name: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(evo.ENGINES.data, "openevolve", toy_engine("openevolve"))
    example = EXAMPLES[name]
    example.globs = dict(names)
    shown: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(example, out=shown.append)
    assert result.failed == 0, "".join(shown)
