"""What a real PostgreSQL says to the calls that our function table can make."""

import math
from collections.abc import Sequence
from decimal import Decimal

import psycopg

from evertide.expr.functions import cast as casts
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.json_value import parse_jsonb
from evertide.expr.text_input import parse_text
from evertide.expr.text_output import format_text
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import INT4, INT8, JSONB, RANGE_BASES, Kind, SqlType

# Types that PostgreSQL does not have.
OURS_ALONE = {Kind.UINT2, Kind.UINT4, Kind.UINT8, Kind.MZ_TIMESTAMP, Kind.LIST, Kind.MAP}
CASTS = frozenset(casts.ROWS)
# Functions whose positions and lengths are int8 as the peer's are, and int4 in PostgreSQL.
POSITIONS = {"->", "->>", "substr", "substring", "split_part"}
# Forms of calls that are not `name(arguments)` nor an operator of symbols.
FORMS = {
    "not": "(NOT {0})",
    "is_distinct_from": "({0} IS DISTINCT FROM {1})",
    "is_true": "({0} IS TRUE)",
    "is_false": "({0} IS FALSE)",
    "array_get": "({0})[{1}]",
    "array_slice": "({0})[{1}:{2}]",
    "array_contains": "({0} = ANY ({1}))",
    "array": "ARRAY[{0}]",
    "boolout": "concat({0})",
    "trim": "btrim({0})",
    "pow": "power({0}, {1})",
}


def connect(dsn: str) -> psycopg.Connection:
    """Text results in UTC, so that they can be compared with ours."""
    connection = psycopg.connect(dsn, autocommit=True)
    connection.execute("SET TimeZone = 'UTC'; SET extra_float_digits = 1; SET lc_messages = 'C'")
    return connection


def is_known(sql_type: SqlType) -> bool:
    """Whether PostgreSQL has the type."""
    if sql_type.element is not None and sql_type.kind is Kind.ARRAY:
        return is_known(sql_type.element)
    return sql_type.kind not in OURS_ALONE


def literal(sql_type: SqlType, datum: Datum) -> str:
    """A constant of exactly this type."""
    name = type_name(sql_type)
    if datum is None:
        return f"NULL::{name}"
    quoted = format_text(sql_type, datum).replace("'", "''")
    return f"'{quoted}'::{name}"


def type_name(sql_type: SqlType) -> str:
    if sql_type.kind is Kind.ARRAY and sql_type.element is not None:
        return f"{type_name(sql_type.element)}[]"
    return f'pg_catalog."{sql_type.kind.value}"'


def call(function: ScalarFunction, arguments: tuple[Datum, ...]) -> str:
    """The call in SQL."""
    types = function.arguments
    if function.variadic:
        types += types[-1:] * (len(arguments) - len(types))
    shown = [
        literal(asked, datum)
        for asked, datum in zip(asked_types(function, types), arguments, strict=True)
    ]
    return written(function, shown)


def asked_types(function: ScalarFunction, types: tuple[SqlType, ...]) -> tuple[SqlType, ...]:
    """What PostgreSQL takes where our function has these."""
    if function.name in POSITIONS or (function.name == "-" and types[0] == JSONB):
        return tuple(INT4 if sql_type == INT8 else sql_type for sql_type in types)
    return types


def written(function: ScalarFunction, shown: Sequence[str]) -> str:
    """The call in SQL, of arguments that are SQL already."""
    if function in CASTS:
        return f"({shown[0]})::{type_name(function.result)}"
    if function.name in FORMS:
        joined = ", ".join(shown)
        if function.variadic:
            return FORMS[function.name].format(joined)
        if function.name == "trim":
            return f"btrim({joined})"
        return FORMS[function.name].format(*shown)
    if function.name in ("greatest", "least"):
        return f"{function.name}({', '.join(shown)})"
    if function.name[0].isalpha():
        return f'pg_catalog."{function.name}"({", ".join(shown)})'
    if len(shown) == 1:
        return f"({function.name} {shown[0]})"
    return f"({shown[0]} {function.name} {shown[1]})"


def ask(connection: psycopg.Connection, expression: str) -> tuple[str | None, str | None]:
    """(text, None) for a value, (None, SQLSTATE) for an error; (None, None) is NULL."""
    cursor = connection.cursor(binary=False)
    try:
        result = cursor.connection.pgconn.exec_(f"SELECT {expression}".encode())
    finally:
        cursor.close()
    if result.status == psycopg.pq.ExecStatus.TUPLES_OK:
        value = result.get_value(0, 0)
        return (None if value is None else value.decode()), None
    code = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    assert code is not None
    return None, code.decode()


def evaluate(function: ScalarFunction, arguments: tuple[Datum, ...]) -> tuple[Datum, str | None]:
    """What our body says: (datum, None) or (None, SQLSTATE)."""
    if function.strict and None in arguments:
        return None, None
    try:
        return function.body(*arguments), None
    except SqlError as error:
        return None, error.code


def agree(sql_type: SqlType, ours: Datum, theirs: str | None) -> bool:
    """Whether our datum is the value that PostgreSQL printed."""
    if ours is None or theirs is None:
        return ours is None and theirs is None
    if sql_type.kind is Kind.NUMERIC:
        assert isinstance(ours, Decimal)
        return numerics_agree(ours, theirs)
    if sql_type.kind is Kind.JSONB:
        return ours == parse_jsonb(theirs)
    if sql_type.kind in (Kind.FLOAT4, Kind.FLOAT8):
        assert isinstance(ours, float)
        return format_text(sql_type, ours) == theirs
    if sql_type.kind in RANGE_BASES:  # whose numeric bounds may have trailing zeros
        return same_elements(ours, parse_text(sql_type, theirs), sql_type)
    if sql_type.kind is Kind.ARRAY:
        return same_elements(ours, parse_text(sql_type, theirs), sql_type)
    return format_text(sql_type, ours) == theirs


def same_elements(ours: Datum, theirs: Datum, sql_type: SqlType) -> bool:
    return format_text(sql_type, ours) == format_text(sql_type, theirs)


def numerics_agree(ours: Decimal, theirs: str) -> bool:
    """Trailing zeros do not count, and either may show fewer digits: PostgreSQL by its rules for
    scales, ours by its 39 places."""
    other = Decimal(theirs)
    if not (ours.is_finite() and other.is_finite()):
        return str(ours) == str(other)
    exponent = other.as_tuple().exponent
    assert isinstance(exponent, int)
    digits = len(other.as_tuple().digits)
    unit = Decimal(1).scaleb(max(exponent, other.adjusted() - min(digits, 38), -39))
    return abs(ours - other) <= unit


def close(ours: Datum, theirs: str | None) -> bool:
    """Floats that differ in the last place only."""
    assert isinstance(ours, float)
    return theirs is not None and math.isclose(ours, float(theirs), rel_tol=1e-14, abs_tol=1e-300)
