"""Window functions: Spark's own where they mean the same, else a Python function per partition.

Spark's are the same where they look at rows in the one order that all executors agree on, or only
at which rows the order finds equal; and where the value is an integer, or one of the rows'.
"""

from evertide.dataflow.delta_plan import WindowNode
from evertide.expr.functions.row import AggregateFunction
from evertide.expr.functions.window import WindowFunction
from evertide.expr.relation import Distance, Frame, WindowCall
from evertide.expr.row_key import is_ambiguous
from evertide.expr.scalar import ColumnRef, Literal, Scalar
from evertide.persist.coding.encoding import spark_type_name
from evertide.spark.render.keys import equality, order_by
from evertide.spark.render.text import Rendered, TextBuilder, rows_only, select_list, with_errors
from evertide.spark.render.top_k import render_consolidated
from evertide.spark.udf.window import WindowFunctions
from evertide.vocab.sql_type import INT2, INT4, RANGE_BASES, Kind

_RANKS = frozenset(
    {
        WindowFunction.RANK,
        WindowFunction.DENSE_RANK,
        WindowFunction.PERCENT_RANK,
        WindowFunction.CUME_DIST,
    }
)
_TURNED = {WindowFunction.LAG: "lead", WindowFunction.LEAD: "lag"}
# Spark counts the rows of a frame by 32 bits.
_FARTHEST = 1 << 31
_COUNT = "'n', d"
# Kinds that Spark does not order as SQL does.
_UNORDERED = frozenset({Kind.JSONB, Kind.ARRAY, Kind.LIST, Kind.MAP, *RANGE_BASES})


def render_window(builder: TextBuilder, source: Rendered, node: WindowNode) -> Rendered:
    """The rows that are there, each as often as it is, with the functions' values behind them."""
    columns = select_list(source.columns, ["t"] * source.timed, ["d"])
    taken = builder.add(f"SELECT {columns} FROM {rows_only(source)}", source, fallible=False)
    rows = render_consolidated(builder, taken)
    if all(is_native(call, node) for call in node.calls):
        shown = _render_native(builder, rows, node)
    else:
        shown = _render_python(builder, rows, node)
    return with_errors(builder, shown, [source])


def _partition(rows: Rendered, node: WindowNode) -> list[str]:
    return [*rows.extra, *(equality(rows.types[i], f"c{i}") for i in node.group)]


def _render_python(builder: TextBuilder, rows: Rendered, node: WindowNode) -> Rendered:
    """A partition's rows are collected, and taken apart again with more columns."""
    function = WindowFunctions.of(node, rows.types)
    time = ["t"] * rows.timed
    fields = [f"'f{i}', c{i}" for i in range(len(rows.types))]
    member = f"named_struct({select_list(fields, [_COUNT])})"
    keys = _partition(rows, node)
    grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
    collected = (
        f"SELECT {select_list(time, [f'collect_list({member}) AS m'])} "
        f"FROM {rows.name} WHERE d > 0{grouping}"
    )
    results = f"{builder.call(function, ['m'])} AS u"
    values = [f"v{i}" for i in range(len(node.types))]
    given = select_list(time, [f"inline(u) AS ({select_list(['e'], values)})"])
    flat = f"SELECT {given} FROM (SELECT {select_list(time, [results])} FROM ({collected}))"
    columns = [f"{value} AS c{i}" for i, value in enumerate(values)]
    select = f"SELECT {select_list(columns, ['e'], time, ['1L AS d'])} FROM ({flat})"
    return builder.add(select, rows, types=node.types, fallible=True, computed_once=True)


def _render_native(builder: TextBuilder, rows: Rendered, node: WindowNode) -> Rendered:
    time = ["t"] * rows.timed
    each = select_list(rows.columns, time, ["explode(sequence(1L, d)) AS k"])
    repeated = f"SELECT {each} FROM {rows.name} WHERE d > 0"
    width = len(rows.types)
    added = [
        f"{_native(builder, call, rows, node)} AS c{width + i}" for i, call in enumerate(node.calls)
    ]
    columns = select_list(rows.columns, added, time, ["1L AS d"])
    return builder.add(f"SELECT {columns} FROM ({repeated})", rows, types=node.types)


def is_native(call: WindowCall, node: WindowNode) -> bool:
    """Whether Spark's function gives the same value for every row."""
    function = call.function
    if isinstance(function, AggregateFunction):
        return _is_native_frame(call.frame) and _is_native_aggregate(call, function)
    match function:
        case WindowFunction.ROW_NUMBER:
            return True
        case _ if function in _RANKS:
            return bool(node.order)
        case WindowFunction.LAG | WindowFunction.LEAD:
            offset = call.arguments[1] if len(call.arguments) > 1 else Literal(1, INT4)
            known = isinstance(offset, Literal) and isinstance(offset.value, int)
            plain = all(isinstance(one, Literal) for one in call.arguments[2:])
            column = isinstance(call.arguments[0], ColumnRef)
            return known and plain and column and not call.ignore_nulls
        case WindowFunction.FIRST_VALUE | WindowFunction.LAST_VALUE:
            column = isinstance(call.arguments[0], ColumnRef)
            by_rows = call.frame.unit == "rows" and _is_native_frame(call.frame)
            return column and by_rows and not call.ignore_nulls
        case _:
            return False


def _is_native_frame(frame: Frame) -> bool:
    """Spark refuses frames that are always empty, and keys overflow there when they are moved."""
    if frame.has_distance:
        return False
    offsets = [offset for offset in (frame.start, frame.end) if isinstance(offset, int)]
    near = all(abs(offset) < _FARTHEST for offset in offsets)
    return frame.unit != "groups" and near and offsets == sorted(offsets)


def _is_native_aggregate(call: WindowCall, function: AggregateFunction) -> bool:
    if not all(isinstance(argument, ColumnRef) for argument in call.arguments):
        return False
    match function.name:
        case "count":
            return True
        case "sum":  # of so small numbers that adding up cannot overflow
            return function.arguments[0] in (INT2, INT4)
        case "min" | "max":
            (argument,) = call.arguments
            odd = is_ambiguous(argument.type) or argument.type.kind in _UNORDERED
            return not odd and spark_type_name(argument.type) == spark_type_name(call.type)
        case _:
            return False


def _native(builder: TextBuilder, call: WindowCall, rows: Rendered, node: WindowNode) -> str:
    keys = _partition(rows, node)
    partition = f"PARTITION BY {', '.join(keys)}" if keys else ""
    every = order_by(builder, rows.types, node.order)
    # What looks at peers only is given the order without what tells peers apart.
    asked = f" ORDER BY {', '.join(every[: len(node.order)])}" if node.order else ""
    whole = f" ORDER BY {', '.join(every) or 'k'}"
    function = call.function
    if isinstance(function, AggregateFunction):
        order = whole if call.frame.unit == "rows" else asked
        frame = _frame(call.frame) if order else ""
        value = _native_aggregate(call, function)
        return f"{value} OVER ({partition}{order}{frame})"
    match function:
        case WindowFunction.ROW_NUMBER:
            return f"CAST(row_number() OVER ({partition}{whole}) AS bigint)"
        case _ if function in _RANKS:
            value = f"{function.value}() OVER ({partition}{asked})"
            return f"CAST({value} AS {spark_type_name(call.type)})"
        case WindowFunction.LAG | WindowFunction.LEAD:
            return f"{_shift(builder, call, function)} OVER ({partition}{whole})"
        case _:
            name = "first" if function is WindowFunction.FIRST_VALUE else "last"
            value = f"{name}({_column(call.arguments[0])})"
            return f"{value} OVER ({partition}{whole}{_frame(call.frame)})"


def _shift(builder: TextBuilder, call: WindowCall, function: WindowFunction) -> str:
    value, *rest = call.arguments
    offset = rest[0] if rest else Literal(1, INT4)
    assert isinstance(offset, Literal), "it is native"
    assert isinstance(offset.value, int), "it is native"
    default = rest[1] if len(rest) > 1 else Literal(None, call.type)
    assert isinstance(default, Literal), "it is native"
    name = function.value if offset.value >= 0 else _TURNED[function]
    given = builder.literal(call.type, default.value)
    return f"{name}({_column(value)}, {abs(offset.value)}, {given})"


def _native_aggregate(call: WindowCall, function: AggregateFunction) -> str:
    if not call.arguments:
        return "count(1)"
    column = _column(call.arguments[0])
    if function.name == "sum":
        return f"sum(CAST({column} AS bigint))"
    return f"{function.name}({column})"


def _column(argument: Scalar) -> str:
    assert isinstance(argument, ColumnRef), "it is native"
    return f"c{argument.index}"


def _frame(frame: Frame) -> str:
    start = _bound(frame.start, "UNBOUNDED PRECEDING")
    end = _bound(frame.end, "UNBOUNDED FOLLOWING")
    return f" {frame.unit.upper()} BETWEEN {start} AND {end}"


def _bound(offset: int | Distance | None, unbounded: str) -> str:
    if offset is None:
        return unbounded
    assert isinstance(offset, int), "it is native"
    if offset == 0:
        return "CURRENT ROW"
    return f"{abs(offset)} {'PRECEDING' if offset < 0 else 'FOLLOWING'}"
