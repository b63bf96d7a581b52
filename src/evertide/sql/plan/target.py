"""The table that a statement writes to, its defaults, and what RETURNING computes of its rows."""

from collections.abc import Sequence

from evertide.catalog.builtin.relation import Builtin
from evertide.catalog.objects import Item, ItemKind
from evertide.expr.scalar import Literal, Scalar
from evertide.sql.parser.entry import parse_expression
from evertide.sql.plan.assignment import assign
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.output import bind_items, output_scalars
from evertide.sql.plan.plans import Returning
from evertide.sql.plan.scope import Scope, TableName, scope_of
from evertide.sql.resolve import find_object, name_of, position_of, resolve_readable
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.query import SelectItem
from evertide.vocab.errors import FeatureNotSupported, UndefinedColumn, WrongObjectType
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc


def writable_table(name: Name, verb: str, query: QueryContext) -> Item:
    """The table of this name; nothing else can be written to."""
    found = find_object(name, query.plan.names)
    if isinstance(found, Builtin):
        raise WrongObjectType(
            f"cannot {verb} system relation '{found.schema}.{found.name}'",
            position=position_of(name.at),
        )
    if found is None:
        resolve_readable(name, query.plan.names)
        raise AssertionError("a name that means nothing is refused")
    if found.kind is not ItemKind.TABLE:
        raise WrongObjectType(
            f"cannot {verb} {found.kind.sql_words} '{'.'.join(_full_name(found, query))}'",
            position=position_of(name.at),
        )
    return found


def _full_name(item: Item, query: QueryContext) -> tuple[str, ...]:
    return name_of(item, query.plan.snapshot).parts


def table_scope(table: Item, alias: str | None, query: QueryContext) -> Scope:
    """The scope over a row of the table."""
    if alias is not None:
        return scope_of(table.desc, TableName(alias, aliased=table.name))
    return scope_of(table.desc, TableName(table.name, _full_name(table, query)[:-1]))


def column_position(name: str, table: Item, at: int) -> int:
    """The position of a column that a statement assigns to."""
    if name not in table.desc.names:
        raise UndefinedColumn(
            f'column "{name}" of relation "{table.name}" does not exist', position=position_of(at)
        )
    return table.desc.names.index(name)


def default_of(table: Item, column: int, query: QueryContext) -> Scalar:
    """The value of a column that a statement leaves out."""
    desc, text = table.desc.columns[column], table.columns[column].default
    if text is None:
        return Literal(None, desc.type)
    context = plain_context(Scope(), query, Clause.DEFAULT, Deferred())
    return assign(context.bind(parse_expression(text)), desc, query, at=-1)


def plan_returning(
    items: Sequence[SelectItem], scope: Scope, query: QueryContext
) -> Returning | None:
    """Scalars over the table's columns; None where nothing is returned."""
    if not items:
        return None
    deferred = Deferred()
    context = plain_context(scope, query, Clause.RETURNING, deferred)
    bound = bind_items(items, context)
    if deferred.values:
        raise FeatureNotSupported(
            "RETURNING clause does not allow subqueries", position=position_of(items[0].at)
        )
    scalars, _ = output_scalars(bound, query.parameters, keep_untyped=False)
    columns = [
        ColumnDesc(item.name, scalar.type) for item, scalar in zip(bound, scalars, strict=True)
    ]
    return Returning(tuple(scalars), RelationDesc(tuple(columns)))
