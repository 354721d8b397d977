"""The newest results, kept a section each: one that is measured again replaces its own figures alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Figure, Machine, table


@dataclass(frozen=True)
class Section:
    at: str
    seconds: float
    machine: Machine
    figures: Sequence[Figure]
    notes: Sequence[str]

    @classmethod
    def of_now(cls, seconds: float, machine: Machine, figures: Sequence[Figure], notes: Sequence[str]) -> Section:
        return cls(datetime.now(UTC).isoformat(timespec="minutes"), round(seconds), machine, figures, notes)


def keep(folder: Path, measured: Mapping[str, Section]) -> None:
    """`latest.json` for programs, `latest.md` for people."""
    folder.mkdir(parents=True, exist_ok=True)
    before = kept(folder)
    sections = {**before, **{name: _merged(before.get(name), section) for name, section in measured.items()}}
    content = {name: asdict(section) for name, section in sections.items()}
    (folder / "latest.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    (folder / "latest.md").write_text(_page(sections))


def _merged(before: Section | None, now: Section) -> Section:
    """What was measured now, and what else the section has: of another job, say."""
    again = {figure.of for figure in now.figures}
    rest = [figure for figure in (before.figures if before else ()) if figure.of not in again]
    return replace(now, figures=[*rest, *now.figures])


def kept(folder: Path) -> dict[str, Section]:
    file = folder / "latest.json"
    if not file.is_file():
        return {}
    return {name: _section(raw) for name, raw in json.loads(file.read_text()).items()}


def _section(raw: dict[str, Any]) -> Section:
    figures = [Figure(**one) for one in raw["figures"]]
    return Section(raw["at"], raw["seconds"], Machine(**raw["machine"]), figures, raw["notes"])


def _page(sections: Mapping[str, Section]) -> str:
    parts = ["# Benchmarks\n\n`make bench` writes this page: ratios are of one run, one after the other.\n"]
    for name, section in sections.items():
        notes = "\n".join(f"- {note}" for note in section.notes)
        when = f"{section.at}, in {section.seconds / 60:.1f} minutes. {section.machine.described}."
        parts.append(f"## {name}\n\n{when}\n\n{table(section.figures)}\n\n{notes}\n")
    return "\n".join(parts)
