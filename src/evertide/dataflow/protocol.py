"""Commands and responses between an adapter and a replica, and the rules of their order.

What a replica *runs* follows from the catalog and is never commanded. What travels here is
ephemeral: it does not outlive the connection that asked. Every command carries `catalog_ts`, the
catalog timestamp it was planned at; the replica holds the command until its own catalog frontier is
beyond that, so that it never answers "unknown index" for one that exists.

A request has one response with the same request_id, in any order. A connection that closes cancels
its requests. Messages are msgpack behind a four-byte length; rows are in persist's inline encoding.
"""

from typing import TypeAlias

import msgspec

# A response larger than this is refused rather than sent.
MAX_MESSAGE_BYTES = 1 << 30


class PeekIndexCommand(msgspec.Struct, frozen=True, tag="peek_index"):
    """Rows of an index at `as_of`: those with one of the keys, or all."""

    request_id: int
    catalog_ts: int
    global_id: str
    as_of: int
    keys: bytes | None = None


class PeekRelationCommand(msgspec.Struct, frozen=True, tag="peek_relation"):
    """A one-shot query over many rows: one Spark job at `as_of`."""

    request_id: int
    catalog_ts: int
    relation: bytes
    imports: tuple[str, ...]
    as_of: int


class IntrospectCommand(msgspec.Struct, frozen=True, tag="introspect"):
    """What the replica knows of itself, by the name of the system relation that shows it."""

    request_id: int
    relation: str


class CancelCommand(msgspec.Struct, frozen=True, tag="cancel"):
    """Forget the request; it may still be answered."""

    request_id: int


Command: TypeAlias = PeekIndexCommand | PeekRelationCommand | IntrospectCommand | CancelCommand


class RowsResponse(msgspec.Struct, frozen=True, tag="rows"):
    """Rows with multiplicities, and the errors among them, encoded."""

    request_id: int
    updates: bytes


class RefusedResponse(msgspec.Struct, frozen=True, tag="refused"):
    """Not answerable here: no such index, or `as_of` is below its since. Ask the shards."""

    request_id: int
    reason: str


class FailedResponse(msgspec.Struct, frozen=True, tag="failed"):
    """The request failed with this SQLSTATE and message."""

    request_id: int
    code: str
    message: str


class FactsResponse(msgspec.Struct, frozen=True, tag="facts"):
    """Rows of a system relation as plain values."""

    request_id: int
    rows: tuple[tuple[str | int | float | bool | None, ...], ...]


Response: TypeAlias = RowsResponse | RefusedResponse | FailedResponse | FactsResponse
