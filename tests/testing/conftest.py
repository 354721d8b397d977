from __future__ import annotations

from platform_core.testing.plugin import kit

__all__ = ["kit"]
