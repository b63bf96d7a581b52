"""A few function rows and short forms, so that trees in tests read like the SQL they stand for."""

from collections.abc import Sequence
from decimal import Decimal

from evertide.expr.functions.row import Accumulator, AggregateFunction, ScalarFunction
from evertide.expr.relation import AggregateCall, Constant, Get
from evertide.expr.scalar import Call, ColumnRef, Literal, Scalar
from evertide.vocab.datum import Datum, Interval, Row
from evertide.vocab.errors import DivisionByZero, NumericOutOfRange
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import BOOL, FLOAT8, INT8, INTERVAL, NUMERIC, TEXT, Kind, SqlType

INT8_MAX = 2**63 - 1


def checked(value: int) -> int:
    if not -INT8_MAX - 1 <= value <= INT8_MAX:
        raise NumericOutOfRange("bigint out of range")
    return value


def divide(left: int, right: int) -> int:
    if right == 0:
        raise DivisionByZero("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def modulo(left: int, right: int) -> int:
    return left - right * divide(left, right)


def float_equal(left: float, right: float) -> bool:
    return left == right or (left != left and right != right)


ADD = ScalarFunction("+", (INT8, INT8), INT8, lambda a, b: a + b)
TIMES = ScalarFunction("*", (INT8, INT8), INT8, lambda a, b: checked(a * b), fallible=True)
DIVIDE = ScalarFunction("/", (INT8, INT8), INT8, divide, fallible=True)
MODULO = ScalarFunction("%", (INT8, INT8), INT8, modulo, fallible=True)
EQUAL = ScalarFunction("=", (INT8, INT8), BOOL, lambda a, b: a == b)
LESS = ScalarFunction("<", (INT8, INT8), BOOL, lambda a, b: a < b)
NOT = ScalarFunction("not", (BOOL,), BOOL, lambda a: not a)
TEXT_EQUAL = ScalarFunction("=", (TEXT, TEXT), BOOL, lambda a, b: a == b)
TO_TEXT = ScalarFunction("text", (INT8,), TEXT, str)
LENGTH = ScalarFunction("length", (TEXT,), INT8, len)
FLOAT_EQUAL = ScalarFunction("=", (FLOAT8, FLOAT8), BOOL, float_equal)
NUMERIC_EQUAL = ScalarFunction(
    "=", (NUMERIC, NUMERIC), BOOL, lambda a, b: a == b or (a.is_nan() and b.is_nan())
)
INTERVAL_EQUAL = ScalarFunction(
    "=", (INTERVAL, INTERVAL), BOOL, lambda a, b: a.span_micros() == b.span_micros()
)
SPAN = SqlType(Kind.INT4RANGE)
SPAN_EQUAL = ScalarFunction("=", (SPAN, SPAN), BOOL, lambda a, b: a == b)
TO_FLOAT = ScalarFunction("float8", (INT8,), FLOAT8, float)
CONCAT = ScalarFunction(
    "concat", (TEXT,), TEXT, lambda *a: "".join(x for x in a if x), strict=False, variadic=True
)


def sum_or_null(total: Datum, count: int) -> Datum:
    return total if count else None


def int_sum(total: int, count: int) -> Datum:
    return checked(total) if count else None


def numeric_average(total: Decimal, count: int) -> Datum:
    return total / count if count else None


def float_average(total: float, count: int) -> Datum:
    return total / count if count else None


def first(values: Sequence[Datum]) -> Datum:
    return values[0] if values else None


def last(values: Sequence[Datum]) -> Datum:
    return values[-1] if values else None


def joined(values: Sequence[str]) -> Datum:
    return ",".join(values) if values else None


def at_most_one(values: Sequence[Datum]) -> Datum:
    if len(values) > 1:
        raise NumericOutOfRange("more than one value")
    return first(values)


COUNT = AggregateFunction("count", (), INT8, Accumulator.COUNT)
COUNT_INT = AggregateFunction("count", (INT8,), INT8, Accumulator.COUNT)
SUM_INT = AggregateFunction("sum", (INT8,), INT8, Accumulator.SUM_INT, int_sum)
SUM_NUMERIC = AggregateFunction("sum", (NUMERIC,), NUMERIC, Accumulator.SUM_NUMERIC, sum_or_null)
AVG_NUMERIC = AggregateFunction(
    "avg", (NUMERIC,), NUMERIC, Accumulator.SUM_NUMERIC, numeric_average
)
SUM_FLOAT = AggregateFunction("sum", (FLOAT8,), FLOAT8, Accumulator.SUM_FLOAT, sum_or_null)
AVG_FLOAT = AggregateFunction("avg", (FLOAT8,), FLOAT8, Accumulator.SUM_FLOAT, float_average)
MIN_INT = AggregateFunction("min", (INT8,), INT8, Accumulator.ROWS, finish_rows=first)
MAX_INT = AggregateFunction("max", (INT8,), INT8, Accumulator.ROWS, finish_rows=last)
MIN_FLOAT = AggregateFunction("min", (FLOAT8,), FLOAT8, Accumulator.ROWS, finish_rows=first)
MAX_FLOAT = AggregateFunction("max", (FLOAT8,), FLOAT8, Accumulator.ROWS, finish_rows=last)
MAX_TEXT = AggregateFunction("max", (TEXT,), TEXT, Accumulator.ROWS, finish_rows=last)
MAX_INTERVAL = AggregateFunction("max", (INTERVAL,), INTERVAL, Accumulator.ROWS, finish_rows=last)
STRING_AGG = AggregateFunction("string_agg", (TEXT,), TEXT, Accumulator.ROWS, finish_rows=joined)
ONLY_INT = AggregateFunction("only", (INT8,), INT8, Accumulator.ROWS, finish_rows=at_most_one)

FUNCTIONS: list[ScalarFunction | AggregateFunction] = [
    ADD, TIMES, DIVIDE, MODULO, EQUAL, LESS, NOT, TEXT_EQUAL, TO_TEXT, LENGTH, FLOAT_EQUAL,
    NUMERIC_EQUAL, INTERVAL_EQUAL, SPAN_EQUAL,
    TO_FLOAT, CONCAT, COUNT, COUNT_INT, SUM_INT, SUM_NUMERIC, AVG_NUMERIC, SUM_FLOAT, AVG_FLOAT,
    MIN_INT, MAX_INT, MIN_FLOAT, MAX_FLOAT, MAX_TEXT, MAX_INTERVAL, STRING_AGG, ONLY_INT,
]  # fmt: skip
BY_SIGNATURE: dict[str, ScalarFunction | AggregateFunction] = {
    function.signature: function for function in FUNCTIONS
}


def by_signature(signature: str) -> ScalarFunction | AggregateFunction:
    return BY_SIGNATURE[signature]


def call(function: ScalarFunction, *arguments: Scalar) -> Call:
    return Call(function, arguments, function.result)


def col(index: int, sql_type: SqlType = INT8) -> ColumnRef:
    return ColumnRef(index, sql_type)


def lit(value: Datum, sql_type: SqlType = INT8) -> Literal:
    return Literal(value, sql_type)


def table(name: str, *types: SqlType) -> Get:
    return Get(GlobalId(name), types)


def values(types: Sequence[SqlType], *rows: Row) -> Constant:
    return Constant(tuple((row, 1) for row in rows), tuple(types))


def agg(
    function: AggregateFunction, argument: Scalar | None = None, *, distinct: bool = False
) -> AggregateCall:
    return AggregateCall(function, argument, distinct)


def days(count: int) -> Interval:
    return Interval(0, count, 0)
