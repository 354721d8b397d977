"""The version of rows says what the platform leaves: a change that it does not tell of fails here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from platform_core.archived.rows import FIRST, RAISES, ROWS_VERSION, Raise, reasons
from platform_core.testing import Kit
from tests.archived.cases import cases
from tests.archived.golden import kept, plain

LOOKED_UP = {"inputs": {"names": {"is": "Lookup"}}}
NOT = {"inputs": {"lines": {"is": "Stream"}}}


def _looks_up(declared: Mapping[str, Any]) -> bool:
    return any(part["is"] == "Lookup" for part in declared["inputs"].values())


LATER = (
    Raise(FIRST + 1, "lookups are joined otherwise", _looks_up),
    Raise(FIRST + 2, "an empty key is refused", lambda _: True),
)


def test_the_version_counts_its_raises() -> None:
    assert [one.version for one in RAISES] == list(range(FIRST + 1, ROWS_VERSION + 1))


def test_a_job_that_a_raise_does_not_touch_is_not_replayed_for_it() -> None:
    assert list(reasons(FIRST, FIRST + 1, NOT, LATER)) == []
    assert list(reasons(FIRST, FIRST + 1, LOOKED_UP, LATER)) == [
        f"the platform's rows, version {FIRST + 1}: lookups are joined otherwise"
    ]


def test_every_raise_between_the_two_is_a_reason_and_none_before() -> None:
    assert len(list(reasons(FIRST, FIRST + 2, LOOKED_UP, LATER))) == 2
    assert list(reasons(FIRST + 1, FIRST + 2, LOOKED_UP, LATER)) == [
        f"the platform's rows, version {FIRST + 2}: an empty key is refused"
    ]
    assert list(reasons(FIRST + 2, FIRST + 2, LOOKED_UP, LATER)) == []


@pytest.mark.parametrize(
    ("schema", "value", "touched"),
    [
        ("tags ARRAY<STRING>, at TIMESTAMP COMMENT 'of the binary clock'", "Json", False),
        ("a BIGINT, blob BINARY", "Json", True),
        ("a BIGINT, blob BINARY", "Text", False),
        ("at TIMESTAMP_NTZ", "Json", True),
        ("a STRUCT<n: INT, at: TIMESTAMP>", "Json", True),
    ],
)
def test_version_2_touches_those_who_publish_bytes_or_odd_times_as_json(schema: str, value: str, touched: bool) -> None:
    declared = {"output": {"schema": schema}, "publish": {"key": {"is": "Text"}, "value": {"is": value}}}
    assert bool(list(reasons(FIRST, FIRST + 1, declared))) is touched
    assert list(reasons(FIRST, FIRST + 1, {**declared, "publish": None})) == []


def test_a_tree_that_is_older_than_the_release_makes_other_rows() -> None:
    assert list(reasons(FIRST + 1, FIRST, NOT, ())) == [
        f"the platform makes rows of version {FIRST + 1} in the release, of version {FIRST} here"
    ]


def test_rows_of_this_version_are_kept_for_every_case(frozen_code: Path) -> None:
    assert kept()["version"] == ROWS_VERSION, "write them anew: python -m tests.archived.golden"
    assert kept()["cases"].keys() == cases(frozen_code).keys(), "add the new one: python -m tests.archived.golden"


@pytest.mark.stack
@pytest.mark.parametrize("name", sorted(kept()["cases"]))
def test_the_platform_leaves_the_rows_of_its_version(name: str, kit: Kit, frozen_code: Path) -> None:
    case = cases(frozen_code)[name]()
    left = json.loads(json.dumps(plain(kit.run(case.job, case.script))))
    assert left == kept()["cases"][name], (
        "releases that are frozen by now leave other rows than this tree. If that is meant, add a Raise to "
        "platform_core/archived/rows.py and write the rows anew: python -m tests.archived.golden"
    )
