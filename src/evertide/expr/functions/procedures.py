"""The function table as clients see it: what pg_proc, pg_operator and pg_cast list.

The planner's own functions are left out. Numbers follow from signatures, so they stay the same
while the table grows; they are in the half of the numbers that no stored object has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final
from zlib import crc32

from evertide.expr.functions.cast import CastContext, find_cast
from evertide.expr.functions.row import Knowledge, ScalarFunction
from evertide.expr.functions.rows import TABLE_FUNCTION_ROWS
from evertide.expr.functions.table import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS
from evertide.expr.functions.type_groups import SCALARS
from evertide.expr.type_names import PSEUDO_TYPES
from evertide.vocab.sql_type import Kind, SqlType

_FIRST_OID: Final = 1 << 31
# Names that only the planner uses, or that SQL spells as operators and special forms.
_INTERNAL: Final = frozenset(
    {
        "array", "array_contains", "array_get", "array_slice", "boolout", "bpcharout", "greatest",
        "is_distinct_from", "is_false", "is_true", "least", "list", "mz_at_most_one_row",
        "mz_joined_keys", "mz_key", "not", "pack", "pack_member", "pack_text", "regcollationout",
        "regconfigout", "regdictionaryout", "regnamespaceout", "regoperatorout", "regoperout",
        "regprocedureout", "regroleout",
    }
)  # fmt: skip
# Types that PostgreSQL knows by their names, as casts and functions.
_OWN_KINDS: Final = (Kind.LIST, Kind.MAP)


@dataclass(frozen=True, slots=True)
class Procedure:
    """A function, aggregate or table function by its types' oids."""

    oid: int
    name: str
    arguments: tuple[int, ...]
    result: int
    kind: str  # f: function, a: aggregate
    returns_set: bool = False
    variadic: bool = False
    strict: bool = True
    stable: bool = False  # its answer follows from the catalog too
    # Columns of a table function that has several: (name, type's oid).
    columns: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator by its operands' types; `left` is 0 for a prefix operator."""

    oid: int
    name: str
    left: int
    right: int
    result: int


@dataclass(frozen=True, slots=True)
class ListedCast:
    """A cast between two types and how freely it is used: i, a or e, as pg_cast says it."""

    oid: int
    source: int
    target: int
    context: str


@cache
def procedures() -> tuple[Procedure, ...]:
    """All that a call by name can mean, by name."""
    found = [*_scalars(), *_aggregates(), *_table_functions()]
    return tuple(sorted(found, key=lambda procedure: (procedure.name, procedure.arguments)))


@cache
def procedures_by_oid() -> dict[int, Procedure]:
    """The same by number."""
    return {procedure.oid: procedure for procedure in procedures()}


@cache
def operators() -> tuple[Operator, ...]:
    """All operators, by name."""
    found = []
    for row in SCALAR_FUNCTIONS:
        if _is_operator(row.name) and not _has_own_types(*row.arguments, row.result):
            left = row.arguments[0].oid if len(row.arguments) == 2 else 0
            right, result = row.arguments[-1].oid, row.result.oid
            oid = _number(f"operator {row.signature}")
            found.append(Operator(oid, row.name, left, right, result))
    return tuple(sorted(found, key=lambda one: (one.name, one.left, one.right)))


@cache
def listed_casts() -> tuple[ListedCast, ...]:
    """Casts between plain types. Those that only read or write text stand for every type, so
    PostgreSQL lists none of them."""
    letters = {CastContext.IMPLICIT: "i", CastContext.ASSIGNMENT: "a", CastContext.EXPLICIT: "e"}
    found = []
    for source in SCALARS:
        for target in SCALARS:
            cast = find_cast(source, target)
            if cast is not None and source != target and not _through_text(source, target):
                oid = _number(f"cast {source} {target}")
                letter = letters[cast.context]
                found.append(ListedCast(oid, source.oid, target.oid, letter))
    return tuple(found)


def _through_text(source: SqlType, target: SqlType) -> bool:
    strings = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.CHAR)
    return (source.kind in strings) != (target.kind in strings)


def _scalars() -> Iterator[Procedure]:
    for row in SCALAR_FUNCTIONS:
        if _is_named(row) and not _has_own_types(*row.arguments, row.result):
            yield Procedure(
                _number(row.signature),
                row.name,
                tuple(argument.oid for argument in row.arguments),
                row.result.oid,
                "f",
                variadic=row.variadic,
                strict=row.strict,
                stable=row.knowledge is Knowledge.CATALOG,
            )


def _aggregates() -> Iterator[Procedure]:
    for row in AGGREGATE_FUNCTIONS:
        if not _has_own_types(*row.arguments, row.result):
            arguments = tuple(argument.oid for argument in row.arguments)
            oid = _number(f"aggregate {row.signature}")
            yield Procedure(oid, row.name, arguments, row.result.oid, "a", strict=False)


def _table_functions() -> Iterator[Procedure]:
    for row in TABLE_FUNCTION_ROWS:
        types = [sql_type for _, sql_type in row.columns]
        if not _has_own_types(*row.arguments, *types):
            columns = tuple((name, sql_type.oid) for name, sql_type in row.columns)
            several = len(columns) > 1
            yield Procedure(
                _number(f"table {row.signature}"),
                row.name,
                tuple(argument.oid for argument in row.arguments),
                PSEUDO_TYPES["record"] if several else columns[0][1],
                "f",
                returns_set=True,
                columns=columns if several else (),
            )


def _is_operator(name: str) -> bool:
    return not (name[:1].isalpha() or name.startswith('"'))


def _is_named(row: ScalarFunction) -> bool:
    """Whether SQL can call it so: not an operator, nor a cast whose name is a type's in words."""
    return row.name.isidentifier() and row.name not in _INTERNAL


def _has_own_types(*types: SqlType) -> bool:
    return any(sql_type.kind in _OWN_KINDS for sql_type in types)


def _number(signature: str) -> int:
    return _FIRST_OID + crc32(signature.encode()) % _FIRST_OID
