"""Elements of long lists and arrays are looked up, each as often as it is there and no more."""

from decimal import Decimal
from random import Random

import pytest

from evertide.expr.functions import maps
from evertide.expr.functions.members import Elements, Members, same_element
from evertide.expr.functions.table import by_signature
from evertide.vocab.datum import Datum, Interval
from evertide.vocab.sql_type import FLOAT8, INT4, INTERVAL, NUMERIC, TEXT, Kind, SqlType, list_of

VALUES: dict[SqlType, tuple[Datum, ...]] = {
    INT4: (None, 1, 2, 3),
    TEXT: (None, "", "a", "b"),
    FLOAT8: (None, 0.0, -0.0, float("nan"), 1.5),
    NUMERIC: (None, Decimal("1.5"), Decimal("1.50"), Decimal("NaN"), Decimal(0)),
    INTERVAL: (None, Interval(1, 0, 0), Interval(0, 30, 0), Interval(0, 1, 0)),
    SqlType(Kind.BPCHAR): (None, "a", "a ", "b"),
    list_of(INT4): (None, (), (1,), (1, None)),
}


@pytest.mark.parametrize("element", VALUES, ids=str)
def test_looking_up_finds_what_going_through_finds(element: SqlType) -> None:
    members, same = Members(element), same_element(element)
    rng = Random(str(element))

    def there(wanted: Datum, elements: Elements) -> bool:
        return wanted is not None and any(same(wanted, one) for one in elements)

    for _ in range(300):
        left, right = (
            tuple(rng.choices(VALUES[element], k=rng.choice((0, 1, 2, 3, 20)))) for _ in range(2)
        )
        assert members.holds_all(left, right) == all(there(one, left) for one in right)
        assert members.overlap(left, right) == any(there(one, right) for one in left)
        wanted = rng.choice(VALUES[element])
        unknown = bool(left) and (wanted is None or None in left)
        expected = True if there(wanted, left) else None if unknown else False
        assert members.holds(wanted, left) is expected


class Counted(str):
    """A key that counts how often it is compared or hashed."""

    looked_at = 0

    def __hash__(self) -> int:
        Counted.looked_at += 1
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        Counted.looked_at += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("name", ["?&", "?|"])
def test_many_keys_are_asked_of_one_look_at_a_map(name: str) -> None:
    keys = tuple(Counted(f"k{i:04}") for i in range(500))
    (row,) = [row for row in maps.map_rows(INT4) if row.name == name]
    asked = keys if name == "?&" else tuple(Counted(f"no{i}") for i in range(500))
    Counted.looked_at = 0
    assert row.body(tuple((key, 1) for key in keys), asked) is (name == "?&")
    assert Counted.looked_at < 20 * len(keys)


@pytest.mark.parametrize("held", ["text list", "text[]"])
def test_containing_takes_about_one_look_for_each_element(held: str) -> None:
    keys = tuple(Counted(f"k{i:04}") for i in range(500))
    function = by_signature(f"@>({held},{held})")
    Counted.looked_at = 0
    body = getattr(function, "body", None)
    assert callable(body)
    assert body(keys, keys[::-1]) is True
    assert Counted.looked_at < 20 * len(keys)
