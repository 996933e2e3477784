"""Holds the layout: imports without circles, nothing heavy before it is used, small modules."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

HEAVY = {"openai", "matplotlib", "ipywidgets", "httpx2", "joblib", "scipy", "yaml", "IPython"}
"""Imported only where they are used."""


def modules() -> dict[str, Path]:
    found = {}
    for package in ("evo", "replay"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if "shipped" in path.parts:
                continue
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imports(path: Path, *, top_level: bool) -> set[str]:
    """Absolute imports of a module; with `top_level` only those made when it is imported."""
    found = set()
    tree = ast.parse(path.read_text())

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(str(node.module))
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif top_level and runs_later(node):
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return found


def runs_later(node: ast.AST) -> bool:
    """Whether what stands inside is not run when the module is imported."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def room(name: str) -> str:
    """The module or sub-package of evo or replay that a dotted name lies in."""
    return ".".join(name.split(".")[:2])


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


def test_evo_never_imports_replay() -> None:
    for name, path in modules().items():
        if name.startswith("evo"):
            assert not {t for t in imports(path, top_level=False) if t.split(".")[0] == "replay"}


def test_heavy_imports_happen_where_they_are_used() -> None:
    # The sandbox's own processes load NumPy and SciPy on purpose.
    for name, path in modules().items():
        heavy = {t.split(".")[0] for t in imports(path, top_level=True)} & HEAVY
        assert not heavy or name == "evo.models.network", (name, heavy)


@pytest.mark.parametrize("module", ["evo", "replay", "evo.cli"])
def test_import_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("package", ["evo", "replay"])
def test_public_names_are_there(package: str) -> None:
    module = __import__(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = module.nonsense


def test_no_module_has_the_name_of_a_public_function() -> None:
    for package in ("evo", "replay"):
        public = __import__(package)
        for name in {room(name) for name in modules()} & {f"{package}.{n}" for n in public.__all__}:
            assert not callable(getattr(public, name.split(".")[1])), name


def test_modules_and_functions_stay_small() -> None:
    large, long = [], []
    for name, path in modules().items():
        text = path.read_text()
        if len(text.splitlines()) > 450:
            large.append(name)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) is not None else node.body
                if body and (body[-1].end_lineno or 0) - body[0].lineno >= 60:
                    long.append(f"{name}.{node.name}")
    assert not large
    assert not long
