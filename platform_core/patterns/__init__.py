"""Functions for transforms: what several jobs need, and Spark's DataFrames do not have. Authors import them.

They decide rows as a transform's own code does: `weir plan` compares them so, and says must replay where one changed.
"""

from platform_core.patterns.in_order import InOrder, in_order, moment
from platform_core.patterns.sliding_windows import sliding_windows

__all__ = ["InOrder", "in_order", "moment", "sliding_windows"]
