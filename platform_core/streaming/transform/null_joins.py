"""Joins of two streams that match null with null, as Spark's do where nothing keeps nulls out of both sides' keys.

A batch join never does: `a = b` is not true of nulls. A stream's looks rows up by the bytes of their keys, and relies
on the filters `IS NOT NULL` that the optimizer adds for columns under the equality, on sides whose rows may be dropped:
both of an inner join, one of a left or right one. A full outer join gets none; nor does a key that can be null where
its columns are not, as in `nullif(a, '') = nullif(b, '')`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from platform_core.streaming.transform.nodes import listed, nodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KINDS = {"FullOuter": "full outer", "LeftOuter": "left outer", "RightOuter": "right outer", "LeftSemi": "left semi"}
_LEFT_FILTERED, _RIGHT_FILTERED = {"Inner", "LeftSemi", "RightOuter"}, {"Inner", "LeftSemi", "LeftOuter"}
_FIELDS = {"GetStructField", "GetArrayItem", "GetMapValue", "GetArrayStructFields"}


def null_joins(rows: DataFrame) -> list[str]:
    """Each equality of two streams' keys in which both sides may be null."""
    frame: Any = rows
    catalyst = frame.sparkSession._jvm.org.apache.spark.sql.catalyst
    plan = catalyst.optimizer.ReplaceExpressions.apply(frame._jdf.queryExecution().analyzed())
    joins = [node for node in nodes(plan) if _joins_streams(node)]
    return [found for join in joins for found in _in(join, frame.sparkSession._jvm)]


def _in(join: Any, jvm: Any) -> Iterator[str]:
    keys = jvm.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys.unapply(join)
    if not keys.isDefined():
        return  # Spark refuses it when it starts
    found = keys.get()
    kind, guards = str(found._1().toString()), [found._4().get()] if found._4().isDefined() else []
    for left, right in zip(listed(found._2()), listed(found._3()), strict=True):
        known = [part for monitor in guards for part in _parts(monitor)]
        on_left = _Nulls([*known, *listed(join.left().constraints().toSeq())], jvm)
        on_right = _Nulls([*known, *listed(join.right().constraints().toSeq())], jvm)
        on_left.kept_out += _columns(left) if kind in _LEFT_FILTERED else []
        on_right.kept_out += _columns(right) if kind in _RIGHT_FILTERED else []
        if not on_left.never(left) and not on_right.never(right):
            yield f"{left.sql()} = {right.sql()} in a join of kind {_KINDS.get(kind, 'inner')}"


def _columns(key: Any) -> list[Any]:
    """Those without which the key is null: the optimizer lets only rows pass that have them."""
    if key.nodeName() in _FIELDS or key.nodeName() == "AttributeReference":
        return [key]
    return [found for child in listed(key.children()) for found in _columns(child)] if key.nullIntolerant() else []


class _Nulls:
    """What is known of nulls in the rows of one side."""

    def __init__(self, known: list[Any], jvm: Any) -> None:
        self._jvm, self._expressions = jvm, jvm.org.apache.spark.sql.catalyst.expressions
        self.kept_out = [one.child() for one in known if one.nodeName() == "IsNotNull"]

    def never(self, key: Any) -> bool:
        """Whether it is never null: declared so, kept out by a filter, or made of what is never null alone."""
        if not key.nullable() or any(one.semanticEquals(key) for one in self.kept_out):
            return True
        children = listed(key.children())
        if not children:
            return False
        sure = [self._expressions.KnownNotNull(one) if self.never(one) else one for one in children]
        return not key.withNewChildren(self._jvm.PythonUtils.toSeq(sure)).nullable()


def _joins_streams(node: Any) -> bool:
    return node.nodeName() == "Join" and node.left().isStreaming() and node.right().isStreaming()


def _parts(condition: Any) -> Iterator[Any]:
    if condition.nodeName() != "And":
        yield condition
        return
    for child in listed(condition.children()):
        yield from _parts(child)
