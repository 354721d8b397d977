"""Live tables as a driver leaves them: Delta with the physical column and positions, aliases in a control store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from platform_core.control import aliases, releases
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.names import PART, ReleaseId
from platform_core.settings import Settings
from tests.conftest import Database

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
Publish = Callable[..., ReleaseId]


@pytest.fixture(scope="session")
def settings(postgres: Database, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return postgres.another(tmp_path_factory.mktemp("read"))


@pytest.fixture
def store(settings: Settings) -> Iterator[ControlStore]:
    opened = ControlStore.open(settings)
    opened.migrate()
    yield opened
    with opened.transaction() as cursor:
        cursor.execute("truncate weir.aliases, weir.releases, weir.clients")
    opened.close()


@pytest.fixture
def publish(settings: Settings, store: ControlStore) -> Publish:
    """Writes rows as a release's output and makes it the live one of the table."""

    def do(table: str, rows: pa.Table | None, key: tuple[str, ...] = (), number: int = 1) -> ReleaseId:
        release = ReleaseId(f"{table}_{uuid4().hex[:6]}", number)
        output = {"table": table, "schema": "", "key": list(key)}
        releases.create(
            store,
            release,
            archive_sha256="",
            fingerprint="",
            manifest={"output": output},
            topics={},
            by="a test",
            state="live",
        )
        if rows is not None:
            write(settings, release, rows, batch=0)
        aliases.point(store, table, release, None, "a test")
        return release

    return do


def write(settings: Settings, release: ReleaseId, rows: pa.Table, batch: int) -> None:
    position = Position(release=str(release), batch=batch, offsets={"stocks": {0: 100 + batch}})
    write_deltalake(
        settings.storage.table(release).uri,
        rows,
        mode="append",
        partition_by=[PART] if PART in rows.column_names else None,
        commit_properties=CommitProperties(
            app_transactions=[Transaction(str(release), batch)], custom_metadata={"userMetadata": position.to_json()}
        ),
    )


def stats(*tickers: str, windows: int = 3) -> pa.Table:
    """A row a ticker and second from noon on."""
    starts = [NOON + timedelta(seconds=second) for second in range(windows)]
    rows = [(ticker, start) for ticker in tickers for start in starts]
    return pa.table(
        {
            "ticker": [ticker for ticker, _ in rows],
            "window_start": pa.array([start for _, start in rows], pa.timestamp("us", "UTC")),
            "trade_count": pa.array(range(len(rows)), pa.int64()),
            "avg_price": pa.array([Decimal("5000.000001")] * len(rows), pa.decimal128(18, 6)),
            PART: ["2026-01-31T12"] * len(rows),
        }
    )
