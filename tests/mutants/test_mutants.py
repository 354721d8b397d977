"""The table of mutants does not rot, and the runner tells what it says it tells."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import replace

import pytest

from platform_core.settings import ROOT
from tests import mutants
from tests.mutants.running import mutated, run
from tests.mutants.table import MUTANTS, Mutant

EVERY = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
ORACLE = next(one for one in MUTANTS if one.name == "oracle")


@EVERY
def test_a_mutants_source_text_occurs_once_and_what_it_becomes_is_code(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text()
    assert text.count(mutant.source) == 1
    assert ast.dump(ast.parse(mutated(text, mutant))) != ast.dump(ast.parse(text))


@EVERY
def test_the_tests_that_kill_a_mutant_exist_and_are_not_left_to_the_long_tier(mutant: Mutant) -> None:
    for named in mutant.tests:
        file, _, name = named.partition("::")
        found = [node for node in ast.parse((ROOT / file).read_text()).body if isinstance(node, ast.FunctionDef)]
        [test] = [node for node in found if node.name == name]
        assert not any(ast.unparse(one).startswith("pytest.mark.long") for one in test.decorator_list)


def test_every_mutant_is_explained_on_the_first_page() -> None:
    listed = [line.split()[0] for line in (mutants.__doc__ or "").splitlines() if line.startswith("    ")]
    assert [name for name in listed if "_" in name or name in {one.name for one in MUTANTS}] == [
        one.name for one in MUTANTS
    ]


def test_a_source_text_that_has_gone_is_told_with_what_to_do() -> None:
    with pytest.raises(ValueError, match="Mutant oracle: its source text occurs 0 times"):
        mutated("nothing of it", ORACLE)


@pytest.mark.ordinary  # it runs pytest
def test_what_nobody_notices_survives_and_the_working_tree_stays_as_it_is() -> None:
    before = _changes()
    harmless = replace(ORACLE, name="harmless", becomes=ORACLE.source + "                id(one)\n")
    torn = replace(ORACLE, name="torn", becomes="(")
    found = list(run(ROOT, [ORACLE, harmless, torn]))
    assert [(one.mutant, one.outcome) for one in found] == [
        ("oracle", "killed"),
        ("harmless", "SURVIVED"),
        ("torn", "BROKEN"),
    ]
    assert _changes() == before


@pytest.mark.ordinary
def test_a_test_that_fails_by_itself_kills_nothing() -> None:
    absent = replace(ORACLE, tests=("tests/testing/test_matching.py::test_that_is_not_there",))
    [found] = run(ROOT, [absent])
    assert (found.mutant, found.outcome) == ("(none)", "BROKEN")


def _changes() -> str:
    return subprocess.run(["git", "diff"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
