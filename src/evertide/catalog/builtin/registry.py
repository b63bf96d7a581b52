"""All system relations, found by name or by id."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from evertide.catalog.builtin import information_schema, pg_catalog
from evertide.catalog.builtin.dropped import DROPPED
from evertide.catalog.builtin.listed import LISTED
from evertide.catalog.builtin.mz_catalog import MZ_CATALOG, MZ_INTERNAL
from evertide.catalog.builtin.postgres import PostgresRelation, postgres_relations
from evertide.catalog.builtin.relation import Builtin, Projection, Viewpoint, no_rows
from evertide.catalog.builtin.resources import RESOURCES
from evertide.catalog.builtin.rights import MZ_SHOW
from evertide.catalog.builtin.staged import STAGED
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId, ItemId


def _postgres_builtins() -> Iterator[Builtin]:
    for relation in postgres_relations().values():
        yield Builtin(
            oid=relation.oid,
            schema=relation.schema,
            name=relation.name,
            desc=relation.desc,
            rows=_postgres_rows(relation),
            is_view=relation.is_view,
        )


def _postgres_rows(relation: PostgresRelation) -> Projection | None:
    if relation.schema == "information_schema":
        if relation.name in information_schema.DYNAMIC:
            return None
        return information_schema.PROJECTIONS.get(relation.name, no_rows)
    if relation.name in pg_catalog.DYNAMIC:
        return None
    return pg_catalog.PROJECTIONS.get(relation.name, no_rows)


BUILTINS: Final[tuple[Builtin, ...]] = (
    *MZ_CATALOG,
    *MZ_INTERNAL,
    *RESOURCES,
    *STAGED,
    *DROPPED,
    *LISTED,
    *MZ_SHOW,
    *_postgres_builtins(),
)

_BY_NAME: Final[Mapping[tuple[str, str], Builtin]] = {(b.schema, b.name): b for b in BUILTINS}
_BY_ID: Final[Mapping[str, Builtin]] = {b.global_id: b for b in BUILTINS}


def find_builtin(schema: str, name: str) -> Builtin | None:
    """The system relation of this name in this system schema."""
    return _BY_NAME.get((schema, name))


def builtin_of(global_id: GlobalId | ItemId) -> Builtin | None:
    """The system relation with this id; its ItemId and its GlobalId are the same text."""
    return _BY_ID.get(global_id)


def builtin_rows(builtin: Builtin, snapshot: Snapshot, *, database: str) -> Iterable[Row]:
    """The rows that a session in this database sees at this snapshot; not for dynamic ones."""
    assert builtin.rows is not None, f"rows of {builtin.name} are supplied at run time"
    return builtin.rows(Viewpoint(snapshot, database, BUILTINS))
