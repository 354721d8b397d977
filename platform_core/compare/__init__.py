"""Comparing two releases' tables: what differs, what of it was expected or can be explained, and a verdict."""

from platform_core.compare.comparison import ColumnFigures, Comparison, Count, Example
from platform_core.compare.engine import Explain, compare
from platform_core.compare.sides import Side
from platform_core.compare.verdict import Verdict, verdict

__all__ = ["ColumnFigures", "Comparison", "Count", "Example", "Explain", "Side", "Verdict", "compare", "verdict"]
