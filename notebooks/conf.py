"""Builds the documentation: `sphinx-build -W notebooks build/docs` (extra `docs`)."""

import importlib.metadata
import inspect
from pathlib import Path

import evo
import replay

HERE = Path(__file__).resolve().parent

project = "evo + replay"
author = "The evo + replay authors"
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
autodoc_preserve_defaults = True
napoleon_use_ivar = True
napoleon_use_rtype = False
always_use_bars_union = True
python_use_unqualified_type_names = True


def public_names(package: object) -> list[tuple[str, str]]:
    """Returns the public names of a package with the directive that documents each."""
    found = []
    for name in sorted(dir(package), key=str.lower):
        thing = getattr(package, name)
        if name.startswith("_"):
            continue
        if inspect.ismodule(thing):
            kind = "module"
        elif inspect.isclass(thing):
            kind = "class"
        elif callable(thing):
            kind = "function"
        else:
            kind = "data"
        found.append((name, kind))
    return found


def write_reference() -> None:
    """Writes one page per package with every public name, so that none can be forgotten."""
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    for package in (evo, replay):
        title = package.__name__
        lines = [title, "=" * len(title), "", f".. currentmodule:: {title}", ""]
        for name, kind in public_names(package):
            full = f"{title}.{name}"
            if kind == "module":
                lines += [f".. automodule:: {full}", "   :members:", "   :imported-members:", ""]
            elif kind == "class":
                lines += [f".. autoclass:: {full}", "   :members:", ""]
            elif kind == "function":
                lines += [f".. autofunction:: {full}", ""]
            else:
                names = ", ".join(f"``{each}``" for each in getattr(package, name))
                lines += [f".. data:: {full}", "", f"   Registered names: {names}.", ""]
        (folder / f"{title}.rst").write_text("\n".join(lines), encoding="utf-8")


write_reference()
