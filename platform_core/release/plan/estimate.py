"""How long a replay would take and how much room it needs, from what the live release does; each with its basis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from platform_core.control import progress
from platform_core.control.facts import BatchFacts
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.storage import Place

_BATCHES = 20
_LARGE = 10_000  # records; below, a batch's fixed costs outweigh its records


@dataclass(frozen=True)
class Time:
    hours: float | None
    basis: str
    sound: bool = False  # from batches as large as a replay's


@dataclass(frozen=True)
class Room:
    """On disk, for a second copy of the live release's table."""

    bytes: int | None
    free: int | None  # None: the warehouse is no folder of this machine
    basis: str


def time_of(store: ControlStore, live: ReleaseId, records: int) -> Time:
    since = datetime.now(UTC) - timedelta(hours=24)
    return estimated(progress.recent(store, live, since), records, live)


def estimated(history: Sequence[BatchFacts], records: int, live: ReleaseId) -> Time:
    """By the live release's largest batches: they come nearest to those of a replay."""
    largest = sorted((one for one in history if one.records_per_second > 0), key=lambda one: -one.records_in)
    chosen = largest[:_BATCHES]
    if not chosen:
        return Time(None, f"{live} has recorded no batch with records in the last 24 hours")
    weight = sum(one.records_in for one in chosen)
    rate = sum(one.records_per_second * one.records_in for one in chosen) / weight
    sizes = f"{chosen[-1].records_in:,} to {chosen[0].records_in:,} records each"
    basis = f"{rate:,.0f} records/s in the {len(chosen)} largest batches of {live} in the last 24 hours, {sizes}"
    return Time(records / rate / 3600, basis + _small(chosen), chosen[0].records_in >= _LARGE)


def _small(chosen: Sequence[BatchFacts]) -> str:
    """A live release that keeps up has small batches, and those are slow by the record."""
    return "; a replay's batches are larger, and faster by the record" if chosen[0].records_in < _LARGE else ""


def room_of(settings: Settings, live: ReleaseId, lookups: Sequence[str]) -> Room:
    storage = settings.storage
    places = [storage.table(live), *(storage.lookup(live, name) for name in lookups)]
    sizes = [size for place in places if (size := _size(place))]
    basis = f"the size of {live}'s table" + (" and lookups" if lookups else "")
    return Room(
        sum(sizes) if sizes else None, storage.tables.free(), basis if sizes else f"{live} has written nothing yet"
    )


def _size(place: Place) -> int:
    from deltalake.exceptions import TableNotFoundError

    try:
        files = place.table().get_add_actions(flatten=True)
    except TableNotFoundError:
        return 0
    return sum(files.column("size_bytes").to_pylist())
