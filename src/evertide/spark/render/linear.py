"""Map, filter and project, one row at a time."""

from collections.abc import Sequence
from dataclasses import replace

from evertide.dataflow.delta_plan import LinearNode
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_walk import columns_of, is_fallible
from evertide.persist.coding.encoding import spark_type_name
from evertide.spark.render.scalar import (
    first_error,
    has_lowering,
    render_conjunction,
    render_scalar,
)
from evertide.spark.render.text import Rendered, TextBuilder, select_list
from evertide.spark.udf.register import LinearFunction
from evertide.vocab.sql_type import SqlType


def render_linear(builder: TextBuilder, source: Rendered, node: LinearNode) -> Rendered:
    """All scalars in order, then the predicates as one And; the first error becomes the row's."""
    scalars = (*node.scalars, *node.predicates)
    if has_lowering(scalars):
        return _render_native(builder, source, node)
    return _render_python(builder, source, node)


def render_scalars(builder: TextBuilder, source: Rendered, scalars: Sequence[Scalar]) -> Rendered:
    """A relation of these scalars alone: what a Reduce groups and adds up."""
    arity = len(source.types)
    columns = tuple(range(arity, arity + len(scalars)))
    types = tuple(scalar.type for scalar in scalars)
    return render_linear(builder, source, LinearNode(0, tuple(scalars), (), columns, types))


def _render_native(builder: TextBuilder, source: Rendered, node: LinearNode) -> Rendered:
    arity = len(source.types)
    inner = source.name
    errors: list[str | None] = ["e" if source.fallible else None]
    for level in _levels(node.scalars, arity):
        added = []
        for index in level:
            pair = render_scalar(builder, node.scalars[index])
            added.append(f"{pair.value} AS c{arity + index}")
            if pair.error is not None:
                added.append(f"{pair.error} AS f{index}")
        inner = f"(SELECT *, {', '.join(added)} FROM {inner})"
    errors += [f"f{i}" if is_fallible(scalar) else None for i, scalar in enumerate(node.scalars)]
    keep = render_conjunction(builder, node.predicates)
    error = first_error([*errors, keep.error])
    if error is None:
        where = f" WHERE {keep.value}" if node.predicates else ""
        columns = _projected(node.columns, source)
        return builder.add(f"SELECT {columns} FROM {inner}{where}", source, types=node.types)
    judged = f"(SELECT *, {error} AS x, {keep.value} AS k FROM {inner})"
    return _kept(builder, source, node, [f"c{i}" for i in node.columns], judged)


def _render_python(builder: TextBuilder, source: Rendered, node: LinearNode) -> Rendered:
    """One call for the whole node: crossing over to Python costs more than what it does there."""
    arity = len(source.types)
    scalars = (*node.scalars, *node.predicates)
    needed = sorted({i for scalar in scalars for i in columns_of(scalar) if i < arity})
    given = tuple(sorted({i - arity for i in node.columns if i >= arity}))
    function = LinearFunction.of(node, source.types, tuple(needed), given)
    # A call needs an argument to know how many rows there are; d is always there.
    call = builder.call(function, ["d", *(f"c{i}" for i in needed)])
    error = "coalesce(e, u.e)" if source.fallible else "u.e"
    called = f"(SELECT *, {call} AS u FROM {source.name})"
    judged = f"(SELECT *, {error} AS x, u.k AS k FROM {called})"
    values = [f"c{i}" if i < arity else f"u.v{i - arity}" for i in node.columns]
    if not source.fallible and not any(is_fallible(scalar) for scalar in scalars):
        columns = [f"{value} AS c{i}" for i, value in enumerate(values)]
        select = f"SELECT {select_list(columns, source.extra, ['d'])} FROM {called} WHERE u.k"
        return builder.add(select, source, types=node.types, computed_once=True)
    return replace(_kept(builder, source, node, values, judged), computed_once=True)


def _kept(
    builder: TextBuilder, source: Rendered, node: LinearNode, values: Sequence[str], judged: str
) -> Rendered:
    """Rows that are in and rows in error, from a relation with their error x and verdict k."""
    masked = [
        f"IF(x IS NULL, {value}, {_null(sql_type)}) AS c{i}"
        for i, (value, sql_type) in enumerate(zip(values, node.types, strict=True))
    ]
    columns = select_list(masked, ["x AS e"], ["t"] * source.timed, ["d"])
    select = f"SELECT {columns} FROM {judged} WHERE x IS NOT NULL OR k"
    return builder.add(select, replace(source, fallible=True), types=node.types)


def _null(sql_type: SqlType) -> str:
    return f"CAST(NULL AS {spark_type_name(sql_type)})"


def _projected(columns: Sequence[int], source: Rendered) -> str:
    return select_list([f"c{c} AS c{i}" for i, c in enumerate(columns)], source.extra, ["d"])


def _levels(scalars: Sequence[Scalar], arity: int) -> list[list[int]]:
    """Scalars by how many others they build upon: each level is one SELECT around the last."""
    depths: list[int] = []
    for scalar in scalars:
        below = [depths[i - arity] for i in columns_of(scalar) if i >= arity]
        depths.append(max(below, default=-1) + 1)
    return [[i for i, d in enumerate(depths) if d == level] for level in sorted(set(depths))]
