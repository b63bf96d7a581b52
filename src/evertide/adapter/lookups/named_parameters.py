"""Parameters that are relations, by the names that a client has given."""

from collections.abc import Sequence

from evertide.adapter.lookups.relations import RelationLookup
from evertide.adapter.session import Session
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Datum
from evertide.vocab.errors import UndefinedTable
from evertide.vocab.sql_type import Kind, SqlType


def with_oids(
    parameters: Sequence[Datum], types: Sequence[SqlType], snapshot: Snapshot, session: Session
) -> Sequence[Datum]:
    """The parameters, with the number of each relation in place of its name."""
    if not any(one.kind is Kind.REGCLASS for one in types):
        return parameters
    lookup = RelationLookup(snapshot, session)
    return [
        _oid(datum, lookup) if one.kind is Kind.REGCLASS and isinstance(datum, str) else datum
        for datum, one in zip(parameters, types, strict=True)
    ]


def _oid(name: str, lookup: RelationLookup) -> int:
    found = lookup.oid(name)
    if found is None:
        raise UndefinedTable(f'relation "{name}" does not exist')
    return found
