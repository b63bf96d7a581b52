"""Small batches as msgpack, to lie in the shard's state; those of many updates are Arrow.

Layout: one byte of version, then [groups, errors]. A group is [ts, diff, rows], because most
updates of a small batch share both; an error is [encoded error, ts, diff]. Rows are arrays of
datums whose types the relation's description gives: numeric is its decimal text, interval an array
of three. A reader of another version of the schema has fewer columns than the rows, and gets the
first of them, or has more, and gets NULL there. The version also tells both forms apart: see
arrow_inline for the other.
"""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from itertools import repeat
from typing import Final, Protocol, TypeAlias, cast

import msgspec

from evertide.persist.coding.arrow_inline import ARROW_VERSION, decode_arrow
from evertide.persist.coding.parts import table_to_columns
from evertide.persist.coding.updates import PlainUpdate, UpdateColumns
from evertide.persist.faults import Corrupt
from evertide.vocab.datum import Interval, Row
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType
from evertide.vocab.timestamp import Timestamp

MSGPACK_VERSION: Final = b"\x01"
_Group: TypeAlias = tuple[Timestamp, int, list[Row]]
_Error: TypeAlias = tuple[str, Timestamp, int]
_Payload: TypeAlias = tuple[list[_Group], list[_Error]]

_PYTHON_TYPES: Final[dict[Kind, object]] = {
    Kind.BOOL: bool,
    Kind.FLOAT4: float,
    Kind.FLOAT8: float,
    Kind.NUMERIC: Decimal,
    Kind.TEXT: str,
    Kind.VARCHAR: str,
    Kind.BPCHAR: str,
    Kind.NAME: str,
    Kind.CHAR: str,
    Kind.JSONB: str,
    Kind.BYTEA: bytes,
    Kind.UUID: bytes,
    Kind.INTERVAL: Interval,
}

# Text that is no UTF-8 is not msgspec's own error.
_DAMAGED: Final = (msgspec.DecodeError, UnicodeDecodeError)

_encoder = msgspec.msgpack.Encoder()


class _Decoder(Protocol):
    def decode(self, buffer: memoryview, /) -> _Payload: ...


def encode_one(update: PlainUpdate) -> bytes:
    """What encode_inline gives for a single update: most batches are that small."""
    row, ts, diff, error = update
    if error is None:
        return MSGPACK_VERSION + _encoder.encode((((ts, diff, (row,)),), ()))
    return MSGPACK_VERSION + _encoder.encode(((), ((error, ts, diff),)))


def encode_inline(updates: Iterable[PlainUpdate]) -> bytes:
    """The payload of an InlinePart. Datums say by themselves how they are written."""
    groups: defaultdict[tuple[Timestamp, int], list[Row]] = defaultdict(list)
    errors: list[_Error] = []
    for row, ts, diff, error in updates:
        if error is None:
            groups[ts, diff].append(row)
        else:
            errors.append((error, ts, diff))
    ordered = [(ts, diff, groups[ts, diff]) for ts, diff in sorted(groups)]
    return MSGPACK_VERSION + _encoder.encode((ordered, errors))


def decode_inline(desc: RelationDesc, payload: bytes) -> UpdateColumns:
    """The updates of either form of payload, for relations of any version; raises Corrupt."""
    if payload[:1] == ARROW_VERSION:
        return _decode_arrow(desc, payload)
    if payload[:1] != MSGPACK_VERSION:
        raise Corrupt(f"inline batch of unknown version {payload[:1]!r}")
    return _decode_msgpack(desc, payload)


def _decode_arrow(desc: RelationDesc, payload: bytes) -> UpdateColumns:
    table = decode_arrow(desc, payload)
    try:
        return table_to_columns(desc, table)
    except (ArithmeticError, LookupError, ValueError) as error:
        raise Corrupt(f"inline batch has a value of no meaning: {error}") from error


def _decode_msgpack(desc: RelationDesc, payload: bytes) -> UpdateColumns:
    """Inverse of encode_inline, up to the order of updates."""
    encoded = memoryview(payload)[1:]
    try:
        groups, errors = _decoder(desc, desc.arity).decode(encoded)
    except _DAMAGED as error:
        try:
            groups, errors = _decode_other_version(desc, encoded)
        except _DAMAGED:
            raise Corrupt(f"inline batch does not fit its relation: {error}") from error
    rows: list[Row] = []
    timestamps: list[Timestamp] = []
    diffs: list[int] = []
    for ts, diff, group in groups:
        rows += group
        timestamps += repeat(ts, len(group))
        diffs += repeat(diff, len(group))
    if not errors:
        return UpdateColumns(rows, timestamps, diffs)
    ordinary = len(rows)
    rows += repeat((), len(errors))
    timestamps += (ts for _, ts, _ in errors)
    diffs += (diff for _, _, diff in errors)
    texts = [*repeat(None, ordinary), *(text for text, _, _ in errors)]
    return UpdateColumns(rows, timestamps, diffs, texts)


def _decode_other_version(desc: RelationDesc, encoded: memoryview) -> _Payload:
    """The payload with its rows cut or filled up to the relation's columns."""
    undecoded, _ = _shape_decoder.decode(encoded)
    rows = (row for *_, group in undecoded for row in group)
    arity = next((len(_row_shape_decoder.decode(row)) for row in rows), desc.arity)
    groups, errors = _decoder(desc, arity).decode(encoded)
    missing: Row = (None,) * (desc.arity - arity)
    fitted = [(ts, diff, [row[: desc.arity] + missing for row in rs]) for ts, diff, rs in groups]
    return fitted, errors


# Looks no further than at how long the rows are.
_shape_decoder = msgspec.msgpack.Decoder(
    tuple[list[tuple[int, int, list[msgspec.Raw]]], list[msgspec.Raw]]
)
_row_shape_decoder = msgspec.msgpack.Decoder(list[msgspec.Raw])


@lru_cache(maxsize=1024)
def _decoder(desc: RelationDesc, arity: int) -> _Decoder:
    """For rows with this many columns: the relation's, and others that nobody looks at."""
    types: list[object] = [_optional(sql_type) for sql_type in desc.types[:arity]]
    types += repeat(object, arity - len(types))
    row = tuple.__class_getitem__(tuple(types))
    group = tuple[Timestamp, int, list[row]]  # type: ignore[valid-type]
    return cast(_Decoder, msgspec.msgpack.Decoder(tuple[list[group], list[_Error]]))


def _optional(sql_type: SqlType) -> object:
    return _python_type(sql_type) | None  # type: ignore[operator]


def _python_type(sql_type: SqlType) -> object:
    if sql_type.kind in (Kind.ARRAY, Kind.LIST):
        assert sql_type.element is not None, "an array or list has an element type"
        return tuple.__class_getitem__((_optional(sql_type.element), ...))
    if sql_type.kind in RANGE_BASES:
        bound = _optional(RANGE_BASES[sql_type.kind])
        return tuple.__class_getitem__((bound, bound, bool, bool))
    if sql_type.kind is Kind.MAP:
        assert sql_type.element is not None, "a map has a value type"
        pair = tuple.__class_getitem__((str, _optional(sql_type.element)))
        return tuple.__class_getitem__((pair, ...))
    return _PYTHON_TYPES.get(sql_type.kind, int)
