"""`weir`: one module a group of commands. What a command needs is imported when it runs, so that it starts at once."""

from platform_core.cli.app import main

__all__ = ["main"]
