"""Casts to types whose values name an object: regproc, regnamespace, regrole and their like.

Of those that are no kinds of their own, a constant becomes the object's number and any other value
the object's name: what people cast for.
"""

from typing import Final

from evertide.expr.functions.cast import CastContext
from evertide.expr.functions.procedures import Procedure, procedures
from evertide.expr.scalar import Literal, Scalar
from evertide.expr.type_names import type_oid
from evertide.sql.plan.coercion import coerce
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.function_call import call_function
from evertide.sql.resolve import NameContext, position_of, resolve_schema
from evertide.sql.syntax.expression import DataType, TypeName
from evertide.vocab.errors import (
    AmbiguousFunction,
    FeatureNotSupported,
    SqlError,
    UndefinedFunction,
    UndefinedObject,
    UndefinedSchema,
)
from evertide.vocab.sql_type import OID, Kind, SqlType

_NAMES: Final = frozenset(
    {
        "regnamespace", "regrole", "regprocedure", "regoper", "regoperator", "regcollation",
        "regconfig", "regdictionary",
    }
)  # fmt: skip


def registered_name(target: DataType) -> str | None:
    """The name of such a type; None: the target is another."""
    match target:
        case TypeName(parts=("pg_catalog", name) | (name,), modifiers=()) if name in _NAMES:
            return name
        case _:
            return None


def cast_to_registered(name: str, operand: Scalar, query: QueryContext, *, at: int) -> Scalar:
    """A constant as a number, any other value as a name."""
    match operand:
        case Literal(value=str(text)):
            return Literal(_oid_of(name, text, query.names, at), OID)
        case _:
            number = coerce(operand, OID, CastContext.EXPLICIT, query, at=at)
            return call_function(f"{name}out", [number], query, at=at)


def cast_to_regproc(text: str, at: int) -> Literal:
    """The one function of a name."""
    return Literal(_named_procedure(text, at).oid, SqlType(Kind.REGPROC))


def _oid_of(name: str, text: str, names: NameContext, at: int) -> int:
    if text.isdecimal():
        return int(text)
    match name:
        case "regnamespace":
            return _schema_oid(text, names, at)
        case "regrole":
            role = names.snapshot.role_named(text.strip('"'))
            if role is None:
                raise UndefinedObject(f'role "{text}" does not exist', position=position_of(at))
            return role.oid
        case "regprocedure":
            return _procedure_with_types(text, at).oid
        case _:
            raise FeatureNotSupported(
                f"{name} of a name is not supported",
                hint="Look the number up in pg_catalog.",
                position=position_of(at),
            )


def _schema_oid(text: str, names: NameContext, at: int) -> int:
    try:
        return resolve_schema((text.strip('"'),), names, at=at).oid
    except SqlError as error:
        raise UndefinedSchema(
            f'schema "{text}" does not exist', position=position_of(at)
        ) from error


def _named_procedure(text: str, at: int) -> Procedure:
    found = [p for p in procedures() if p.name == _bare(text)]
    if not found:
        raise UndefinedFunction(f'function "{text}" does not exist', position=position_of(at))
    if len(found) > 1:
        raise AmbiguousFunction(
            f'more than one function named "{text}"',
            hint="Name its argument types too, as in upper(text)::regprocedure.",
            position=position_of(at),
        )
    return found[0]


def _procedure_with_types(text: str, at: int) -> Procedure:
    """`name(type, type)`."""
    name, _, rest = text.partition("(")
    types = [part.strip() for part in rest.rstrip(") ").split(",") if part.strip()]
    oids = tuple(type_oid(part) for part in types)
    for procedure in procedures():
        if procedure.name == _bare(name) and procedure.arguments == oids:
            return procedure
    raise UndefinedFunction(f'function "{text}" does not exist', position=position_of(at))


def _bare(name: str) -> str:
    return name.strip().removeprefix("pg_catalog.").strip('"')
