"""Builds the documentation: `sphinx-build -W notebooks build/docs` (extra `docs`)."""

import importlib.metadata
import inspect
import re
import types
from pathlib import Path
from typing import Any

import evo
import replay

HERE = Path(__file__).resolve().parent

project = "evo + replay"
author = "The evo + replay authors"
project_copyright = author
release = importlib.metadata.version("evo-replay")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["pictures", "**.ipynb_checkpoints"]
html_theme = "furo"
html_title = project
html_show_sourcelink = False

nb_execution_mode = "off"  # the notebooks are stored as they were executed
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
default_role = "code"  # what docstrings put between single backticks
napoleon_use_ivar = True
napoleon_use_rtype = False
always_use_bars_union = True
python_use_unqualified_type_names = True


def public_names(module: types.ModuleType) -> list[str]:
    """Returns the public names of a module that this project defines."""
    named = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    ours = {name for name in named if defined_here(module, getattr(module, name))}
    return sorted(ours, key=str.lower)


def defined_here(module: types.ModuleType, thing: object) -> bool:
    """Whether a name stands for a part of this project, or for a constant of the module."""
    if inspect.ismodule(thing):
        return thing.__name__.startswith(("evo.", "replay.")) and module in (evo, replay)
    if inspect.isclass(thing) or callable(thing):
        return str(getattr(thing, "__module__", "")).split(".")[0] in ("evo", "replay")
    return isinstance(thing, dict)  # a registry


def directives(full: str, thing: object) -> list[str]:
    """Returns the lines that document one public name."""
    if inspect.ismodule(thing):
        lines = [f".. automodule:: {full}", "   :no-index:", ""]
        for name in public_names(thing):
            lines += directives(f"{full}.{name}", getattr(thing, name))
        return lines
    if inspect.isclass(thing):
        return [f".. autoclass:: {full}", "   :members:", ""]
    if callable(thing):
        return [f".. autofunction:: {full}", ""]
    names = ", ".join(f"``{each}``" for each in thing)  # type: ignore[attr-defined]
    return [f".. data:: {full}", "", f"   Registered names: {names}.", ""]


def write_reference() -> None:
    """Writes one page per package with every public name, so that none can be forgotten."""
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    for package in (evo, replay):
        title = package.__name__
        lines = [title, "=" * len(title), "", f".. currentmodule:: {title}", ""]
        for name in public_names(package):
            lines += directives(f"{title}.{name}", getattr(package, name))
        (folder / f"{title}.rst").write_text("\n".join(lines), encoding="utf-8")


SECTIONS = {"Args:", "Attributes:", "Example:", "Raises:", "Returns:", "Yields:"}


def as_rest(
    app: object, what: str, name: str, thing: object, how: object, lines: list[str]
) -> None:
    """Marks the examples of a docstring as code, and escapes asterisks elsewhere."""
    made: list[str] = []
    above, in_code, in_section = "", False, False
    for line in lines:
        indented = line.startswith("    ")
        if line and not indented:
            in_section, in_code = line in SECTIONS, False
        if indented and not in_section and not in_code and not above.startswith((" ", "- ")):
            made += ["", "::", ""]
            in_code = True
        escaped = re.sub(r"`[^`]*`|\*", lambda found: {"*": r"\*"}.get(found[0], found[0]), line)
        made.append(line if in_code else escaped)
        above = line or above
    lines[:] = made


def setup(app: Any) -> None:
    """Has docstrings prepared before their sections are read."""
    app.connect("autodoc-process-docstring", as_rest, priority=100)


write_reference()
