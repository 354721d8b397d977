from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from platform_core.declare import Format, Stream, StreamingJob, Table, Topic
from platform_core.declare.expected import Expected, expected
from platform_core.errors import DeclarationError

LINES = Topic(name="lines", format=Format.TEXT, value="line STRING")


def job(**expect: str) -> StreamingJob:
    def same(lines: Any) -> Any:
        return lines

    table = Table(name="t", schema="line STRING, price DECIMAL(18,6), seen TIMESTAMP", key=("line",))
    return StreamingJob(name="j", inputs={"lines": Stream(LINES)}, transform=same, output=table, expect=expect)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("changes", Expected("changes")),
        ("new", Expected("new")),
        ("gone", Expected("gone")),
        ("within 0.01", Expected("within", Decimal("0.01"))),
        ("within 1%", Expected("within", Decimal("0.01"), relative=True)),
        ("within 2.5 %", Expected("within", Decimal("0.025"), relative=True)),
    ],
)
def test_an_expectation_is_read_as_it_is_written(text: str, means: Expected) -> None:
    assert expected(text, "here") == means


def test_a_job_takes_what_it_expects_of_its_columns() -> None:
    taken = job(price="within 0.01", seen="changes", old="gone", **{"*": "new"})
    assert dict(taken.expect) == {"price": "within 0.01", "seen": "changes", "old": "gone", "*": "new"}


@pytest.mark.parametrize(
    ("expect", "says"),
    [
        ({"price": "differs"}, r"job 'j'.expect\['price'\]: 'differs' is not an expected difference"),
        ({"price": "within -1"}, "is not an expected difference"),
        ({"prise": "changes"}, r"expect\['prise'\]: not a column of table 't'. Choose from line, price, seen"),
        ({"price": "gone"}, "table 't' still has it"),
        ({"line": "changes"}, "part of the key: with another one it is another row"),
        ({"seen": "within 1"}, "timestamp is no number"),
        ({"*": "within 1"}, "'within 1' of whole rows"),
    ],
)
def test_what_cannot_be_expected_is_refused_with_its_place(expect: dict[str, str], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        job(**expect)
