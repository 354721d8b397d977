"""A job's declared values as plain data, and the fingerprint of what decides its rows.

`archived/describe.py` prints them. Freezing runs that in the frozen code: what it tells is of the archive and not of
modules that this process loaded earlier, and what cannot be imported is never made an archive.
"""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from platform_core.declare import Format, StreamingJob, Topic, described
from platform_core.declare.described import plain
from platform_core.release.contents import sha256

_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_FOR_PEOPLE = {"owner", "description", "expect"}  # they change no row


def declared(job: StreamingJob) -> dict[str, Any]:
    return {field.name: plain(getattr(job, field.name)) for field in dataclasses.fields(job)}


def topics_in(values: Mapping[str, Any]) -> list[Topic]:
    """The topics that declared values name, inputs first, each once."""
    parts = [*values["inputs"].values(), *described.publishes(values)]
    found = [_topic(part["topic"]) for part in parts]
    return list({topic.name: topic for topic in found}.values())


def _topic(values: Mapping[str, Any]) -> Topic:
    fields: dict[str, Any] = {name: part for name, part in values.items() if name != "is"}
    fields["format"] = Format(fields["format"])
    fields["personal"] = tuple(fields["personal"])
    return Topic(**fields)


def fingerprint(values: Mapping[str, Any], root: Path) -> str:
    """The same for two trees whose job computes the same rows; comments, layout and descriptions do not count."""
    folder = root / "streaming_jobs" / values["name"]
    code = {path.relative_to(folder).as_posix(): normalized(path.read_text()) for path in folder.rglob("*.py")}
    return sha256(json.dumps([code, _telling(values)], sort_keys=True).encode())


def _telling(value: Any) -> Any:
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value)
        return {name: _telling(part) for name, part in parts.items() if name not in _FOR_PEOPLE}
    return [_telling(part) for part in cast("list[Any]", value)] if isinstance(value, list) else value


def normalized(source: str) -> str:
    """Code without its comments, layout and docstrings."""
    return ast.dump(without_docstrings(ast.parse(source)), annotate_fields=False)


def without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree
