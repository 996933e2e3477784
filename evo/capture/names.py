"""What the text of a function or class looks up outside itself."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, field

from evo.capture.sources import Definition
from evo.parsing import parsed


@dataclass
class Names:
    """The names that a definition uses and does not define.

    Attributes:
        needed: Names that must be there when it is defined or called.
        mentioned: Names in annotations alone.
        changed: Global names that it assigns.
        attributes: Dotted names that begin with one of them, such as `scipy.optimize.minimize`.
    """

    needed: dict[str, None] = field(default_factory=dict)
    mentioned: dict[str, None] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)


def names_in(definition: Definition) -> Names:
    """Returns the names that a definition uses and does not define, in order of appearance."""
    found = Names()
    tree = parsed(definition.text)
    for each in _annotations(tree):
        found.mentioned |= dict.fromkeys(n.id for n in ast.walk(each) if isinstance(n, ast.Name))
    outer = [name for n in ast.walk(tree) if isinstance(n, ast.Nonlocal) for name in n.names]
    try:
        table = symtable.symtable(ast.unparse(_Unannotated().visit(tree)), "<source>", "exec")
    except SyntaxError:  # a `nonlocal` of the function around it
        found.changed = outer
        return found
    _look(table, found)
    order = {n.id: n for n in ast.walk(parsed(definition.text)) if isinstance(n, ast.Name)}
    found.needed = {name: None for name in order if name in found.needed} | found.needed
    found.mentioned = {name: None for name in found.mentioned if name not in found.needed}
    found.attributes = list(dict.fromkeys(filter(None, map(_dotted, ast.walk(tree)))))
    return found


def quoted_annotations(definition: Definition, names: set[str]) -> str:
    """Returns the text with those annotations in quotes, never evaluated, that hold a name."""
    lines = definition.text.encode().split(b"\n")
    annotations = sorted(
        _annotations(parsed(definition.text)), key=lambda e: (e.lineno, e.col_offset)
    )
    for each in reversed(annotations):
        held = {n.id for n in ast.walk(each) if isinstance(n, ast.Name)}
        if held & names and each.end_lineno == each.lineno:
            line, end = lines[each.lineno - 1], each.end_col_offset
            words = repr(ast.unparse(each)).encode()
            lines[each.lineno - 1] = line[: each.col_offset] + words + line[end:]
    return b"\n".join(lines).decode()


def _annotations(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        found = []
        if isinstance(node, ast.arg | ast.AnnAssign):
            found = [node.annotation]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found = [node.returns]
        yield from (each for each in found if each is not None)


class _Unannotated(ast.NodeTransformer):
    """Takes the annotations out, so that what is left is what a definition needs."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def _look(table: symtable.SymbolTable, found: Names) -> None:
    """Adds the global names of a scope and of those within it."""
    top = str(table.get_type()).rpartition(".")[2].lower() == "module"
    for symbol in table.get_symbols():
        name = symbol.get_name()
        if top:
            if symbol.is_referenced() and not symbol.is_assigned():
                found.needed[name] = None
        elif symbol.is_global():
            if symbol.is_declared_global() and symbol.is_assigned():
                found.changed.append(name)
            if symbol.is_referenced():
                found.needed[name] = None
    for child in table.get_children():
        _look(child, found)


def _dotted(node: ast.AST) -> str:
    """Returns `a.b.c` of an attribute of a name, or nothing."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not parts or not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
