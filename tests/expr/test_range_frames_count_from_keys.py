"""Goal: a frame by distances holds the rows whose keys are so near, at the ends of types too.

Method: keys in order, and where the frames of their rows begin and end, worked out by hand.
"""

from collections.abc import Sequence
from decimal import Decimal
from math import inf, nan

import pytest

from evertide.expr.range_frame import borders, is_distance
from evertide.expr.relation import Distance
from evertide.expr.scalar import Literal
from evertide.vocab.datum import DATE_INFINITY, DATE_MINUS_INFINITY, TS_INFINITY, Datum, Interval
from evertide.vocab.sql_type import (
    DATE,
    FLOAT8,
    INT2,
    INT8,
    INTERVAL,
    NUMERIC,
    TIME,
    TIMESTAMP,
    Kind,
    SqlType,
)

DAY = 86_400_000_000
MONTH = Interval(1, 0, 0)
# Days of 2024: 30 and 31 January, 28 and 29 February, 1 March.
LATE_WINTER = (19_752, 19_753, 19_781, 19_782, 19_783)
FARTHEST = 2**63 - 1


@pytest.mark.parametrize(
    ("sql_type", "keys", "by", "wanted"),
    [
        (INT8, (1, 2, 2, 5), 1, [(0, 3), (0, 3), (0, 3), (3, 4)]),
        (INT2, (-32_768, 0, 32_767), FARTHEST, [(0, 3)] * 3),
        (INT8, (-(2**63), 0, FARTHEST), FARTHEST, [(0, 1), (1, 3), (1, 3)]),
        (INT8, (None, None, 1, 3), 2, [(0, 2), (0, 2), (2, 4), (2, 4)]),
        (INT8, (1, None), 2, [(0, 1), (1, 2)]),
        (INT8, (None,), 2, [(0, 1)]),
        (INT8, (), 2, []),
        (FLOAT8, (-inf, -1.0, -0.0, 0.0, 1.5, inf, nan), 1.0, [
            (0, 1), (1, 4), (1, 4), (1, 4), (4, 5), (5, 6), (6, 7)
        ]),
        (FLOAT8, (-inf, 0.0, inf, nan), inf, [(0, 3), (0, 3), (0, 3), (3, 4)]),
        (NUMERIC, tuple(map(Decimal, ("1", "1.1", "Infinity", "NaN"))), Decimal("0.1"), [
            (0, 2), (0, 2), (2, 3), (3, 4)
        ]),
        (NUMERIC, (Decimal(0), Decimal("2e28"), Decimal("2.00000000000000000000000000007e28")),
            Decimal("2.00000000000000000000000000005e28"), [(0, 2), (0, 3), (1, 3)]),
        (DATE, LATE_WINTER, MONTH, [(0, 4), (0, 4), (0, 5), (0, 5), (2, 5)]),
        (DATE, (DATE_MINUS_INFINITY, 0, 1, DATE_INFINITY), Interval(0, 1, 0), [
            (0, 1), (1, 3), (1, 3), (3, 4)
        ]),
        (TIMESTAMP, (0, DAY, TS_INFINITY - 1, TS_INFINITY), Interval(0, 1, 0), [
            (0, 2), (0, 2), (2, 3), (3, 4)
        ]),
        (TIME, (0, 1, DAY - 1), Interval(5, 5, 1), [(0, 2), (0, 2), (2, 3)]),
        (INTERVAL, (Interval(0, 29, 0), MONTH, Interval(0, 31, 0)), Interval(0, 1, 0), [
            (0, 2), (0, 3), (1, 3)
        ]),
    ],
)  # fmt: skip
def test_both_ways(
    sql_type: SqlType, keys: Sequence[Datum], by: Datum, wanted: list[tuple[int, int]]
) -> None:
    assert frames(sql_type, keys, by) == wanted
    count = len(keys)
    turned = [(count - end, count - first) for first, end in reversed(wanted)]
    assert frames(sql_type, keys[::-1], by, descending=True) == turned


def frames(
    sql_type: SqlType, keys: Sequence[Datum], by: Datum, *, descending: bool = False
) -> list[tuple[int, int]]:
    before, after = (Distance(Literal(by, sql_type), following=way) for way in (False, True))
    firsts = borders(keys, sql_type, descending, before, end=False)
    ends = borders(keys, sql_type, descending, after, end=True)
    return list(zip(firsts, ends, strict=True))


def test_a_frame_may_lie_wholly_on_one_side() -> None:
    one, two = (Distance(Literal(by, INT8), following=True) for by in (1, 2))
    keys = (1, 2, 3, 5)
    assert borders(keys, INT8, False, one, end=False) == [1, 2, 3, 4]
    assert borders(keys, INT8, False, two, end=True) == [3, 3, 4, 4]


def test_distances_are_not_negative() -> None:
    assert is_distance(Kind.INT4, 0)
    assert not is_distance(Kind.INT4, -1)
    assert not is_distance(Kind.FLOAT8, nan)
    assert is_distance(Kind.DATE, Interval(1, -30, 0))
    assert not is_distance(Kind.DATE, Interval(1, -31, 0))
    assert is_distance(Kind.TIME, Interval(-1, 0, 1))
