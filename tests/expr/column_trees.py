"""Random scalars whose parts fail now and then, over rows of a few types."""

from decimal import Decimal
from random import Random

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import Types
from evertide.expr.scalar import And, Call, Case, Coalesce, ColumnRef, IsNull, Literal, Or, Scalar
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import BOOL, FLOAT8, INT8, NUMERIC, TEXT, SqlType

TREE_TYPES: Types = (BOOL, INT8, FLOAT8, NUMERIC, TEXT, INT8, NUMERIC)
_VALUES: dict[SqlType, list[Datum]] = {
    BOOL: [True, False],
    INT8: [0, 1, -1, 2, 7, 100, 2**40],
    FLOAT8: [0.0, -0.0, 1.5, -2.25, 1e9],
    NUMERIC: [Decimal(text) for text in ("0", "1", "-1.5", "0.07", "1234.56", "2E+3")],
    TEXT: ["", "a", "ab", "Straße", "日本", "10%"],
}
_SIGNATURES: dict[SqlType, list[str]] = {
    BOOL: [
        "=(bigint,bigint)", "<(bigint,bigint)", ">=(numeric,numeric)", "=(numeric,numeric)",
        "<(double precision,double precision)", "<=(text,text)", "not(boolean)",
        "is_distinct_from(bigint,bigint)", "is_distinct_from(text,text)", "is_true(boolean)",
        "~~(text,text)",
    ],
    INT8: [
        "+(bigint,bigint)", "-(bigint,bigint)", "*(bigint,bigint)", "/(bigint,bigint)",
        "%(bigint,bigint)", "-(bigint)", "abs(bigint)", "int8(numeric)", "int8(boolean)",
    ],
    FLOAT8: [
        "+(double precision,double precision)", "*(double precision,double precision)",
        "/(double precision,double precision)", "float8(bigint)", "float8(numeric)",
        "sqrt(double precision)",
    ],
    NUMERIC: [
        "+(numeric,numeric)", "-(numeric,numeric)", "*(numeric,numeric)", "numeric(bigint)",
        "round(numeric)", "%(numeric,numeric)", "abs(numeric)", "-(numeric)",
    ],
    TEXT: ["||(text,text)", "lower(text)", "upper(text)", "text(bigint)", "btrim(text)"],
}  # fmt: skip


def random_row(rng: Random) -> Row:
    """One row of TREE_TYPES."""
    return tuple(None if rng.random() < 0.15 else rng.choice(_VALUES[t]) for t in TREE_TYPES)


def random_tree(rng: Random, sql_type: SqlType, depth: int) -> Scalar:
    """A scalar of this type."""
    if depth == 0 or rng.random() < 0.15:
        return _leaf(rng, sql_type)
    kinds = ["call"] * 3 + ["case", "coalesce"]
    if sql_type == BOOL:
        kinds += ["and", "or", "is null", "list"] * 2
    match rng.choice(kinds):
        case "and":
            return And(_some(rng, BOOL, depth))
        case "or":
            return Or(_some(rng, BOOL, depth))
        case "is null":
            return IsNull(random_tree(rng, rng.choice(TREE_TYPES), depth - 1))
        case "list":
            return _list(rng, depth)
        case "case":
            tests = _some(rng, BOOL, depth)
            branches = tuple((test, random_tree(rng, sql_type, depth - 1)) for test in tests)
            return Case(branches, random_tree(rng, sql_type, depth - 1), sql_type)
        case "coalesce":
            return Coalesce(_some(rng, sql_type, depth), sql_type)
        case _:
            return _call(rng, rng.choice(_SIGNATURES[sql_type]), depth)


def _some(rng: Random, sql_type: SqlType, depth: int) -> tuple[Scalar, ...]:
    return tuple(random_tree(rng, sql_type, depth - 1) for _ in range(rng.randrange(1, 4)))


def _leaf(rng: Random, sql_type: SqlType) -> Scalar:
    places = [place for place, other in enumerate(TREE_TYPES) if other == sql_type]
    if rng.random() < 0.7:
        return ColumnRef(rng.choice(places), sql_type)
    return Literal(None if rng.random() < 0.1 else rng.choice(_VALUES[sql_type]), sql_type)


def _call(rng: Random, signature: str, depth: int) -> Scalar:
    function = by_signature(signature)
    assert isinstance(function, ScalarFunction)
    arguments = tuple(random_tree(rng, t, depth - 1) for t in function.arguments)
    return Call(function, arguments, function.result)


def _list(rng: Random, depth: int) -> Scalar:
    """Some of the values, one by one, as IN lists are."""
    sql_type, signature = rng.choice(
        ((INT8, "=(bigint,bigint)"), (TEXT, "=(text,text)"), (NUMERIC, "=(numeric,numeric)"))
    )
    function = by_signature(signature)
    assert isinstance(function, ScalarFunction)
    operand = random_tree(rng, sql_type, depth - 1)
    members = [Literal(value, sql_type) for value in rng.sample(_VALUES[sql_type], 4)]
    return Or(tuple(Call(function, (operand, member), BOOL) for member in members))
