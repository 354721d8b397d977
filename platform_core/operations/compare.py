"""Compare two releases of a job; what their clocks and late records account for is told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from platform_core.compare import Explain
from platform_core.compare.explain import (
    LATE,
    NOT_YET_DUE,
    DeclaredClocks,
    Rereading,
    neighbourhood,
    not_yet_due,
    taken,
)
from platform_core.compare.releases import Outcome, Pair, compare_releases
from platform_core.control import positions
from platform_core.control.position import Position
from platform_core.control.positions import Committed
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.names import named
from platform_core.operations import Caller
from platform_core.operations.names import jobs_of
from platform_core.release import archive
from platform_core.settings import Settings

_FIRST_LOOK = 1000  # batches; four times as many each time until the history reaches back far enough


def compare(caller: Caller, name: str, *, expect: Mapping[str, str] | None = None, explain: bool = True) -> Outcome:
    """`name`: a job, whose candidate is compared with its live release, or one of its releases, as in stock_stats@v2.

    To explain differences, records are read again in the newer release's own archive, which starts Spark.
    """
    (job,) = jobs_of(caller, [name])
    release = named(name)[1]

    def explained_by(pair: Pair, allowed: Mapping[str, str]) -> Explain:
        return _explain(caller.settings, caller.store, pair, allowed)

    return compare_releases(
        caller.settings,
        caller.store,
        job,
        release,
        by=caller.by,
        expect=expect,
        explained_by=explained_by if explain else None,
    )


def _explain(settings: Settings, store: ControlStore, pair: Pair, expect: Mapping[str, str]) -> Explain:
    def explain(rows: pa.Table) -> Mapping[str, Sequence[int]]:
        declared = DeclaredClocks.of(pair.right.manifest["declared"])
        due = not_yet_due(rows, declared, pair.met[0].position, pair.met[1].position)
        known = set(due)
        rest = rows.filter(pa.array([number not in known for number in rows["number"].to_pylist()], pa.bool_()))
        return {NOT_YET_DUE: due, LATE: _late(rest, declared, pair, expect, settings, store)}

    return explain


def _late(
    rows: pa.Table,
    declared: DeclaredClocks,
    pair: Pair,
    expect: Mapping[str, str],
    settings: Settings,
    store: ControlStore,
) -> list[int]:
    span = neighbourhood(rows) if declared.may_be_late else None
    if span is None:
        return []
    sides = zip(("left", "right"), (pair.left, pair.right), pair.met, strict=True)
    batches = {
        side: taken(_history(store, release, met, span[0]), met.position.offsets, span) for side, release, met in sides
    }
    return _rereading(settings, pair.right, expect).late(rows, batches)


def _history(store: ControlStore, release: Release, met: Committed, since_ms: int) -> list[Position]:
    """Up to where the two met, the oldest first, from a batch on that had read nothing of that time."""
    last, look = met.position.batch, _FIRST_LOOK
    while True:
        found = positions.history(store, release.id, look, after=last - look)
        known = [one.position for one in found if one.position.batch <= last]
        if last - look < 0 or not known or known[0].newest_ms < since_ms or known[0].batch > last - look + 1:
            return [Position(str(release.id), -1, {}), *known] if known and known[0].batch == 0 else known
        look *= 4


def _rereading(settings: Settings, release: Release, expect: Mapping[str, str]) -> Rereading:
    """In the release's own archive and environment: it is its transform that is computed."""
    found = archive.verify(settings, release.id, release.revision)
    python = archive.python_for(settings, found)
    return Rereading(
        job=release.id.job,
        command=archive.entered(python, found, "explain"),
        environment=archive.environment_for(settings, archive.code_of(settings, found), python),
        home=settings.home,
        log=settings.storage.logs / "compare.log",
        ignored=tuple(expect),
    )
