"""Builds the documentation: `sphinx-build -W notebooks build/docs` (extra `docs`)."""

import hashlib
import importlib.metadata
import inspect
import re
import types
from pathlib import Path
from typing import Any

import msgspec
from docutils import nodes
from PIL import Image

import evo
import replay
from evo.cli.options import FLAGS, PYTHON_ONLY
from evo.runs import options
from evo.runs.signatures import entries
from evo.tasks.folder import TaskConfig

HERE = Path(__file__).resolve().parent

project = "evo + replay"
author = "The evo + replay authors"
project_copyright = author
release = importlib.metadata.version("evo-replay")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["pictures", "**.ipynb_checkpoints"]
html_theme = "furo"
html_title = project
html_static_path = ["site.css"]
html_css_files = ["site.css"]
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


OPTIONS = (
    ("What ends a run", "GoalOptions"),
    ("Which model, and how it is sampled", "ModelOptions"),
    ("What the model is shown, and how parents are chosen", "PromptOptions"),
    ("What is refused before it is evaluated", "FilterOptions"),
    ("Several replies for one child", "DraftOptions"),
    ("How programs are evaluated", "EvaluationOptions"),
    ("The size of a generation", "SizeOptions"),
    ("Whether a generation waits for the one before it", "OrderOptions"),
    ("The seed", "SeedOptions"),
    ("All limits of an evaluation as one value", "LimitOptions"),
    ("Where a run belongs to a protocol", "ProtocolOptions"),
    ("How the work is done, which changes no child", "SessionOptions"),
)
"""Headings of the page of options, and the class of `evo.runs.options` below each."""


def write_options() -> None:
    """Writes a page with every option of a run, and one with every key of task.toml."""
    lines = [
        "# Every option of a run",
        "",
        "The arguments of `evo.run`, `evo.run_many` and `evo.start`, and what the command line calls them. "
        "Those under the last heading may differ when a log goes on; all others are what identifies a run.",
    ]
    for title, kind in OPTIONS:
        lines += [
            "",
            f"## {title}",
            "",
            "| option | on the command line | default | |",
            "|---|---|---|---|",
        ]
        for name, _, chosen in entries(getattr(options, kind)):
            flag = (
                "" if name in PYTHON_ONLY else FLAGS.get(name, [f"--{name.replace('_', '-')}"])[0]
            )
            flag = flag and f"`{flag}`"
            help_ = chosen.help.replace("|", "\\|").replace("*", "\\*")
            lines.append(f"| `{name}` | {flag} | `{chosen.default!r}` | {help_} |")
    listed = {each.name for _, kind in OPTIONS for each in entries(getattr(options, kind))}
    if forgotten := {each.name for each in entries(options.RunOptions)} - listed:
        raise ValueError(f"options.md lacks {', '.join(sorted(forgotten))}")
    (HERE / "reference" / "options.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines = [
        "# Every key of task.toml",
        "",
        "All are optional. `evo new FOLDER` writes a folder with those that one mostly needs, and an unknown key "
        "is an error that lists the known ones.",
        "",
        *rows_of(TaskConfig),
        "",
        "## [limits]",
        "",
        "Limits of one evaluation, in a table of their own.",
        "",
        *rows_of(evo.Limits),
    ]
    (HERE / "reference" / "task_toml.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def rows_of(kind: type) -> list[str]:
    """Returns the rows of a table of a struct's fields, described as in its docstring."""
    described = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2]
    found = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", described, re.MULTILINE)
    about = {name: " ".join(text.split()) for name, text in found}
    rows = ["| key | default | |", "|---|---|---|"]
    for field in msgspec.structs.fields(kind):
        default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        shown = "" if default in (None, "", ()) or default == {} else f"`{default!r}`"
        if field.name != "limits":
            rows.append(f"| `{field.name}` | {shown} | {about[field.name]} |")
    return rows


def licence_of(package: str) -> str:
    """Returns the licence that an installed package states in its metadata."""
    told = importlib.metadata.metadata(package)
    classified = [
        each.rpartition(" :: ")[2].removesuffix(" License")
        for each in told.get_all("Classifier", [])
        if each.startswith("License ::")
    ]
    first, _, more = told.get("License", "").partition("\n")
    return told.get("License-Expression") or ", ".join(classified) or ("" if more else first)


def write_packages() -> None:
    """Writes a page with the packages that an installation brings, and their licences."""
    lines = [
        "# Packages and their licences",
        "",
        "The packages that evo + replay asks for itself, without an extra, and what each says of its "
        "licence; `pip install` brings those that they need in turn as well. "
        "evo + replay itself is under the MIT licence.",
        "",
        "| package | versions | licence |",
        "|---|---|---|",
    ]
    for wanted in importlib.metadata.requires("evo-replay") or []:
        name, versions = re.fullmatch(r"([\w-]+)(?:\[.*\])?([^;]*)(?:;.*)?", wanted).groups()
        if "extra ==" not in wanted:
            lines.append(f"| {name} | {versions} | {licence_of(name)} |")
    (HERE / "reference" / "packages.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


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


DARK = HERE / "pictures" / "dark"
"""Twins of stored pictures for dark pages, each named after the bytes of the one for light pages."""


def prepare_pictures(app: Any, page: nodes.document) -> None:
    """Gives pictures of cells their words, and puts dark twins beside those that have one.

    Furo shows the one that suits the reader's theme, and the light one on paper.
    """
    for light in [*page.findall(nodes.image)]:
        say_in_words(light)
        shown = Path(app.env.relfn2path(light["uri"])[1])
        twin = DARK / f"{hashlib.sha256(shown.read_bytes()).hexdigest()[:12]}.png"
        if twin.exists():
            dark = light.deepcopy()
            dark["uri"] = f"/{twin.relative_to(HERE).as_posix()}"
            load_in_view(dark, twin)
            parent, place = light.parent, light.parent.index(light)
            parent[place : place + 1] = [
                nodes.inline("", "", light, classes=["only-light"]),
                nodes.inline("", "", dark, classes=["only-dark"]),
            ]


def say_in_words(picture: nodes.image) -> None:
    """Has a picture of a cell say what its notebook says of it in plain text."""
    for beside in picture.parent.parent or ():
        if isinstance(beside, nodes.container) and beside.get("mime_type") == "text/plain":
            picture["alt"] = beside.astext()


def load_in_view(picture: nodes.image, file: Path) -> None:
    """Has a picture loaded once it comes into view, which then moves nothing below it."""
    width, height = Image.open(file).size
    if "width" not in picture:
        picture["width"] = str(width)
        picture["classes"].append("no-scaled-link")
    picture["height"] = str(round(int(picture["width"]) * height / width))
    picture["loading"] = "lazy"


def setup(app: Any) -> None:
    """Has docstrings prepared before their sections are read, and pictures before they are listed."""
    app.connect("autodoc-process-docstring", as_rest, priority=100)
    app.connect("doctree-read", prepare_pictures, priority=100)


write_reference()
write_options()
write_packages()
