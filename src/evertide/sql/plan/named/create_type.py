"""CREATE TYPE: a name for a list, a map or a record."""

from collections.abc import Iterable, Iterator
from typing import Final

from evertide.sql.normalize import normal_type
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.data_type import check_map_key, resolve_type
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.free_name import free_destination
from evertide.sql.plan.named.plans import CreateTypePlan
from evertide.sql.resolve import find_type, position_of
from evertide.sql.syntax.expression import DataType, Expression, ListType, MapType, TypeName
from evertide.sql.syntax.named import CreateTypeStatement, RecordFields
from evertide.sql.type_words import is_system_type
from evertide.vocab.errors import DuplicateColumn, FeatureNotSupported, StatementTooComplex
from evertide.vocab.ids import ItemId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import Kind, SqlType, record_of

# Types are made of types, each of which may stand in another twice: without a bound a few
# statements would make one that fills the memory.
MOST_PARTS: Final = 1_000


def plan_create_type(statement: CreateTypeStatement, query: QueryContext) -> CreateTypePlan:
    """The type by what it is made of, and what that depends on."""
    destination = free_destination(statement.name, query, is_type=True)
    fields = RelationDesc(())
    form = statement.form
    match form:
        case ListType(element=element):
            made = SqlType(Kind.LIST, element=resolve_type(element, query))
            parts: tuple[DataType, ...] = (element,)
        case MapType(key=key, value=value):
            check_map_key(resolve_type(key, query), key.at)
            made = SqlType(Kind.MAP, element=resolve_type(value, query))
            parts = (key, value)
        case RecordFields():
            fields = _fields(form, query)
            made = record_of(*((column.name, column.type) for column in fields.columns))
            parts = tuple(one.type_ for one in form.fields)
    if sum(1 for _ in _all_parts(made)) > MOST_PARTS:
        raise StatementTooComplex(
            f'type "{destination.name}" would be made of more than {MOST_PARTS} parts',
            position=position_of(statement.at),
        )
    return CreateTypePlan(
        schema_id=destination.schema.schema_id,
        name=destination.name,
        create_sql=normal_type(statement, destination, query.plan.names),
        type=made,
        parts=tuple(_type_id(part, query) for part in parts),
        fields=fields,
        depends_on=tuple(query.dependencies),
    )


def _fields(form: RecordFields, query: QueryContext) -> RelationDesc:
    seen: set[str] = set()
    for one in form.fields:
        if one.name in seen:
            raise DuplicateColumn(
                f'column "{one.name}" specified more than once', position=position_of(one.at)
            )
        seen.add(one.name)
    return RelationDesc(
        tuple(ColumnDesc(one.name, resolve_type(one.type_, query)) for one in form.fields)
    )


def _all_parts(sql_type: SqlType) -> Iterator[SqlType]:
    waiting = [sql_type]
    while waiting:
        part = waiting.pop()
        yield part
        if part.element is not None:
            waiting.append(part.element)
        waiting.extend(field for _, field in part.fields or ())


def _type_id(node: DataType, query: QueryContext) -> str:
    """The type's id in mz_types; lists, maps and arrays without a name have their family's."""
    if isinstance(node, TypeName) and not is_system_type(node.parts):
        found = find_type(node.parts, query.plan.names)
        assert found is not None, "it was resolved before"
        return found.item_id
    return f"s{resolve_type(node, query).oid}"


def refuse_named_types(
    node: Expression, query: QueryContext, before: Iterable[ItemId], clause: Clause
) -> None:
    """For what is stored as text beside its relation, where no rename would find a type in it."""
    if set(query.dependencies) - set(before):
        raise FeatureNotSupported(
            f"user-defined types in {clause} are not supported",
            position=position_of(node.at),
        )
