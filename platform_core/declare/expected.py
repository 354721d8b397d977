"""What a job's author expects a new release to do otherwise than the live one: `expect={"avg_price": "changes"}`.

"changes"         any value may differ, and the type too
"within 0.01"     a number may differ by that much at most; "within 1%" by that share of the live one's
"new", "gone"     the column is only in the new release, or only in the live one
ROWS: ...         the same three words for whole rows: "new" ones, "gone" ones, or both ("changes")
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from platform_core.declare.tables import Table
from platform_core.errors import DeclarationError

ROWS = "*"  # no column's name
_WITHIN = re.compile(r"within\s+(\d+(?:\.\d+)?)\s*(%?)")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


@dataclass(frozen=True)
class Expected:
    what: Literal["changes", "within", "new", "gone"]
    bound: Decimal = Decimal(0)
    relative: bool = False  # the bound is a share of the live release's value

    @property
    def rows_may_come(self) -> bool:
        return self.what in ("new", "changes")

    @property
    def rows_may_go(self) -> bool:
        return self.what in ("gone", "changes")


def expected(text: str, field: str) -> Expected:
    """What `text` allows; `field` says where it stands, for the error."""
    if text in ("changes", "new", "gone"):
        return Expected(text)  # pyright: ignore[reportArgumentType]
    match = _WITHIN.fullmatch(text)
    if match is None:
        raise DeclarationError(
            f"{field}: {text!r} is not an expected difference.",
            remedy="Write 'changes', 'new', 'gone', 'within 0.01' or 'within 1%'.",
        )
    bound = Decimal(match[1])
    return Expected("within", bound / 100 if match[2] else bound, bool(match[2]))


def check_expected(here: str, expect: Mapping[str, str], output: Table) -> None:
    types = {column.name: column.sql for column in output.columns}
    for name, text in expect.items():
        field = f"{here}.expect[{name!r}]"
        what = expected(text, field).what
        if name == ROWS:
            _refuse(what == "within", field, f"{text!r} of whole rows", "Say 'new', 'gone' or 'changes'.")
            continue
        there = name in types
        _refuse(there and what == "gone", field, f"table {output.name!r} still has it", "Drop it from the schema.")
        known = f"Choose from {', '.join(types)}, or {ROWS!r} for whole rows."
        _refuse(not there and what != "gone", field, f"not a column of table {output.name!r}", known)
        _refuse(
            name in output.key and what in ("changes", "within"),
            field,
            "part of the key: with another one it is another row",
            f"Say what happens to rows, as in {{{ROWS!r}: 'changes'}}.",
        )
        number = types.get(name, "").startswith(_NUMBERS)
        _refuse(what == "within" and not number, field, f"{types.get(name)} is no number", "Say 'changes'.")


def _refuse(wrong: bool, field: str, came: str, remedy: str) -> None:
    if wrong:
        raise DeclarationError(f"{field}: {came}.", remedy=remedy)
