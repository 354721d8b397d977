"""Where a candidate begins to read. Retention is checked first: a replay cannot read what the broker has no more."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from platform_core.broker import Broker, Offsets, TopicFacts
from platform_core.control.starts import StartPosition
from platform_core.control.store import ControlStore
from platform_core.declare import described
from platform_core.errors import UsageError
from platform_core.release.plan.sampling import sampled
from platform_core.release.plan.wording import duration, moment
from platform_core.settings import Settings
from platform_core.streaming.source.raw_history import RawHistory, raw_tables

EARLIEST = "earliest"
_MARGIN_MS = 120_000  # a driver needs some 30 s to its first batch, more on a busy machine


@dataclass(frozen=True)
class Held:
    """What the broker has of one input topic."""

    topic: str
    facts: TopicFacts
    oldest: Mapping[int, int]  # offsets
    oldest_at_ms: int | None
    live_began: Mapping[int, int]

    @property
    def gone(self) -> int:
        """Records that the live release has read, or could have, and nobody can again."""
        if "compact" in self.facts.policy:
            return 0
        return sum(max(0, at - self.live_began.get(partition, 0)) for partition, at in self.oldest.items())

    @property
    def first_loss_ms(self) -> float:
        """When retention takes the next records."""
        bounded = self.facts.retention_ms >= 0 and "compact" not in self.facts.policy
        return (self.oldest_at_ms or 0) + self.facts.retention_ms if bounded and self.oldest_at_ms else float("inf")


def moment_asked(asked: str) -> int | None:
    """Milliseconds; None for the earliest. A time without a zone is UTC."""
    if asked == EARLIEST:
        return None
    try:
        at = datetime.fromisoformat(asked)
    except ValueError as error:
        raise UsageError(
            f"--from {asked!r} is neither {EARLIEST!r} nor a time.", remedy="Write it as in '2026-01-31 12:00'; UTC."
        ) from error
    at_ms = int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    if at_ms > time.time() * 1000:
        raise UsageError(f"--from {asked!r} is to come.", remedy="Name a time in the past.")
    return at_ms


def start_of(
    settings: Settings, store: ControlStore | None, declared: Mapping[str, Any], asked: str, live: StartPosition | None
) -> StartPosition:
    """Refused when records that it needs are gone, or go before a replay could begin.

    What the broker has no more counts as there when the raw tables of the topics have it; without a store, only what
    the broker has.

    Events from the time asked for; lookups from their oldest record, as rows join what was known long before.
    """
    at_ms = moment_asked(asked)
    broker = Broker(settings)
    facts = broker.topics(described.topics(described.inputs(declared).values()))
    partitions = {name: range(one.partitions) for name, one in facts.items()}
    oldest, ends = broker.starts(partitions), broker.ends(partitions)
    samples = sampled(settings, oldest, ends)
    began: Offsets = {topic: dict(parts) for topic, parts in live.offsets.items()} if live else {}
    events, lookups = (
        [name for name in described.topics(parts.values()) if name in facts]
        for parts in (described.transformed(declared), described.lookups(declared))
    )
    ids = {name: one.id for name, one in facts.items()}
    tables = raw_tables(settings, store, ids, (events, lookups), oldest) if store else {}
    oldest = {**oldest, **{name: {**oldest[name], **table.begins} for name, table in tables.items()}}
    held = [_held(name, facts[name], oldest[name], samples[name].oldest_ms, began, tables.get(name)) for name in events]
    refuse(held, at_ms, asked, time.time() * 1000)
    since = oldest if at_ms is None else _since(broker, at_ms, {name: partitions[name] for name in events}, tables)
    return StartPosition(asked, at_ms, {**oldest, **{name: since[name] for name in events}})


def _held(
    name: str,
    facts: TopicFacts,
    oldest: Mapping[int, int],
    oldest_ms: int | None,
    began: Offsets,
    table: RawHistory | None,
) -> Held:
    if table is None:
        return Held(name, facts, oldest, oldest_ms, began.get(name, {}))
    return Held(name, replace(facts, retention_ms=-1), oldest, table.oldest_ms, began.get(name, {}))


def _since(
    broker: Broker, at_ms: int, partitions: Mapping[str, Iterable[int]], tables: Mapping[str, RawHistory]
) -> Offsets:
    """The broker's answer where it has the moment, the table's before."""
    found, starts = broker.since(partitions, at_ms), broker.starts(partitions)
    for name, table in tables.items():
        if name in found:
            own = table.since(at_ms)
            found[name] = {p: o if o > starts[name][p] else min(own.get(p, o), o) for p, o in found[name].items()}
    return found


def refuse(held: Sequence[Held], at_ms: int | None, asked: str, now_ms: float) -> None:
    lost = list(_lost(held, at_ms, now_ms))
    if lost:
        raise UsageError(f"A replay from {asked} is not possible: {'; '.join(lost)}.", remedy=_remedy(held))


def _lost(held: Sequence[Held], at_ms: int | None, now_ms: float) -> Iterator[str]:
    for one in held:
        if at_ms is None and one.gone:
            yield f"{_where(one)}: {one.gone:,} records that the live release began with are gone"
        elif at_ms is not None and one.gone and (one.oldest_at_ms is None or one.oldest_at_ms > at_ms):
            oldest = "no record" if one.oldest_at_ms is None else f"no record older than {moment(one.oldest_at_ms)}"
            yield f"{_where(one)}: retention has left {oldest}"
        elif (left := max(one.first_loss_ms, (at_ms or 0) + _kept(one)) - now_ms) < _MARGIN_MS:
            goes = f"goes in {duration(left / 3_600_000)}" if left > 0 else "is about to go"
            yield f"{_where(one)}: its first record {goes}, before a replay could have read it"


def _kept(one: Held) -> float:
    return one.facts.retention_ms if one.facts.retention_ms >= 0 else float("inf")


def _where(one: Held) -> str:
    offsets = ", ".join(f"[{partition}] at {at:,}" for partition, at in sorted(one.oldest.items()) if at)
    return f"topic {one.topic!r}" + (f" begins {offsets}" if offsets else "")


def _remedy(held: Sequence[Held]) -> str:
    known = [one.oldest_at_ms for one in held if one.oldest_at_ms is not None and one.gone]
    later = f" '{moment(max(known) + 600_000).removesuffix(' UTC')}'" if known else " a later TIME"
    return f"Replay from{later}, with --from, or raise the topic's retention before there is more to lose."
