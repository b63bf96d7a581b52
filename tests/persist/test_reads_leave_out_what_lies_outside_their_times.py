"""Goal: a read of a stretch of time does not decode the history around it.

Parts are sorted by time and their row groups have statistics, so what lies outside is known without
looking at it. A part whose statistics would mislead a reader has none.
"""

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evertide.persist import read
from evertide.persist.coding import parts
from evertide.persist.coding.parts import (
    Times,
    checksum,
    columns_to_table,
    decode_part,
    encode_part,
    table_to_columns,
)
from evertide.persist.coding.updates import to_columns
from evertide.persist.handle import PersistClient
from evertide.persist.snapshot import snapshot_table
from evertide.persist.state import BlobPart, ShardChange, append, existing
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import FLOAT4, FLOAT8, INT8, TEXT
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp
from evertide.vocab.update import Update
from tests.persist.test_stored_bytes_are_golden import DESC as GOLDEN_DESC
from tests.persist.test_stored_bytes_are_golden import UPDATES as GOLDEN_UPDATES

SHARD = ShardId("s1")
DESC = relation_desc(("n", INT8), ("t", TEXT))
GROUP_ROWS = 100


def ts(value: int) -> Timestamp:
    return Timestamp(value)


class Groups:
    """The row groups that were read, a list for each part."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[list[int]] = []
        original = pq.ParquetFile.read_row_groups

        def noted(file: pq.ParquetFile, groups: Sequence[int], **options: object) -> pa.Table:
            self.read.append(list(groups))
            return original(file, groups, **options)

        monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noted)
        monkeypatch.setattr(parts, "_ROW_GROUP_ROWS", GROUP_ROWS)


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Groups:
    return Groups(monkeypatch)


def ten_groups() -> list[Update]:
    """Fifty updates at each time, so that every group has two times: 0 and 1, 2 and 3, ..."""
    return [Update((i, f"row {i}"), ts(i // 50), 1) for i in range(10 * GROUP_ROWS)]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((0, 20), range(10)),
        ((4, 8), [2, 3]),
        ((5, 7), [2, 3]),
        ((5, 6), [2]),
        ((6, 6), []),
        ((20, 30), []),
        ((19, EMPTY_FRONTIER), [9]),
    ],
)
def test_only_row_groups_of_these_times_are_read(
    groups: Groups, times: Times, expected: Sequence[int]
) -> None:
    updates = ten_groups()
    value = encode_part(columns_to_table(DESC, to_columns(updates)))
    part = BlobPart("s1/1-a.parquet", len(updates), len(value), checksum(value))
    found = table_to_columns(DESC, decode_part(DESC, part, value, times)).updates()
    assert found == [u for u in updates if times[0] <= u.ts < times[1]]
    assert groups.read == [list(expected)]


async def one_large_batch() -> tuple[PersistClient, list[Update]]:
    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob())
    await client.create_shard(SHARD)
    updates = ten_groups()
    value = encode_part(columns_to_table(DESC, to_columns(updates)))
    await client.blob.put("s1/1-a.parquet", value)
    part = BlobPart("s1/1-a.parquet", len(updates), len(value), checksum(value))
    change = existing(lambda s: append(s, lower=ts(0), upper=ts(20), writer=None, parts=(part,)))
    await client.machine.apply_all([ShardChange(SHARD, change)])
    return client, updates


async def test_updates_of_a_stretch_of_a_large_batch(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "_WHOLE_UPDATES", 500)
    client, updates = await one_large_batch()
    for _ in range(2):
        found = await client.read_updates(SHARD, DESC, ts(5), ts(7))
        assert found == [u for u in updates if 5 <= u.ts < 7]
    assert groups.read == [[2, 3], [2, 3]]
    assert len(await client.read_updates(SHARD, DESC, ts(0), ts(20))) == len(updates)
    assert groups.read[2:] == [list(range(10))]
    assert len(await client.read_updates(SHARD, DESC, ts(3), ts(4))) == 50
    assert len(groups.read) == 3, "what was read as a whole is kept"


async def test_contents_in_the_middle_of_a_large_batch(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "_WHOLE_UPDATES", 500)
    client, _ = await one_large_batch()
    assert len((await client.contents(SHARD, DESC, ts(2))).rows) == 150
    assert len((await client.contents(SHARD, DESC, ts(4))).rows) == 250
    assert groups.read == [[0, 1], [1, 2]]
    assert (await snapshot_table(client, SHARD, DESC, ts(2))).num_rows == 150
    assert groups.read[2:] == [[0, 1]]


async def test_batches_outside_are_not_even_fetched() -> None:
    client, updates = await one_large_batch()
    more = [u._replace(ts=ts(20)) for u in updates]
    value = encode_part(columns_to_table(DESC, to_columns(more)))
    part = BlobPart("s1/2-b.parquet", len(more), len(value), checksum(value))
    change = existing(lambda s: append(s, lower=ts(20), upper=ts(21), writer=None, parts=(part,)))
    await client.machine.apply_all([ShardChange(SHARD, change)])
    assert len((await client.contents(SHARD, DESC, ts(19))).rows) == len(updates)
    assert (await snapshot_table(client, SHARD, DESC, ts(19))).num_rows == len(updates)
    assert len(await client.read_updates(SHARD, DESC, ts(0), ts(20))) == len(updates)
    await client.blob.put("s1/2-b.parquet", value)
    await client.blob._store.delete("s1/1-a.parquet")
    fresh = PersistClient(client.machine._consensus, client.blob._store)
    assert len(await fresh.read_updates(SHARD, DESC, ts(20), ts(21))) == len(updates)


def test_a_part_without_statistics_is_read_as_a_whole() -> None:
    updates = ten_groups()
    sink = pa.BufferOutputStream()
    table = columns_to_table(DESC, to_columns(updates))
    pq.write_table(table, sink, write_statistics=False, store_schema=False)
    value = sink.getvalue().to_pybytes()
    part = BlobPart("s1/1-a.parquet", len(updates), len(value), checksum(value))
    assert decode_part(DESC, part, value, (MIN_TS, ts(1))).num_rows == 50


def test_every_column_has_statistics() -> None:
    ordinary = [update for update in GOLDEN_UPDATES if update.error is None]
    value = encode_part(columns_to_table(GOLDEN_DESC, to_columns(ordinary)))
    group = pq.ParquetFile(pa.BufferReader(value)).metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    assert len(columns) > GOLDEN_DESC.arity + 3, "fields of an interval, elements of an array"
    for column in columns:
        assert column.statistics is not None, column.path_in_schema
        assert column.statistics.has_min_max == (column.path_in_schema != "e")


def test_floats_have_none_that_would_mislead() -> None:
    """Spark finds NaN the greatest and -0.0 equal to 0.0; files know neither."""
    desc = relation_desc(("plain", FLOAT8), ("nan", FLOAT8), ("zeros", FLOAT4), ("nans", FLOAT4))
    rows = [(1.5, math.nan, -0.0, math.nan), (2.5, 1.0, 0.0, math.nan), (None, None, 0.0, None)]
    updates = [Update(row, ts(0), 1) for row in rows]
    value = encode_part(columns_to_table(desc, to_columns(updates)))
    group = pq.ParquetFile(pa.BufferReader(value)).metadata.row_group(0)
    columns = [group.column(place) for place in range(desc.arity)]
    assert [c.statistics is not None for c in columns] == [True, False, True, False]
    assert [c.has_dictionary_page for c in columns] == [False] * 4
    assert group.column(desc.arity).has_dictionary_page, "e"


def test_dictionaries_are_for_values_that_repeat() -> None:
    updates = [Update((i, f"group {i % 10}"), ts(i // 900), 1) for i in range(5_000)]
    value = encode_part(columns_to_table(DESC, to_columns(updates)))
    group = pq.ParquetFile(pa.BufferReader(value)).metadata.row_group(0)
    found = [group.column(place).has_dictionary_page for place in range(group.num_columns)]
    assert found == [False, True, True, True, True]


def test_pages_have_checksums() -> None:
    updates = ten_groups()
    value = bytearray(encode_part(columns_to_table(DESC, to_columns(updates))))
    value[value.index(b"\x28\xb5\x2f\xfd") + 40] ^= 1  # in the first compressed page
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(pa.BufferReader(bytes(value)), page_checksum_verification=True)
