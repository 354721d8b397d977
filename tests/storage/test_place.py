"""A folder or a file is asked, written and removed the same way, on this machine and in an object store."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from platform_core.errors import SetupError
from platform_core.storage import Place
from tests.compare.tables import Far


@pytest.fixture(params=["a path", "a file's URI", "in an object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    folder = tmp_path / "a folder"
    folder.mkdir()
    made = {"a path": Place(str(folder)), "a file's URI": Place(folder.as_uri()), "in an object store": None}
    return made[request.param] or Far(folder.as_uri())


def test_what_is_appended_to_a_file_is_read_in_its_order(place: Place) -> None:
    log = type(place)(f"{place}/inner/log")
    assert (log.text(), log.exists()) == ("", False)
    log.append("one\n")
    log.append("two\n")
    assert (log.text(), log.exists()) == ("one\ntwo\n", True)


def test_it_is_removed_with_all_that_stands_in_it_and_only_once(place: Place, tmp_path: Path) -> None:
    inner = tmp_path / "a folder" / "inner"
    inner.mkdir()
    (inner / "file").touch()
    assert place.remove()
    assert (place.exists(), place.remove()) == (False, False)


def test_read_only_folders_are_removed_too(tmp_path: Path) -> None:
    sealed = tmp_path / "sealed" / "inner"
    sealed.mkdir(parents=True)
    (sealed / "file").touch()
    sealed.chmod(0o555)
    (tmp_path / "sealed").chmod(0o555)
    assert Place(str(tmp_path / "sealed")).remove()
    assert not (tmp_path / "sealed").exists()


def test_a_table_is_opened_at_any_version_with_the_places_options(place: Place, tmp_path: Path) -> None:
    assert not place.has_table()
    for number in (1, 2):
        write_deltalake(tmp_path / "a folder", pa.table({"n": [number]}), mode="append")
    with_options = type(place)(place.uri, {"timeout": "30s"})
    assert with_options.has_table()
    assert with_options.table().to_pyarrow_table().num_rows == 2
    assert with_options.table(0).to_pyarrow_table()["n"].to_pylist() == [1]
    assert with_options.table()._storage_options == {"timeout": "30s"}  # pyright: ignore[reportPrivateUsage]


def test_a_place_within_it_has_its_options() -> None:
    table = Place("s3://warehouse", {"region": "eu"}) / "stock_stats/v1"
    assert (table.uri, table.options) == ("s3://warehouse/stock_stats/v1", {"region": "eu"})


def test_what_needs_a_file_system_says_so(tmp_path: Path) -> None:
    assert Place(str(tmp_path)).here == Place(tmp_path.as_uri()).here == tmp_path
    assert Place("s3://bucket/checkpoints").path is None
    with pytest.raises(SetupError, match=r"s3://bucket/checkpoints is in an object store, and has to be on a file sys"):
        _ = Place("s3://bucket/checkpoints").here


def test_how_much_room_is_left_is_known_of_a_file_system_alone(tmp_path: Path) -> None:
    assert (Place(str(tmp_path)).free() or 0) > 0
    assert Place("s3://bucket").free() is None
