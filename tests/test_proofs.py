"""The tests that README.md names as proofs exist, in the tier that it says."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROWS = re.findall(r"`([\w/]+\.py)::(\w+)` \| (test|long) \|", (TESTS / "README.md").read_text())


@cache
def module(path: str) -> ast.Module:
    return ast.parse((TESTS / path).read_text())


def says_long(nodes: list[ast.expr]) -> bool:
    return any(re.search(r"\bmark\.long\b", ast.unparse(node)) for node in nodes)


def tier_of(path: str, name: str) -> str | None:
    """As the module or the test says it; nothing when there is no such test."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = [node for node in module(path).body if isinstance(node, kinds) and node.name == name]
    assigned = [node for node in module(path).body if isinstance(node, ast.Assign)]
    named = any(ast.unparse(target) == name for node in assigned for target in node.targets)
    marks = [node.value for node in assigned if ast.unparse(node.targets[0]) == "pytestmark"]
    if not found and not named:
        return None
    return "long" if says_long(marks + [one for node in found for one in node.decorator_list]) else "test"


@pytest.mark.parametrize(("path", "name", "tier"), ROWS, ids=[name for _, name, _ in ROWS])
def test_a_proof_that_the_readme_names_is_there_and_in_that_tier(path: str, name: str, tier: str) -> None:
    assert tier_of(path, name) == tier


def test_a_test_that_is_gone_or_has_moved_is_seen() -> None:
    assert len(ROWS) > 60
    assert tier_of("faults/test_shown.py", "test_that_nobody_wrote") is None
    assert tier_of("faults/test_shown.py", "test_a_dead_broker_shows") == "long"
    assert tier_of("stack/test_change.py", "test_a_rollback_brings_the_standby_back") == "test"


def test_every_fault_of_a_long_test_alone_is_named() -> None:
    """Faults whose only proof is a long one: a cluster's worker, and Dagster's daemon."""
    faults = re.findall(
        r"^\| ?(\d*) \|(?: [^|]+)? \| `[^`]+` \| (test|long) \|", (TESTS / "README.md").read_text(), re.M
    )
    tiers: dict[str, set[str]] = {}
    number = ""
    for given, tier in faults:
        number = given or number
        tiers.setdefault(number, set()).add(tier)
    assert {one for one, found in tiers.items() if found == {"long"}} == {"23", "26"}
