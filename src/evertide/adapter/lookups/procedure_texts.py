"""Functions and operators in words: what psql shows of them."""

from functools import cache
from typing import cast

from evertide.catalog.builtin.postgres import constant_rows, pg_desc
from evertide.expr.functions.procedures import (
    Operator,
    Procedure,
    operators,
    procedures,
    procedures_by_oid,
)
from evertide.expr.type_names import type_name
from evertide.vocab.datum import Row


def arguments_text(oid: int, _pretty: bool = True) -> str | None:
    """What stands between the parentheses; the columns of a table function are not part of it."""
    procedure = _by_oid().get(oid)
    return None if procedure is None else _arguments(procedure)


def _arguments(procedure: Procedure) -> str:
    words = [_type(argument) for argument in procedure.arguments]
    if procedure.variadic:
        words[-1] = f"VARIADIC {words[-1]}[]"
    return ", ".join(words) or ("*" if procedure.kind == "a" else "")


def result_text(oid: int, _pretty: bool = True) -> str | None:
    """What it gives: a type, or rows of one."""
    procedure = _by_oid().get(oid)
    if procedure is None:
        return None
    if procedure.columns:
        columns = ", ".join(f"{name} {_type(column)}" for name, column in procedure.columns)
        return f"TABLE({columns})"
    return f"{'SETOF ' if procedure.returns_set else ''}{_type(procedure.result)}"


def definition_text(oid: int, _pretty: bool = True) -> str | None:
    """A statement that would make it, were functions of this system made by statements."""
    procedure = _by_oid().get(oid)
    if procedure is None:
        return None
    words = "STABLE" if procedure.stable else "IMMUTABLE"
    strict = " STRICT" if procedure.strict else ""
    return (
        f"CREATE OR REPLACE FUNCTION pg_catalog.{procedure.name}({_arguments(procedure)})\n"
        f" RETURNS {result_text(oid)}\n"
        " LANGUAGE internal\n"
        f" {words} PARALLEL SAFE{strict}\n"
        f"AS $function${procedure.name}$function$\n"
    )


def procedure_text(oid: int) -> str:
    """A function with its argument types; the number of one that is not here."""
    procedure = _by_oid().get(oid)
    if procedure is None:
        return str(oid) if oid else "-"
    return f"{procedure.name}({','.join(_type(argument) for argument in procedure.arguments)})"


def procedure_name(oid: int) -> str:
    """A function's name alone."""
    procedure = _by_oid().get(oid)
    return (str(oid) if oid else "-") if procedure is None else procedure.name


def procedure_oid(name: str) -> int | None:
    """The one function of this name, if there is one and no other."""
    found = [p.oid for p in procedures() if p.name == name.removeprefix("pg_catalog.")]
    return found[0] if len(found) == 1 else None


def operator_text(oid: int) -> str:
    """An operator with its operand types."""
    operator = _operators_by_oid().get(oid)
    if operator is None:
        return str(oid) if oid else "0"
    left = _type(operator.left) if operator.left else "NONE"
    return f"{operator.name}({left},{_type(operator.right)})"


@cache
def _by_oid() -> dict[int, Procedure]:
    """All that pg_proc lists: what can be called, and what PostgreSQL reads and writes types by."""
    return {**{p.oid: p for p in map(_constant, constant_rows("pg_proc"))}, **procedures_by_oid()}


def _constant(row: Row) -> Procedure:
    value = dict(zip(pg_desc("pg_proc").names, row, strict=True))
    return Procedure(
        oid=cast("int", value["oid"]),
        name=cast("str", value["proname"]),
        arguments=cast("tuple[int, ...]", value["proargtypes"]),
        result=cast("int", value["prorettype"]),
        kind=cast("str", value["prokind"]),
        strict=cast("bool", value["proisstrict"]),
        stable=value["provolatile"] == "s",
    )


@cache
def _operators_by_oid() -> dict[int, Operator]:
    return {operator.oid: operator for operator in operators()}


def _type(oid: int) -> str:
    return type_name(oid) or str(oid)
