"""The names of folders: releases that are frozen by now look for theirs under these."""

from __future__ import annotations

from pathlib import Path

from platform_core.names import ReleaseId
from platform_core.settings import load
from platform_core.storage import Storage

RELEASE = ReleaseId("stock_stats", 2)


def names(storage: Storage) -> dict[str, str]:
    return {
        "table": storage.table(RELEASE).uri,
        "rejects": storage.rejects("stock_stats").uri,
        "daily": storage.daily("daily_prices").uri,
        "alias log": storage.alias_log.uri,
        "checkpoint": storage.checkpoint(RELEASE).uri,
        "archive": str(storage.archive(RELEASE)),
        "revision": str(storage.archive(RELEASE, 3)),
        "logs": str(storage.logs),
    }


def test_everything_is_in_home_unless_the_profile_says_otherwise(tmp_path: Path) -> None:
    home = tmp_path
    assert names(Storage(home)) == {
        "table": f"{home}/warehouse/stock_stats/v2",
        "rejects": f"{home}/warehouse/stock_stats/rejects",
        "daily": f"{home}/warehouse/daily_prices",
        "alias log": f"{home}/warehouse/aliases.jsonl",
        "checkpoint": f"{home}/checkpoints/stock_stats/v2",
        "archive": f"{home}/releases/stock_stats/v2",
        "revision": f"{home}/releases/stock_stats/v2.3",
        "logs": f"{home}/logs",
    }
    assert Storage(home).lookup(RELEASE, "profiles").uri == f"{home}/warehouse/stock_stats/v2_lookup_profiles"


def test_tables_and_checkpoints_may_be_elsewhere(tmp_path: Path) -> None:
    elsewhere = Storage(tmp_path, "s3://lake/warehouse", "/mnt/checkpoints", {"region": "eu"})
    assert elsewhere.table(RELEASE).uri == "s3://lake/warehouse/stock_stats/v2"
    assert elsewhere.table(RELEASE).options == {"region": "eu"}
    assert elsewhere.checkpoint(RELEASE).uri == "/mnt/checkpoints/stock_stats/v2"
    assert elsewhere.archive(RELEASE) == tmp_path / "releases" / "stock_stats" / "v2"


def test_the_profiles_options_reach_every_place(tmp_path: Path) -> None:
    environment = {"WEIR_HOME": str(tmp_path), "WEIR_OBJECT_STORE__OPTIONS": '{"region": "eu"}'}
    assert load(environment=environment).storage.rejects("stock_stats").options == {"region": "eu"}


def test_revisions_are_all_archives_of_a_release_but_the_first(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    for name in ("v2", "v2.1", "v2.2", "v20", "v20.1"):
        (storage.archives / "stock_stats" / name).mkdir(parents=True)
    assert [path.name for path in storage.revisions(RELEASE)] == ["v2.1", "v2.2"]
