"""Text for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, cast

import typer

from platform_core.errors import WeirError

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def say(text: str) -> None:
    """To people, beside the result: on stderr, so that it stays out of pipes."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: object) -> None:
    print(json.dumps(plain(value), ensure_ascii=False), flush=True)


def plain(value: Any) -> Any:
    """As JSON can carry it: times in UTC, decimals as text, for a number would round them."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z") if value.tzinfo else value.isoformat()
    if isinstance(value, date | Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [plain(part) for part in cast("Sequence[Any]", value)]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Aligned columns; numbers to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(name), *(len(row[at]) for row in cells), 0) for at, name in enumerate(columns)]
    right = [all(isinstance(row[at], int | float | Decimal | None) for row in rows) for at in range(len(columns))]
    lines = [[*columns], ["-" * width for width in widths], *cells]
    return "\n".join(_line(line, widths, right) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = zip(cells, widths, right, strict=True)
    return "  ".join(cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in parts).rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    shown = plain(value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def print_error(error: WeirError, *, as_json: bool) -> None:
    if as_json:
        told = {"error": type(error).__name__, "what": error.what, "remedy": error.remedy, "exit": error.exit_code}
        print(json.dumps(told, ensure_ascii=False), file=sys.stderr)
    else:
        say("\n".join(line for line in (f"error: {error.what}", error.remedy) if line))
