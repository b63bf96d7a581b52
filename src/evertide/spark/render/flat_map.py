"""Rows of table functions: a Python function gives an array of them, which is taken apart."""

from evertide.dataflow.delta_plan import FlatMapNode
from evertide.persist.coding.encoding import spark_type_name
from evertide.spark.render.text import Rendered, TextBuilder, rows_only, select_list, with_errors
from evertide.spark.udf.rows import FlatMapFunction


def render_flat_map(builder: TextBuilder, source: Rendered, node: FlatMapNode) -> Rendered:
    """A row beside each row that the function gives for it, or its error."""
    arity = len(source.types)
    function = FlatMapFunction.of(node, source.types)
    call = builder.call(function, function.seen.arguments)
    time = ["t"] * source.timed
    called = select_list(source.columns, time, ["d", f"{call} AS u"])
    added = [f"v{i}" for i in range(len(node.types) - arity)]
    given = select_list(source.columns, time, ["d", f"inline(u) AS ({select_list(['x'], added)})"])
    taken = f"SELECT {given} FROM (SELECT {called} FROM {rows_only(source)})"
    columns = [
        f"IF(x IS NULL, {value}, CAST(NULL AS {spark_type_name(sql_type)})) AS c{i}"
        for i, (value, sql_type) in enumerate(
            zip([*source.columns, *added], node.types, strict=True)
        )
    ]
    select = f"SELECT {select_list(columns, ['x AS e'], time, ['d'])} FROM ({taken})"
    rows = builder.add(select, source, types=node.types, fallible=True)
    return with_errors(builder, rows, [source])
