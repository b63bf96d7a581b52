"""Every way a shard's state may change, and every way it refuses to."""

from typing import Any

import msgspec
import pytest

from evertide.persist.coding.schemas import column_types, merged_relation
from evertide.persist.state import (
    Batch,
    BatchesGone,
    Changed,
    ColumnTypes,
    Forgotten,
    HoldBelowSince,
    InlinePart,
    PendingWrite,
    Schema,
    SchemaMismatch,
    ShardState,
    UpperMismatch,
    WriterMismatch,
    advance_since,
    allowed_since,
    append,
    compact,
    drop_expired,
    forget,
    initial_state,
    release_hold,
    restore,
    set_hold,
    set_writer,
)
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import ColumnDesc, relation_desc
from evertide.vocab.sql_type import INT8, NUMERIC, TEXT, Kind, SqlType, array_of
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp

OLD, NEW = GlobalId("u1"), GlobalId("u2")
PART = InlinePart(b"p", 1)


def ts(value: int) -> Timestamp:
    return Timestamp(value)


def made(changed: Changed) -> ShardState:
    assert isinstance(changed, ShardState), changed
    return changed


def appended(state: ShardState, lower: int, upper: int, **options: Any) -> Changed:
    writer = options.pop("writer", state.writer)
    return append(state, lower=ts(lower), upper=ts(upper), writer=writer, **options)


def test_an_append_moves_the_upper_and_keeps_its_batch() -> None:
    state = made(appended(initial_state(since=ts(5)), 5, 8, parts=(PART,)))
    assert (state.since, state.upper) == (5, 8)
    assert state.batches == (Batch(ts(5), ts(8), ts(0), (PART,)),)


def test_an_append_without_updates_leaves_no_batch() -> None:
    state = made(appended(initial_state(), 0, 8))
    assert (state.upper, state.batches) == (8, ())


def test_an_append_at_another_upper_is_refused() -> None:
    state = made(appended(initial_state(), 0, 8))
    assert appended(state, 7, 9) == UpperMismatch(ts(8))
    assert appended(state, 9, 10) == UpperMismatch(ts(8))


def test_a_stranger_learns_that_the_shard_is_not_its_own_before_anything_else() -> None:
    state = initial_state(writer=OLD)
    assert appended(state, 3, 4, writer=NEW) == WriterMismatch(OLD)
    assert appended(state, 0, 4, writer=None) == WriterMismatch(OLD)


def test_cut_over_freezes_the_upper_until_the_completing_append() -> None:
    state = made(appended(initial_state(writer=OLD), 0, 8))
    assert set_writer(state, writer=NEW, expected_upper=ts(7), pending=True) == UpperMismatch(ts(8))
    state = made(set_writer(state, writer=NEW, expected_upper=ts(8), pending=True))
    assert appended(state, 8, 9, writer=OLD) == WriterMismatch(NEW)
    assert appended(state, 8, 9) == PendingWrite(ts(8))
    state = made(appended(state, 8, 9, completes_pending=True))
    assert (state.upper, state.pending) == (9, None)
    assert made(appended(state, 9, 10)).upper == 10


def test_a_hold_keeps_since_back_until_released() -> None:
    state = made(appended(initial_state(since_lag=10), 0, 100))
    state = made(set_hold(state, owner="view", hold_ts=ts(30)))
    assert allowed_since(state, now_ms=0) == 30
    state = made(set_hold(state, owner="view", hold_ts=ts(50)))
    assert advance_since(state, to=ts(89)).since == 50
    state = release_hold(release_hold(state, owner="view"), owner="view")
    assert allowed_since(state, now_ms=0) == 89
    state = advance_since(state, to=ts(89))
    assert state.since == 89
    assert set_hold(state, owner="view", hold_ts=ts(88)) == HoldBelowSince(ts(89))


def test_a_lease_ends_by_itself() -> None:
    state = made(appended(initial_state(since_lag=0), 0, 100))
    state = made(set_hold(state, owner="lease", hold_ts=ts(30), expires_ms=1_000))
    assert allowed_since(state, now_ms=999) == 30
    assert allowed_since(state, now_ms=1_000) == 99
    assert drop_expired(state, now_ms=999) is state
    assert drop_expired(state, now_ms=1_000).holds == ()


def test_since_trails_the_upper_and_never_goes_back() -> None:
    state = made(appended(initial_state(since=ts(50), since_lag=60), 50, 100))
    assert allowed_since(state, now_ms=0) == 50
    assert advance_since(state, to=ts(500)).since == 99
    assert advance_since(state, to=ts(1)).since == 50


def test_a_sealed_shard_keeps_its_since() -> None:
    state = made(appended(initial_state(since=ts(50)), 50, EMPTY_FRONTIER))
    assert allowed_since(state, now_ms=0) == 50


def test_compaction_replaces_a_run_of_batches_or_nothing() -> None:
    state = initial_state()
    for lower in range(4):
        state = made(appended(state, lower, lower + 1, parts=(InlinePart(bytes([lower]), 1),)))
    first, second, third, fourth = state.batches
    merged = Batch(ts(1), ts(3), ts(0), (PART,))
    done = made(compact(state, replaced=(second, third), replacement=(merged,)))
    assert done.batches == (first, merged, fourth)
    gone = made(compact(state, replaced=(second, third), replacement=()))
    assert gone.batches == (first, fourth)
    assert compact(done, replaced=(second, third), replacement=()) == BatchesGone()
    assert compact(state, replaced=(first, third), replacement=()) == BatchesGone()


def test_a_forgotten_table_takes_no_appends_until_restored() -> None:
    state = forget(made(appended(initial_state(), 0, 8, parts=(PART,))))
    assert appended(state, 8, 9) == Forgotten()
    assert set_writer(state, writer=NEW, expected_upper=ts(8), pending=False) == Forgotten()
    back = made(restore(state))
    assert back.batches == state.batches
    assert made(appended(back, 8, 9)).upper == 9


KEY = ("int8",)
WIDE = ("int8", "text")
WIDER = ("int8", "text", "numeric[]")


def versions(state: ShardState) -> list[int]:
    return [part.schema for batch in state.batches for part in batch.parts]


def written(*shapes: tuple[str, ...]) -> ShardState:
    """A shard with an append of each shape."""
    state = initial_state()
    for number, names in enumerate(shapes):
        options = {"parts": (PART,), "columns": ColumnTypes(names)}
        state = made(appended(state, number, number + 1, **options))
    return state


def test_an_append_finds_its_version_or_adds_the_next() -> None:
    state = written(KEY, KEY, WIDE, KEY, WIDER, WIDE)
    assert state.schemas == (Schema(KEY), Schema(WIDE), Schema(WIDER))
    assert versions(state) == [0, 0, 1, 0, 2, 1]


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("text",),
        ("int4", "text"),
        ("int8", "text", "text"),
        ("text", "int8", "numeric[]"),
        ("int8", "text", "numeric", "int8"),
    ],
)
def test_columns_that_are_no_extension_are_refused(names: tuple[str, ...]) -> None:
    state = written(KEY, WIDER)
    options = {"parts": (PART,), "columns": ColumnTypes(names)}
    assert appended(state, 2, 3, **options) == SchemaMismatch(WIDER, names)
    assert appended(state, 7, 8, **options) == SchemaMismatch(WIDER, names), "before its upper"
    without_rows = appended(state, 2, 3, columns=ColumnTypes(names))
    assert without_rows == SchemaMismatch(WIDER, names)


def test_a_prefix_that_was_never_a_version_is_refused() -> None:
    options = {"parts": (PART,), "columns": ColumnTypes(KEY)}
    assert appended(written(WIDE), 1, 2, **options) == SchemaMismatch(WIDE, KEY)


def test_only_nullable_columns_are_added() -> None:
    """Rows from before have no value there. What a version already has may be anything."""
    state = written(KEY)
    needs_text = ColumnTypes(WIDE, required=2)
    assert appended(state, 1, 2, parts=(PART,), columns=needs_text) == SchemaMismatch(KEY, WIDE)
    needs_key = ColumnTypes(WIDE, required=1)
    state = made(appended(state, 1, 2, parts=(PART,), columns=needs_key))
    assert versions(made(appended(state, 2, 3, parts=(PART,), columns=needs_text))) == [0, 1, 1]


def test_only_an_append_with_rows_adds_a_version() -> None:
    state = made(appended(written(KEY), 1, 2, columns=ColumnTypes(WIDE)))
    assert state.schemas == (Schema(KEY),)


def test_a_shard_from_before_schemas_gets_its_first_by_its_next_append() -> None:
    old = made(appended(initial_state(), 0, 1, parts=(PART,)))
    assert (old.schemas, versions(old)) == ((), [0])
    state = made(appended(old, 1, 2, parts=(PART,), columns=ColumnTypes(WIDE)))
    assert (state.schemas, versions(state)) == ((Schema(WIDE),), [0, 0])


def test_a_relation_names_what_decides_how_its_values_lie() -> None:
    amount = SqlType(Kind.NUMERIC, precision=10, scale=2)
    desc = relation_desc(
        ColumnDesc("id", INT8, nullable=False), ("name", TEXT), ("amounts", array_of(amount))
    )
    assert column_types(desc) == ColumnTypes(WIDER, required=1)


def test_a_merge_keeps_every_column() -> None:
    """The one who merges may know fewer columns than the parts have."""
    state = written(KEY, WIDE, KEY)
    known_here = relation_desc(("id", INT8))
    parts = [part for batch in state.batches for part in batch.parts]
    relation, version = merged_relation(state, parts, known_here)
    assert (relation.types, version) == ((INT8, TEXT), 1)
    assert merged_relation(state, parts[2:], known_here)[0].types == (INT8,)
    wide = Batch(ts(0), ts(3), ts(0), (msgspec.structs.replace(PART, schema=1),))
    narrow = Batch(ts(0), ts(3), ts(0), (PART,))
    assert made(compact(state, replaced=state.batches, replacement=(wide,))).batches == (wide,)
    with pytest.raises(AssertionError):
        compact(state, replaced=state.batches, replacement=(narrow,))
    before_schemas = msgspec.structs.replace(state, schemas=())
    assert merged_relation(before_schemas, [PART], relation_desc(("n", NUMERIC)))[1] == 0
