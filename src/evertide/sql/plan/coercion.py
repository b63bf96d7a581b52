"""Values brought to the types that their places want.

Constants and parameters of no type yet (UNKNOWN) take the type of their place: a constant is read
as that type, a parameter is settled to it. Everything else needs a cast, and how freely one may be
put in depends on the place: see CastContext.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from evertide.expr.functions.cast import Cast, CastContext, can_cast, find_cast
from evertide.expr.functions.resolution import common_type
from evertide.expr.functions.type_groups import unmodified
from evertide.expr.heavy import is_heavy
from evertide.expr.scalar import Literal, Parameter, Scalar
from evertide.expr.text_input import parse_text
from evertide.sql.parser.entry import parse_expression
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.parameters import Parameters
from evertide.sql.resolve import find_object, position_of
from evertide.sql.syntax.expression import Name
from evertide.vocab.datum import Datum
from evertide.vocab.errors import (
    CannotCoerce,
    DatatypeMismatch,
    InvalidName,
    SqlError,
    SqlSyntaxError,
    UndefinedTable,
)
from evertide.vocab.sql_type import BOOL, TEXT, UNKNOWN, Kind, SqlType

# Texts of these that are very long are not read while the statement is planned.
_READ_LATER: Final = (Kind.LIST, Kind.MAP)


@contextmanager
def with_position(at: int) -> Iterator[None]:
    """Errors of rooms that know no SQL text point at this offset."""
    try:
        yield
    except SqlError as error:
        if error.position is None:
            error.position = position_of(at)
        raise


def is_unknown(scalar: Scalar) -> bool:
    """Whether nothing has given it a type yet."""
    return scalar.type.kind is Kind.UNKNOWN


def coerce(
    scalar: Scalar, target: SqlType, context: CastContext, query: QueryContext, *, at: int
) -> Scalar:
    """The value as the target type, by casts that this context allows."""
    if isinstance(scalar, Literal) and is_unknown(scalar):
        return _read(scalar, target, context, query, at=at)
    if isinstance(scalar, Parameter) and is_unknown(scalar):
        scalar = query.parameters.settle(scalar, target)
    elif isinstance(scalar, Parameter):
        scalar = query.parameters.fit(scalar, target)
    return cast_scalar(scalar, target, context, at=at)


def cast_scalar(scalar: Scalar, target: SqlType, context: CastContext, *, at: int) -> Scalar:
    """A value of a known type as the target type."""
    found = _cast(scalar.type, target)
    if found is None or found.context < context:
        raise CannotCoerce(f"cannot cast type {scalar.type} to {target}", position=position_of(at))
    return found.apply(scalar, explicit=context is CastContext.EXPLICIT)


def _cast(source: SqlType, target: SqlType) -> Cast | None:
    if source == target:
        return Cast(source, target, CastContext.IMPLICIT, ())
    return find_cast(source, target)


def can_coerce(source: SqlType, target: SqlType, context: CastContext) -> bool:
    """Whether a value of this type may stand where the target type is wanted."""
    return source in (UNKNOWN, target) or can_cast(source, target, context)


def _read(
    literal: Literal, target: SqlType, context: CastContext, query: QueryContext, *, at: int
) -> Scalar:
    """A constant read as a type. Written as a cast, its text may be cut to fit: 'abc'::char(2)."""
    if literal.value is None:
        return Literal(None, target)
    assert isinstance(literal.value, str), "constants of no type are text"
    at = query.origins.at_of(literal, at)
    plain = unmodified(target)
    with with_position(at):
        if plain.kind in _READ_LATER and is_heavy(literal.value):
            return cast_scalar(Literal(literal.value, TEXT), target, CastContext.EXPLICIT, at=at)
        if context is CastContext.EXPLICIT and plain != target:
            value = Literal(parse_text(plain, literal.value), plain)
            return cast_scalar(value, target, context, at=at)
        if target.kind is Kind.REGCLASS and not literal.value.strip().isdecimal():
            return Literal(_relation_oid(literal.value, query), target)
        return Literal(parse_text(target, literal.value), target)


def _relation_oid(text: str, query: QueryContext) -> Datum:
    """The number of the relation that a text names."""
    try:
        name = parse_expression(text)
    except SqlSyntaxError as error:
        raise InvalidName(f'invalid name syntax: "{text}"') from error
    found = find_object(name, query.names) if isinstance(name, Name) else None
    if found is None:
        raise UndefinedTable(f'relation "{text}" does not exist')
    return found.oid


def settle(scalar: Scalar, parameters: Parameters) -> Scalar:
    """The value as text if nothing else has given it a type."""
    if not is_unknown(scalar):
        return scalar
    if isinstance(scalar, Parameter):
        return parameters.settle(scalar, TEXT)
    assert isinstance(scalar, Literal), "only constants and parameters have no type"
    return Literal(scalar.value, TEXT)


def to_boolean(scalar: Scalar, what: str, query: QueryContext, *, at: int) -> Scalar:
    """The value as a condition."""
    if scalar.type != BOOL and not is_unknown(scalar):
        raise DatatypeMismatch(
            f"argument of {what} must be type boolean, not type {scalar.type}",
            position=position_of(at),
        )
    return coerce(scalar, BOOL, CastContext.IMPLICIT, query, at=at)


def common_type_of(types: Sequence[SqlType], what: str, ats: Sequence[int]) -> SqlType:
    """The one type for all; an error points at the first that does not go with those before."""
    try:
        return common_type(types, what)
    except DatatypeMismatch as error:
        if error.position is None:
            error.position = position_of(ats[_first_stranger(types, what)])
        raise


def _first_stranger(types: Sequence[SqlType], what: str) -> int:
    for count in range(1, len(types)):
        try:
            common_type(types[:count], what)
        except DatatypeMismatch:
            return count - 1
    return len(types) - 1


def unify(
    scalars: Sequence[Scalar], what: str, query: QueryContext, *, ats: Sequence[int]
) -> tuple[list[Scalar], SqlType]:
    """The values in one type, and that type. `what` is the construct in the words of errors."""
    shared = common_type_of([_settled_type(s, query) for s in scalars], what, ats)
    unified = [
        coerce(scalar, shared, CastContext.IMPLICIT, query, at=at)
        for scalar, at in zip(scalars, ats, strict=True)
    ]
    return unified, shared


def _settled_type(scalar: Scalar, query: QueryContext) -> SqlType:
    """The type, also of a parameter that another use has settled since."""
    if isinstance(scalar, Parameter) and is_unknown(scalar):
        return query.parameters.type_of(scalar)
    return scalar.type
