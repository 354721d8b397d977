"""Which operators and columns differ between two versions of a definition, by what a reader of its code would say."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from platform_core.release.plan.definitions import Definition

_OPERATORS = frozenset(
    {
        *("select", "selectExpr", "drop", "replace", "fillna", "explode", "withColumn", "withColumns"),
        *("withColumnRenamed", "withColumnsRenamed", "where", "filter", "limit", "coalesce", "repartition"),
        *("groupBy", "groupby", "agg", "count", "cube", "rollup", "pivot", "window", "session_window", "over"),
        *("join", "crossJoin", "union", "unionAll", "unionByName", "intersect", "intersectAll", "subtract"),
        *("exceptAll", "distinct", "dropDuplicates", "drop_duplicates", "dropDuplicatesWithinWatermark"),
        *("sort", "orderBy", "withWatermark", "mapInArrow", "mapInPandas", "applyInPandas", "applyInPandasWithState"),
        *("transformWithState", "transformWithStateInPandas"),
    }
)
_SHORT = 60


def differences(old: Definition, new: Definition) -> list[str]:
    """For a constant its values; for a function the operators and the columns that differ."""
    if new.kind == "constant" and old.kind == "constant":
        return _values(old, new)
    operators = [f"operator {name} {how}" for name, how in _changed(_calls(old), _calls(new))]
    columns = [f"column {name} {how}" for name, how in _changed(_columns(old), _columns(new))]
    return [*operators, *columns]


def _values(old: Definition, new: Definition) -> list[str]:
    was, now = _value(old), _value(new)
    return [f"{was} became {now}"] if max(len(was), len(now)) <= _SHORT else []


def _value(one: Definition) -> str:
    value = getattr(one.nodes[0], "value", None)
    return "nothing" if value is None else ast.unparse(value)


def _changed(old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """By name, in the order in which they stand in the code; an unchanged one is not told."""
    for name in dict.fromkeys(name for name, _ in [*new, *old]):
        was = Counter(code for other, code in old if other == name)
        now = Counter(code for other, code in new if other == name)
        if was == now:
            continue
        gone, come = (was - now).total(), (now - was).total()
        yield name, "changed" if gone and come else "added" if come else "removed"


def _calls(one: Definition) -> list[tuple[str, str]]:
    """Each operator with its arguments, without what it is applied to: that stands for itself."""
    found = [node for top in one.nodes for node in ast.walk(top) if isinstance(node, ast.Call)]
    return [(name, _arguments(node)) for node in found if (name := _method(node)) in _OPERATORS]


def _columns(one: Definition) -> list[tuple[str, str]]:
    found = [node for top in one.nodes for node in ast.walk(top) if isinstance(node, ast.Call)]
    return [pair for node in found for pair in _named(node)]


def _named(call: ast.Call) -> Iterator[tuple[str, str]]:
    match call:
        case ast.Call(func=ast.Attribute(attr="alias", value=value), args=[ast.Constant(value=str(name))]):
            yield name, ast.dump(value, annotate_fields=False)
        case ast.Call(func=ast.Attribute(attr="withColumn"), args=[ast.Constant(value=str(name)), value]):
            yield name, ast.dump(value, annotate_fields=False)
        case _:
            return


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _arguments(call: ast.Call) -> str:
    parts = [*call.args, *(keyword.value for keyword in call.keywords)]
    return "; ".join(ast.dump(part, annotate_fields=False) for part in parts)
