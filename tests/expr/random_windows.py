"""Random window functions over any relation."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from math import inf
from random import Random

from evertide.expr.functions.aggregate import packing
from evertide.expr.functions.row import AggregateFunction, ScalarFunction
from evertide.expr.functions.table import AGGREGATE_FUNCTIONS, by_signature
from evertide.expr.functions.window import ARITIES, NULL_SKIPPING, RESULTS, WindowFunction
from evertide.expr.range_frame import DISTANCES
from evertide.expr.relation import (
    USUAL_FRAME,
    Distance,
    Distinct,
    Filter,
    Frame,
    Join,
    Map,
    OrderKey,
    Project,
    Relation,
    Types,
    Union,
    Window,
    WindowCall,
)
from evertide.expr.scalar import Call, ColumnRef, Literal, Scalar
from evertide.vocab.datum import Datum, Interval
from evertide.vocab.sql_type import BOOL, FLOAT8, INT4, INT8, INTERVAL, NUMERIC, SqlType

AGGREGATES = {
    "count", "sum", "avg", "min", "max", "array_agg", "bool_or", "stddev", "variance",
}  # fmt: skip
COMPARISONS = tuple(by_signature(f"{name}(bigint,bigint)") for name in ("<", "<=", "=", ">", ">="))


def windowed(rng: Random, source: Relation) -> Relation:
    """A Window over the relation, and sometimes something over that."""
    window = random_window(rng, source)
    match rng.randrange(6):
        case 0:
            return _compared(rng, window)
        case 1:
            width = len(window.types)
            columns = tuple(rng.randrange(width) for _ in range(rng.randint(1, 3)))
            return Project(window, columns)
        case 2:
            return random_window(rng, window) if len(window.types) < 12 else window
        case 3:
            return Distinct(window)
        case 4 if len(source.types) < 4:
            return Join((window, source), ((0, len(window.types)),) if source.types else ())
        case 5:
            return Union((window, _compared(rng, window)))
    return window


def _compared(rng: Random, window: Window) -> Relation:
    """Only rows with a number up to something: what top-k does too; or with a given column."""
    numbers = [i for i, sql_type in enumerate(window.types) if sql_type == INT8]
    if not numbers:
        return window
    function = rng.choice(COMPARISONS)
    assert isinstance(function, ScalarFunction)
    sides: list[Scalar] = [ColumnRef(rng.choice(numbers), INT8), Literal(rng.randint(0, 3), INT8)]
    if rng.random() < 0.3:
        sides.reverse()
    return Filter(window, (Call(function, tuple(sides), BOOL),))


def random_window(rng: Random, source: Relation) -> Window:
    """Arguments that are computed have a column of their own, as the planner makes them."""
    width = len(source.types)
    order = tuple(
        OrderKey(rng.randrange(width), rng.random() < 0.5, rng.random() < 0.5)
        for _ in range(rng.choice((0, 1, 1, 2)) if width else 0)
    )
    group = tuple(rng.sample(range(width), rng.randint(0, min(2, width))))
    packed: list[Scalar] = []
    calls = tuple(_call(rng, source.types, packed) for _ in range(rng.randint(1, 3)))
    if len(order) == 1 and rng.random() < 0.5:
        calls = tuple(_near(rng, call, source.types[order[0].column]) for call in calls)
    return Window(Map(source, tuple(packed)) if packed else source, group, order, calls)


def _call(rng: Random, types: Types, packed: list[Scalar]) -> WindowCall:
    if rng.random() < 0.2:
        return WindowCall(WindowFunction.ROW_NUMBER, (), INT8, USUAL_FRAME)
    if rng.random() < 0.4:
        return _aggregate(rng, types, packed)
    function = rng.choice(list(WindowFunction))
    least, most = ARITIES[function]
    frame = _frame(rng)
    if function is WindowFunction.NTILE:
        return WindowCall(function, (_number(rng),), INT4, frame)
    if function in RESULTS or not types:
        if function not in RESULTS:
            function = WindowFunction.RANK
        return WindowCall(function, (), RESULTS[function], frame)
    column = rng.randrange(len(types))
    value = ColumnRef(column, types[column])
    given: list[Scalar] = [value, _number(rng), _other(rng, types, column)]
    arguments = tuple(given[: rng.randint(least, most)])
    skipping = function in NULL_SKIPPING and rng.random() < 0.3
    return WindowCall(function, arguments, value.type, frame, skipping)


def _near(rng: Random, call: WindowCall, key: SqlType) -> WindowCall:
    """Over rows whose keys are near, if keys of this type can be."""
    wanted = DISTANCES.get(key.kind)
    if wanted is None:
        return call
    distances: dict[SqlType, tuple[Datum, ...]] = {
        INT8: (0, 1, 3),
        NUMERIC: (Decimal(0), Decimal("1.5"), Decimal("Infinity")),
        FLOAT8: (0.0, 1.5, inf),
        INTERVAL: (Interval(0, 0, 0), Interval(1, -1, 0), Interval(0, 0, 5)),
    }
    near = [
        Distance(Literal(rng.choice(distances[wanted]), wanted), following)
        for following in (False, True)
    ]
    start, end = rng.choice((None, 0, *near)), rng.choice((None, 0, *near))
    return replace(call, frame=Frame("range", start, end))


def _number(rng: Random) -> Scalar:
    """Mostly what works; zero fails for ntile and nth_value."""
    return Literal(rng.choice((1, 1, 2, 3, 0, -1, None)), INT4)


def _other(rng: Random, types: Types, column: int) -> Scalar:
    """Another column of this type, or NULL."""
    same = [i for i, sql_type in enumerate(types) if sql_type == types[column]]
    if rng.random() < 0.5:
        return Literal(None, types[column])
    return ColumnRef(rng.choice(same), types[column])


def _aggregate(rng: Random, types: Types, packed: list[Scalar]) -> WindowCall:
    frame = _frame(rng)
    fitting: Sequence[AggregateFunction] = [
        function
        for function in AGGREGATE_FUNCTIONS
        if function.name in AGGREGATES and all(t in types for t in function.arguments)
    ]
    function = rng.choice(fitting)
    if not function.arguments:
        return WindowCall(function, (), function.result, frame)
    (sql_type,) = function.arguments
    argument: Scalar = ColumnRef(types.index(sql_type), sql_type)
    pack = packing(function)
    if pack is not None:
        packed.append(Call(pack, (argument,), pack.result))
        argument = ColumnRef(len(types) + len(packed) - 1, pack.result)
    return WindowCall(function, (argument,), function.result, frame)


def _frame(rng: Random) -> Frame:
    match rng.choice(("usual", "rows", "rows", "range", "groups")):
        case "usual":
            return USUAL_FRAME
        case "range":
            return Frame("range", rng.choice((None, 0)), rng.choice((None, 0)))
        case unit:
            start = rng.choice((None, -2, -1, 0, 1))
            end = rng.choice((None, -1, 0, 1, 2))
            return Frame(unit, start, end)
