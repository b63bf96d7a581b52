"""Scalars over columns give what they give row by row, or leave the batch to the rows."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import inf, nan, nextafter
from random import Random
from typing import TypeAlias, Union

import pytest

from evertide.expr.columnar.column import Column, Numbers, from_arrow, from_datums, to_datums
from evertide.expr.columnar.scalar_table import KERNELS
from evertide.expr.columnar.scalars import ByRows, compile_column_predicates, compile_columns
from evertide.expr.compile import compile_predicates, compile_scalar
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.functions.type_groups import BPCHAR, INTEGERS, RANGES, SCALARS, UINT8
from evertide.expr.relation import Types
from evertide.expr.scalar import And, Call, Case, Coalesce, ColumnRef, IsNull, Literal, Or, Scalar
from evertide.persist.coding.encoding import encode_column
from evertide.vocab.datum import MICROS_PER_DAY, Datum, Row, reduce_numeric
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import (
    BOOL,
    DATE,
    FLOAT8,
    INT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    array_of,
)
from tests.expr.column_samples import argument_types, ordinary_rows
from tests.expr.column_trees import TREE_TYPES, random_row, random_tree
from tests.expr.lowering_vectors import values_of
from tests.expr.special_arguments import UNITS, arguments_for

SEQUENCES = (array_of(INT8), array_of(INTERVAL), SqlType(Kind.LIST, element=TEXT))
Result: TypeAlias = Union[Datum, SqlError]  # noqa: UP007  # Datum is a string
FUNCTIONS = pytest.mark.parametrize("function", KERNELS, ids=lambda row: row.signature)


def by_rows(scalar: Scalar, rows: Sequence[Row]) -> list[Result]:
    evaluate = compile_scalar(scalar)
    results: list[Result] = []
    for row in rows:
        try:
            results.append(evaluate(row))
        except SqlError as error:
            results.append(error)
    return results


def columns_of_rows(types: Types, rows: Sequence[Row], *, cut: bool = False) -> list[Column]:
    """The rows' columns; `cut`: out of longer ones, as slices of what was read are."""
    if cut:
        return [_cut_column(t, [row[index] for row in rows]) for index, t in enumerate(types)]
    return [from_datums(t, [row[index] for row in rows]) for index, t in enumerate(types)]


def _cut_column(sql_type: SqlType, datums: list[Datum]) -> Column:
    array = encode_column(sql_type, [*datums[-2:], *datums, *datums[:1]])
    return from_arrow(sql_type, array[len(datums[-2:]) :][: len(datums)])


def by_columns(
    scalar: Scalar, types: Types, rows: Sequence[Row], *, cut: bool = False
) -> list[Datum]:
    evaluate = compile_columns(scalar, types)
    assert evaluate is not None
    result = evaluate(columns_of_rows(types, rows, cut=cut), len(rows))
    assert len(result) == len(rows)
    if isinstance(result, Numbers) and result.nulls is not None:
        assert not result.values[result.nulls].any(), "below NULLs there are zeros"
    return to_datums(scalar.type, result)


def same(left: Result, right: Result) -> bool:
    """The same representation: the sign of zero counts, NaN is NaN."""
    return type(left) is type(right) and repr(left) == repr(right)


def compare(scalar: Scalar, types: Types, rows: Sequence[Row], *, cut: bool = False) -> list[Row]:
    """Rows that only the row-wise path computes, found by halving batches it was asked for."""
    expected = by_rows(scalar, rows)
    try:
        found = by_columns(scalar, types, rows, cut=cut)
    except ByRows:
        if len(rows) == 1:
            return list(rows)
        half = len(rows) // 2
        return compare(scalar, types, rows[:half]) + compare(scalar, types, rows[half:])
    for row, result, datum in zip(rows, expected, found, strict=True):
        assert same(result, datum), (scalar, row, result, datum)
    return []


def by_value_at(place: int, rows: list[Row]) -> list[list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(repr(row[place]), []).append(row)
    return [groups[value] for value in sorted(groups)]


def with_literals(
    function: ScalarFunction, rows: list[Row], *, most: int
) -> Iterator[tuple[Call, list[Row]]]:
    """The call over columns only, and with each argument in turn a constant, of at most so many."""
    types = argument_types(function)
    references = tuple(ColumnRef(index, sql_type) for index, sql_type in enumerate(types))
    yield Call(function, references, function.result), rows
    for place, sql_type in enumerate(types):
        groups = by_value_at(place, rows)
        for chosen in groups[:: len(groups) // most + 1]:
            arguments: list[Scalar] = list(references)
            arguments[place] = Literal(chosen[0][place], sql_type)
            yield Call(function, tuple(arguments), function.result), chosen
    # Modifiers, or a start and a length: what matters is that all are known.
    if len(function.arguments) > 2:
        tails = {repr(row[1:]): row[1:] for row in rows}
        for tail in list(tails.values())[:most]:
            literals = [Literal(datum, t) for datum, t in zip(tail, types[1:], strict=True)]
            yield Call(function, (references[0], *literals), function.result), rows


def without_failures(scalar: Scalar, rows: list[Row]) -> list[Row]:
    results = by_rows(scalar, rows)
    return [
        row for row, result in zip(rows, results, strict=True) if not isinstance(result, SqlError)
    ]


def call(signature: str, *arguments: Scalar) -> Call:
    function = by_signature(signature)
    assert isinstance(function, ScalarFunction)
    return Call(function, arguments, function.result)


@FUNCTIONS
def test_edges_of_every_kernel(function: ScalarFunction) -> None:
    rows, types = list(arguments_for(function)), argument_types(function)
    for made, some in with_literals(function, rows, most=20):
        compare(made, types, some)
        sound = without_failures(made, some)
        for row in [row for row in some if row not in sound][:3]:
            with pytest.raises(ByRows):
                by_columns(made, types, [*sound[:5], row, *sound[5:10]])


@FUNCTIONS
def test_ordinary_values_of_every_kernel_need_no_rows(function: ScalarFunction) -> None:
    rng = Random(function.signature)
    rows, types = ordinary_rows(rng, function, 60), argument_types(function)
    for made, some in with_literals(function, rows, most=8):
        sound = without_failures(made, some)
        if sound:
            assert compare(made, types, sound, cut=rng.random() < 0.5) == []


def test_random_trees() -> None:
    """Nearly all batches without errors are computed, whatever fails where nobody looks."""
    computed = refused = 0
    for seed in range(400):
        rng = Random(seed)
        tree = random_tree(rng, rng.choice(TREE_TYPES), depth=3)
        rows = [random_row(rng) for _ in range(rng.choice((1, 2, 3, 30)))]
        failures = len(rows) - len(without_failures(tree, rows))
        left = compare(tree, TREE_TYPES, rows, cut=rng.random() < 0.3)
        assert len(left) >= failures, seed
        computed += len(rows) - len(left)
        refused += len(left) - failures
    assert computed > 3000
    assert refused < computed // 50


X, Y = ColumnRef(0, INT8), ColumnRef(1, INT8)
BOTH = (INT8, INT8)
OVERFLOWS = [
    ("+(bigint,bigint)", (2**63 - 1, 1)),
    ("-(bigint,bigint)", (-(2**63), 1)),
    ("*(bigint,bigint)", (2**32, 2**31)),
    ("*(bigint,bigint)", (-1, -(2**63))),
    ("/(bigint,bigint)", (-(2**63), -1)),
    ("/(bigint,bigint)", (1, 0)),
    ("%(bigint,bigint)", (1, 0)),
    ("+(integer,integer)", (2**31 - 1, 1)),
    ("*(integer,integer)", (2**16, 2**15)),
    ("/(integer,integer)", (-(2**31), -1)),
    ("-(smallint,smallint)", (-(2**15), 1)),
    ("*(smallint,smallint)", (2**8, 2**7)),
    ("+(double precision,double precision)", (1.7e308, 1.7e308)),
    ("*(double precision,double precision)", (1e-200, 1e-200)),
    ("/(double precision,double precision)", (1.0, 0.0)),
    ("*(real,real)", (1e30, 1e30)),
    ("+(numeric,numeric)", (Decimal("9E+38"), Decimal("9E+38"))),
    ("%(numeric,numeric)", (Decimal(1), Decimal(0))),
]


@pytest.mark.parametrize(("signature", "bad"), OVERFLOWS)
def test_one_row_that_fails_leaves_the_batch_to_the_rows(signature: str, bad: Row) -> None:
    function = by_signature(signature)
    assert isinstance(function, ScalarFunction)
    types = function.arguments
    scalar = call(signature, *(ColumnRef(place, t) for place, t in enumerate(types)))
    rows = without_failures(scalar, ordinary_rows(Random(signature), function, 1000))
    assert compare(scalar, types, rows) == []
    for place in (0, len(rows) // 2, len(rows)):
        with pytest.raises(ByRows):
            by_columns(scalar, types, [*rows[:place], bad, *rows[place:]])


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "%"])
def test_bigints_of_every_size(symbol: str) -> None:
    rng = Random(symbol)
    rows: list[Row] = [
        tuple(
            max(-(2**63), min(rng.choice((-1, 1)) * (2 ** rng.randrange(64) + near), 2**63 - 1))
            for near in (rng.randrange(-2, 3), rng.randrange(-2, 3))
        )
        for _ in range(3000)
    ]
    scalar = call(f"{symbol}(bigint,bigint)", X, Y)
    for row in compare(scalar, BOTH, rows):
        result = by_rows(scalar, [row])[0]
        # A product may be refused that just fits; nothing else may.
        assert isinstance(result, SqlError) or (
            symbol == "*" and isinstance(result, int) and abs(result) > 9.1e18
        )


ROWS: list[Row] = [(6, 0), (7, 2), (None, 0), (9, None), (-(2**63), -1), (8, 4)]
QUOTIENT = call("/(bigint,bigint)", X, Y)
NONZERO = call("<>(bigint,bigint)", Y, Literal(0, INT8))
POSITIVE = call(">(bigint,bigint)", X, Literal(0, INT8))
LARGE = call(">(bigint,bigint)", QUOTIENT, Literal(2, INT8))
GUARDED = [
    Case(((And((NONZERO, POSITIVE)), QUOTIENT),), Literal(None, INT8), INT8),
    Case(((call("=(bigint,bigint)", Y, Literal(0, INT8)), X), (POSITIVE, QUOTIENT)), Y, INT8),
    And((LARGE, NONZERO, POSITIVE)),
    Or((LARGE, call("=(bigint,bigint)", Y, Literal(0, INT8)), call("not(boolean)", POSITIVE))),
    Coalesce((Case(((POSITIVE, Y),), Literal(1, INT8), INT8), QUOTIENT), INT8),
    Coalesce((X, QUOTIENT), INT8),
]


@pytest.mark.parametrize("scalar", GUARDED)
def test_what_is_not_asked_for_cannot_fail(scalar: Scalar) -> None:
    assert not any(isinstance(result, SqlError) for result in by_rows(scalar, ROWS))
    assert compare(scalar, BOTH, ROWS) == []


@pytest.mark.parametrize("sql_type", [*SCALARS, *SEQUENCES], ids=str)
@pytest.mark.parametrize("test", [POSITIVE, LARGE])
def test_choices_of_every_type(sql_type: SqlType, test: Scalar) -> None:
    types = (*BOTH, sql_type, sql_type)
    one, other = ColumnRef(2, sql_type), ColumnRef(3, sql_type)
    values = [None, *values_of(sql_type)]
    pairs: list[Row] = [(9, 4), (9, 1), (-1, 1), (None, 1)]
    rows: list[Row] = [
        (*pair, left, right)
        for left, right in zip(values, reversed(values), strict=True)
        for pair in pairs
    ]
    constant = Literal(values[-1], sql_type)
    missing = Case(((test, one),), Literal(None, sql_type), sql_type)
    for scalar in (
        Case(((test, one), (IsNull(X), constant)), other, sql_type),
        Case(((test, constant),), Literal(values[1], sql_type), sql_type),
        Coalesce((one, other, constant), sql_type),
        Coalesce((one, missing, constant), sql_type),
        IsNull(missing),
    ):
        assert compare(scalar, types, rows) == []
        assert compare(scalar, types, rows, cut=True) == []


@pytest.mark.parametrize(
    "predicates", [(NONZERO,), (NONZERO, POSITIVE), (LARGE, NONZERO, POSITIVE)]
)
def test_predicates_are_true_or_not(predicates: tuple[Scalar, ...]) -> None:
    mask = compile_column_predicates(predicates, BOTH)
    assert mask is not None
    expected = list(map(compile_predicates(predicates), ROWS))
    assert mask(columns_of_rows(BOTH, ROWS), len(ROWS)).tolist() == expected
    assert True in expected
    assert False in expected


MEMBERS: list[tuple[SqlType, list[Datum], list[Datum]]] = [
    (INT8, [1, 5, -(2**63), 5, 2**63 - 1], [0, 1, None, 5, -(2**63), 2**63 - 1]),
    (TEXT, ["", "b", "日本", "b"], ["a", "b", None, "", "日本", "日"]),
    (BPCHAR, ["a", "b  ", ""], ["a  ", "b", None, "   ", "c"]),
    (FLOAT8, [0.0, nan, inf, 1.5], [-0.0, nan, None, inf, -inf, 1.5, 2.0]),
    (FLOAT8, [0.0, -inf, 1.5], [-0.0, nan, None, inf, -inf, 1.5, 2.0]),
    (NUMERIC, [Decimal("1.5"), Decimal("NaN"), Decimal(0)], [Decimal("1.5"), Decimal("NaN"), None]),
    (BOOL, [True, True, True], [True, False, None]),
]


@pytest.mark.parametrize(("sql_type", "members", "values"), MEMBERS)
@pytest.mark.parametrize("with_null", [False, True])
def test_lists_of_constants(
    sql_type: SqlType, members: list[Datum], values: list[Datum], with_null: bool
) -> None:
    rows: list[Row] = [(value,) for value in values]
    column = ColumnRef(0, sql_type)
    listed: list[Datum] = [*members, *([None] if with_null else [])]
    equal = f"=({sql_type},{sql_type})"
    one_by_one = Or(tuple(call(equal, column, Literal(member, sql_type)) for member in listed))
    array = Literal(tuple(listed), array_of(sql_type))
    at_once = call(f"array_contains({sql_type},{sql_type}[])", column, array)
    for scalar in (one_by_one, at_once, call("not(boolean)", one_by_one)):
        assert compare(scalar, (sql_type,), rows) == []


@pytest.mark.parametrize(
    "pattern", ["a", "a%", "%a", "a%a", "ab%ba", "%b%", "%a%b%", "_%a", "a\\%", "%.%", "\\", "%\n_"]
)
@pytest.mark.parametrize("symbol", ["~~", "!~~", "~~*", "!~~*"])
def test_patterns(pattern: str, symbol: str) -> None:
    texts = (
        "",
        "a",
        "A",
        "aa",
        "aba",
        "abba",
        "ab",
        "ba",
        "a%",
        "日a",
        "x\ny",
        "ax\nb",
        "a.b",
        None,
    )
    rows: list[Row] = [(text,) for text in texts]
    scalar = call(f"{symbol}(text,text)", ColumnRef(0, TEXT), Literal(pattern, TEXT))
    left = compare(scalar, (TEXT,), rows)
    assert len(left) == (len(texts) - 1 if pattern == "\\" else 0)  # which is an error


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sql_type", [DATE, TIME, TIMESTAMP, TIMESTAMPTZ], ids=str)
def test_fields_of_moments_far_and_near(unit: str, sql_type: SqlType) -> None:
    rng = Random(unit)
    # Dates before Christ, far ones, and all days around a change of centuries.
    days = [rng.randrange(-2_440_000, 100_000_000) for _ in range(50)] + [*range(10_900, 11_400, 7)]
    size = 1 if sql_type == DATE else MICROS_PER_DAY
    moments: list[Datum] = [day * size + rng.randrange(size) for day in days]
    if sql_type == TIME:
        moments = [rng.randrange(MICROS_PER_DAY) for _ in range(50)]
    rows: list[Row] = [(moment,) for moment in (*moments, *values_of(sql_type), None)]
    moment, field = ColumnRef(0, sql_type), Literal(unit, TEXT)
    for name in ("extract", "date_part"):
        compare(call(f"{name}(text,{sql_type})", field, moment), (sql_type,), rows)
    if sql_type in (TIMESTAMP, TIMESTAMPTZ):
        truncated = call(f"date_trunc(text,{sql_type})", field, moment)
        left = compare(truncated, (sql_type,), rows)
        assert len(left) == len(rows) - len(without_failures(truncated, rows))


@pytest.mark.parametrize("sql_type", [t for t in RANGES if t in INTEGERS and t != UINT8], ids=str)
def test_bounds_of_casts_to_integers(sql_type: SqlType) -> None:
    floats: list[float] = [nan, inf, -inf, 0.5, 1.5, -2.5]
    numerics = [Decimal("0.5"), Decimal("-2.5"), Decimal("1E+18"), Decimal("NaN")]
    for bound in RANGES[sql_type]:
        floats += [float(bound) + step for step in (-1.0, -0.5, 0.0, 0.5, 1.0)]
        floats += [nextafter(float(bound), inf), nextafter(float(bound), -inf)]
        numerics += [bound + Decimal(step) for step in ("-1", "-0.5", "0", "0.4", "0.5", "1")]
    name = sql_type.kind.value
    for source, values in ((FLOAT8, floats), (NUMERIC, list(map(reduce_numeric, numerics)))):
        rows: list[Row] = [(value,) for value in values]
        cast = call(f"{name}({source})", ColumnRef(0, source))
        compare(cast, (source,), rows)
        assert without_failures(cast, rows)


def test_long_sums_do_not_wrap() -> None:
    column = ColumnRef(0, NUMERIC)
    total: Scalar = column
    for terms in range(2, 40):
        total = call("+(numeric,numeric)", total, column)
        rows: list[Row] = [(Decimal(10**18 - 1),)]
        assert compare(total, (NUMERIC,), rows) == rows, terms


def test_a_function_without_kernel_is_computed_by_its_body() -> None:
    def body(value: int, other: int) -> int:
        if value == 13:
            raise SqlError("no luck")
        return value + 2 * other

    # Its name and types are those of a function that has a kernel.
    function = ScalarFunction("+", BOTH, INT8, body, fallible=True)
    scalar = Call(function, (X, Y), INT8)
    assert by_columns(scalar, BOTH, [(1, 2), (None, 1), (3, None)]) == [5, None, None]
    with pytest.raises(ByRows):
        by_columns(scalar, BOTH, [(1, 2), (13, 1)])


@pytest.mark.parametrize("scalar", [QUOTIENT, Literal("x", TEXT), IsNull(X), GUARDED[0], X])
def test_no_rows_give_no_values(scalar: Scalar) -> None:
    assert by_columns(scalar, BOTH, []) == []


@pytest.mark.parametrize("value", [None, Decimal("1.5"), Decimal("NaN"), Decimal("1E+30")])
def test_constants_are_repeated(value: Datum) -> None:
    scalar = Literal(value, NUMERIC)
    assert list(map(repr, by_columns(scalar, BOTH, [(1, 1)] * 3))) == [repr(value)] * 3


def test_types_that_have_no_columns_have_no_kernels() -> None:
    record = Literal((1, 2), SqlType(Kind.RECORD))
    assert compile_columns(IsNull(record), BOTH) is None
    assert compile_columns(IsNull(ColumnRef(0, INT8)), (SqlType(Kind.RECORD),)) is None
    assert compile_column_predicates((NONZERO, IsNull(record)), BOTH) is None
