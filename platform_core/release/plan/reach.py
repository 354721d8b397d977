"""What code decides: everything that a definition reaches by name, through the modules of one tree."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from platform_core.errors import DeclarationError
from platform_core.release.plan.definitions import LOOSE, Definition, Module, module

Place = tuple[str, str]  # a module's path and a name in it
TRANSFORM = "transform"


class Code:
    """The modules of a tree, working or archived, each read when it is asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._read: dict[str, Module | None] = {}

    def module(self, path: str) -> Module | None:
        if path not in self._read:
            file = self.root / path
            self._read[path] = _parsed(path, file) if file.is_file() else None
        return self._read[path]

    def text(self, path: str) -> str | None:
        file = self.root / path
        return file.read_text() if file.is_file() else None

    def file_of(self, dotted: str) -> str | None:
        """The path of a module of this tree."""
        stem = dotted.replace(".", "/")
        found = (path for path in (f"{stem}.py", f"{stem}/__init__.py") if (self.root / path).is_file())
        return next(found, None)

    def folder(self, name: str) -> list[str]:
        """The modules of a folder, however deep."""
        return sorted(path.relative_to(self.root).as_posix() for path in (self.root / name).rglob("*.py"))

    def loaded_by(self, roots: Iterable[str]) -> set[str]:
        """The modules that these import, and so on; themselves included."""
        found: set[str] = set()
        left = [path for path in roots if self.module(path) is not None]
        while left:
            path = left.pop()
            if path in found:
                continue
            found.add(path)
            here = self.module(path)
            named = here.named if here else ()
            left += [file for name in named if (file := self.file_of(name)) is not None]
        return found


def _parsed(path: str, file: Path) -> Module:
    try:
        return module(path, file.read_text())
    except SyntaxError as error:
        raise DeclarationError(f"{path}, line {error.lineno}: {error.msg}.", remedy="Correct it.") from error


@dataclass(frozen=True)
class Reach:
    """Everything that `roots` reach. A definition that looks names up as it runs reaches all of its module."""

    code: Code
    roots: tuple[Place, ...]

    @cached_property
    def definitions(self) -> dict[Place, Definition]:
        found: dict[Place, Definition] = {}
        left = list(self.roots)
        while left:
            path, name = left.pop()
            here = self.code.module(path)
            if (path, name) in found or here is None or name not in here.definitions:
                continue
            one = found[path, name] = here.definitions[name]
            left += [(path, LOOSE), *self.leads_to(here, one)]
        return found

    def leads_to(self, here: Module, one: Definition) -> Iterator[Place]:
        if one.dynamic:
            yield from ((here.path, name) for name in here.definitions)
        for name in one.names:
            yield from self._named(here, name)
        for owner, member in one.members:
            taken = here.imports.get(owner)
            if taken is not None:
                dotted = taken.module if taken.name is None else f"{taken.module}.{taken.name}"
                yield from self._in(dotted, member)

    def _named(self, here: Module, name: str, seen: frozenset[str] = frozenset()) -> Iterator[Place]:
        """Where a name of a module stands: here, or where it was imported from."""
        if here.path in seen:
            return
        if name in here.definitions:
            yield here.path, name
        elif name in here.imports:
            taken = here.imports[name]
            if taken.name is not None:
                yield from self._in(taken.module, taken.name, seen | {here.path})
        else:
            for star in here.stars:
                yield from self._in(star, name, seen | {here.path})

    def _in(self, dotted: str, name: str, seen: frozenset[str] = frozenset()) -> Iterator[Place]:
        path = self.code.file_of(dotted)
        there = self.code.module(path) if path else None
        if there is not None:
            yield from self._named(there, name, seen)


def transform_roots(code: Code, job: str) -> tuple[Place, ...]:
    """What the job's transform is built from; all of its module, where no StreamingJob(transform=...) stands there."""
    path = f"streaming_jobs/{job}/job.py"
    here = code.module(path)
    if here is None:
        return ()
    given = [value for one in here.definitions.values() for node in one.nodes for value in _transforms(node)]
    if not given or not all(isinstance(value, ast.Name | ast.Attribute) for value in given):
        return tuple((path, name) for name in here.definitions)
    asked = Definition(path, TRANSFORM, "statement", 0, "", tuple(ast.Expr(value) for value in given))
    return tuple(Reach(code, ()).leads_to(here, asked))


def _transforms(node: ast.stmt) -> Iterator[ast.expr]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and _called(call) == "StreamingJob":
            yield from (keyword.value for keyword in call.keywords if keyword.arg == TRANSFORM)


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
