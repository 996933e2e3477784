"""The shipped tasks as plain namespaces: their files are data, not modules of the package."""

import runpy
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

TASKS = Path(__file__).parents[3] / "evo" / "tasks" / "shipped"


class ShippedTask:
    def __init__(self, name):
        self.folder = TASKS / name
        self.config = tomllib.loads((self.folder / "task.toml").read_text())
        self.evaluator = SimpleNamespace(**runpy.run_path(str(self.folder / "evaluator.py")))
        self.score = self.evaluator.score
        self.program = runpy.run_path(str(self.folder / "initial_program.py"))
        self.initial = self.program[self.config["entry"][0]]


@pytest.fixture(scope="session")
def cp():
    return ShippedTask("circle_packing")


@pytest.fixture(scope="session")
def mmd():
    return ShippedTask("min_max_distance")


@pytest.fixture(scope="session")
def ht():
    return ShippedTask("heilbronn_triangle")


@pytest.fixture(params=["cp", "mmd", "ht"])
def task(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def shipped_by_name(cp, mmd, ht):
    return {shipped.config["name"]: shipped for shipped in (cp, mmd, ht)}
