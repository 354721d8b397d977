"""What differs between a release's archive and a tree, of all that the release runs; and what each difference means.

The job's transform, all that it reaches, and the declared inputs and outputs decide rows: a change there must replay.
So do the few functions of the platform by which records become rows. Anything else that the release runs is a
revision: comments, settings, locks, the platform. What it does not run is no change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from platform_core.release.contents import JARS_LOCK, LOCK
from platform_core.release.plan import fields, operators
from platform_core.release.plan.definitions import LOOSE, Definition
from platform_core.release.plan.reach import Code, Place, Reach, transform_roots

_DRIVER = "platform_core/stream/driver.py"
_TOPICS = "ingest/topics.py"  # topics count as they are declared
_ROWS: tuple[str, ...] = ("platform_core/stream/plan.py", "platform_core/stream/intake.py")
_ROWS_ROOTS: tuple[Place, ...] = ((_ROWS[0], "computed"), (_ROWS[1], "clocked"), (_ROWS[1], "job_delay"))
_LOOKUPS, _PUBLISH = "platform_core/stream/lookups.py", "platform_core/stream/publish.py"
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


class Kind(Enum):
    NONE = "no change"
    REVISION = "revision"
    REPLAY = "must replay"


@dataclass(frozen=True)
class Change:
    kind: Kind
    what: str
    where: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = f" ({', '.join(self.details)})" if self.details else ""
        return f"{self.what}{more}"


@dataclass(frozen=True)
class Version:
    """A tree and what it declares of the job."""

    code: Code
    declared: Mapping[str, Any]

    @property
    def job(self) -> str:
        return str(self.declared["name"])

    @property
    def folder(self) -> str:
        return f"streaming_jobs/{self.job}"


def kind_of(changes: Iterable[Change]) -> Kind:
    kinds = {one.kind for one in changes}
    return Kind.REPLAY if Kind.REPLAY in kinds else Kind.REVISION if kinds else Kind.NONE


def changes(old: Version, new: Version) -> list[Change]:
    """Those that decide rows first."""
    declared = [_declared(one) for one in fields.differences(old.declared, new.declared)]
    transform, rows = _transform(old, new), _rows(old, new)
    deciding = {*transform.places, *rows.places}
    rest = [*_other_code(old, new, deciding, quiet=bool(declared)), *_locks(old.code, new.code)]
    found = [*transform.compared(), *declared, *rows.compared(), *rest]
    return sorted(found, key=lambda one: one.kind is not Kind.REPLAY)


def _declared(one: fields.Field) -> Change:
    return Change(Kind.REPLAY if one.decides else Kind.REVISION, str(one), one.path)


@dataclass(frozen=True)
class _Deciding:
    """Definitions that decide rows, of both versions."""

    whose: str
    was: Mapping[Place, Definition]
    now: Mapping[Place, Definition]
    places: tuple[Place, ...]

    def compared(self) -> Iterator[Change]:
        for place in self.places:
            before, after = self.was.get(place), self.now.get(place)
            if before is not None and after is not None and before.code != after.code:
                details = tuple(operators.differences(before, after))
                yield Change(Kind.REPLAY, f"{self.whose} {_title(after)} changed", _line(after), details)
            elif before is None and after is not None:
                yield Change(Kind.REPLAY, f"{self.whose} {_title(after)} is new", _line(after))
            elif after is None and before is not None:
                yield Change(Kind.REPLAY, f"{self.whose} {_title(before)} is gone", before.path)


def _transform(old: Version, new: Version) -> _Deciding:
    """All that the transform reaches, in either version, outside the platform."""
    was, now = (Reach(one.code, transform_roots(one.code, one.job)).definitions for one in (old, new))
    places = [place for place in dict.fromkeys([*now, *was]) if not place[0].startswith("platform_core/")]
    return _Deciding("the transform's", was, now, tuple(places))


def _rows(old: Version, new: Version) -> _Deciding:
    """The platform's code by which this job's records become rows and records."""
    roots, paths = list(_ROWS_ROOTS), set(_ROWS)
    if any(part["is"] == "Lookup" for part in new.declared["inputs"].values()):
        roots += [(_LOOKUPS, name) for name in ("LookupTable", "Waiting", "split")]
        paths.add(_LOOKUPS)
    if new.declared["publish"] is not None:
        roots, paths = [*roots, (_PUBLISH, "encoded")], {*paths, _PUBLISH}
    was, now = (Reach(one.code, tuple(roots)).definitions for one in (old, new))
    places = [place for place in dict.fromkeys([*now, *was]) if place[0] in paths]
    return _Deciding("the platform's", was, now, tuple(places))


def _title(one: Definition) -> str:
    return "loose statements" if one.name == LOOSE else f"{one.kind} {one.name}"


def _line(one: Definition) -> str:
    return f"{one.path}:{one.line}"


def _other_code(old: Version, new: Version, deciding: set[Place], *, quiet: bool) -> Iterator[Change]:
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
            yield Change(Kind.REVISION, _told(path, names, old, new), path)


def _is_constant(path: str, name: str, version: Version) -> bool:
    here = version.code.module(path)
    one = here.definitions.get(name) if here else None
    return one is None or one.kind == "constant"


def _run_by(one: Version) -> set[str]:
    roots = [_DRIVER, *one.code.folder(one.folder)]
    return one.code.loaded_by(roots)


def _differing(path: str, old: Version, new: Version) -> list[str]:
    was, now = old.code.module(path), new.code.module(path)
    if was is None or now is None:
        return []
    names = dict.fromkeys([*now.definitions, *was.definitions])
    return [name for name in names if _code(was.definitions.get(name)) != _code(now.definitions.get(name))]


def _code(one: Definition | None) -> str:
    return "" if one is None else one.code


def _told(path: str, names: list[str], old: Version, new: Version) -> str:
    if old.code.module(path) is None:
        return "a module is new"
    if new.code.module(path) is None:
        return "a module is gone"
    if not names:
        return "comments, docstrings, imports or layout"
    shown = ", ".join(name or "loose statements" for name in names[:5])
    return f"outside the transform: {shown}" + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _locks(old: Code, new: Code) -> Iterator[Change]:
    for path, read in ((LOCK, _packages), (JARS_LOCK, _jars)):
        was, now = old.text(path), new.text(path)
        if was != now:
            details = tuple(_versions(read(was or ""), read(now or "")))
            yield Change(Kind.REVISION, "the locked environment", path, details[:8] or ("hashes or comments alone",))


def _versions(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(was.keys() | now.keys()):
        if was.get(name) != now.get(name):
            yield f"{name} {was.get(name, 'none')} became {now.get(name, 'none')}"


def _packages(text: str) -> dict[str, str]:
    return dict(_LOCKED.findall(text))


def _jars(text: str) -> dict[str, str]:
    found: list[dict[str, Any]] = json.loads(text or "[]")
    return {str(jar["file"]): str(jar.get("sha256", ""))[:12] for jar in found}
