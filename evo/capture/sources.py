"""Finds the text of functions and classes: in files, and in the cells of a notebook."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType

from evo.parsing import parsed

is_cell = re.compile(r"ipykernel|ipython-input").search  # how IPython calls its cells
Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


class NotCaptured(ValueError):  # noqa: N818 - a state of what was given
    """A function uses something that has no source text; the message names it."""


@dataclass(frozen=True)
class Definition:
    """Where a function or class is defined.

    Attributes:
        node: Its syntax tree, with positions in `text`.
        text: Its source as if it stood at the top of a module, decorators included.
    """

    node: Node
    text: str

    @property
    def name(self) -> str:
        """The name under which the text defines it; a lambda has none."""
        return getattr(self.node, "name", "")


def own_source(value: object) -> str:
    """Returns the source of a function or class alone, without what it uses.

    Raises:
        NotCaptured: There is none.
    """
    return definition_of(raw_function(value) or value).text


def raw_function(value: object) -> FunctionType | None:
    """Returns the plain function inside a decorated one, or a method's; None: there is none."""
    if isinstance(value, MethodType):
        value = value.__func__
    inner = inspect.unwrap(value) if callable(value) else value
    return inner if isinstance(inner, FunctionType) else None


def definition_of(value: object) -> Definition:
    """Returns where a plain function or a class is defined.

    Raises:
        NotCaptured: Its source cannot be had, or was changed since it was defined.
    """
    found = None
    if isinstance(value, FunctionType):
        found = _of_function(value)
    elif isinstance(value, type):
        found = _of_class(value)
    if found is None:
        name = getattr(value, "__name__", repr(value))
        raise NotCaptured(
            f"the source of {name!r} cannot be had: define it in a file, which has to stay, or in "
            "a notebook's cell, where beside a magic such as %%time no line begins with % or !; "
            "what exec() made has none"
        )
    return found


def is_installed(module: str) -> bool:
    """Whether a module comes with Python or a package, rather than from a file of the user's."""
    if module.partition(".")[0] in sys.stdlib_module_names | {"evo", "replay"}:
        return True
    found = sys.modules.get(module)
    path = getattr(found, "__file__", None)
    if path is None:  # a namespace package has folders, a notebook nothing
        paths = list(getattr(found, "__path__", ()))
        return bool(paths) and all(map(_among_packages, paths))
    return _among_packages(path)


@functools.lru_cache(4096)
def _among_packages(path: str) -> bool:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    roots = [sysconfig.get_paths()[name] for name in names]
    roots += [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    return any(Path(path).resolve().is_relative_to(Path(root).resolve()) for root in roots)


def _of_function(function: FunctionType) -> Definition | None:
    code = function.__code__
    source = _text_of(code.co_filename) or _body_of_magic(function)
    if source is None:
        return None
    wanted = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(_tree_of(source)):
        if isinstance(node, wanted) and _is_of(node, code):
            _check_unchanged(function, source)
            return _cut_out(node, source)
    return None


def _body_of_magic(function: FunctionType) -> str | None:
    """Returns the body of the cell with a magic, such as %%time, that defined a function."""
    for body in _bodies_of_magics(function.__globals__):
        try:
            codes = list(_codes(_compiled(body)))
        except (SyntaxError, ValueError):  # it holds further magics
            continue
        if any(_says_the_same(each, function.__code__) for each in codes):
            return body
    return None


def _bodies_of_magics(names: Mapping[str, object]) -> Iterator[str]:
    """Yields the bodies of cells with a magic among those that a notebook ran, the newest first.

    IPython runs such a body under a name of its own, but keeps each cell in `In` as a call.
    """
    cells = names.get("In")
    for cell in reversed(cells) if isinstance(cells, list) else ():
        if not isinstance(cell, str) or "run_cell_magic(" not in cell:
            continue
        for node in ast.walk(_tree_of(cell)):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "run_cell_magic":
                texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
                if len(texts) == 3 and isinstance(texts[2], str):
                    yield texts[2]


def _says_the_same(one: CodeType, other: CodeType) -> bool:
    """Whether two codes are those of one text, whatever the name of its file."""
    if (one.co_name, one.co_firstlineno) != (other.co_name, other.co_firstlineno):
        return False
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (one, other)]
    return (
        one.co_code == other.co_code
        and _constants(one) == _constants(other)
        and len(inner[0]) == len(inner[1])
        and all(map(_says_the_same, *inner))
    )


def _is_of(node: ast.AST, code: CodeType) -> bool:
    """Whether a function's code was compiled from a node."""
    if isinstance(node, ast.Lambda):
        place = (node.body.lineno, node.body.col_offset)
        places = [(a, c) for a, _, c, _ in code.co_positions() if a is not None and c is not None]
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        names = tuple(each.arg for each in parameters)
        count = code.co_argcount + code.co_kwonlyargcount
        if names != code.co_varnames[:count]:
            return False
        return place in places or ({*places} == {(node.lineno, 0)} and _compiles_to(node, code))
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])  # type: ignore[attr-defined]
    return getattr(node, "name", None) == code.co_name and first == code.co_firstlineno


def _compiles_to(node: ast.Lambda, code: CodeType) -> bool:
    """Whether a lambda compiles to a code: Python 3.12 stores no place of a constant."""
    own = [
        c for c in compile(ast.Expression(node), "", "eval").co_consts if isinstance(c, CodeType)
    ]
    alike = own[-1].co_code == code.co_code  # before it stand the lambdas among its defaults
    return alike and repr(own[-1].co_consts) == repr(code.co_consts)


def _check_unchanged(function: FunctionType, source: str) -> None:
    """Raises NotCaptured if a file was edited after the function in it was defined."""
    code = function.__code__
    for other in _codes(_compiled(source)):
        same = (other.co_name, other.co_firstlineno) == (code.co_name, code.co_firstlineno)
        if same and _constants(other) <= _constants(code):
            return
    raise NotCaptured(
        f"the source of {function.__name__!r} was changed after it was defined: run its cell, or "
        "import its file, again"
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _constants(code: CodeType) -> set[tuple[str, str]]:
    """What a function says, but for its docstring: its constants and the names that it looks up."""
    found = set()
    for each in _codes(code):
        found |= {("", name) for name in each.co_names}
        plain = each.co_consts[1:] if each.co_name != "<lambda>" else each.co_consts
        found |= {(type(c).__name__, repr(c)) for c in plain if not isinstance(c, CodeType)}
    return found


def _of_class(cls: type) -> Definition | None:
    for source in _sources_of_class(cls):
        nodes = [n for n, name in _classes(_tree_of(source)) if name == cls.__qualname__]
        fitting = [node for node in nodes if _fits(node, cls)]
        if fitting:
            return _cut_out(fitting[-1], source)
    return None


def _sources_of_class(cls: type) -> Iterator[str]:
    """Yields the texts in which a class may be defined, the likeliest first.

    A notebook's module has no file, so its cells are searched, the newest first.
    """
    path = getattr(sys.modules.get(cls.__module__), "__file__", None)
    files = [each.__code__.co_filename for each in _methods(cls)] + ([path] if path else [])
    bodies = [
        _body_of_magic(each) for each in _methods(cls) if not _text_of(each.__code__.co_filename)
    ]
    yield from filter(None, dict.fromkeys(bodies))
    files += [name for name in reversed(linecache.cache) if is_cell(name)]
    for name in dict.fromkeys(files):
        if (text := _text_of(name)) is not None:
            yield text
    yield from _bodies_of_magics(vars(module_of(cls) or ModuleType("")))


def _methods(cls: type) -> Iterator[FunctionType]:
    for each in vars(cls).values():
        function = raw_function(getattr(each, "fget", None) or getattr(each, "__func__", each))
        if function is not None and function.__code__.co_filename != "<string>":
            yield function


def _classes(tree: ast.AST, prefix: str = "") -> Iterator[tuple[ast.ClassDef, str]]:
    """Yields the classes in a tree with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        inner = prefix
        if isinstance(node, ast.ClassDef):
            yield node, prefix + node.name
            inner = f"{prefix}{node.name}."
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{prefix}{node.name}.<locals>."
        yield from _classes(node, inner)


def _fits(node: ast.ClassDef, cls: type) -> bool:
    """Whether a class has what a node defines."""
    fields = inspect.get_annotations(cls)
    for each in node.body:
        method = each.name if isinstance(each, ast.FunctionDef) else "__"
        if not method.startswith("__") and method not in vars(cls):  # `__name` is mangled
            return False
        target = each.target if isinstance(each, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id not in fields:
            return False
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return getattr(cls, "__firstlineno__", first) == first


def _text_of(file: str) -> str | None:
    linecache.checkcache(file)
    return "".join(linecache.getlines(file)) or None


@functools.lru_cache(64)
def _tree_of(source: str) -> ast.AST:
    try:
        return parsed(source, "<source>", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


@functools.lru_cache(64)
def _compiled(source: str) -> CodeType:
    code: CodeType = compile(
        source, "<source>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    return code


def _cut_out(node: Node, source: str) -> Definition:
    """Returns a definition without the indentation of where it stands."""
    if isinstance(node, ast.Lambda):
        segment = ast.get_source_segment(source, node) or ast.unparse(node)
        text = segment if "\n" not in segment else ast.unparse(node)
        return Definition(parsed(text).body[0].value, text)  # type: ignore[attr-defined]
    lines = source.split("\n")
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    inside = lines_inside_texts(node)
    indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
    kept = [
        line if number in inside else line.removeprefix(indent)
        for number, line in enumerate(lines[first - 1 : node.end_lineno], start=first)
    ]
    text = "\n".join(kept).rstrip() + "\n"
    return Definition(parsed(text).body[0], text)  # type: ignore[arg-type]


def lines_inside_texts(tree: ast.AST) -> set[int]:
    """Returns the numbers of lines that begin inside a text: their indentation is part of it."""
    found = set[int]()
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant | ast.JoinedStr) and each.end_lineno is not None:
            found |= set(range(each.lineno + 1, each.end_lineno + 1))
    return found


def closure_text(name: str, text: str, defined: str, renamed: Mapping[str, str]) -> str:
    """Returns what gives a name a function whose variables outside it have other names here."""
    if not renamed:
        return f"{name} = {text}\n"
    if not defined:
        body = f"    return {text}\n"
    else:
        inside = lines_inside_texts(parsed(text))
        lines = text.rstrip().split("\n")
        body = "".join(
            f"{line}\n" if number in inside or not line else f"    {line}\n"
            for number, line in enumerate(lines, start=1)
        )
        body += f"\n    return {defined}\n"
    around, given = f"make_{name}", ", ".join(renamed.values())
    return f"def {around}({', '.join(renamed)}):\n{body}\n\n{name} = {around}({given})\n"


def module_of(value: object) -> ModuleType | None:
    """Returns the module in which a function or class was defined."""
    return sys.modules.get(getattr(value, "__module__", None) or "")
