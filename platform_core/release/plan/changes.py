"""What differs between a release's archive and a tree, of all that the release runs; and what each difference means.

The job's transform, all that it reaches, and the declared inputs and outputs decide rows: a change there must replay.
So does the platform's version of rows (`archived/rows.py`). Anything else that the release runs is a revision:
comments, settings, locks, the platform. What it does not run is no change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from platform_core.archived import protocol, rows
from platform_core.release.contents import JARS_LOCK, LOCK
from platform_core.release.plan import fields, operators
from platform_core.release.plan.definitions import LOOSE, Definition
from platform_core.release.plan.reach import Code, Place, Reach, transform_roots

_FOR_TRANSFORMS = ("platform_core/patterns/", "platform_core/declare/landings.py")  # authors take them from there
_TOPICS = "ingest/topics.py"  # topics count as they are declared
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


class ChangeKind(Enum):
    NONE = "no change"
    REVISION = "revision"
    REPLAY = "must replay"


@dataclass(frozen=True)
class DeclaredChange:
    kind: ChangeKind
    what: str
    where: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = f" ({', '.join(self.details)})" if self.details else ""
        return f"{self.what}{more}"


@dataclass(frozen=True)
class PlannedVersion:
    """A tree, what it declares of the job, how it is entered, and the version of its rows."""

    code: Code
    declared: Mapping[str, Any]
    protocol: int
    rows_version: int

    @property
    def job(self) -> str:
        return str(self.declared["name"])

    @property
    def folder(self) -> str:
        return f"streaming_jobs/{self.job}"


def kind_of(changes: Iterable[DeclaredChange]) -> ChangeKind:
    kinds = {one.kind for one in changes}
    return ChangeKind.REPLAY if ChangeKind.REPLAY in kinds else ChangeKind.REVISION if kinds else ChangeKind.NONE


def changes(old: PlannedVersion, new: PlannedVersion) -> list[DeclaredChange]:
    """Those that decide rows first."""
    declared = [_declared(one) for one in fields.differences(old.declared, new.declared)]
    transform, quiet = _transform(old, new), bool(declared)
    rest = [*_other_code(old, new, set(transform.places), quiet=quiet), *_locks(old.code, new.code)]
    found = [*transform.compared(), *declared, *_rows(old, new), *rest]
    return sorted(found, key=lambda one: one.kind is not ChangeKind.REPLAY)


def _declared(one: fields.Field) -> DeclaredChange:
    return DeclaredChange(ChangeKind.REPLAY if one.decides else ChangeKind.REVISION, str(one), one.path)


@dataclass(frozen=True)
class _Deciding:
    """Definitions of the transform, of both versions."""

    was: Mapping[Place, Definition]
    now: Mapping[Place, Definition]
    places: tuple[Place, ...]

    def compared(self) -> Iterator[DeclaredChange]:
        for place in self.places:
            before, after = self.was.get(place), self.now.get(place)
            if before is not None and after is not None and before.code != after.code:
                details = tuple(operators.differences(before, after))
                yield DeclaredChange(
                    ChangeKind.REPLAY, f"the transform's {_title(after)} changed", _line(after), details
                )
            elif before is None and after is not None:
                yield DeclaredChange(ChangeKind.REPLAY, f"the transform's {_title(after)} is new", _line(after))
            elif after is None and before is not None:
                yield DeclaredChange(ChangeKind.REPLAY, f"the transform's {_title(before)} is gone", before.path)


def _transform(old: PlannedVersion, new: PlannedVersion) -> _Deciding:
    """All that the transform reaches, in either version; of the platform only its functions for transforms."""
    was, now = (Reach(one.code, transform_roots(one.code, one.job)).definitions for one in (old, new))
    places = [place for place in dict.fromkeys([*now, *was]) if _is_transforms_own(place[0])]
    return _Deciding(was, now, tuple(places))


def _is_transforms_own(path: str) -> bool:
    return path.startswith(_FOR_TRANSFORMS) or not path.startswith("platform_core/")


def _rows(old: PlannedVersion, new: PlannedVersion) -> Iterator[DeclaredChange]:
    """By what the platform itself makes of this job's records."""
    for reason in rows.reasons(old.rows_version, new.rows_version, new.declared):
        yield DeclaredChange(ChangeKind.REPLAY, reason, "platform_core/archived/rows.py")


def _title(one: Definition) -> str:
    return "loose statements" if one.name == LOOSE else f"{one.kind} {one.name}"


def _line(one: Definition) -> str:
    return f"{one.path}:{one.line}"


def _other_code(
    old: PlannedVersion, new: PlannedVersion, deciding: set[Place], *, quiet: bool
) -> Iterator[DeclaredChange]:
    """Modules that the release loads and that differ elsewhere than in what decides rows.

    `quiet`: the declared values have said what came of the job's constants.
    """
    for path in sorted(_run_by(old) | _run_by(new)):
        if old.code.text(path) == new.code.text(path) or path == _TOPICS:
            continue
        differing = _differing(path, old, new)
        names = [name for name in differing if (path, name) not in deciding]
        told = quiet and path.startswith(f"{new.folder}/") and all(_is_constant(path, name, new) for name in names)
        if not (differing and (told or not names)):
            yield DeclaredChange(ChangeKind.REVISION, _told(path, names, old, new), path)


def _is_constant(path: str, name: str, version: PlannedVersion) -> bool:
    here = version.code.module(path)
    one = here.definitions.get(name) if here else None
    return one is None or one.kind == "constant"


def _run_by(one: PlannedVersion) -> set[str]:
    roots = [protocol.file_of(one.protocol, "run"), *one.code.folder(one.folder)]
    return one.code.loaded_by(roots)


def _differing(path: str, old: PlannedVersion, new: PlannedVersion) -> list[str]:
    was, now = old.code.module(path), new.code.module(path)
    if was is None or now is None:
        return []
    names = dict.fromkeys([*now.definitions, *was.definitions])
    return [name for name in names if _code(was.definitions.get(name)) != _code(now.definitions.get(name))]


def _code(one: Definition | None) -> str:
    return "" if one is None else one.code


def _told(path: str, names: list[str], old: PlannedVersion, new: PlannedVersion) -> str:
    if old.code.module(path) is None:
        return "a module is new"
    if new.code.module(path) is None:
        return "a module is gone"
    if not names:
        return "comments, docstrings, imports or layout"
    shown = ", ".join(name or "loose statements" for name in names[:5])
    return f"outside the transform: {shown}" + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _locks(old: Code, new: Code) -> Iterator[DeclaredChange]:
    for path, read in ((LOCK, _packages), (JARS_LOCK, _jars)):
        was, now = old.text(path), new.text(path)
        if was != now:
            details = tuple(_versions(read(was or ""), read(now or "")))
            yield DeclaredChange(
                ChangeKind.REVISION, "the locked environment", path, details[:8] or ("hashes or comments alone",)
            )


def _versions(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(was.keys() | now.keys()):
        if was.get(name) != now.get(name):
            yield f"{name} {was.get(name, 'none')} became {now.get(name, 'none')}"


def _packages(text: str) -> dict[str, str]:
    return dict(_LOCKED.findall(text))


def _jars(text: str) -> dict[str, str]:
    found: list[dict[str, Any]] = json.loads(text or "[]")
    return {str(jar["file"]): str(jar.get("sha256", ""))[:12] for jar in found}
