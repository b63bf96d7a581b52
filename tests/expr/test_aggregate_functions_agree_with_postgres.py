"""Aggregates over values that come in any order give PostgreSQL's results."""

import random
from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from evertide.expr.aggregate import evaluate_aggregate
from evertide.expr.compile import compile_scalar
from evertide.expr.functions.aggregate import packing
from evertide.expr.functions.row import AggregateFunction, ScalarFunction
from evertide.expr.functions.table import AGGREGATE_FUNCTIONS, by_signature
from evertide.expr.functions.type_groups import BPCHAR
from evertide.expr.relation import AggregateCall
from evertide.expr.scalar import Call, ColumnRef
from evertide.expr.text_input import parse_text
from evertide.expr.text_output import format_text
from evertide.vocab.datum import Datum, Interval, Row
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import FLOAT4, FLOAT8, INTERVAL, Kind, SqlType
from tests.expr.lowering_vectors import values_of
from tests.expr.postgres_oracle import agree, ask, connect, is_known, literal, numerics_agree

# PostgreSQL 16 has no such aggregate, or takes the argument for text first.
ABSENT = {
    f"{name}({kind})"
    for name in ("min", "max")
    for kind in ("boolean", "uuid", "jsonb", "bytea", "name", '"char"')
}
COMPARED = [
    row
    for row in AGGREGATE_FUNCTIONS
    if all(t.element is None and is_known(t) for t in (*row.arguments, row.result))
    and row.signature not in ABSENT
    and not {Kind.REGCLASS, Kind.REGPROC, Kind.REGTYPE} & {t.kind for t in row.arguments}
]


@pytest.fixture(scope="module")
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with connect(postgres_dsn) as connection:
        yield connection


def _groups(row: AggregateFunction) -> list[list[Row]]:
    """Nothing, one value, several, with NULLs; extremes that no sum can hold are a group apart."""
    if not row.arguments:
        return [[], [()], [()] * 5]
    columns = [_moderate(t) for t in row.arguments]
    rows = [tuple(column[i % len(column)] for column in columns) for i in range(8)]
    null: Row = (None,) * len(row.arguments)
    return [[], [null], rows[:1], rows[:3], [*rows, null, rows[0]]]


def _moderate(sql_type: SqlType) -> list[Datum]:
    values = values_of(sql_type)
    if sql_type in (FLOAT4, FLOAT8):
        return [v for v in values if isinstance(v, float) and abs(v) < 1e30 and v * v != 1e-14]
    if sql_type == INTERVAL:
        return [v for v in values if isinstance(v, Interval) and abs(v.months) < 10**6]
    if sql_type.kind is Kind.NUMERIC:
        return [v for v in values if isinstance(v, Decimal) and v.is_finite() and abs(v) < 10**12]
    return values


def _sql(row: AggregateFunction, rows: list[Row]) -> str:
    """The aggregate over these rows in the order of their values, which is ours."""
    columns = ", ".join(f"c{i}" for i in range(len(row.arguments)))
    if not row.arguments:
        return f"(SELECT count(*) FROM generate_series(1, {len(rows)}))"
    values = ", ".join(
        f"({', '.join(literal(t, d) for t, d in zip(row.arguments, r, strict=True))})" for r in rows
    )
    if not rows:
        nulls = ", ".join(literal(t, None) for t in row.arguments)
        values = f"({nulls})"
    where = "" if rows else " WHERE false"
    arguments = ", ".join(f"c{i}" for i in range(len(row.arguments)))
    order = f" ORDER BY {arguments}" if row.name in ("string_agg", "jsonb_agg", "array_agg") else ""
    return f"(SELECT {row.name}({arguments}{order}) FROM (VALUES {values}) AS t({columns}){where})"


def _evaluate(row: AggregateFunction, rows: list[Row]) -> Datum:
    columns = tuple(ColumnRef(i, t) for i, t in enumerate(row.arguments))
    if not columns:
        return evaluate_aggregate(AggregateCall(row, None), len(rows), ())
    pack = packing(row)
    argument = columns[0] if pack is None else Call(pack, columns, pack.result)
    evaluate = compile_scalar(argument)
    shuffled = random.Random(7).sample(rows, len(rows))
    values = [(datum, 1) for datum in map(evaluate, shuffled) if datum is not None]
    return evaluate_aggregate(AggregateCall(row, argument), len(rows), values)


@pytest.mark.parametrize("row", COMPARED, ids=str)
def test_results_are_those_of_postgres(
    row: AggregateFunction, connection: psycopg.Connection
) -> None:
    for rows in _groups(row):
        theirs, their_code = ask(connection, _sql(row, rows))
        try:
            ours, our_code = _evaluate(row, rows), None
        except SqlError as error:
            ours, our_code = None, error.code
        assert our_code == their_code, _sql(row, rows)
        assert _agree(row, ours, theirs), f"{_sql(row, rows)}: {ours!r} instead of {theirs!r}"


def _agree(row: AggregateFunction, ours: Datum, theirs: str | None) -> bool:
    """Our float sums are exact and rounded once; PostgreSQL rounds after every value.

    Of equal intervals or padded texts it keeps the one that it met last, we a definite one.
    """
    if row.name in ("min", "max") and row.result in (INTERVAL, BPCHAR):
        equal = by_signature(f"=({row.result},{row.result})")
        assert isinstance(equal, ScalarFunction)
        if ours is not None and theirs is not None:
            return equal.body(ours, parse_text(row.result, theirs)) is True
    if isinstance(ours, float) and theirs is not None and row.result in (FLOAT4, FLOAT8):
        same = format_text(row.result, ours) == theirs
        digits = 1e-6 if row.result == FLOAT4 else 1e-12
        return same or abs(ours - float(theirs)) <= digits * max(abs(ours), 1e-20)
    if isinstance(ours, Decimal) and theirs is not None:
        return numerics_agree(ours, theirs)
    return agree(row.result, ours, theirs)


def test_arrays_and_lists_keep_nulls() -> None:
    row = by_signature("array_agg(integer)")
    assert isinstance(row, AggregateFunction)
    assert _evaluate(row, [(3,), (None,), (1,)]) == (1, 3, None)
    assert _evaluate(row, []) is None
    lists = by_signature("list_agg(integer)")
    assert isinstance(lists, AggregateFunction)
    assert _evaluate(lists, [(2,), (1,)]) == (1, 2)


def test_sums_do_not_overflow_on_the_way() -> None:
    row = by_signature("sum(integer)")
    assert isinstance(row, AggregateFunction)
    assert row.finish is not None
    assert row.finish(2**63 - 1, 2) == 2**63 - 1
    with pytest.raises(SqlError, match="bigint out of range"):
        row.finish(2**63, 2)


def test_averages_have_39_digits() -> None:
    row = by_signature("avg(integer)")
    assert isinstance(row, AggregateFunction)
    assert row.finish is not None
    assert str(row.finish(1, 3)) == "0." + "3" * 39
    assert row.finish(6, 3) == Decimal(2)
