"""A control store of the session's Postgres, and the command beside it."""

from tests.cli.conftest import weir
from tests.read.conftest import settings, store

__all__ = ["settings", "store", "weir"]
