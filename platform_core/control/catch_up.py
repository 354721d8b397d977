"""How far a release has come that is not yet where it shall be: a replay, a follower, a landing, a live one far behind.

Computed from positions and batches that drivers have recorded since the first release, so that one of any age is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, LiteralString

from platform_core.control import progress
from platform_core.control.facts import BatchFacts
from platform_core.control.position import Offsets, as_numbers, records_between
from platform_core.control.starts import StartPosition
from platform_core.control.store import ControlStore
from platform_core.declare import described
from platform_core.names import ReleaseId

Kind = Literal["replay", "follow", "landing", "catch_up"]
WINDOW = timedelta(minutes=5)  # rates are of so long
_SILENT = 60.0  # seconds without a batch, after which a rate says nothing any more
_NEAR = 60.0  # seconds of work: a follower that has less before it is one step away
_KEEPS_UP = 20.0  # seconds of work: a live release that has less before it keeps up with its topics


@dataclass(frozen=True)
class CatchUpProgress:
    """`left` is up to the live release's position; of a live release, up to the ends of its topics."""

    kind: Kind
    read: int  # records, since where it began
    left: int
    rate: float | None = None  # records per second, pauses included; None: fewer than two batches so far
    growth: float = 0.0  # records per second by which the goal moves away
    silent: float = 0.0  # seconds since the newest batch
    live: str = ""  # the release that it follows

    @property
    def share(self) -> float:
        """Of what it has to read, from 0 to 1."""
        return self.read / (self.read + self.left) if self.read + self.left else 1.0

    @property
    def near(self) -> bool:
        return self.left <= _NEAR * max(self.rate or 0.0, self.growth)

    @property
    def seconds(self) -> float | None:
        """Until nothing is left; None: not known, or not at this rate."""
        gain = (self.rate or 0.0) - self.growth
        if not self.left:
            return 0.0
        return self.left / gain if gain > 0 and self.silent <= _SILENT else None

    def plain(self) -> dict[str, Any]:
        """For programs."""
        rate, seconds = self.rate, self.seconds
        return {
            "kind": self.kind,
            "share": round(self.share, 4),
            "read": self.read,
            "left": self.left,
            "records_per_second": None if rate is None else round(rate, 1),
            "seconds": None if seconds is None else round(seconds),
            "says": str(self),
        }

    def __str__(self) -> str:
        if self.kind == "follow" and (self.near or self.rate is None):
            return f"follows {self.live}, {_records(self.left)} behind{self._silence()}"
        begins = {"replay": "replay", "landing": "landing", "follow": f"catching up with {self.live}:"}
        done = f"{begins.get(self.kind, 'catching up:')} {int(self.share * 100)} % done, {_records(self.left)} left"
        return done + (self._silence() or self._pace())

    def _silence(self) -> str:
        return f", no batch for {duration(self.silent)}" if self.left and self.silent > _SILENT else ""

    def _pace(self) -> str:
        if self.rate is None:
            return ""
        goal = "live" if self.kind in ("replay", "follow") else "topics"
        says = f", {self.rate:,.0f} records/s"
        if self.seconds is None:
            ahead = "the live release takes" if goal == "live" else "its topics receive"
            return f"{says}, and {ahead} {self.growth:,.0f}: it does not come nearer"
        end = "can be live" if goal == "live" else "at the end of its topics"
        return f"{says}, {end} in about {duration(self.seconds)}"


def duration(seconds: float) -> str:
    """For people: 40 s, 12 minutes, 3.5 hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def read(store: ControlStore, jobs: Iterable[str] | None = None) -> dict[ReleaseId, CatchUpProgress]:
    """Of every release that has something before it; a live one that keeps up is left out."""
    with store.transaction() as cursor:
        cursor.execute(_SEEN, {"window": WINDOW, "jobs": None if jobs is None else list(jobs)})
        seen = [_Sample.of(row) for row in cursor]
    live = {one.release.job: one for one in seen if one.state == "live"}
    found = {one.release: _caught_up(store, one, live.get(one.release.job)) for one in seen}
    return {release: one for release, one in found.items() if one is not None}


def of(store: ControlStore, release: ReleaseId) -> CatchUpProgress | None:
    return read(store, [release.job]).get(release)


@dataclass(frozen=True)
class _Sample:
    """A release as the control store has it: where it is, and where it was some minutes before."""

    release: ReleaseId
    state: str
    lands: bool
    begins: Offsets
    at: Offsets
    silent: float
    before: Offsets | None
    between: float  # seconds
    total: int
    lag: Offsets
    batch_rate: float

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> _Sample:
        start = row["replay_from"]
        return cls(
            ReleaseId(row["job"], row["number"]),
            row["state"],
            lands=bool(described.landed({"inputs": row["inputs"]})),
            begins=StartPosition.of(start).offsets if start else {},
            at=as_numbers(row["offsets"] or {}),
            silent=row["silent"] or 0.0,
            before=None if row["before"] is None else as_numbers(row["before"]),
            between=row["between"] or 0.0,
            total=row["total_records_in"] or 0,
            lag=as_numbers(row["lag"] or {}),
            batch_rate=row["records_per_second"] or 0.0,
        )

    def rate(self, topics: Iterable[str]) -> float | None:
        """Records per second of these topics, between the two positions."""
        if self.before is None or self.between <= 0:
            return None
        return records_between(self.before, {t: parts for t, parts in self.at.items() if t in topics}) / self.between


def _caught_up(store: ControlStore, one: _Sample, live: _Sample | None) -> CatchUpProgress | None:
    return _towards_ends(store, one) if one.state == "live" else _towards_live(one, live)


def _towards_live(one: _Sample, live: _Sample | None) -> CatchUpProgress | None:
    """Topics that the live release does not read are read to their ends."""
    if live is None:
        return None
    at = one.at or one.begins
    shared = {t: parts for t, parts in live.at.items() if t in at}
    own = {t: parts for t, parts in one.lag.items() if t not in shared}
    left = _ahead(shared, at) + sum(records for parts in own.values() for records in parts.values())
    return CatchUpProgress(
        "replay" if one.state == "replaying" else "follow",
        read=_ahead(one.at, one.begins),
        left=left,
        rate=one.rate(at),
        growth=(live.rate(at) or 0.0) if live.silent <= _SILENT else 0.0,
        silent=one.silent,
        live=str(live.release),
    )


def _towards_ends(store: ControlStore, one: _Sample) -> CatchUpProgress | None:
    left, rate = sum(records for parts in one.lag.values() for records in parts.values()), one.rate(one.at)
    if left <= _KEEPS_UP * max(rate or 0.0, one.batch_rate):
        return None
    growth = (rate or 0.0) - gain(_recent(store, one.release))
    kind: Kind = "landing" if one.lands else "catch_up"
    return CatchUpProgress(kind, one.total, left, rate, max(0.0, growth), one.silent)


def gain(batches: Iterable[BatchFacts]) -> float:
    """Records per second by which a lag shrinks. A driver's first batches tell none: it has not asked for ends yet."""
    told = [one for one in batches if one.total_lag]
    seconds = (told[-1].at - told[0].at).total_seconds() if told else 0.0
    return (told[0].total_lag - told[-1].total_lag) / seconds if seconds > 0 else 0.0


def _recent(store: ControlStore, release: ReleaseId) -> list[BatchFacts]:
    newest = progress.latest(store)[release].recorded_at
    return progress.recent(store, release, newest - WINDOW)


def _ahead(goal: Offsets, at: Offsets) -> int:
    return sum(max(0, end - at.get(t, {}).get(p, 0)) for t, parts in goal.items() for p, end in parts.items())


def _records(count: int) -> str:
    return f"{count:,} record" + ("" if count == 1 else "s")


_SEEN: LiteralString = """
select r.job, r.number, r.state, r.replay_from, r.manifest #> '{declared,inputs}' as inputs,
    newest.position -> 'offsets' as offsets,
    extract(epoch from clock_timestamp() - newest.committed_at)::float8 as silent,
    earlier.position -> 'offsets' as before,
    extract(epoch from newest.committed_at - earlier.committed_at)::float8 as between,
    g.total_records_in, g.lag, g.records_per_second
from weir.releases r
left join weir.progress g using (job, number)
left join lateral (
    select * from weir.positions p where p.job = r.job and p.number = r.number order by batch desc limit 1
) newest on true
left join lateral (
    (select * from weir.positions p where p.job = r.job and p.number = r.number
        and p.committed_at >= newest.committed_at - %(window)s and p.batch < newest.batch
        order by p.committed_at limit 1)
    union all
    (select * from weir.positions p where p.job = r.job and p.number = r.number and p.batch = newest.batch - 1)
    order by batch limit 1
) earlier on true
where r.state in ('replaying', 'following', 'standby', 'live') and (%(jobs)s::text[] is null or r.job = any(%(jobs)s))
"""
