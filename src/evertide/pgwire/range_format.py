"""The binary format of ranges: a byte of flags, then the bounds that are not at infinity."""

from collections.abc import Callable

from evertide.expr.range_text import Span, make_range
from evertide.vocab.datum import EMPTY_RANGE, Datum
from evertide.vocab.errors import InvalidBinaryRepresentation
from evertide.vocab.sql_type import RANGE_BASES, SqlType

_EMPTY, _HAS_LOWER, _HAS_UPPER, _NO_LOWER, _NO_UPPER = 1, 2, 4, 8, 16
_SIZE = 4


def range_field(encode_bound: Callable[[Datum], bytes], datum: Datum) -> bytes:
    """A range behind its length; `encode_bound` gives a bound behind its own."""
    if datum == EMPTY_RANGE:
        body = bytes([_EMPTY])
    else:
        assert isinstance(datum, tuple), "a range is a tuple"
        span = Span(*datum)  # type: ignore[arg-type]
        flags = _HAS_LOWER * span.has_lower + _HAS_UPPER * span.has_upper
        flags += _NO_LOWER * (span.lower is None) + _NO_UPPER * (span.upper is None)
        bounds = [encode_bound(b) for b in (span.lower, span.upper) if b is not None]
        body = bytes([flags]) + b"".join(bounds)
    return len(body).to_bytes(_SIZE) + body


def decode_range(decode_bound: Callable[[bytes], Datum], sql_type: SqlType, raw: bytes) -> Datum:
    """Inverse of range_field, without the length before it."""
    if not raw:
        raise _malformed(sql_type)
    flags, rest = raw[0], raw[1:]
    if flags & _EMPTY:
        return EMPTY_RANGE
    bounds: list[Datum] = []
    for missing in (_NO_LOWER, _NO_UPPER):
        if flags & missing:
            bounds.append(None)
            continue
        size = int.from_bytes(rest[:_SIZE], signed=True)
        if size < 0 or len(rest) < _SIZE + size:
            raise _malformed(sql_type)
        bounds.append(decode_bound(rest[_SIZE : _SIZE + size]))
        rest = rest[_SIZE + size :]
    if rest:
        raise _malformed(sql_type)
    ends = ("[" if flags & _HAS_LOWER else "(") + ("]" if flags & _HAS_UPPER else ")")
    return make_range(RANGE_BASES[sql_type.kind], bounds[0], bounds[1], ends)


def _malformed(sql_type: SqlType) -> InvalidBinaryRepresentation:
    return InvalidBinaryRepresentation(f"incorrect binary value of type {sql_type}")
