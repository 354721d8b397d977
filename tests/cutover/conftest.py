"""The control store of tests/control."""

from tests.control.conftest import migrated, release, store

__all__ = ["migrated", "release", "store"]
