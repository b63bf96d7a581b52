"""information_schema: what generic SQL tools read instead of pg_catalog."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from evertide.catalog.builtin.postgres import information_template
from evertide.catalog.builtin.relation import Projection, Viewpoint
from evertide.catalog.builtin.text import query_text
from evertide.catalog.objects import ItemKind
from evertide.vocab.datum import Datum, Row
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import Kind, SqlType

_TABLE_TYPES: Final = {
    ItemKind.TABLE: "BASE TABLE",
    ItemKind.VIEW: "VIEW",
    ItemKind.MATERIALIZED_VIEW: "MATERIALIZED VIEW",
    ItemKind.SOURCE: "SOURCE",
}
_BINARY_PRECISIONS: Final = {
    Kind.INT2: 16, Kind.INT4: 32, Kind.INT8: 64, Kind.FLOAT4: 24, Kind.FLOAT8: 53,
}  # fmt: skip
_MICROSECONDS: Final = 6


def catalog_name(at: Viewpoint) -> Iterable[Row]:
    yield (at.database,)


def schemata(at: Viewpoint) -> Iterable[Row]:
    template = information_template("schemata")
    for schema_id in sorted(at.visible_schemas()):
        schema = at.snapshot.schemas[schema_id]
        yield template.row(
            catalog_name=at.database,
            schema_name=schema.name,
            schema_owner=at.snapshot.roles[schema.owner].name,
        )


def tables(at: Viewpoint) -> Iterable[Row]:
    template = information_template("tables")
    for schema, name, table_type, _ in _relations(at):
        yield template.row(
            table_catalog=at.database,
            table_schema=schema,
            table_name=name,
            table_type=table_type,
            is_insertable_into=_yes_or_no(table_type == "BASE TABLE"),
            is_typed="NO",
        )


def columns(at: Viewpoint) -> Iterable[Row]:
    """Defaults are shown for tables only: nothing else has them."""
    template = information_template("columns")
    defaults = {
        (at.snapshot.schemas[i.schema_id].name, i.name): [c.default for c in i.columns]
        for i in at.visible_items()
        if i.kind is ItemKind.TABLE
    }
    for schema, name, table_type, relation in _relations(at):
        texts = defaults.get((schema, name), [None] * relation.arity)
        for number, column in enumerate(relation.columns, 1):
            yield template.row(
                table_catalog=at.database,
                table_schema=schema,
                table_name=name,
                column_name=column.name,
                ordinal_position=number,
                column_default=texts[number - 1],
                is_updatable=_yes_or_no(table_type == "BASE TABLE"),
                **_column_values(at, column, number),
            )


def _column_values(at: Viewpoint, column: ColumnDesc, number: int) -> dict[str, Datum]:
    return {
        "is_nullable": _yes_or_no(column.nullable),
        "data_type": _data_type(column.type),
        **_type_limits(column.type),
        "udt_catalog": at.database,
        "udt_schema": "pg_catalog",
        "udt_name": _udt_name(column.type),
        "dtd_identifier": str(number),
        "is_self_referencing": "NO",
        "is_identity": "NO",
        "is_generated": "NEVER",
    }


def _data_type(sql_type: SqlType) -> str:
    return "ARRAY" if sql_type.kind is Kind.ARRAY else str(SqlType(sql_type.kind))


def _udt_name(sql_type: SqlType) -> str:
    if sql_type.kind is Kind.ARRAY and sql_type.element is not None:
        inner = sql_type.element
        return _udt_name(inner) if inner.kind is Kind.ARRAY else f"_{inner.kind.value}"
    return sql_type.kind.value


def _type_limits(sql_type: SqlType) -> dict[str, Datum]:
    """The columns that say how long or how exact values can be."""
    match sql_type.kind:
        case Kind.VARCHAR | Kind.BPCHAR:
            return {"character_maximum_length": sql_type.length}
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            precision = _BINARY_PRECISIONS[sql_type.kind]
            return {
                "numeric_precision": precision,
                "numeric_precision_radix": 2,
                "numeric_scale": 0,
            }
        case Kind.FLOAT4 | Kind.FLOAT8:
            precision = _BINARY_PRECISIONS[sql_type.kind]
            return {"numeric_precision": precision, "numeric_precision_radix": 2}
        case Kind.NUMERIC:
            return {
                "numeric_precision": sql_type.precision,
                "numeric_precision_radix": 10,
                "numeric_scale": sql_type.scale,
            }
        case Kind.DATE:
            return {"datetime_precision": 0}
        case Kind.TIME | Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.INTERVAL:
            return {"datetime_precision": _MICROSECONDS}
        case _:
            return {}


def views(at: Viewpoint) -> Iterable[Row]:
    template = information_template("views")
    for item in at.visible_items():
        if item.kind is ItemKind.VIEW:
            yield template.row(
                table_catalog=at.database,
                table_schema=at.snapshot.schemas[item.schema_id].name,
                table_name=item.name,
                view_definition=query_text(item.create_sql),
                check_option="NONE",
                is_updatable="NO",
                is_insertable_into="NO",
                is_trigger_updatable="NO",
                is_trigger_deletable="NO",
                is_trigger_insertable_into="NO",
            )


def roles(at: Viewpoint) -> Iterable[Row]:
    return ((role.name,) for role in at.snapshot.roles.values())


def character_sets(at: Viewpoint) -> Iterable[Row]:
    yield information_template("character_sets").row(
        character_set_name="UTF8",
        character_repertoire="UCS",
        form_of_use="UTF8",
        default_collate_catalog=at.database,
        default_collate_schema="pg_catalog",
        default_collate_name="C",
    )


def _relations(at: Viewpoint) -> Iterator[tuple[str, str, str, RelationDesc]]:
    """(schema, name, table type, shape) of everything that can be selected from."""
    for builtin in at.builtins:
        table_type = "VIEW" if builtin.is_view else "BASE TABLE"
        yield builtin.schema, builtin.name, table_type, builtin.desc
    for item in at.visible_items():
        if item.kind in _TABLE_TYPES:
            schema = at.snapshot.schemas[item.schema_id]
            yield schema.name, item.name, _TABLE_TYPES[item.kind], item.desc


def _yes_or_no(condition: bool) -> str:
    return "YES" if condition else "NO"


PROJECTIONS: Final[Mapping[str, Projection]] = {
    "character_sets": character_sets,
    "columns": columns,
    "enabled_roles": roles,
    "information_schema_catalog_name": catalog_name,
    "schemata": schemata,
    "tables": tables,
    "views": views,
}
# What may be done with tables: only what concerns whoever looks is shown.
DYNAMIC: Final = frozenset({"role_table_grants", "table_privileges"})
