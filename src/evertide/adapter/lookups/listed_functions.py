"""Functions, operators and casts as system relations list them."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from evertide.catalog.builtin.postgres import constant_rows, pg_template
from evertide.expr.functions.procedures import (
    Procedure,
    listed_casts,
    operators,
    procedures,
)
from evertide.expr.type_names import TYPES_BY_OID
from evertide.vocab.datum import Row

_PG_CATALOG: Final = 11
_PG_CATALOG_SCHEMA: Final = "s2"
_SYSTEM_ROLE: Final = 10
_SYSTEM_ROLE_ID: Final = "s1"
_INTERNAL_LANGUAGE: Final = 12
_EMPTY: Final = ""


@cache
def listed_functions(relation: str) -> tuple[Row, ...]:
    """The rows of one of these relations; the same in every session, so they are made once."""
    match relation:
        case "pg_proc":
            return (*constant_rows("pg_proc"), *map(_procedure_row, procedures()))
        case "pg_operator":
            return tuple(_operator_rows())
        case "pg_cast":
            return tuple(_cast_rows())
        case "mz_functions":
            return tuple(_own_function_rows())
        case "mz_operators":
            return tuple(_own_operator_rows())
        case _:
            raise AssertionError(f"{relation} lists no functions")


def _procedure_row(procedure: Procedure) -> Row:
    types = procedure.arguments
    columns = procedure.columns
    return pg_template("pg_proc").row(
        oid=procedure.oid,
        proname=procedure.name,
        pronamespace=_PG_CATALOG,
        proowner=_SYSTEM_ROLE,
        prolang=_INTERNAL_LANGUAGE,
        procost=1.0,
        prorows=1000.0 if procedure.returns_set else 0.0,
        provariadic=types[-1] if procedure.variadic else 0,
        prokind=procedure.kind,
        proisstrict=procedure.strict,
        proretset=procedure.returns_set,
        provolatile="s" if procedure.stable else "i",
        proparallel="s",
        pronargs=len(types),
        prorettype=procedure.result,
        proargtypes=types,
        proallargtypes=(*types, *(oid for _, oid in columns)) if columns else None,
        proargmodes=("i",) * len(types) + ("t",) * len(columns) if columns else None,
        proargnames=(_EMPTY,) * len(types) + tuple(n for n, _ in columns) if columns else None,
        prosrc=procedure.name,
    )


def _operator_rows() -> Iterator[Row]:
    template = pg_template("pg_operator")
    for operator in operators():
        yield template.row(
            oid=operator.oid,
            oprname=operator.name,
            oprnamespace=_PG_CATALOG,
            oprowner=_SYSTEM_ROLE,
            oprkind="b" if operator.left else "l",
            oprleft=operator.left,
            oprright=operator.right,
            oprresult=operator.result,
        )


def _cast_rows() -> Iterator[Row]:
    """Each is the function of the table that is called as the target type is."""
    template = pg_template("pg_cast")
    numbers = {(p.name, p.arguments): p.oid for p in procedures() if p.kind == "f"}
    for cast in listed_casts():
        yield template.row(
            oid=cast.oid,
            castsource=cast.source,
            casttarget=cast.target,
            castfunc=numbers[TYPES_BY_OID[cast.target].kind.value, (cast.source,)],
            castcontext=cast.context,
            castmethod="f",
        )


def _own_function_rows() -> Iterator[Row]:
    for p in procedures():
        types = tuple(f"s{oid}" for oid in p.arguments)
        variadic = types[-1] if p.variadic else None
        named = (f"s{p.oid}", p.oid, _PG_CATALOG_SCHEMA, p.name, types)
        yield *named, variadic, f"s{p.result}", p.returns_set, _SYSTEM_ROLE_ID


def _own_operator_rows() -> Iterator[Row]:
    for operator in operators():
        sides = (operator.left, operator.right) if operator.left else (operator.right,)
        types = tuple(f"s{oid}" for oid in sides)
        yield operator.oid, operator.name, types, f"s{operator.result}"
