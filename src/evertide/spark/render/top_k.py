"""Operators that look at whole rows with their multiplicities: consolidate, threshold, top-k."""

from evertide.dataflow.delta_plan import ThresholdNode, TopKNode
from evertide.expr.row_key import is_ambiguous
from evertide.spark.render.keys import equality, identities, order_by, regained
from evertide.spark.render.text import (
    Rendered,
    TextBuilder,
    rows_only,
    select_list,
    with_errors,
)


def render_consolidated(builder: TextBuilder, source: Rendered) -> Rendered:
    """Identical rows and errors added up, zeros dropped."""
    group = [*identities(source.types, source.columns), *source.extra]
    columns = [regained(t, c) for t, c in zip(source.types, source.columns, strict=True)]
    listed = select_list(columns, source.extra, ["sum(d) AS d"])
    # Without columns there is one row, or none at all if nothing is left of it.
    grouping = f" GROUP BY {', '.join(group)}" if group else ""
    select = f"SELECT {listed} FROM {source.name}{grouping} HAVING sum(d) <> 0"
    return builder.add(select, source)


def render_threshold(builder: TextBuilder, source: Rendered, node: ThresholdNode) -> Rendered:
    """Of rows equal in SQL as many as there are in all, least representations first."""
    rows = render_consolidated(builder, _rows(builder, source))
    if not any(is_ambiguous(sql_type) for sql_type in node.types):
        kept = builder.add(f"SELECT * FROM {rows.name} WHERE d > 0", rows)
        return with_errors(builder, kept, [source])
    partition = _partition(rows, range(len(node.types)))
    before = f"sum(IF(d > 0, d, 0)) OVER ({partition}{_running(builder, node)})"
    windows = f"sum(d) OVER ({partition}) AS w, {before} AS b"
    inner = f"SELECT *, {windows} FROM {rows.name}"
    columns = select_list(rows.columns, rows.extra, ["least(d, w - b + d) AS d"])
    select = f"SELECT {columns} FROM ({inner}) WHERE d > 0 AND w - b + d > 0"
    return with_errors(builder, builder.add(select, rows), [source])


def render_top_k(builder: TextBuilder, source: Rendered, node: TopKNode) -> Rendered:
    """Of each group the rows from offset to offset + limit, a row counting as often as it is there.

    b counts the rows of the group up to and including this one.
    """
    rows = render_consolidated(builder, _rows(builder, source))
    order = ", ".join(order_by(builder, node.types, node.order))
    partition = _partition(rows, node.group)
    window = f"{partition} ORDER BY {order or 'd'} ROWS UNBOUNDED PRECEDING"
    inner = f"SELECT *, sum(d) OVER ({window}) AS b FROM {rows.name} WHERE d > 0"
    offset = builder.bind(node.offset, "bigint")
    taken = f"greatest(b - d, {offset})"
    end = "b"
    if node.limit is not None:
        end = f"least(b, {builder.bind(node.offset + node.limit, 'bigint')})"
    columns = select_list(rows.columns, rows.extra, [f"{end} - {taken} AS d"])
    select = f"SELECT {columns} FROM ({inner}) WHERE {end} - {taken} > 0"
    return with_errors(builder, builder.add(select, rows), [source])


def _rows(builder: TextBuilder, source: Rendered) -> Rendered:
    if not source.fallible:
        return source
    columns = select_list(source.columns, ["t"] * source.timed, ["d"])
    return builder.add(f"SELECT {columns} FROM {rows_only(source)}", source, fallible=False)


def _partition(rows: Rendered, columns: "range | tuple[int, ...]") -> str:
    keys = [*rows.extra, *(equality(rows.types[i], f"c{i}") for i in columns)]
    return f"PARTITION BY {', '.join(keys)}" if keys else ""


def _running(builder: TextBuilder, node: ThresholdNode) -> str:
    order = ", ".join(order_by(builder, node.types, ()))
    return f" ORDER BY {order or 'd'} ROWS UNBOUNDED PRECEDING"
