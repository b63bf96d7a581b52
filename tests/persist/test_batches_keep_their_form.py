"""Goal: updates are the same whether they travel as rows, as columns or as bytes.

Method: random rows of every type, NULLs, NaN, -0.0 and errors among them, through every chain of
forms; equality by representation. Then through a shard, whose readers must not even make rows where
nobody asks for them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertide.persist import prepare
from evertide.persist.coding import batch as batch_module
from evertide.persist.coding.arrow_inline import decode_arrow, encode_arrow
from evertide.persist.coding.batch import (
    COLUMNAR_ROWS,
    FEW_ROWS,
    UpdateBatch,
    concat_batches,
    from_payload,
    no_updates,
    to_batch,
)
from evertide.persist.coding.encoding import update_schema
from evertide.persist.coding.inline import decode_inline, encode_inline
from evertide.persist.coding.parts import table_to_columns
from evertide.persist.faults import Corrupt
from evertide.persist.handle import Append, Appended, PersistClient
from evertide.persist.snapshot import snapshot_table
from evertide.persist.state import InlinePart
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.vocab.datum import Row
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc, relation_desc
from evertide.vocab.sql_type import FLOAT8, INT4, INT8, TEXT
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update
from tests.persist.strategies import DATUMS

EVERY_TYPE = sorted(DATUMS, key=str)
DESC = relation_desc(*((f"col{i}", sql_type) for i, sql_type in enumerate(EVERY_TYPE)))
ROWS = st.tuples(*(DATUMS[sql_type] | st.none() for sql_type in EVERY_TYPE))
SMALL = relation_desc(("a", INT8), ("b", TEXT), ("c", FLOAT8))
SHARD = ShardId("s1")
ERROR = '["22012","division by zero"]'

Form = Callable[[UpdateBatch], UpdateBatch]
FORMS: dict[str, Form] = {
    "rows": lambda batch: UpdateBatch(batch.desc, columns=batch.columns),
    "columns": lambda batch: UpdateBatch(batch.desc, table=batch.table),
    "msgpack": lambda batch: from_payload(batch.desc, encode_inline(batch)),
    "arrow": lambda batch: from_payload(batch.desc, encode_arrow(batch.table)),
    "bytes": lambda batch: UpdateBatch(batch.desc, payload=encode_arrow(batch.table)),
}


def ts(moment: int) -> Timestamp:
    return Timestamp(moment)


def updates_of(rows: Sequence[Row]) -> list[Update]:
    ordinary = [Update(row, ts(i % 3), (-1) ** i * (i + 1)) for i, row in enumerate(rows)]
    return [*ordinary, Update((), ts(1), 2, ERROR)]


def small_updates(count: int, at: int = 0, first: int = 0) -> list[Update]:
    return [Update((i, f"name {i}", i / 2), ts(at), 1) for i in range(first, first + count)]


def same(found: Sequence[Update], expected: Sequence[Update]) -> bool:
    return sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.parametrize("chain", list(permutations(FORMS, 3)), ids=" to ".join)
def test_every_type_through_every_chain_of_forms(chain: tuple[str, ...]) -> None:
    @settings(max_examples=6, deadline=None)
    @given(st.lists(ROWS, max_size=5))
    def check(rows: list[Row]) -> None:
        updates = updates_of(rows)
        batch = to_batch(DESC, updates)
        for form in chain:
            batch = FORMS[form](batch)
            assert batch.table.schema == update_schema(DESC)
            assert len(batch) == len(updates)
            assert batch.span == (min(u.ts for u in updates), max(u.ts for u in updates))
            assert same(batch, updates)
            assert same(table_to_columns(DESC, batch.table).updates(), updates)

    check()


@given(ROWS, st.sampled_from([None, ERROR]))
@settings(max_examples=20, deadline=None)
def test_a_single_update_is_stored_as_it_would_be_among_others(row: Row, error: str | None) -> None:
    update = Update((), ts(4), -3, error) if error else Update(row, ts(4), -3)
    batch = to_batch(DESC, [update])
    assert batch.payload == encode_inline([update])
    assert same(batch, [update])
    assert same(from_payload(DESC, batch.payload), [update])
    assert (len(batch), batch.span, batch.columnar) == (1, (ts(4), ts(4)), False)
    assert same(table_to_columns(DESC, batch.table).updates(), [update])


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_stretch_of_time_is_cut_out_in_any_form(form: Form) -> None:
    updates = [u for moment in (5, 3, 9) for u in small_updates(2, moment, 10 * moment)]
    batch = form(to_batch(SMALL, updates))
    for lower in range(2, 11):
        for upper in range(lower, 12):
            found = batch.between(ts(lower), ts(upper))
            assert same(found, [u for u in updates if lower <= u.ts < upper])
    assert batch.between(ts(3), ts(10)) is batch
    assert batch[0] in updates
    assert batch[:2] == list(batch)[:2]


@pytest.mark.parametrize("counts", [(0, 0), (1, 0), (1, 1), (FEW_ROWS, 3), (300, 0), (5, 300)])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_batches_of_mixed_forms_are_put_together(form: Form, counts: tuple[int, int]) -> None:
    parts = [small_updates(counts[0]), small_updates(counts[1], 1, 500)]
    mixed = [form(to_batch(SMALL, parts[0])), to_batch(SMALL, parts[1]), no_updates(SMALL)]
    both = concat_batches(SMALL, mixed)
    assert len(both) == sum(counts)
    assert same(both, [*parts[0], *parts[1]])


@pytest.mark.parametrize(
    ("count", "rows_first", "version"),
    [
        (1, True, 1),
        (COLUMNAR_ROWS - 1, True, 1),
        (COLUMNAR_ROWS, True, 2),
        (FEW_ROWS - 1, False, 1),
        (FEW_ROWS, False, 2),
    ],
)
def test_the_first_byte_tells_rows_from_columns(count: int, rows_first: bool, version: int) -> None:
    batch = to_batch(SMALL, small_updates(count))
    if not rows_first:
        batch = UpdateBatch(SMALL, table=batch.table)
    assert batch.payload[0] == version
    assert decode_inline(SMALL, batch.payload).updates() == small_updates(count)


def test_readers_of_other_versions_take_the_first_columns_or_find_null() -> None:
    payload = encode_arrow(to_batch(SMALL, [*small_updates(2), Update((), ts(4), -3, ERROR)]).table)
    columns = [*((c.name, c.type) for c in SMALL.columns), ("d", INT4)]
    for arity in range(5):
        desc = relation_desc(*columns[:arity])
        found = decode_inline(desc, payload).updates()
        wanted = [(*u.row, None)[:arity] for u in small_updates(2)]
        assert [u.row for u in found] == [*wanted, ()]
        assert found[-1] == Update((), ts(4), -3, ERROR)
    for desc in (relation_desc(("a", TEXT)), relation_desc(("a", INT4))):
        with pytest.raises(Corrupt, match="does not fit"):
            decode_arrow(desc, payload)


def test_updates_without_a_time_are_damage() -> None:
    table = to_batch(SMALL, small_updates(3)).table
    for name in ("t", "d"):
        place = table.schema.get_field_index(name)
        without = table.set_column(place, table.schema.field(place), pa.nulls(3, pa.int64()))
        with pytest.raises(Corrupt, match="without a time"):
            decode_arrow(SMALL, encode_arrow(without))


async def new_client() -> PersistClient:
    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob())
    await client.create_shard(SHARD)
    return client


def elsewhere(client: PersistClient) -> PersistClient:
    """Another process, which has nothing in memory."""
    return PersistClient(client.machine._consensus, client.blob._store)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("count", [3, 400, 20_000], ids=["rows", "arrow", "part"])
async def test_a_shard_holds_the_same_whatever_form_came(count: int, form: Form) -> None:
    updates = [*small_updates(count), *small_updates(2, 5), Update((), ts(7), 1, ERROR)]
    async with await new_client() as client:
        batch = form(to_batch(SMALL, updates))
        appended = await client.append_each([Append(SHARD, SMALL, batch, ts(0), ts(9))])
        assert appended == [Appended(ts(9))]
        for reader in (client, elsewhere(client)):
            assert same(await reader.read_updates(SHARD, SMALL, ts(0), ts(9)), updates)
            columns = await reader.reader.update_columns(SHARD, SMALL, ts(1), ts(8))
            assert same(columns, [u for u in updates if u.ts > 0])
            table = await snapshot_table(reader, SHARD, SMALL, ts(8))
            held = Counter[str]()
            for u in updates:
                held[repr((u.row, u.error))] += u.diff
            for found in (await reader.snapshot(SHARD, SMALL, ts(8)), to_updates(table)):
                sums = Counter[str]()
                for u in found:
                    sums[repr((u.row, u.error))] += u.diff
                assert sums == held


def to_updates(table: pa.Table) -> list[Update]:
    return table_to_columns(SMALL, table).updates()


@pytest.mark.parametrize("count", [400, 20_000], ids=["inline", "part"])
async def test_columns_pass_through_a_shard_without_becoming_rows(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = to_batch(SMALL, small_updates(count)).table
    made = []
    monkeypatch.setattr(batch_module, "table_to_columns", lambda *_: made.append("rows"))
    monkeypatch.setattr(batch_module, "decode_inline", lambda *_: made.append("rows"))
    monkeypatch.setattr(batch_module, "columns_to_table", lambda *_: made.append("columns"))
    async with await new_client() as client:
        batch = UpdateBatch(SMALL, table=table)
        await client.append_each([Append(SHARD, SMALL, batch, ts(0), ts(9))])
        for reader in (client, elsewhere(client)):
            found = await reader.reader.update_columns(SHARD, SMALL, ts(0), ts(9))
            assert found.table.equals(table)
            assert len(found) == count
            assert from_payload(SMALL, found.payload).table.equals(table)
    assert made == []


async def test_what_lies_in_the_state_goes_on_as_the_same_bytes() -> None:
    async with await new_client() as client:
        for lower, count in ((0, 3), (1, 400)):
            updates = small_updates(count, lower)
            append = Append(SHARD, SMALL, updates, ts(lower), ts(lower + 1))
            await client.append_each([append])
            part = (await client.state(SHARD)).batches[-1].parts[0]
            assert isinstance(part, InlinePart)
            for reader in (client, elsewhere(client)):
                found = await reader.reader.update_columns(SHARD, SMALL, ts(lower), ts(lower + 1))
                assert found.payload == part.payload


async def test_an_append_of_columns_outside_its_times_is_our_bug() -> None:
    table = to_batch(SMALL, small_updates(50, at=9)).table
    async with await new_client() as client:
        append = Append(SHARD, SMALL, UpdateBatch(SMALL, table=table), ts(0), ts(9))
        with pytest.raises(AssertionError, match="lie in the append"):
            await client.append_each([append])


async def test_a_large_batch_in_columns_is_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "INLINE_BYTES", 100)
    async with await new_client() as client:
        await client.append_each([Append(SHARD, SMALL, small_updates(300), MIN_TS, ts(1))])
        (batch,) = (await client.state(SHARD)).batches
        assert batch.rows == 300
        assert batch.inline_bytes == 0
        assert same(await elsewhere(client).snapshot(SHARD, SMALL, ts(0)), small_updates(300))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_relations_without_columns(form: Form) -> None:
    desc = RelationDesc(())
    updates = [Update((), ts(3), 2), Update((), ts(4), 1, ERROR)]
    assert same(form(to_batch(desc, updates)), updates)
