"""Values of types that name objects, on their way to a client.

They are numbers, but as text a client reads names, which only the statement's snapshot knows and
which depend on the session's search path. Whether a column is sent as text is decided later.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from evertide.adapter.client import (
    CopyOutResponse,
    Response,
    RowsResponse,
    StreamResponse,
)
from evertide.adapter.lookups.procedure_texts import procedure_name
from evertide.adapter.lookups.relations import RelationLookup
from evertide.adapter.mapped_stream import MappedStream
from evertide.adapter.session import Session
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import Kind


class NamedOid(int):
    """The number of an object; its text is the object's name."""

    name: str

    def __str__(self) -> str:
        return self.name


def with_names(response: Response, snapshot: Snapshot, session: Session) -> Response:
    """The same answer, with the name beside each number of a relation or function."""
    if not isinstance(response, RowsResponse | CopyOutResponse | StreamResponse):
        return response
    kinds = [sql_type.kind for sql_type in response.desc.types]
    if Kind.REGCLASS not in kinds and Kind.REGPROC not in kinds:
        return response
    lookups = {Kind.REGCLASS: RelationLookup(snapshot, session).text, Kind.REGPROC: procedure_name}
    named = partial(_named_rows, kinds=kinds, lookups=lookups)
    if isinstance(response, StreamResponse):
        # With names as they are when the statement begins.
        return replace(response, rows=MappedStream(response.rows, named))
    return replace(response, rows=named(response.rows))


def _named_rows(
    rows: Sequence[Row], kinds: Sequence[Kind], lookups: Mapping[Kind, Callable[[int], str]]
) -> list[Row]:
    return [
        tuple(
            _named(datum, lookups[kind]) if kind in lookups else datum
            for datum, kind in zip(row, kinds, strict=True)
        )
        for row in rows
    ]


def _named(oid: Datum, name_of: Callable[[int], str]) -> Datum:
    if oid is None:
        return None
    assert isinstance(oid, int), "these types are kept as numbers"
    named = NamedOid(oid)
    named.name = name_of(oid)
    return named
