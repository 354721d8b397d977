"""One word for one thing: the names of classes, and the glossary."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from platform_core.settings import ROOT

GLOSSARY = ROOT / "infra" / "glossary.md"


def classes() -> dict[str, list[str]]:
    """Where each public class of the platform and of ingest is defined, by its name."""
    found: dict[str, list[str]] = defaultdict(list)
    for package in ("platform_core", "ingest"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(_module(path))
    return found


def _module(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix()


def test_no_class_name_stands_for_two_things() -> None:
    assert {name: places for name, places in classes().items() if len(places) > 1} == {}


def test_each_class_of_the_glossary_is_where_it_says() -> None:
    told = re.findall(r"`(\w+)` in `([\w/]+)\.py`", GLOSSARY.read_text())
    assert len(told) > 25
    known = classes()
    assert [(name, place) for name, place in told if place not in known.get(name, [])] == []


def test_a_noun_stands_once_in_the_glossary() -> None:
    nouns = re.findall(r"^\| \*\*([^*]+)\*\*", GLOSSARY.read_text(), re.MULTILINE)
    assert sorted(nouns) == sorted(set(nouns))
