"""Holds the layout: which folder may import which, and nothing heavy before it is used."""

import ast
import functools
import importlib
import itertools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

HEAVY = {
    *("openai", "aiohttp", "httpx2", "yarl"),
    *("matplotlib", "ipywidgets", "joblib", "scipy", "yaml", "IPython"),
}
"""Imported only where they are used."""


@functools.cache
def modules() -> dict[str, Path]:
    found = {}
    for package in ("evo", "replay"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if {"shipped", "templates"} & set(path.parts):
                continue
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a module, walked over once for all tests."""
    return tuple(ast.walk(tree_of(path)))


@functools.cache
def imports(path: Path, *, top_level: bool) -> set[str]:
    """Absolute imports of a module; with `top_level` only those made when it is imported."""
    found = set()
    for node in at_import(tree_of(path)) if top_level else nodes_of(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(str(node.module))
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are run when the module is imported."""
    if not runs_later(node):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from at_import(child)


def runs_later(node: ast.AST) -> bool:
    """Whether what stands inside is not run when the module is imported."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


ROWS = {
    "evo": (
        *(
            "warning",
            "neighbours",
            "keyed",
            "parsing",
            "plugins",
            "logs",
            "values",
            "capture",
            "tasks",
            "searches",
            "prompt",
            "models",
            "parallel",
        ),
        *(
            "sandbox",
            "policies",
            "rewards",
            "filters",
            "listeners",
            "runs",
            "gate",
            "studies",
            "protocols",
            "cli",
        ),
        "__main__",
    ),
    "replay": (
        *(
            "warmup",
            "progress",
            "logs",
            "markup",
            "importers",
            "statistics",
            "simulation",
            "planning",
        ),
        *("claims", "plots", "explorers", "reports", "cli", "__main__"),
    ),
}
"""The folders and loose modules of each package; each imports only from those before it."""

ONLY = {
    "evo.logs": set(),
    "evo.capture": {"logs"},
    "evo.tasks": {"logs"},
    "evo.searches": {"logs"},
    "evo.prompt": {"logs", "tasks"},
    "evo.models": {"logs"},
    "evo.sandbox": {"logs", "tasks"},
    "evo.policies": {"logs"},
    "evo.listeners": {"logs"},
    "evo.filters": {"logs", "searches"},  # they see the members of a search's archive
    "replay.logs": set(),
    "replay.importers": {"logs"},
    "replay.statistics": set(),
    "replay.simulation": {"logs", "statistics"},
    "replay.planning": {"logs", "markup", "statistics", "simulation"},  # results show themselves
}
"""Folders that keep to some of those before them, besides the loose modules of `ANYWHERE`."""

ANYWHERE = {
    "capture",
    "neighbours",
    "keyed",
    "parsing",
    "plugins",
    "progress",
    "values",
    "warmup",
    "warning",
}


def room(name: str) -> str:
    """The module or sub-package of evo or replay that a dotted name lies in."""
    return name.split(".")[1]


def circles(arrows: dict[str, set[str]]) -> set[str]:
    """Names that lie on a circle, or on a path from one circle to another."""
    left = {name: targets - {name} for name, targets in arrows.items()}
    while True:
        pointed = set().union(*left.values())
        free = {name for name, targets in left.items() if not targets & left.keys()}
        free |= left.keys() - pointed
        if not free:
            return set(left)
        left = {name: targets for name, targets in left.items() if name not in free}


def arrows_between_files() -> dict[str, set[str]]:
    """What each file imports; of `from package import module` only the module."""
    files = modules()
    found = {}
    for name, path in files.items():
        targets = {target for target in imports(path, top_level=False) if target in files}
        packages = {target.rpartition(".")[0] for target in targets}
        found[name] = targets - packages
    return {name: found[name] for name in found.keys() - {"evo", "replay"}}  # these only name


def test_no_two_files_import_each_other() -> None:
    assert not circles(arrows_between_files())


def crossing(package: str) -> list[tuple[str, str]]:
    """Imports from one room of a package in another, each as (module, what it imports)."""
    found = []
    for name, targets in arrows_between_files().items():
        if name.startswith(f"{package}."):
            inside = (target for target in sorted(targets) if target.startswith(f"{package}."))
            found += [(name, target) for target in inside if room(target) != room(name)]
    return found


@pytest.mark.parametrize("package", ROWS)
def test_every_room_has_its_row(package: str) -> None:
    rooms = {room(name) for name in modules() if name.startswith(f"{package}.")}
    assert rooms <= {*ROWS[package]}


@pytest.mark.parametrize("package", ROWS)
def test_a_room_imports_only_from_rooms_before_it(package: str) -> None:
    place = {name: number for number, name in enumerate(ROWS[package])}
    wrong = [f"{a} -> {b}" for a, b in crossing(package) if place[room(b)] >= place[room(a)]]
    assert not wrong


def test_the_lower_rooms_keep_to_what_they_may_import() -> None:
    wrong = []
    for package in ROWS:
        for name, target in crossing(package):
            allowed = ONLY.get(f"{package}.{room(name)}")
            if allowed is not None and room(target) not in allowed | ANYWHERE:
                wrong.append(f"{name} -> {target}")
    assert not wrong


@pytest.mark.parametrize("package", ["evo", "replay"])
def test_few_modules_stand_beside_the_folders(package: str) -> None:
    loose = [name for name, path in modules().items() if path.parent == ROOT / package]
    loose = [name for name in loose if name not in (package, f"{package}.__main__")]
    assert len(loose) <= {"evo": 8, "replay": 4}[package]


def test_evo_never_imports_replay() -> None:
    for name, path in modules().items():
        if name.startswith("evo"):
            assert not {t for t in imports(path, top_level=False) if t.split(".")[0] == "replay"}


def test_every_imported_package_is_declared() -> None:
    """What another package happens to bring may go with its next version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    declared = {re.split(r"[^\w.-]", line)[0].lower() for line in lines}
    names = {"PIL": "pillow", "mlflow": "mlflow-skinny", "yaml": "pyyaml"}
    used = {t.split(".")[0] for path in modules().values() for t in imports(path, top_level=False)}
    packages = {names.get(name, name).lower() for name in used - sys.stdlib_module_names}
    assert {name.replace("_", "-") for name in packages} - {"evo", "replay"} <= declared


LOADED_LATE = {
    "evo.models.connections",
    "evo.models.library",
    "evo.models.network",
    "replay.plots.plain",
}
"""Modules that are themselves imported only where they are used."""


def test_heavy_imports_happen_where_they_are_used() -> None:
    # The sandbox's own processes load NumPy and SciPy on purpose.
    for name, path in modules().items():
        heavy = {t.split(".")[0] for t in imports(path, top_level=True)} & HEAVY
        assert not heavy or name in LOADED_LATE, (name, heavy)


@pytest.mark.parametrize("module", ["evo", "replay", "evo.cli"])
def test_import_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("package", ["evo", "replay"])
def test_public_names_are_there(package: str) -> None:
    if package == "replay":
        pytest.importorskip("ipywidgets", reason="explorers need the extra [notebook]")
    module = __import__(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = module.nonsense


def test_every_module_can_be_imported_and_none_hides_a_public_name() -> None:
    """A sub-module becomes an attribute of its package: it would replace what has its name."""
    pytest.importorskip("ipywidgets", reason="explorers need the extra [notebook]")
    code = (
        "import importlib, types\n"
        "import evo, replay\n"
        f"for name in {sorted(n for n in modules() if '__main__' not in n)!r}:\n"
        "    importlib.import_module(name)\n"
        "for public in (evo, replay):\n"
        "    for name in public.__all__:\n"
        "        if isinstance(getattr(public, name), types.ModuleType):\n"
        "            print(f'{public.__name__}.{name}')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rooms = {
        "evo": {"filters", "parallel", "policies", "protocols", "rewards", "searches", "listeners"},
        "replay": {"claims", "explorers", "importers", "plots", "reports"},
    }
    allowed = {f"{package}.{name}" for package, names in rooms.items() for name in names}
    assert {*done.stdout.split()} <= allowed


def test_an_offline_run_does_not_load_openai(tmp_path: Path) -> None:
    code = (
        "import sys, evo\n"
        f"evo.run('cp', generations=1, children=1, log={str(tmp_path / 'a.jsonl')!r})\n"
        "print(*sorted({'openai', 'aiohttp', 'httpx2', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_child_passes_through_few_functions() -> None:
    script = Path(__file__).parent / "benchmarks" / "call_path.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    [said] = re.findall("of one child in the midst of a run: (.+)", done.stdout)
    counts = [int(count) for count in said.split()]
    assert len(counts) > 5
    assert max(counts) <= 220


EXAMPLE = re.compile(r"\n\n {4,}Example:(?:\n {8,}.*)+")
"""The last part of a docstring; however many examples a module has, its code is no longer."""


def test_modules_and_functions_stay_small() -> None:
    large, long = [], []
    for name, path in modules().items():
        text = path.read_text()
        if len(EXAMPLE.sub("", text).splitlines()) > 450:
            large.append(name)
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) is not None else node.body
                if body and (body[-1].end_lineno or 0) - body[0].lineno >= 60:
                    long.append(f"{name}.{node.name}")
    assert not large
    assert not long


def test_lines_of_scripts_and_style_sheets_have_at_most_100_characters() -> None:
    files = [path for kind in ("js", "css") for path in (ROOT / "replay").rglob(f"*.{kind}")]
    assert len(files) >= 10
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > 100
    ]
    assert not long


def test_no_two_files_define_a_public_class_of_one_name() -> None:
    found = dict[str, list[str]]()
    for name, path in modules().items():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name)
    assert not {name: places for name, places in found.items() if len(places) > 1}


SAYS_NOTHING = {"told", "said", "born", "lead", "head", "bring", "brought", "made"}
"""Names that CONTRIBUTING replaces by the words for what is meant."""

PUBLIC_SINCE_LONG = {
    "evo.studies.allocation.driver.told",  # an attribute of `Allocation`
    "replay.importers.foreign.born",  # importers of users call it
}


def test_functions_and_classes_have_names_that_say_what_they_are() -> None:
    found = {
        f"{name}.{node.name}"
        for name, path in modules().items()
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name.strip("_").lower() in SAYS_NOTHING
    }
    assert found == PUBLIC_SINCE_LONG


MOST_PARAMETERS = 12
"""Beside `self`, of a function that is neither a public verb nor a command."""


def public_functions() -> set[str]:
    """Functions that users call by name: exported ones, commands, and what a verb is made of."""
    found: set[str] = set()
    for package in ("evo", "replay", "replay.importers"):
        found |= set(importlib.import_module(package).__all__)
    for name, path in modules().items():
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef) and ".cli." in name and node.name[0] != "_":
                found.add(node.name)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "verb":
                found.add(ast.unparse(node.args[1]))
    return found


def test_only_verbs_and_commands_have_many_parameters() -> None:
    """Parameters that belong together are a frozen dataclass."""
    public, wide = public_functions(), []
    for name, path in modules().items():
        for node in nodes_of(path):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name in public:
                continue
            every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            count = sum(each.arg not in ("self", "cls") for each in every)
            if count > MOST_PARAMETERS:
                wide.append(f"{name}.{node.name}: {count}")
    assert wide == []


@pytest.mark.parametrize("script", ["other-pythons", "lowest"])
@pytest.mark.thorough
def test_the_tests_that_a_script_of_ci_names_are_there(script: str) -> None:
    chosen = re.findall(r"tests/[\w/]+(?:\.py)?", (ROOT / ".ci" / script).read_text())
    assert len(chosen) > 5
    assert [path for path in chosen if not (ROOT / path).exists()] == []
