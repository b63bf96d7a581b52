"""Ranges: what makes them, what is in them, how two of them lie, and what they make together."""

from collections.abc import Callable
from typing import Final

from evertide.expr.functions.build import partial, total
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import RANGE_TYPES
from evertide.expr.range_text import Span, base_of, make_range, settled
from evertide.persist.coding.keys import key_encoder
from evertide.vocab.datum import EMPTY_RANGE, Datum
from evertide.vocab.errors import DataException, SqlSyntaxError
from evertide.vocab.sql_type import BOOL, TEXT, SqlType

Range = tuple[Datum, ...]
_BOUNDS: Final = ("[]", "[)", "(]", "()")


def _span(datum: Range) -> Span:
    lower, upper, has_lower, has_upper = datum
    return Span(lower, upper, bool(has_lower), bool(has_upper))


def _both(left: Range, right: Range) -> bool:
    """Whether there is something in each."""
    return EMPTY_RANGE not in (left, right)


class _Line:
    """Where the bounds of ranges over one type lie."""

    def __init__(self, range_type: SqlType) -> None:
        self.base = base_of(range_type)
        self._key = key_encoder(self.base)

    def low(self, span: Span) -> tuple[bytes, int]:
        """The place of a lower bound; one that is not in the range lies a little above."""
        if span.lower is None:
            return b"", 0
        return self._key(span.lower), 0 if span.has_lower else 1

    def high(self, span: Span) -> tuple[bytes, int]:
        """The place of an upper bound; one that is not in the range lies a little below."""
        if span.upper is None:
            return b"\xff", 0
        return self._key(span.upper), 0 if span.has_upper else -1

    def contains(self, outer: Range, inner: Range) -> bool:
        if EMPTY_RANGE in (inner, outer):
            return inner == EMPTY_RANGE
        one, other = _span(outer), _span(inner)
        return self.low(one) <= self.low(other) and self.high(other) <= self.high(one)

    def holds(self, outer: Range, datum: Datum) -> bool:
        place = (self._key(datum), 0)
        span = _span(outer)
        return outer != EMPTY_RANGE and self.low(span) <= place <= self.high(span)

    def before(self, left: Range, right: Range) -> bool:
        """Whether all of one lies below all of the other; nothing is said of empty ones."""
        return _both(left, right) and self.high(_span(left)) < self.low(_span(right))

    def overlaps(self, left: Range, right: Range) -> bool:
        apart = self.before(left, right) or self.before(right, left)
        return _both(left, right) and not apart

    def adjacent(self, left: Range, right: Range) -> bool:
        """Whether they meet, and have nothing in common."""
        if not _both(left, right):
            return False
        one, other = _span(left), _span(right)
        return self._meet(one, other) or self._meet(other, one)

    def _meet(self, first: Span, second: Span) -> bool:
        if first.upper is None or second.lower is None:
            return False
        touching = self._key(first.upper) == self._key(second.lower)
        return touching and first.has_upper != second.has_lower

    def ends_below(self, left: Range, right: Range) -> bool:
        return _both(left, right) and self.high(_span(left)) <= self.high(_span(right))

    def begins_above(self, left: Range, right: Range) -> bool:
        return _both(left, right) and self.low(_span(left)) >= self.low(_span(right))


class _Combined:
    """What two ranges over one type make together."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    def merged(self, left: Range, right: Range) -> Range:
        """The least range that holds both."""
        if not _both(left, right):
            return right if left == EMPTY_RANGE else left
        one, other = _span(left), _span(right)
        first, last = min(one, other, key=self._line.low), max(one, other, key=self._line.high)
        return settled(
            self._line.base, Span(first.lower, last.upper, first.has_lower, last.has_upper)
        )

    def union(self, left: Range, right: Range) -> Range:
        apart = _both(left, right) and not self._line.overlaps(left, right)
        if apart and not self._line.adjacent(left, right):
            raise DataException("result of range union would not be contiguous")
        return self.merged(left, right)

    def common(self, left: Range, right: Range) -> Range:
        if not self._line.overlaps(left, right):
            return EMPTY_RANGE
        one, other = _span(left), _span(right)
        first, last = max(one, other, key=self._line.low), min(one, other, key=self._line.high)
        return settled(
            self._line.base, Span(first.lower, last.upper, first.has_lower, last.has_upper)
        )

    def difference(self, left: Range, right: Range) -> Range:
        if not self._line.overlaps(left, right):
            return left
        one, other = _span(left), _span(right)
        begins_first = self._line.low(one) < self._line.low(other)
        ends_last = self._line.high(one) > self._line.high(other)
        if begins_first and ends_last:
            raise DataException("result of range difference would not be contiguous")
        if begins_first:
            kept = Span(one.lower, other.lower, one.has_lower, not other.has_lower)
        elif ends_last:
            kept = Span(other.upper, one.upper, not other.has_upper, one.has_upper)
        else:
            return EMPTY_RANGE
        return settled(self._line.base, kept)


def _maker(base: SqlType) -> Callable[..., Datum]:
    def make(lower: Datum, upper: Datum, *given: str | None) -> Datum:
        bounds = given[0] if given else "[)"
        if bounds is None:
            raise DataException("range constructor flags argument must not be null")
        if bounds not in _BOUNDS:
            raise SqlSyntaxError(
                "invalid range bound flags",
                hint='Valid values are "[]", "[)", "(]", and "()".',
            )
        return make_range(base, lower, upper, bounds)

    return make


def _bound_rows(range_type: SqlType) -> list[ScalarFunction]:
    base = base_of(range_type)
    name, make = range_type.kind.value, _maker(base)
    one = (range_type,)
    return [
        ScalarFunction(name, (base, base), range_type, make, strict=False, fallible=True),
        ScalarFunction(name, (base, base, TEXT), range_type, make, strict=False, fallible=True),
        total("lower", one, base, lambda r: r[0]),
        total("upper", one, base, lambda r: r[1]),
        total("isempty", one, BOOL, lambda r: r == EMPTY_RANGE),
        total("lower_inc", one, BOOL, lambda r: r[2] and r != EMPTY_RANGE),
        total("upper_inc", one, BOOL, lambda r: r[3] and r != EMPTY_RANGE),
        total("lower_inf", one, BOOL, lambda r: r[0] is None and r != EMPTY_RANGE),
        total("upper_inf", one, BOOL, lambda r: r[1] is None and r != EMPTY_RANGE),
    ]


def _pair_rows(range_type: SqlType) -> list[ScalarFunction]:
    line, base = _Line(range_type), base_of(range_type)
    combined = _Combined(line)
    both = (range_type, range_type)
    return [
        total("@>", both, BOOL, line.contains),
        total("@>", (range_type, base), BOOL, line.holds),
        total("<@", both, BOOL, lambda inner, outer: line.contains(outer, inner)),
        total("<@", (base, range_type), BOOL, lambda datum, outer: line.holds(outer, datum)),
        total("&&", both, BOOL, line.overlaps),
        total("<<", both, BOOL, line.before),
        total(">>", both, BOOL, lambda left, right: line.before(right, left)),
        total("&<", both, BOOL, line.ends_below),
        total("&>", both, BOOL, line.begins_above),
        total("-|-", both, BOOL, line.adjacent),
        total("range_merge", both, range_type, combined.merged),
        partial("+", both, range_type, combined.union),
        total("*", both, range_type, combined.common),
        partial("-", both, range_type, combined.difference),
    ]


ROWS: Final = tuple(
    row
    for range_type in RANGE_TYPES
    for family in (_bound_rows, _pair_rows)
    for row in family(range_type)
)
