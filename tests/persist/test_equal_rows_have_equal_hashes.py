"""Goal: rows that a merge takes for one row land in one part, and others are spread evenly."""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertide.persist.coding.encoding import update_schema
from evertide.persist.coding.parts import columns_to_table, table_to_columns
from evertide.persist.coding.updates import to_columns
from evertide.persist.upkeep.merge import add_up, from_keys, split_rows, to_keys
from evertide.persist.upkeep.row_hash import Hashes, row_hashes
from evertide.vocab.datum import Datum
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import FLOAT8, INT8, SqlType
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.persist.strategies import DATUMS


def keys_of(sql_type: SqlType, datums: Sequence[Datum]) -> pa.Table:
    desc = relation_desc(("a", sql_type))
    updates = [Update((datum,), Timestamp(n), 1) for n, datum in enumerate(datums)]
    return to_keys(columns_to_table(desc, to_columns(updates)))


def row_hashes_of(keys: pa.Table) -> Hashes:
    return row_hashes(keys.drop_columns(["t", "d"]))


def hashes_of(keys: pa.Table) -> list[int]:
    return row_hashes_of(keys).tolist()


@pytest.mark.parametrize("sql_type", DATUMS, ids=str)
def test_a_row_has_one_hash_wherever_it_lies(sql_type: SqlType) -> None:
    datum = st.none() | DATUMS[sql_type]

    @settings(max_examples=30, deadline=None)
    @given(datum, st.lists(datum, max_size=5), st.lists(datum, max_size=5))
    def check(one: Datum, before: list[Datum], after: list[Datum]) -> None:
        (alone,) = hashes_of(keys_of(sql_type, [one]))
        together = keys_of(sql_type, [*before, one, *after])
        assert hashes_of(together)[len(before)] == alone
        assert hashes_of(together.slice(len(before), 1)) == [alone]
        pieces = pa.concat_tables([keys_of(sql_type, before), together.slice(len(before))])
        assert hashes_of(pieces)[len(before)] == alone

    check()


@pytest.mark.parametrize("sql_type", DATUMS, ids=str)
def test_what_is_compared_comes_back_as_it_was(sql_type: SqlType) -> None:
    desc = relation_desc(("a", sql_type))

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.none() | DATUMS[sql_type], max_size=8))
    def check(datums: list[Datum]) -> None:
        keys = keys_of(sql_type, datums)
        back = table_to_columns(desc, from_keys(keys, update_schema(desc)))
        assert [repr(row[0]) for row in back.rows] == [repr(datum) for datum in datums]

    check()


def test_what_differs_only_by_representation_differs() -> None:
    """Were they equal, a merge would add up 0.0 and -0.0."""
    found = hashes_of(keys_of(FLOAT8, [0.0, -0.0, math.nan, None, math.nan]))
    assert len(set(found)) == 4
    assert found[2] == found[4]
    keys = keys_of(FLOAT8, [0.0, -0.0, math.nan, None, math.nan])
    assert add_up([keys], Timestamp(9)).num_rows == 4


def test_rows_without_a_value_and_without_columns_have_hashes() -> None:
    errors = [Update((), Timestamp(0), 1, text) for text in ("a", "b", "a")]
    keys = to_keys(columns_to_table(relation_desc(), to_columns(errors)))
    first, second, third = hashes_of(keys)
    assert first == third != second
    assert hashes_of(keys.slice(0, 0)) == []


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 120, 128, 129, 1_000])
def test_every_byte_of_a_text_counts(length: int) -> None:
    texts = ["x" * length, "x" * length + "y"]
    texts += ["x" * place + "y" + "x" * (length - place - 1) for place in range(length)]
    assert len(set(hashes_of(pa.table({"a": texts, "t": texts, "d": texts})))) == len(set(texts))


def test_buckets_hold_about_the_same_number_of_rows() -> None:
    """Numbers one after the other, and multiples, as they are usual in keys."""
    for factor in (1, 64, 1_000, 2**32):
        keys = keys_of(INT8, [factor * n for n in range(20_000)])
        tables = split_rows(keys, row_hashes_of(keys), residue=0, steps=1, buckets=16)
        sizes = [table.num_rows for table in tables]
        assert sum(sizes) == 20_000
        assert max(sizes) < 1.2 * min(sizes)


def test_steps_together_give_every_row_once_and_in_its_bucket() -> None:
    keys = keys_of(INT8, list(range(1_000)))
    for steps in (1, 2, 8, 32):
        found: list[int] = []
        for residue in range(steps):
            tables = split_rows(keys, row_hashes_of(keys), residue=residue, steps=steps, buckets=32)
            for place, table in enumerate(tables):
                hashes = row_hashes(table.drop_columns(["t", "d"]))
                assert set((hashes % np.uint64(32)).tolist()) <= {residue + place * steps}
                found += table["c0"].to_pylist()
        assert sorted(found) == list(range(1_000))
