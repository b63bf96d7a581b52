"""PostgreSQL 16's own system relations: every table and view, with all columns.

The shapes and the constant rows are data/*.json, written from a real server by
tests/catalog/postgres_catalog.py. Types that this system does not have are shown as their nearest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from evertide.catalog.builtin.relation import Template, parse_type
from evertide.vocab.datum import Datum, Row
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import SqlType, array_of

_DIRECTORY: Final = Path(__file__).parent / "data"

_NEAREST_TYPES: Final = {
    "aclitem": "text",
    "anyarray": "text[]",
    "inet": "text",
    "int2vector": "int2[]",
    "oidvector": "oid[]",
    "pg_dependencies": "text",
    "pg_lsn": "text",
    "pg_mcv_list": "text",
    "pg_ndistinct": "text",
    "pg_node_tree": "text",
    "pg_statistic": "text",
    "xid": "int8",
}

_VECTORS: Final = ("int2vector", "oidvector")

# (schema, name, oid, is view, columns), a column being (name, type, nullable).
_StoredRelation: TypeAlias = tuple[str, str, int, bool, list[tuple[str, str, bool]]]
_StoredDatum: TypeAlias = str | int | float | bool | list[int | str] | None


@dataclass(frozen=True, slots=True)
class PostgresRelation:
    """A relation as PostgreSQL describes it."""

    schema: str
    name: str
    oid: int
    is_view: bool
    desc: RelationDesc
    # Columns of type int2vector and oidvector: arrays here, but counted from 0 as those are.
    vectors: frozenset[str]


@cache
def postgres_relations() -> Mapping[tuple[str, str], PostgresRelation]:
    """All of them by schema and name."""
    found: dict[tuple[str, str], PostgresRelation] = {}
    stored = msgspec.json.decode(_text("relations"), type=list[_StoredRelation])
    for schema, name, oid, is_view, columns in stored:
        desc = RelationDesc(
            tuple(ColumnDesc(column, _nearest(kind), null) for column, kind, null in columns)
        )
        vectors = frozenset(column for column, kind, _ in columns if kind in _VECTORS)
        found[schema, name] = PostgresRelation(schema, name, oid, is_view, desc, vectors)
    return found


@cache
def constant_rows(name: str) -> tuple[Row, ...]:
    """The rows of a pg_catalog relation that do not depend on what users made."""
    stored = msgspec.json.decode(_text(name), type=list[list[_StoredDatum]])
    return tuple(tuple(_datum(value) for value in row) for row in stored)


def vector_columns(schema: str, name: str) -> frozenset[str]:
    """The columns of a relation whose elements are counted from 0; none of any other's."""
    relation = postgres_relations().get((schema, name))
    return frozenset() if relation is None else relation.vectors


def pg_desc(name: str) -> RelationDesc:
    """The columns of a pg_catalog relation."""
    return postgres_relations()["pg_catalog", name].desc


@cache
def pg_template(name: str) -> Template:
    """Makes rows of a pg_catalog relation."""
    return Template(pg_desc(name))


@cache
def information_template(name: str) -> Template:
    """Makes rows of an information_schema view."""
    return Template(postgres_relations()["information_schema", name].desc)


def _text(name: str) -> bytes:
    return (_DIRECTORY / f"{name}.json").read_bytes()


def _nearest(type_name: str) -> SqlType:
    if type_name.startswith("_"):
        return array_of(_nearest(type_name.removeprefix("_")))
    return parse_type(_NEAREST_TYPES.get(type_name, type_name))


def _datum(value: "_StoredDatum") -> Datum:
    return tuple(value) if isinstance(value, list) else value
