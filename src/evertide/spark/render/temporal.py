"""Temporal filters: at one timestamp an ordinary filter, over an interval changes in time."""

from evertide.dataflow.delta_plan import LinearNode, TemporalFilterNode
from evertide.expr.temporal import at_time
from evertide.persist.coding.encoding import spark_type_name
from evertide.spark.render.linear import render_linear
from evertide.spark.render.text import Rendered, TextBuilder, select_list
from evertide.spark.udf.rows import StayFunction
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp


def render_temporal_at(
    builder: TextBuilder, source: Rendered, node: TemporalFilterNode, as_of: Timestamp
) -> Rendered:
    """The rows that are in at `as_of`."""
    columns = tuple(range(len(node.types)))
    predicates = at_time(node.predicates, as_of)
    linear = LinearNode(node.input, (), predicates, columns, node.types)
    return render_linear(builder, source, linear)


def render_temporal_changes(
    builder: TextBuilder,
    updates: Rendered,
    node: TemporalFilterNode,
    lower: Timestamp,
    upper: Timestamp,
) -> Rendered:
    """The changes at lower <= t < upper, from all updates of the input up to there.

    An update of a row gives it when both have come, and takes it away when the row's time is over.
    """
    function = StayFunction.of(node)
    call = builder.call(function, function.seen.arguments)
    called = f"SELECT *, {call} AS w FROM {updates.name}"
    never = builder.bind(EMPTY_FRONTIER, "bigint")
    starts = "named_struct('t', greatest(t, w.s), 's', 1L)"
    ends = f"named_struct('t', IF(w.u < {never}, w.u, CAST(NULL AS bigint)), 's', -1L)"
    kept = select_list(updates.columns, ["d", "w.e AS x"])
    both = (
        f"SELECT {kept}, inline(array({starts}, {ends})) AS (t, s) FROM ({called})"
        " WHERE w.s IS NOT NULL AND w.u > t"
    )
    first, last = builder.bind(lower, "bigint"), builder.bind(upper, "bigint")
    columns = [
        f"IF(x IS NULL, c{i}, CAST(NULL AS {spark_type_name(sql_type)})) AS c{i}"
        for i, sql_type in enumerate(node.types)
    ]
    listed = select_list(columns, ["x AS e", "t", "d * s AS d"])
    select = f"SELECT {listed} FROM ({both}) WHERE t >= {first} AND t < {last}"
    return builder.add(select, updates, fallible=True)
