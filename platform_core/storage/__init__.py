"""Where tables, checkpoints, archives and logs are, and with which options they are reached.

Names of folders stand in `layout` alone, and what differs between this machine and an object store in `place`.
"""

from platform_core.storage.layout import Storage
from platform_core.storage.place import Place

__all__ = ["Place", "Storage"]
