"""Hashes and codes of columns against the keys that rows have."""

from collections.abc import Sequence
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from evertide.expr.columnar.batch import Batch, add_up, batch_of, equal_rows
from evertide.expr.columnar.codes import equal_keys, identity_codes, looks_are_known, order_codes
from evertide.expr.columnar.column import Column, Others, from_datums, to_datums
from evertide.expr.columnar.hashes import hash_bytes, hash_keys, hash_matrix
from evertide.expr.relation import OrderKey, Types
from evertide.expr.row_key import identity_function, order_key
from evertide.persist.coding.encoding import encode_column
from evertide.persist.coding.keys import key_encoder, row_key_encoder
from evertide.spark.arrangements.layer import add_up as add_up_rows
from evertide.vocab.datum import EMPTY_RANGE, Datum, Interval, Row
from evertide.vocab.sql_type import Kind, SqlType

NAN, INFINITY = float("nan"), float("inf")
NO_BOUNDS = (None, None, False, False)
SAMPLES: dict[Kind, Sequence[Datum]] = {
    Kind.BOOL: (True, False),
    Kind.INT2: (0, -1, 2**15 - 1, -(2**15)),
    Kind.INT4: (0, 7, 2**31 - 1, -(2**31)),
    Kind.INT8: (0, 1, -1, 2**63 - 1, -(2**63)),
    Kind.UINT8: (0, 1, 2**63, 2**64 - 1),
    Kind.DATE: (0, -7, 10_000),
    Kind.FLOAT8: (0.0, -0.0, NAN, INFINITY, -INFINITY, 1.5, -1.5),
    Kind.TEXT: ("", "a", "ab", "ü" * 5, "x" * 31, "x" * 80),
    Kind.BYTEA: (b"", b"\x00", b"a", b"a\x00", b"a\x00b", b"a\xff", b"a" * 40),
    Kind.BPCHAR: ("a", "a  ", "b"),
    Kind.NUMERIC: (Decimal(0), Decimal("1.5"), Decimal("-12.25"), Decimal("NaN"), Decimal("1e20")),
    Kind.UUID: (b"\x00" * 16, b"\x01" * 16),
    Kind.INTERVAL: (Interval(1, 0, 0), Interval(0, 30, 0), Interval(0, 0, 5)),
    Kind.JSONB: ('{"a": 1}', "[]", '"a"'),
    Kind.INT4RANGE: (EMPTY_RANGE, (1, 5, True, False), (None, 5, False, False), NO_BOUNDS),
    Kind.NUMRANGE: (EMPTY_RANGE, (Decimal(1), Decimal("2.5"), False, True), NO_BOUNDS),
}


def random_rows(rng: Random, types: Types, count: int, *, nulls: bool) -> list[Row]:
    return [
        tuple(None if nulls and rng.random() < 0.2 else rng.choice(SAMPLES[t.kind]) for t in types)
        for _ in range(count)
    ]


def columns_of(types: Types, rows: Sequence[Row]) -> list[Column]:
    return [from_datums(t, [row[i] for row in rows]) for i, t in enumerate(types)]


def random_types(rng: Random) -> Types:
    return tuple(SqlType(rng.choice(list(SAMPLES))) for _ in range(rng.randint(1, 5)))


@pytest.mark.parametrize("seed", range(150))
def test_keys_have_the_hash_of_their_bytes(seed: int) -> None:
    rng = Random(seed)
    types = random_types(rng)
    rows = random_rows(rng, types, rng.choice((1, 10, 200)), nulls=rng.random() < 0.5)
    encode = row_key_encoder(types)
    expected = hash_bytes([encode(row) for row in rows])
    assert hash_keys(types, columns_of(types, rows), len(rows)).tolist() == expected.tolist()


@pytest.mark.parametrize("length", [0, 1, 3, 4, 7, 8, 9, 12, 31, 32, 33, 40, 63, 64, 65, 100])
def test_bytes_of_one_length_have_their_hash(length: int) -> None:
    keys = np.frombuffer(Random(length).randbytes(30 * length), np.uint8).reshape(30, length)
    assert hash_matrix(keys).tolist() == hash_bytes([key.tobytes() for key in keys]).tolist()


@pytest.mark.parametrize("kind", SAMPLES)
def test_equality_and_order_are_those_of_keys(kind: Kind) -> None:
    sql_type = SqlType(kind)
    rng = Random(kind.value)
    values: list[Datum] = [None, *SAMPLES[kind]] * 3
    others = rng.sample(values, len(values))
    encode = key_encoder(sql_type)
    equal = equal_keys(sql_type, from_datums(sql_type, values), from_datums(sql_type, others))
    assert equal.tolist() == [encode(a) == encode(b) for a, b in zip(values, others, strict=True)]
    for descending, nulls_first in ((False, False), (True, False), (False, True), (True, True)):
        codes = order_codes(
            sql_type, from_datums(sql_type, others), descending=descending, nulls_first=nulls_first
        )
        key = order_key((sql_type,), (OrderKey(0, descending, nulls_first),))
        by_codes = [tuple(int(code[i]) for code in codes) for i in range(len(others))]
        by_key = [key((value,)) for value in others]
        assert (
            np.argsort(_ranks(by_codes), kind="stable").tolist()
            == np.argsort(_ranks(by_key), kind="stable").tolist()
        )


def _ranks(keys: Sequence[object]) -> list[int]:
    order = sorted(set(keys), key=lambda key: key)  # type: ignore[arg-type, return-value]
    return [order.index(key) for key in keys]


@pytest.mark.parametrize("kind", SAMPLES)
def test_what_looks_different_has_different_codes(kind: Kind) -> None:
    sql_type = SqlType(kind)
    values: list[Datum] = [None, *SAMPLES[kind], *SAMPLES[kind]]
    column = from_datums(sql_type, values)
    codes = identity_codes(column)
    identity = identity_function((sql_type,)) or (lambda row: row)
    names = [identity((value,)) for value in values]
    for i in range(len(values)):
        for j in range(len(values)):
            same = all(code[i] == code[j] for code in codes)
            assert same == (names[i] == names[j]), (values[i], values[j])
    assert looks_are_known(sql_type) == (kind not in (Kind.BPCHAR, Kind.INTERVAL))


@pytest.mark.parametrize("kind", [Kind.INTERVAL, Kind.INT4RANGE, Kind.NUMRANGE])
def test_what_lies_under_a_null_makes_no_difference(kind: Kind) -> None:
    """A NULL that was read from a file holds other things than one that was encoded, or masked."""
    sql_type = SqlType(kind)
    encoded = encode_column(sql_type, [None, *SAMPLES[kind]])
    arrays = pa.StructArray.from_arrays(
        [encoded.field(i) for i in range(encoded.type.num_fields)],
        fields=list(encoded.type),
        mask=pa.array([True] * len(encoded)),
    )
    read = pa.array([None], type=encoded.type)
    column = Others(pa.concat_arrays([encoded, arrays, read]))
    names = [None, *SAMPLES[kind], *[None] * (len(encoded) + 1)]
    codes = identity_codes(column)
    by_codes = [tuple(int(code[i]) for code in codes) for i in range(len(names))]
    assert len(set(by_codes)) == len(set(names))
    assert len({code for code, name in zip(by_codes, names, strict=True) if name is None}) == 1


@pytest.mark.parametrize("seed", range(100))
def test_adding_up_by_columns_is_adding_up_by_rows(seed: int) -> None:
    rng = Random(seed)
    types = random_types(rng)
    rows = random_rows(rng, types, 60, nulls=True)
    entries = [(row, rng.randint(1, 3), rng.choice((-1, 1, 2))) for row in rows]
    identity = identity_function(types)
    expected = {_name(types, e): e[2] for e in add_up_rows(entries, 0, identity)}
    found = add_up(batch_of(types, entries))
    assert {_name(types, entry): entry[2] for entry in found.entries()} == expected
    assert len(found) == len(expected)


def _name(types: Types, entry: tuple[Row, int, int]) -> object:
    identity = identity_function(types) or (lambda row: row)
    return identity(entry[0]), entry[1]


def test_rows_with_one_mixed_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "evertide.expr.columnar.batch._mixed", lambda codes: np.zeros(len(codes[0]), np.int64)
    )
    starts, order = equal_rows([np.array([1, 2, 1, 2, 1]), np.array([0, 0, 0, 1, 0])])
    assert sorted(np.diff(np.append(starts, len(order))).tolist()) == [1, 1, 3]


@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("count", [1, 2, 60, 511, 512, 3_000])
@pytest.mark.parametrize("different", [1, 10, 1_000, 2**40])
def test_equal_rows_are_neighbours_and_the_first_comes_first(
    monkeypatch: pytest.MonkeyPatch, count: int, different: int, mixed: bool
) -> None:
    """However many there are, also if all have one hash."""
    if not mixed:
        monkeypatch.setattr(
            "evertide.expr.columnar.batch._mixed", lambda codes: np.zeros(len(codes[0]), np.int64)
        )
    rng = np.random.default_rng(count + different)
    codes = [rng.integers(0, different, count), rng.integers(0, 2, count)]
    rows = list(zip(*[code.tolist() for code in codes], strict=True))
    places: dict[tuple[int, ...], list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row, []).append(place)
    starts, order = equal_rows(codes)
    groups = [group.tolist() for group in np.split(order, starts[1:])]
    assert {group[0]: sorted(group) for group in groups} == {p[0]: p for p in places.values()}
    assert len(groups) == len(places)


@pytest.mark.parametrize("kind", SAMPLES)
def test_columns_come_back_as_they_were(kind: Kind) -> None:
    sql_type = SqlType(kind)
    values: list[Datum] = [None, *SAMPLES[kind]]
    assert repr(to_datums(sql_type, from_datums(sql_type, values))) == repr(values)
    picked = from_datums(sql_type, values).take(np.array([1, 0, 1]))
    assert repr(to_datums(sql_type, picked)) == repr([values[1], None, values[1]])
    assert isinstance(batch_of((sql_type,), [((None,), 1, 1)]), Batch)
