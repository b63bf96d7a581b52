"""pg_type: PostgreSQL's rows for the types we have, and rows for the peer's own types."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from evertide.catalog.builtin.postgres import constant_rows, pg_desc, pg_template
from evertide.catalog.builtin.relation import Viewpoint
from evertide.catalog.objects import NamedType
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import Kind, SqlType, array_of

_OWNER_OID: Final = 10
_POSTGRES_NAMESPACE: Final = 11
# Kinds that PostgreSQL does not have, with their category.
_OWN_KINDS: Final = {
    Kind.LIST: "U",
    Kind.MAP: "U",
    Kind.UINT2: "N",
    Kind.UINT4: "N",
    Kind.UINT8: "N",
    Kind.MZ_TIMESTAMP: "N",
}


@dataclass(frozen=True, slots=True)
class TypeStorage:
    """How PostgreSQL would keep a type; pg_attribute repeats it for each column."""

    by_value: bool
    align: str
    storage: str
    collation: int


def pg_types(at: Viewpoint) -> tuple[Row, ...]:
    """All types; the peer's own live in mz_catalog."""
    schema = at.snapshot.schema_named(None, "mz_catalog")
    namespace = _POSTGRES_NAMESPACE if schema is None else schema.oid
    return (*constant_rows("pg_type"), *_own_types(namespace))


def pg_type_rows(at: Viewpoint) -> Iterator[Row]:
    """Those, and what users of this database have named."""
    yield from pg_types(at)
    for item in at.visible_items():
        if isinstance(item.definition, NamedType):
            composite = item.definition.type.kind == Kind.RECORD
            yield _type_row(
                oid=item.oid,
                typname=item.name,
                typnamespace=at.snapshot.schemas[item.schema_id].oid,
                typowner=at.snapshot.roles[item.owner].oid,
                typlen=-1,
                typbyval=False,
                typtype="c" if composite else "b",
                typcategory="C" if composite else "U",
            )


@cache
def _own_types(namespace: int) -> tuple[Row, ...]:
    return tuple(row for kind in _OWN_KINDS for row in _own_type(kind, namespace))


def _own_type(kind: Kind, namespace: int) -> Iterator[Row]:
    element = SqlType(kind)
    has_array = kind not in (Kind.LIST, Kind.MAP)
    array_oid = array_of(element).oid if has_array else 0
    yield _type_row(
        oid=element.oid,
        typname=kind.value,
        typnamespace=namespace,
        typlen=element.type_length,
        typbyval=element.type_length > 0,
        typcategory=_OWN_KINDS[kind],
        typarray=array_oid,
    )
    if has_array:
        yield _type_row(
            oid=array_oid,
            typname=f"_{kind.value}",
            typnamespace=namespace,
            typlen=-1,
            typbyval=False,
            typcategory="A",
            typelem=element.oid,
        )


def _type_row(**values: int | str | bool) -> Row:
    usual: dict[str, int | str | bool] = {
        "typowner": _OWNER_OID,
        "typtype": "b",
        "typispreferred": False,
        "typisdefined": True,
        "typdelim": ",",
        "typalign": "i",
        "typstorage": "p" if values["typbyval"] else "x",
        "typtypmod": -1,
    }
    return pg_template("pg_type").row(**{**usual, **values})


@cache
def type_storages() -> Mapping[int, TypeStorage]:
    """By the type's oid."""
    names = pg_desc("pg_type").names
    by_value, align = names.index("typbyval"), names.index("typalign")
    storage, collation = names.index("typstorage"), names.index("typcollation")
    found: dict[int, TypeStorage] = {}
    for row in (*constant_rows("pg_type"), *_own_types(_POSTGRES_NAMESPACE)):
        oid, collation_oid = row[0], row[collation]
        assert isinstance(oid, int), "an oid is a number"
        assert isinstance(collation_oid, int), "an oid is a number"
        found[oid] = TypeStorage(
            bool(row[by_value]), str(row[align]), str(row[storage]), collation_oid
        )
    return found
