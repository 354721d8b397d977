"""Releases of one job as their drivers would leave them: rows, positions, states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from platform_core.compare.releases import compare_releases
from platform_core.control import leases, positions, releases
from platform_core.control.owners import Owner
from platform_core.control.position import Position, Tables
from platform_core.control.store import ControlStore
from platform_core.names import PART, ReleaseId
from platform_core.settings import Settings
from tests.compare.tables import STATS, Row
from tests.control.words import facts


class Job:
    def __init__(self, settings: Settings, store: ControlStore) -> None:
        self.name = f"stats_{uuid4().hex[:6]}"
        self.settings, self.store = settings, store
        self._batches: dict[int, int] = {}

    def id(self, number: int) -> ReleaseId:
        return ReleaseId(self.name, number)

    def release(self, number: int, state: Any, key: Sequence[str] = ("ticker", "window_start"), **expect: str) -> None:
        declared = {"output": {"layout": {"is": "Hours", "column": "window_start"}}, "expect": expect}
        manifest = {"output": {"table": "stats", "schema": "", "key": list(key)}, "declared": declared}
        common: dict[str, Any] = {"archive_sha256": "", "fingerprint": "", "topics": {}, "by": "a test"}
        releases.create(self.store, self.id(number), manifest=manifest, state=state, **common)

    def commit(self, number: int, rows: Sequence[Row], *, at: int, tables: Tables | None = None, **more: int) -> None:
        """A batch that ends at that offset, and at these versions."""
        batch = self._batches[number] = self._batches.get(number, -1) + 1
        release = self.id(number)
        offsets = {"stocks": {0: at, **{int(name[1:]): end for name, end in more.items()}}}
        position = Position(str(release), batch, offsets, tables=tables or {})
        uri = self.settings.storage.table(release).uri
        done = CommitProperties(custom_metadata={"userMetadata": position.to_json()})
        table = pa.Table.from_pylist(list(rows), schema=STATS)
        write_deltalake(uri, table, mode="append", partition_by=[PART], commit_properties=done)
        lease = leases.acquire(self.store, leases.driver_lease(release), Owner.this_process(), 60)
        positions.record(self.store, lease, position, facts(batch), DeltaTable(uri).version())
        leases.release(self.store, lease)

    def compare(self, **how: Any) -> Any:
        return compare_releases(self.settings, self.store, self.name, by="a test", **how)
