"""What goes wrong on the way, at given shares; the sound records stay the same whatever the faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from random import Random
from typing import NamedTuple

from ingest.generators.records import GeneratedRecord
from platform_core.errors import UsageError

LATE, DUPLICATED, MALFORMED, FAR_FUTURE = "late", "duplicated", "malformed", "far_future"


class Sent(NamedTuple):
    due_ms: int  # when it is sent in live mode, whatever its timestamp says
    record: GeneratedRecord
    fault: str  # "" for a sound one


@dataclass(frozen=True)
class Faults:
    """The share of records, from 0 to 1, that each fault befalls; a record has one at most."""

    late: float = 0.0
    duplicated: float = 0.0
    malformed: float = 0.0
    far_future: float = 0.0

    def __post_init__(self) -> None:
        shares = {field.name: float(getattr(self, field.name)) for field in fields(self)}
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise UsageError(f"{name}: {share} is no share.", remedy="Give a number from 0 to 1, as in 0.01.")
        if sum(shares.values()) > 1:
            raise UsageError(
                f"The shares of all faults add up to {sum(shares.values()):g}.", remedy="Keep to 1 in all."
            )

    @property
    def none(self) -> bool:
        return self == Faults()


def sent(
    records: Iterator[GeneratedRecord],
    faults: Faults,
    seed: int,
    malformed: Callable[[Random], bytes],
    late_by_ms: int,
    future_by_ms: int,
) -> Iterator[Sent]:
    """The records in the order of sending. A late one comes where it belongs, with a timestamp of long before."""
    random = Random(f"faults {seed}")
    late, duplicated = faults.late, faults.late + faults.duplicated
    broken = duplicated + faults.malformed
    future = broken + faults.far_future
    for record in records:
        at, drawn = record.timestamp_ms, 1.0 if faults.none else random.random()
        if drawn >= future:
            yield Sent(at, record, "")
        elif drawn < late:
            yield Sent(at, record._replace(timestamp_ms=at - late_by_ms), LATE)
        elif drawn < duplicated:
            yield Sent(at, record, "")
            yield Sent(at, record, DUPLICATED)
        elif drawn < broken:
            yield Sent(at, record._replace(value=malformed(random)), MALFORMED)
        else:
            yield Sent(at, record._replace(timestamp_ms=at + future_by_ms), FAR_FUTURE)
