"""A module as its definitions: functions, classes and constants by name, and where its other names come from.

Read, never imported: two versions of a module are compared in one process.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from platform_core.release.declared import without_docstrings

LOOSE = ""  # the name of all statements of a module that define nothing
_DYNAMIC = {"globals", "vars", "eval", "exec", "__import__", "import_module", "getattr"}


@dataclass(frozen=True)
class Definition:
    path: str
    name: str
    kind: str  # function, class, constant, statement
    line: int
    code: str  # without comments, layout and docstrings
    nodes: tuple[ast.stmt, ...] = field(compare=False, repr=False)

    @property
    def names(self) -> frozenset[str]:
        """What it refers to by a plain name."""
        return frozenset(node.id for one in self.nodes for node in ast.walk(one) if isinstance(node, ast.Name))

    @property
    def members(self) -> frozenset[tuple[str, str]]:
        """What it refers to as `owner.member`."""
        return frozenset(
            (node.value.id, node.attr)
            for one in self.nodes
            for node in ast.walk(one)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        )

    @property
    def dynamic(self) -> bool:
        """Whether it may reach what no reader of its text can see."""
        return bool(self.names & _DYNAMIC)


@dataclass(frozen=True)
class Import:
    """`name` of `module`, or the module itself; the module is dotted and may not be of the tree."""

    module: str
    name: str | None


@dataclass(frozen=True)
class Module:
    path: str
    definitions: dict[str, Definition]
    imports: dict[str, Import]  # by the name that it has here
    stars: tuple[str, ...]  # modules all of whose names are taken
    named: frozenset[str]  # every module that it imports anywhere, also inside functions


@lru_cache(maxsize=512)
def module(path: str, source: str) -> Module:
    """Two trees have most modules in common: read once."""
    tree = ast.parse(source)
    found = [one for one in ast.walk(tree) if isinstance(one, ast.Import | ast.ImportFrom)]
    imports = {name: one for node in found for name, one in _imported(node, path)}
    stars = tuple(_origin(node, path) for node in found if _is_star(node) and isinstance(node, ast.ImportFrom))
    named = frozenset(part for one in imports.values() for part in _modules_of(one)) | frozenset(stars)
    return Module(path, _definitions(path, without_docstrings(tree)), imports, stars, named)


def _definitions(path: str, tree: ast.Module) -> dict[str, Definition]:
    by_name: dict[str, list[tuple[str, ast.stmt]]] = {}
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            for kind, name, part in _defines(node):
                by_name.setdefault(name, []).append((kind, part))
    return {
        name: Definition(
            path=path,
            name=name,
            kind=parts[0][0],
            line=parts[0][1].lineno,
            code="\n".join(ast.dump(node, annotate_fields=False) for _, node in parts),
            nodes=tuple(node for _, node in parts),
        )
        for name, parts in by_name.items()
    }


def _defines(node: ast.stmt) -> Iterable[tuple[str, str, ast.stmt]]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [("function", name, node)]
        case ast.ClassDef(name=name):
            return [("class", name, node)]
        case ast.Assign(targets=[ast.Tuple(elts=left)], value=ast.Tuple(elts=right)) if len(left) == len(right):
            parts = [ast.Assign([target], value, lineno=node.lineno) for target, value in zip(left, right, strict=True)]
            return [one for part in parts for one in _defines(part)]
        case ast.Assign(targets=targets) if all(_plain(target) for target in targets):
            return [("constant", name, node) for target in targets for name in _names(target)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [("constant", name, node)]
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return []
        case _:
            return [("statement", LOOSE, node)]


def _plain(target: ast.expr) -> bool:
    return all(isinstance(part, ast.Name | ast.Tuple | ast.List | ast.expr_context) for part in ast.walk(target))


def _names(target: ast.expr) -> list[str]:
    return [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]


def _imported(node: ast.Import | ast.ImportFrom, path: str) -> Iterator[tuple[str, Import]]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            if alias.name != "*":
                yield alias.asname or alias.name, Import(_origin(node, path), alias.name)
        elif alias.asname:
            yield alias.asname, Import(alias.name, None)
        else:
            yield alias.name.partition(".")[0], Import(alias.name, None)


def _is_star(node: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and node.names[0].name == "*"


def _origin(node: ast.ImportFrom, path: str) -> str:
    if not node.level:
        return node.module or ""
    package = path.split("/")[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def _modules_of(one: Import) -> list[str]:
    """`from package import name` may name a module, too."""
    return [one.module] if one.name is None else [one.module, f"{one.module}.{one.name}"]
