"""A call means the function that PostgreSQL takes it for, as the type of its result shows."""

from collections.abc import Iterator, Sequence

import psycopg
import pytest

from evertide.expr.functions.cast import CastContext, find_cast
from evertide.expr.functions.resolution import (
    common_type,
    resolve_aggregate,
    resolve_function,
    resolve_operator,
)
from evertide.expr.functions.type_groups import BPCHAR, CHAR, REGCLASS, UINT4, VARCHAR
from evertide.expr.scalar import Call, ColumnRef, Literal
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    MZ_TIMESTAMP,
    NAME,
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    Kind,
    SqlType,
    array_of,
)
from tests.expr.postgres_oracle import ask, connect, type_name

TYPES = (
    INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC, TEXT, VARCHAR, BPCHAR, NAME, BOOL, DATE, TIME,
    TIMESTAMP, TIMESTAMPTZ, INTERVAL, UUID, JSONB, BYTEA, OID, REGCLASS, array_of(INT4),
    array_of(TEXT), UNKNOWN,
)  # fmt: skip
BINARY = ("+", "-", "*", "/", "^", "=", "<", "||", "~~", "~", "&", "->", "?", "&&", "#")
UNARY = ("-", "+", "~", "|/", "@")
ONE_ARGUMENT = (
    "abs", "ceil", "floor", "round", "sqrt", "sign", "length", "lower", "md5", "ascii", "chr",
    "to_hex", "octet_length", "btrim", "justify_hours", "isfinite", "to_timestamp",
    "jsonb_typeof", "quote_ident", "date", "float8", "int4", "text",
)  # fmt: skip
TWO_ARGUMENTS = (
    "round", "trunc", "power", "log", "left", "substr", "repeat", "strpos", "date_trunc",
    "date_part", "age", "extract", "concat", "starts_with", "array_cat", "encode", "regexp_match",
)  # fmt: skip

# name: (why it means something else there, types one of which must be an argument)
DEVIATIONS: dict[str, tuple[str, set[SqlType]]] = {
    "||": ("text appended to an array of text is text, whatever its type", {array_of(TEXT)}),
    "->": ("there is no json beside jsonb, and the index is a bigint", {UNKNOWN, INT8}),
    "-": ("the index of a jsonb element is a bigint", {JSONB}),
    "~~": ("bytea has no patterns", {BYTEA}),
    "substr": ("positions are bigints, as the peer's", {INT8}),
    "array_cat": ("two literals are not taken for arrays of text", {UNKNOWN}),
}


@pytest.fixture(scope="module")
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with connect(postgres_dsn) as connection:
        yield connection


def _null(sql_type: SqlType) -> str:
    return "NULL" if sql_type == UNKNOWN else f"NULL::{type_name(sql_type)}"


def _ours(kind: str, name: str, types: Sequence[SqlType]) -> str:
    try:
        if kind == "operator":
            return str(resolve_operator(name, types).function.result)
        return str(resolve_function(name, types).function.result)
    except SqlError as error:
        return error.code


def _theirs(connection: psycopg.Connection, expression: str) -> str | None:
    result, code = ask(connection, f"pg_typeof({expression})")
    return code or result


def _excused(name: str, types: Sequence[SqlType]) -> bool:
    _, odd = DEVIATIONS.get(name, ("", set()))
    return not odd.isdisjoint(types)


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators(name: str, connection: psycopg.Connection) -> None:
    different = []
    for left in TYPES:
        for right in TYPES:
            ours = _ours("operator", name, (left, right))
            theirs = _theirs(connection, f"{_null(left)} {name} {_null(right)}")
            if ours != theirs and not _excused(name, (left, right)):
                different.append(f"{left} {name} {right}: {ours} instead of {theirs}")
    assert not different, "\n".join(different)


@pytest.mark.parametrize("name", UNARY)
def test_prefix_operators(name: str, connection: psycopg.Connection) -> None:
    for operand in TYPES:
        theirs = _theirs(connection, f"{name} {_null(operand)}")
        assert _ours("operator", name, (operand,)) == theirs, f"{name} {operand}"


@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_functions_of_one_argument(name: str, connection: psycopg.Connection) -> None:
    for argument in TYPES:
        theirs = _theirs(connection, f'pg_catalog."{name}"({_null(argument)})')
        assert _ours("function", name, (argument,)) == theirs, f"{name}({argument})"


@pytest.mark.parametrize("name", TWO_ARGUMENTS)
def test_functions_of_two_arguments(name: str, connection: psycopg.Connection) -> None:
    different = []
    for first in TYPES:
        for second in TYPES:
            ours = _ours("function", name, (first, second))
            call = f'pg_catalog."{name}"({_null(first)}, {_null(second)})'
            theirs = _theirs(connection, call)
            if ours != theirs and not _excused(name, (first, second)):
                different.append(f"{name}({first}, {second}): {ours} instead of {theirs}")
    assert not different, "\n".join(different)


def test_common_types(connection: psycopg.Connection) -> None:
    """CASE, and with it everything else that brings its parts to one type."""
    different = []
    for first in TYPES:
        for second in TYPES:
            try:
                ours = str(common_type((first, second), "CASE"))
            except SqlError as error:
                ours = error.code
            shown = f"CASE WHEN true THEN {_null(second)} ELSE {_null(first)} END"
            theirs = _theirs(connection, shown)
            if ours != theirs:
                different.append(f"{first}, {second}: {ours} instead of {theirs}")
    assert not different, "\n".join(different)


def test_casts_are_as_free_as_in_postgres(connection: psycopg.Connection) -> None:
    """pg_cast says how freely; what it does not name goes through text if at all."""
    contexts = {"i": CastContext.IMPLICIT, "a": CastContext.ASSIGNMENT, "e": CastContext.EXPLICIT}
    rows = connection.execute("SELECT castsource, casttarget, castcontext FROM pg_cast").fetchall()
    known = {(source, target): contexts[context] for source, target, context in rows}
    plain = [t for t in (*TYPES, CHAR) if t.element is None and t != UNKNOWN]
    different = []
    for source in plain:
        for target in plain:
            expected = known.get((source.oid, target.oid), _through_text(source, target))
            cast = find_cast(source, target)
            found = None if cast is None else cast.context
            if source != target and found != expected:
                different.append(f"{source} to {target}: {found!r} instead of {expected!r}")
    assert sorted(different) == sorted(CAST_DEVIATIONS)


_STRINGS = (TEXT, VARCHAR, BPCHAR)


def _through_text(source: SqlType, target: SqlType) -> CastContext | None:
    if target in (*_STRINGS, NAME):
        return CastContext.ASSIGNMENT
    return CastContext.EXPLICIT if source in (*_STRINGS, NAME) else None


def _difference(source: SqlType, target: SqlType, ours: object, theirs: object) -> str:
    return f"{source} to {target}: {ours!r} instead of {theirs!r}"


_EXPLICIT, _ASSIGNMENT = CastContext.EXPLICIT, CastContext.ASSIGNMENT
CAST_DEVIATIONS = [
    # A name is more than one character.
    _difference(NAME, CHAR, None, _EXPLICIT),
    _difference(CHAR, NAME, None, _ASSIGNMENT),
    # The names of relations are looked up by the planner, which knows the catalog.
    *(_difference(s, REGCLASS, _EXPLICIT, CastContext.IMPLICIT) for s in (TEXT, VARCHAR)),
    # A number is no character.
    _difference(INT4, CHAR, None, _EXPLICIT),
    # The peer casts booleans to and from int8.
    _difference(BOOL, INT8, _EXPLICIT, None),
    _difference(INT8, BOOL, _EXPLICIT, None),
]


def test_literals_and_modifiers() -> None:
    varchar = SqlType(Kind.VARCHAR, length=3)
    found = resolve_operator("=", (varchar, UNKNOWN))
    assert found.function.signature == "=(text,text)"
    assert [coercion.target for coercion in found.arguments] == [TEXT, TEXT]
    assert [len(coercion.casts) for coercion in found.arguments] == [1, 0]


def test_errors_name_what_was_called() -> None:
    for name, types, code, message in (
        ("+", (INT4, BOOL), "42883", "operator does not exist: integer + boolean"),
        ("-", (TEXT,), "42883", "operator does not exist: - text"),
        ("+", (UNKNOWN, UNKNOWN), "42725", "operator is not unique: unknown + unknown"),
    ):
        with pytest.raises(SqlError) as raised:
            resolve_operator(name, types)
        assert (raised.value.code, raised.value.message) == (code, message)
    with pytest.raises(SqlError, match='function "foo" does not exist'):
        resolve_function("foo", (INT4, TEXT))
    with pytest.raises(SqlError, match=r"function upper\(numeric\) does not exist"):
        resolve_function("upper", (NUMERIC,))
    with pytest.raises(SqlError, match="could not determine polymorphic type"):
        resolve_function("array_length", (UNKNOWN, INT4))
    with pytest.raises(SqlError, match="CASE types integer and text cannot be matched"):
        common_type((INT4, TEXT), "CASE")


def test_functions_that_take_anything() -> None:
    concat = resolve_function("concat", (INT4, BOOL, UNKNOWN))
    assert [coercion.target for coercion in concat.arguments] == [TEXT, TEXT, TEXT]
    built = resolve_function("jsonb_build_object", (UNKNOWN, INT4, TEXT, JSONB))
    assert [len(coercion.casts) for coercion in built.arguments] == [1, 1, 1, 0]
    greatest = resolve_function("greatest", (INT4, NUMERIC, UNKNOWN))
    assert greatest.function.signature == "greatest(numeric...)"
    assert resolve_aggregate("jsonb_agg", (DATE,)).function.signature == "jsonb_agg(jsonb)"
    assert resolve_aggregate("count", ()).function.signature == "count(*)"
    assert resolve_aggregate("sum", (INT2,)).function.result == INT8


def test_the_peers_own_types_attract_nothing() -> None:
    with pytest.raises(SqlError, match="operator does not exist: date = integer"):
        resolve_operator("=", (DATE, INT4))
    later = resolve_operator("<=", (MZ_TIMESTAMP, TIMESTAMPTZ))
    assert later.function.signature == "<=(mz_timestamp,mz_timestamp)"
    assert resolve_operator("+", (UINT4, INT4)).function.result == INT8


def test_a_cast_with_a_modifier_is_two_calls() -> None:
    cast = find_cast(INT4, SqlType(Kind.NUMERIC, precision=5, scale=2))
    assert cast is not None
    call = cast.apply(ColumnRef(0, INT4), explicit=False)
    assert isinstance(call, Call)
    assert call.function.signature == "numeric(numeric,integer,integer)"
    assert call.type == SqlType(Kind.NUMERIC, precision=5, scale=2)
    assert call.arguments[1:] == (Literal(5, INT4), Literal(2, INT4))
    cut = find_cast(TEXT, SqlType(Kind.VARCHAR, length=2))
    assert cut is not None
    explicit = cut.apply(Literal("abc", TEXT), explicit=True)
    assert isinstance(explicit, Call)
    assert explicit.arguments[1:] == (Literal(2, INT4), Literal(True, BOOL))
