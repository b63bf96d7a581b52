"""Rows as values: written out, a table's whole row, their fields, and what is made of them."""

from collections.abc import Sequence

from evertide.expr.functions.cast import CastContext
from evertide.expr.functions.record import (
    field_getter,
    fields_of,
    is_record,
    row_key_of,
    row_maker,
    unnamed,
)
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.scalar import Call, Case, IsNull, Literal, Scalar
from evertide.sql.plan.coercion import coerce, settle
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.function_call import call_function
from evertide.sql.plan.place import start_of
from evertide.sql.plan.scope import Scope, expand_star, missing_table
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import (
    Expression,
    FieldAccess,
    Name,
    RowConstructor,
    RowStar,
    Star,
)
from evertide.vocab.errors import (
    CannotCoerce,
    FeatureNotSupported,
    UndefinedColumn,
    WrongObjectType,
)
from evertide.vocab.sql_type import BYTEA, JSONB, TEXT, SqlType, record_of


def bind_row(node: RowConstructor, context: ExpressionContext) -> Scalar:
    """`ROW(a, b)`: constants of no type are text in it."""
    bound = [field for one in node.fields for field in _bound_fields(one, context)]
    fields = [settle(field, context.query.parameters) for field in bound]
    return made_row(unnamed([field.type for field in fields]), fields)


def _bound_fields(node: Expression, context: ExpressionContext) -> list[Scalar]:
    """One field, or all columns of `t.*` and all fields of `(row).*`."""
    match node:
        case Star():
            return [context.bind(one) for one in _columns(node, context)]
        case RowStar():
            return [field for _, field in bind_fields(node, context)]
        case _:
            return [context.bind(node)]


def made_row(record: SqlType, fields: Sequence[Scalar]) -> Scalar:
    """A row of this type."""
    return Call(row_maker(record), tuple(fields), record)


def written_out(scalar: Scalar) -> Sequence[Scalar] | None:
    """The fields of a row that is put together here; None: it comes from elsewhere."""
    match scalar:
        case Call(function=ScalarFunction(name="row"), arguments=fields) if is_record(scalar.type):
            return fields
        case _:
            return None


def spread(row: RowConstructor, context: ExpressionContext) -> RowConstructor:
    """The same row with each `t.*` in it written out, for those who look at the fields."""
    if not any(isinstance(one, Star | RowStar) for one in row.fields):
        return row
    fields: list[Expression] = []
    for one in row.fields:
        if isinstance(one, RowStar):
            raise FeatureNotSupported(
                "the fields of a row as fields of a row that is compared are not supported",
                hint="Name the fields.",
                position=position_of(start_of(one)),
            )
        fields += _columns(one, context) if isinstance(one, Star) else [one]
    return RowConstructor(tuple(fields), at=row.at)


def row_of_table(star: Star, context: ExpressionContext) -> RowConstructor:
    """The whole row of a table, written out: `t.*` where a value must stand."""
    names = _columns(star, context)
    _check_present(star, _scope_of(star, context))
    return RowConstructor(tuple(names), at=star.at)


def _columns(star: Star, context: ExpressionContext) -> list[Expression]:
    """What `t.*` stands for."""
    found = expand_star(star, _scope_of(star, context))
    return [Name((*star.qualifier, column.name), at=star.at) for column in found]


def _scope_of(star: Star, context: ExpressionContext) -> Scope:
    """Where the table is."""
    for scope in (context.scope, *(around.scope for around in context.query.outer)):
        if any(table.answers_to(star.qualifier) for table in scope.tables):
            return scope
    message = f'column "{".".join(star.qualifier)}" does not exist'
    raise missing_table(star.qualifier, context.scope, star.at, message)


def _check_present(star: Star, scope: Scope) -> None:
    """A row that an outer join has blanked is NULL, which a row of NULLs is not."""
    for table in scope.tables:
        if table.answers_to(star.qualifier) and table.blank:
            raise FeatureNotSupported(
                f'the whole row of "{table.name}", which an outer join may leave out, is not'
                " supported",
                hint="Name its columns.",
                position=position_of(star.at),
            )


def bind_whole_row(star: Star, context: ExpressionContext) -> Scalar:
    """A table's row as one value; its fields have the columns' names."""
    row = row_of_table(star, context)
    fields = [context.bind(one) for one in row.fields]
    names = [one.parts[-1] for one in row.fields if isinstance(one, Name)]
    types = [field.type for field in fields]
    return made_row(record_of(*zip(names, types, strict=True)), fields)


def bind_field(node: FieldAccess, context: ExpressionContext) -> Scalar:
    """`(row).field`."""
    row = _operand(node.operand, context)
    if not is_record(row.type):
        raise WrongObjectType(
            f"column notation applied to type {row.type}, which is not a composite type",
            position=position_of(node.operand.at),
        )
    found = [i for i, (name, _) in enumerate(fields_of(row.type)) if name == node.field_name]
    if not found:
        raise UndefinedColumn(
            f"field {node.field_name} not found in data type {row.type}",
            position=position_of(node.operand.at),
        )
    return field_of(row, found[0])


def bind_fields(node: RowStar, context: ExpressionContext) -> list[tuple[str, Scalar]]:
    """`(row).*`: all fields under their names."""
    row = _operand(node.operand, context)
    if not is_record(row.type):
        raise WrongObjectType(
            f"type {row.type} is not composite", position=position_of(node.operand.at)
        )
    return [(name, field_of(row, i)) for i, (name, _) in enumerate(fields_of(row.type))]


def _operand(node: Expression, context: ExpressionContext) -> Scalar:
    return settle(context.bind(node), context.query.parameters)


def field_of(row: Scalar, index: int) -> Scalar:
    """One field; that of a row put together here is at hand."""
    fields = written_out(row)
    if fields is not None:
        return fields[index]
    getter = field_getter(row.type, index)
    return Call(getter, (row,), getter.result)


def all_fields(row: Scalar) -> list[Scalar]:
    """The fields in order."""
    return [field_of(row, i) for i in range(len(fields_of(row.type)))]


def cast_row(row: Scalar, target: SqlType, query: QueryContext, *, at: int) -> Scalar:
    """A row as one of a record type: field by field, whatever the fields were called."""
    if isinstance(row, Literal) and row.value is None:
        return Literal(None, target)
    wanted = fields_of(target)
    if not is_record(row.type) or len(fields_of(row.type)) != len(wanted):
        raise CannotCoerce(
            f"cannot cast type {row.type} to {target}",
            detail="A row must have as many fields as the type." if is_record(row.type) else None,
            position=position_of(at),
        )
    fields = [
        cast_row(field, sql_type, query, at=at)
        if is_record(sql_type)
        else coerce(field, sql_type, CastContext.EXPLICIT, query, at=at)
        for field, (_, sql_type) in zip(all_fields(row), wanted, strict=True)
    ]
    made = made_row(target, fields)
    if written_out(row) is not None:
        return made
    return Case(((IsNull(row), Literal(None, target)),), made, target)


def comparable(row: Scalar) -> Scalar:
    """A value that compares as the row does; NULL where the row is."""
    return Call(row_key_of(row.type), (row,), BYTEA)


def json_of(value: Scalar, query: QueryContext, *, at: int) -> Scalar:
    """A row as a jsonb object; any other value as it is."""
    if not is_record(value.type):
        return value
    arguments: list[Scalar] = []
    for (name, _), field in zip(fields_of(value.type), all_fields(value), strict=True):
        arguments += [Literal(name, TEXT), json_of(field, query, at=at)]
    if not arguments:
        return Literal("{}", JSONB)
    made = call_function("jsonb_build_object", arguments, query, at=at)
    if written_out(value) is not None:
        return made
    return Case(((IsNull(value), Literal(None, JSONB)),), made, JSONB)
