"""What tests/properties.py promises of every property test."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from platform_core.settings import ROOT
from tests import properties


@pytest.fixture
def kept(tmp_path: Path) -> ExampleDatabase:
    return DirectoryBasedExampleDatabase(tmp_path)


def fails_above(limit: int, kept: ExampleDatabase) -> tuple[Callable[[], None], list[int]]:
    """A property with a failure, and the examples that it was called with."""
    seen: list[int] = []

    @settings(properties.of(1_000), database=kept)
    @given(st.integers(0, 1_000_000))
    def stays_below(number: int) -> None:
        seen.append(number)
        assert number < limit, f"failed with {number}"

    return stays_below, seen


def failure_of(fails: Callable[[], None]) -> AssertionError:
    with pytest.raises(AssertionError) as told:
        fails()
    return told.value


def test_a_failure_is_reported_as_it_was_found_and_nothing_is_tried_to_make_it_smaller(kept: ExampleDatabase) -> None:
    fails, seen = fails_above(1_000, kept)
    said = failure_of(fails)
    first = next(number for number in seen if number >= 1_000)
    assert f"failed with {first}" in str(said)
    assert set(seen[seen.index(first) :]) == {first}  # replayed for the report, and that is all


def test_a_failing_example_is_kept_and_comes_first_in_the_next_run(kept: ExampleDatabase) -> None:
    fails, seen = fails_above(1_000, kept)
    failure_of(fails)
    last = seen[-1]
    seen.clear()
    failure_of(fails)
    assert seen[0] == last


def test_a_report_ends_with_the_blob_that_repeats_it(kept: ExampleDatabase) -> None:
    fails, _ = fails_above(1_000, kept)
    assert any("@reproduce_failure(" in note for note in failure_of(fails).__notes__)


def test_the_house_keeps_failures_where_clean_leaves_them() -> None:
    house = settings.get_profile("weir")
    assert house.database == DirectoryBasedExampleDatabase(properties.KEPT)
    cleaned = (ROOT / "Makefile").read_text().split("\nclean:")[1].split("\n\n")[0]
    assert ".hypothesis" not in cleaned


def test_a_failure_is_shrunk_when_somebody_asks_for_that() -> None:
    assert Phase.shrink in settings.get_profile("shrink").phases
    assert Phase.explain not in settings.get_profile("shrink").phases  # its tracer makes minutes out of seconds


def test_this_run_has_the_settings_of_the_house() -> None:
    assert settings.default is not None
    assert settings.default.database == DirectoryBasedExampleDatabase(properties.KEPT)
    assert settings.default.print_blob


def test_no_property_has_settings_of_its_own() -> None:
    """`settings` is named here and in properties.py alone: else one could be without a database again."""
    named = [file for file in sorted((ROOT / "tests").rglob("*.py")) if _names_settings(file)]
    assert [file.name for file in named] == ["properties.py", "test_properties.py"]


def _names_settings(file: Path) -> bool:
    imports = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    return any(node.module == "hypothesis" and _settings_in(node) for node in imports)


def _settings_in(node: ast.ImportFrom) -> bool:
    return any(name.name == "settings" for name in node.names)
