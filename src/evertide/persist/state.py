"""A shard's state, and every way it may change, as plain functions.

The state is one small record in consensus. Frontiers: contents are exact at as_of when
since <= as_of < upper. A batch holds the updates with lower <= ts < upper that one append brought,
or that compaction made of several; an append without updates leaves no batch, so batches need not
touch one another.

A transition takes the state and returns the next one, or a refusal: a value, because losing a race
is normal and the caller must look at it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import msgspec
import xxhash

from evertide.persist.faults import DamagedState
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp

DEFAULT_SINCE_LAG: Final = 60_000
_VERSION: Final = b"\x02"
_VERSION_WITHOUT_CHECKSUM: Final = b"\x01"
_CHECKSUM_BYTES: Final = 8
# How much smaller a part of unknown content is usually encoded, and the least an update takes.
_PACKED: Final = 4
_UPDATE_BYTES: Final = 24


class InlinePart(msgspec.Struct, frozen=True, array_like=True, tag="i"):
    """Updates that lie in the state itself."""

    payload: bytes
    rows: int
    # The version of the shard's schema that it was written under.
    schema: int = 0

    @property
    def size_bytes(self) -> int:
        """What it adds to the state."""
        return len(self.payload)


class BlobPart(msgspec.Struct, frozen=True, array_like=True, tag="b"):
    """Updates in one Parquet file; the checksum is XXH3-64 of its bytes."""

    key: str
    rows: int
    size_bytes: int
    checksum: int
    # The version of the shard's schema that it was written under.
    schema: int = 0
    # Which rows of its batch it holds: those whose hash is `bucket` modulo `buckets`.
    bucket: int = 0
    buckets: int = 1
    # What its updates take in memory as columns; None: it is older than this field.
    decoded_bytes: int | None = None

    @property
    def shard_id(self) -> ShardId:
        """Whose part it is: every key begins with that."""
        return ShardId(self.key.partition("/")[0])


Part: TypeAlias = InlinePart | BlobPart


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """Updates with lower <= ts < upper, except that times below `since` were raised to it."""

    lower: Timestamp
    upper: Timestamp
    since: Timestamp
    parts: tuple[Part, ...]
    # How many of the updates take a row away; None: nobody has counted, as in what was appended.
    retractions: int | None = None

    @property
    def rows(self) -> int:
        """How many updates."""
        parts = self.parts
        return parts[0].rows if len(parts) == 1 else sum(part.rows for part in parts)

    @property
    def size_bytes(self) -> int:
        """Encoded size."""
        parts = self.parts
        return parts[0].size_bytes if len(parts) == 1 else sum(part.size_bytes for part in parts)

    @property
    def decoded_bytes(self) -> int:
        """About what its updates take in memory; where nobody has noted it, a guess that texts
        which repeat may make far too small."""
        return sum(_decoded_bytes(part) for part in self.parts)

    @property
    def inline_bytes(self) -> int:
        """The share of it that lies in the state."""
        total = 0
        for part in self.parts:
            if isinstance(part, InlinePart):
                total += len(part.payload)
        return total


def _decoded_bytes(part: Part) -> int:
    if isinstance(part, BlobPart) and part.decoded_bytes is not None:
        return part.decoded_bytes
    return max(_PACKED * part.size_bytes, _UPDATE_BYTES * part.rows)


class Hold(msgspec.Struct, frozen=True, array_like=True):
    """Keeps since from passing `hold_ts`. Without an expiry it is critical: its owner ends it."""

    owner: str
    hold_ts: Timestamp
    expires_ms: int | None


class Schema(msgspec.Struct, frozen=True, array_like=True):
    """The types of a shard's columns, as their names; a later one only adds nullable columns.

    Whoever reads with fewer columns gets the first of them; where a part has fewer than its reader,
    the others are NULL.
    """

    columns: tuple[str, ...]


class ShardState(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """All that is known about a shard."""

    since: Timestamp
    upper: Timestamp
    # How far since trails upper when nobody holds it: milliseconds, or catalog timestamps.
    since_lag: int
    # Who may append. None: shards written under another shard's protection (tables, catalog).
    writer: GlobalId | None = None
    # Set while the upper is frozen there, until the writer's completing append.
    pending: Timestamp | None = None
    batches: tuple[Batch, ...] = ()
    holds: tuple[Hold, ...] = ()
    # A dropped table: readable, never appended to.
    forgotten: bool = False
    # By version: parts name theirs by its place here. Empty in shards from before versions.
    schemas: tuple[Schema, ...] = ()
    # When the sweeper found it forgotten, by the wall clock: its parts are removed in the end.
    forgotten_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class UpperMismatch:
    """The shard's upper is another than the append expected."""

    actual: Timestamp


@dataclass(frozen=True, slots=True)
class WriterMismatch:
    """The shard belongs to another version of its collection."""

    actual: GlobalId | None


@dataclass(frozen=True, slots=True)
class SchemaMismatch:
    """The shard's newest columns are `have`; no version has, nor may the next have, `want`."""

    have: tuple[str, ...]
    want: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """The upper is frozen until the new writer has brought the contents over."""

    at: Timestamp


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The table was dropped."""


@dataclass(frozen=True, slots=True)
class Purged:
    """The table was dropped so long ago that its contents are gone."""


@dataclass(frozen=True, slots=True)
class NotPurgeable:
    """Somebody may still read or restore the shard."""


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no such shard."""


@dataclass(frozen=True, slots=True)
class AlreadyExists:
    """There is such a shard already."""


@dataclass(frozen=True, slots=True)
class HoldBelowSince:
    """History at the wished hold has been merged already."""

    since: Timestamp


@dataclass(frozen=True, slots=True)
class BatchesGone:
    """Another compaction replaced these batches first."""


Refusal: TypeAlias = (
    UpperMismatch
    | WriterMismatch
    | SchemaMismatch
    | PendingWrite
    | Forgotten
    | Purged
    | NotPurgeable
    | Missing
    | AlreadyExists
    | HoldBelowSince
    | BatchesGone
)
Changed: TypeAlias = ShardState | Refusal
Transition: TypeAlias = Callable[[ShardState | None], Changed]


class ShardChange(NamedTuple):
    """A transition of one shard, to be applied alone or with others in one store transaction."""

    shard_id: ShardId
    transition: Transition
    # Whether it ends the shard: then a state that is damaged is taken for one that was purged.
    ends: bool = False


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """The columns that an append was made with."""

    names: tuple[str, ...]
    # How many columns there are up to the last that is never NULL. A new version must not add
    # that one: older rows would read NULL there.
    required: int = 0


_decoder = msgspec.msgpack.Decoder(ShardState)
_encoder = msgspec.msgpack.Encoder()


def encode_state(state: ShardState, batches: bytes | None = None) -> bytes:
    """The stored form: one byte of version, then msgpack, then XXH3-64 of both.

    The checksum comes last, where no earlier version ends: a damaged version is noticed too.
    Whoever has the bytes of the batches, one after the other, spares their encoding.
    """
    if batches is None:
        body = _VERSION + _encoder.encode(state)
    else:
        array = msgspec.Raw(_array_header(len(state.batches)) + batches)
        # An array of all fields, as a state is written: its other half is quicker made than it.
        body = _VERSION + _encoder.encode(
            (
                state.since,
                state.upper,
                state.since_lag,
                state.writer,
                state.pending,
                array,
                state.holds,
                state.forgotten,
                state.schemas,
                state.forgotten_at_ms,
            )
        )
    return body + xxhash.xxh3_64_digest(body)


def encode_batch(batch: Batch) -> bytes:
    """A batch as it lies in a state."""
    return _encoder.encode(batch)


def _array_header(count: int) -> bytes:
    """How msgpack begins an array of so many."""
    if count < 16:
        return bytes((0x90 | count,))
    if count < 65_536:
        return b"\xdc" + count.to_bytes(2, "big")
    return b"\xdd" + count.to_bytes(4, "big")


def decode_state(value: bytes, shard_id: ShardId | None = None) -> ShardState:
    """Inverse of encode_state, for states of every version; raises DamagedState."""
    stored = memoryview(value)
    if value[:1] == _VERSION:
        stored = stored[:-_CHECKSUM_BYTES]
        if xxhash.xxh3_64_digest(stored) != value[-_CHECKSUM_BYTES:]:
            raise DamagedState(shard_id, ": its checksum differs")
    elif value[:1] != _VERSION_WITHOUT_CHECKSUM:
        raise DamagedState(shard_id, f" or of unknown version {value[:1]!r}")
    try:
        return _decoder.decode(stored[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedState(shard_id, f": {error}") from error


def initial_state(
    *,
    since: Timestamp = MIN_TS,
    writer: GlobalId | None = None,
    since_lag: int = DEFAULT_SINCE_LAG,
) -> ShardState:
    """An empty shard: complete below `since`, where it has no contents."""
    return ShardState(since=since, upper=since, since_lag=since_lag, writer=writer)


def refers_to(state: ShardState | None, key: str) -> bool:
    """Whether the part under this key is one of the shard's; else it may have been collected."""
    if state is None:
        return False
    parts = (part for batch in state.batches for part in batch.parts)
    return any(isinstance(part, BlobPart) and part.key == key for part in parts)


def create(shard_id: ShardId, initial: ShardState) -> ShardChange:
    """Make the shard; refused if it exists."""
    return ShardChange(shard_id, lambda state: initial if state is None else AlreadyExists())


def existing(transition: Callable[[ShardState], Changed]) -> Transition:
    """A transition that only makes sense for a shard that exists."""
    return lambda state: Missing() if state is None else transition(state)


def append(
    state: ShardState,
    *,
    lower: Timestamp,
    upper: Timestamp,
    writer: GlobalId | None,
    parts: tuple[Part, ...] = (),
    columns: ColumnTypes | None = None,
    completes_pending: bool = False,
) -> Changed:
    """Bring updates with lower <= ts < upper; without parts, only advance the upper.

    Writer and columns are looked at before the upper: a version that lost its shard must learn
    that, not chase an upper it may never reach. The parts get their schema's version here; None for
    columns leaves it as it is.
    """
    assert lower < upper, "an append moves the upper forward"
    if state.forgotten:
        return Forgotten()
    if state.writer != writer:
        return WriterMismatch(state.writer)
    version = None if columns is None else _schema_version(state.schemas, columns)
    if isinstance(version, SchemaMismatch):
        return version
    if state.pending is not None and not (completes_pending and lower == state.pending):
        return PendingWrite(state.pending)
    if state.upper != lower:
        return UpperMismatch(state.upper)
    batches, schemas = state.batches, state.schemas
    if parts:
        if columns is not None and version is not None:
            if version:  # else it is the one that they have
                parts = tuple(msgspec.structs.replace(part, schema=version) for part in parts)
            schemas = schemas if version < len(schemas) else (*schemas, Schema(columns.names))
        batches = (*batches, Batch(lower, upper, MIN_TS, parts))
    return msgspec.structs.replace(
        state, upper=upper, batches=batches, schemas=schemas, pending=None
    )


def _schema_version(schemas: tuple[Schema, ...], columns: ColumnTypes) -> int | SchemaMismatch:
    """The version that has these columns; the next one, if it may be added."""
    for version in range(len(schemas) - 1, -1, -1):
        if schemas[version].columns == columns.names:
            return version
    if not schemas:
        return 0
    newest = schemas[-1].columns
    known = len(newest)
    if columns.required <= known < len(columns.names) and columns.names[:known] == newest:
        return len(schemas)
    return SchemaMismatch(newest, columns.names)


def set_writer(
    state: ShardState, *, writer: GlobalId, expected_upper: Timestamp, pending: bool
) -> Changed:
    """Give the shard to another version; `pending` freezes its upper until that one's append."""
    if state.forgotten:
        return Forgotten()
    if state.upper != expected_upper:
        return UpperMismatch(state.upper)
    frozen_at = expected_upper if pending else None
    return msgspec.structs.replace(state, writer=writer, pending=frozen_at)


def set_hold(
    state: ShardState, *, owner: str, hold_ts: Timestamp, expires_ms: int | None = None
) -> Changed:
    """Take, move or renew a hold; refused below since, where it would protect nothing."""
    if hold_ts < state.since:
        return HoldBelowSince(state.since)
    others = [hold for hold in state.holds if hold.owner != owner]
    holds = sorted([*others, Hold(owner, hold_ts, expires_ms)], key=lambda hold: hold.owner)
    return msgspec.structs.replace(state, holds=tuple(holds))


def move_hold(state: ShardState, *, owner: str, hold_ts: Timestamp) -> Changed:
    """Move a hold that exists; one that was released meanwhile stays released.

    Its owner may be dropped by one process while another still moves its hold.
    """
    if all(hold.owner != owner for hold in state.holds):
        return state
    return set_hold(state, owner=owner, hold_ts=hold_ts)


def release_hold(state: ShardState, *, owner: str) -> ShardState:
    """End a hold, if there is one: a release may be repeated."""
    kept = tuple(hold for hold in state.holds if hold.owner != owner)
    return msgspec.structs.replace(state, holds=kept)


def set_since_lag(state: ShardState, *, since_lag: int) -> ShardState:
    """Let since trail the upper by this much from now on; what was merged stays merged."""
    return msgspec.structs.replace(state, since_lag=since_lag)


def allowed_since(state: ShardState, now_ms: int) -> Timestamp:
    """How far since may go: behind every live hold, and behind the upper by the shard's lag.

    Always below the upper, so that some as_of stays readable. A sealed shard's upper says nothing
    about time, so without a hold it stays where it is.
    """
    live = (h.hold_ts for h in state.holds if h.expires_ms is None or h.expires_ms > now_ms)
    if state.upper == EMPTY_FRONTIER:
        return state.since
    behind_upper = Timestamp(state.upper - 1 - state.since_lag)
    return max(state.since, min([behind_upper, *live]))


def advance_since(state: ShardState, *, to: Timestamp) -> ShardState:
    """Let history before `to` merge; never backwards, never to the upper, never past a hold."""
    limit = min([Timestamp(state.upper - 1), *(hold.hold_ts for hold in state.holds)])
    return msgspec.structs.replace(state, since=max(state.since, min(to, limit)))


def drop_expired(state: ShardState, now_ms: int) -> ShardState:
    """Forget the leases of processes that stopped renewing them."""
    kept = tuple(h for h in state.holds if h.expires_ms is None or h.expires_ms > now_ms)
    return state if len(kept) == len(state.holds) else msgspec.structs.replace(state, holds=kept)


def compact(
    state: ShardState, *, replaced: tuple[Batch, ...], replacement: tuple[Batch, ...]
) -> Changed:
    """Put batches with the same contents in the place of a run of batches."""
    assert not replacement or _newest_schema(replacement) >= _newest_schema(replaced), (
        "a merge keeps every column"
    )
    count = len(replaced)
    for start in range(len(state.batches) - count + 1):
        if state.batches[start : start + count] == replaced:
            end = start + count
            batches = state.batches[:start] + replacement + state.batches[end:]
            return msgspec.structs.replace(state, batches=batches)
    return BatchesGone()


def _newest_schema(batches: tuple[Batch, ...]) -> int:
    return max((part.schema for batch in batches for part in batch.parts), default=0)


def forget(state: ShardState) -> ShardState:
    """Refuse all further appends; contents stay for whoever may still read or restore them."""
    return msgspec.structs.replace(state, forgotten=True)


def restore(state: ShardState) -> Changed:
    """Take appends again, with the contents as they were; refused once those are gone."""
    if state.since == EMPTY_FRONTIER:
        return Purged()
    return msgspec.structs.replace(state, forgotten=False, forgotten_at_ms=None)
