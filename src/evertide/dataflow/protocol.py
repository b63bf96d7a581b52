"""Commands and responses between an adapter and a replica, and the rules of their order.

What a replica *runs* follows from the catalog and is never commanded. What travels here is
ephemeral: it does not outlive the connection that asked. Every command carries `catalog_ts`, the
catalog timestamp it was planned at; the replica holds the command until its own catalog frontier is
beyond that, so that it never answers "unknown index" for one that exists.

A request has one response with the same request_id, in any order. A subscribe and a select have
many: after each batch the replica waits until it is acknowledged, so a slow reader slows the
dataflow and nothing piles up; a refusal or a failure is the last. A connection that closes cancels
its requests.

Messages are msgpack behind a four-byte length; rows are in persist's inline encoding.
"""

from typing import TypeAlias

import msgspec

from evertide.dataflow.lookup import Lookup

# A response larger than this is refused rather than sent.
MAX_MESSAGE_BYTES = 1 << 30


class PeekIndexCommand(msgspec.Struct, frozen=True, tag="peek_index"):
    """Rows of an index at `as_of`: those with keys that are asked for, or all."""

    request_id: int
    catalog_ts: int
    global_id: str
    as_of: int
    lookup: Lookup | None = None


class ChangesCommand(msgspec.Struct, frozen=True, tag="changes"):
    """What changed in a materialized view after `beyond` up to and including `as_of`.

    Asked while the view's shard does not say so yet: its replica knows as soon as it has computed
    it. It waits for that as long as it takes, and takes nobody's turn.
    """

    request_id: int
    catalog_ts: int
    global_id: str
    beyond: int
    as_of: int


class SelectCommand(msgspec.Struct, frozen=True, tag="select"):
    """A query over much data: Spark computes its result at `as_of`, then it is told in batches.

    `order` is (column, descending, NULLs first) for each key. Of the rows in that order the first
    `most` are wanted, a row counting as often as it is there; a few more may come.
    """

    request_id: int
    catalog_ts: int
    relation: bytes
    imports: tuple[str, ...]
    as_of: int
    order: tuple[tuple[int, bool, bool], ...] = ()
    most: int | None = None


class SubscribeCommand(msgspec.Struct, frozen=True, tag="subscribe"):
    """Run a dataflow from `as_of` on and tell its output's changes at `from_ts` and beyond.

    Without `progress`, that time went on without changes is told now and then only.
    """

    request_id: int
    catalog_ts: int
    relation: bytes
    imports: tuple[str, ...]
    as_of: int
    from_ts: int
    up_to: int | None = None
    progress: bool = False


class AcknowledgeCommand(msgspec.Struct, frozen=True, tag="acknowledge"):
    """The last batch of a subscribe was taken: there is room for the next."""

    request_id: int


class IntrospectCommand(msgspec.Struct, frozen=True, tag="introspect"):
    """What the replica knows of itself, by the name of the system relation that shows it."""

    request_id: int
    relation: str


class CancelCommand(msgspec.Struct, frozen=True, tag="cancel"):
    """Forget the request; it may still be answered."""

    request_id: int


Command: TypeAlias = (
    PeekIndexCommand | SelectCommand | ChangesCommand | SubscribeCommand
    | AcknowledgeCommand | IntrospectCommand | CancelCommand
)  # fmt: skip


class RowsResponse(msgspec.Struct, frozen=True, tag="rows"):
    """Rows with multiplicities, and the errors among them, encoded."""

    request_id: int
    updates: bytes


class BatchResponse(msgspec.Struct, frozen=True, tag="batch"):
    """All changes of a subscribe below `upper` that were not told before, encoded."""

    request_id: int
    updates: bytes
    upper: int


class ResultResponse(msgspec.Struct, frozen=True, tag="result"):
    """A select's result is computed and lies ready: so many BatchResponses follow.

    They hold so many rows in all, with multiplicities, and so many bytes. Rows of a select without
    an order come in any.
    """

    request_id: int
    batches: int
    rows: int
    bytes: int


class RefusedResponse(msgspec.Struct, frozen=True, tag="refused"):
    """Not answerable here: no such index, below its since, or too many rows. Ask the shards."""

    request_id: int
    reason: str


class FailedResponse(msgspec.Struct, frozen=True, tag="failed"):
    """The request failed with this SQLSTATE and message."""

    request_id: int
    code: str
    message: str
    hint: str | None = None


class FactsResponse(msgspec.Struct, frozen=True, tag="facts"):
    """Rows of a system relation as plain values."""

    request_id: int
    rows: tuple[tuple[str | int | float | bool | None, ...], ...]


Response: TypeAlias = (
    RowsResponse | BatchResponse | ResultResponse | RefusedResponse | FailedResponse | FactsResponse
)
