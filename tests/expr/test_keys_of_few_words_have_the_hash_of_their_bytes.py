"""Columns in which words repeat are hashed word by word, and get the hashes of their keys."""

from collections.abc import Sequence
from decimal import Decimal
from random import Random

import numpy as np
import pytest

from evertide.expr.columnar.column import Column, Ints, from_datums
from evertide.expr.columnar.hashes import hash_bytes, hash_keys
from evertide.expr.columnar.key_bytes import Bytes
from evertide.expr.columnar.key_words import Words, key_parts
from evertide.expr.relation import Types
from evertide.persist.coding.keys import row_key_encoder
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import BYTEA, INT8, NUMERIC, TEXT, Kind, SqlType

CHAR, BPCHAR, FLOAT8, UUID = (
    SqlType(kind) for kind in (Kind.CHAR, Kind.BPCHAR, Kind.FLOAT8, Kind.UUID)
)
VALUES: dict[SqlType, Sequence[Datum]] = {
    TEXT: (None, "", "a", "b", "ab", "ü" * 5, "x" * 31),
    BYTEA: (None, b"", b"\x00", b"\x00\x00", b"a\x00", b"a\xff", b"\x00\xff"),
    NUMERIC: (None, Decimal(0), Decimal("1.50"), Decimal("-12.25"), Decimal("NaN")),
    UUID: (None, b"\x00" * 16, b"\x01" * 16),
    BPCHAR: (None, "a", "a  ", "b"),
    INT8: (-(2**63), -1, 0, 7, 2**63 - 1),
    FLOAT8: (0.0, -0.0, float("nan"), 1.5),
}
ROWS = 900


def columns_of(types: Types, rows: Sequence[Row]) -> list[Column]:
    return [from_datums(t, [row[i] for row in rows]) for i, t in enumerate(types)]


def random_rows(rng: Random, types: Types) -> list[Row]:
    return [tuple(rng.choice(VALUES[t]) for t in types) for _ in range(ROWS)]


def check(types: Types, rows: Sequence[Row]) -> None:
    encode = row_key_encoder(types)
    expected = hash_bytes([encode(row) for row in rows])
    # Compared as arrays: pytest would explain two long lists that differ, and take forever.
    assert np.array_equal(hash_keys(types, columns_of(types, rows), len(rows)), expected)


@pytest.mark.parametrize("seed", range(80))
def test_each_key_has_its_hash(seed: int) -> None:
    rng = Random(seed)
    types: Types = (rng.choice([TEXT, BYTEA, NUMERIC]), *rng.choices(list(VALUES), k=seed % 3))
    check(types, random_rows(rng, types))


def test_words_are_used_where_they_repeat() -> None:
    types = (TEXT, INT8)
    rows = random_rows(Random(1), types)
    parts = key_parts(types, columns_of(types, rows))
    assert parts is not None
    assert parts.by_length() is not None


def repeated(words: Sequence[str]) -> list[Row]:
    return [(words[i % len(words)],) for i in range(ROWS)]


@pytest.mark.parametrize(
    "rows",
    [
        [(f"word {i}",) for i in range(ROWS)],
        [*repeated(["a"])[:800], *((f"word {i}",) for i in range(800))],
        repeated(["a", "x" * 80]),
        [*repeated(["a"]), (None,)] * 2,
    ],
    ids=["all different", "different later on", "long", "with NULL"],
)
def test_other_keys_have_theirs_too(rows: list[Row]) -> None:
    check((TEXT,), rows)
    check((INT8, TEXT), [(i, *row) for i, row in enumerate(rows)])


def test_words_of_many_lengths_are_left_to_others() -> None:
    rows = repeated(["x" * i for i in range(40)])
    parts = key_parts((TEXT,), columns_of((TEXT,), rows))
    assert parts is not None
    assert parts.by_length() is None
    check((TEXT,), rows)


def test_numbers_with_nulls_are_left_to_others() -> None:
    rows: list[Row] = [("a", None if i % 3 else i) for i in range(ROWS)]
    assert key_parts((TEXT, INT8), columns_of((TEXT, INT8), rows)) is None
    check((TEXT, INT8), rows)


def test_words_with_their_filling_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def filled(self: Words, rows: Ints) -> Bytes:
        return np.ascontiguousarray(self.keys[self.codes[rows]])

    monkeypatch.setattr(Words, "at", filled)
    with pytest.raises(AssertionError):
        check((TEXT,), repeated(["a", "ab"]))
