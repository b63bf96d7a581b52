"""Goal: rows found in an older image and in what came after it are those that the view holds.

Method: a view's shard grows by random changes; now and then rows are looked for by a column, at the
newest timestamp and at earlier ones, and compared with all of its contents. How often images are
made is counted: few changes must not bring one forward.
"""

from collections import Counter
from collections.abc import AsyncIterator
from random import Random

import pytest

from evertide.adapter.reading.found_rows import pinned_for_rows, rows_found
from evertide.adapter.reading.leaves import ShardLeaf
from evertide.controller import near
from evertide.controller.storage import Storage
from evertide.dataflow.description import Derived, Import
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.scalar import Call, ColumnRef, Literal, Scalar
from evertide.persist.handle import PersistClient
from evertide.persist.images import TableImages
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Txns, register_table
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import BOOL, FLOAT8, INT8, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

DESC = relation_desc(("a", INT8), ("b", TEXT), ("c", FLOAT8))
TABLE = Import(GlobalId("t"), ShardId("t"), DESC, is_table=True)
VIEW = Import(
    GlobalId("v"),
    ShardId("v"),
    DESC,
    is_table=False,
    derived=Derived((TABLE,), Timestamp(1), GlobalId("v")),
)
BY_A, BY_B = ColumnRef(0, INT8), ColumnRef(1, TEXT)
ERROR = '["22012","division by zero"]'


def function(signature: str) -> ScalarFunction:
    found = by_signature(signature)
    assert isinstance(found, ScalarFunction)
    return found


def equals(signature: str, column: ColumnRef, value: int | str) -> Scalar:
    return Call(function(signature), (column, Literal(value, column.type)), BOOL)


def equals_a(value: int) -> Scalar:
    return equals("=(bigint,bigint)", BY_A, value)


def equals_b(value: str) -> Scalar:
    return equals("=(text,text)", BY_B, value)


class View:
    """A view's shard, and what is in it."""

    def __init__(self, client: PersistClient, storage: Storage) -> None:
        self.client = client
        self.storage = storage
        self.upper = 1

    async def append(self, changes: list[tuple[Row, int]], error: str | None = None) -> None:
        at, self.upper = Timestamp(self.upper), self.upper + 1
        updates = [Update(row, at, diff) for row, diff in changes]
        updates += [] if error is None else [Update((), at, 1, error)]
        await self.client.compare_and_append(
            VIEW.shard_id, DESC, updates, at, Timestamp(self.upper), VIEW.global_id
        )

    async def found(self, as_of: int, *predicates: Scalar) -> Counter[str] | None:
        """What a search finds that matches; None where it does not answer."""
        leaf = ShardLeaf(VIEW, "v", predicates, once=True)
        pinned = pinned_for_rows(predicates)
        assert pinned is not None
        known = await self.storage.columns.near.at(VIEW, Timestamp(as_of))
        if known is None:
            return None
        later = known.later(pinned.column, pinned.values, Timestamp(as_of))
        rows = rows_found(known.image, leaf, later, 1_000)
        if rows is None:
            return None
        assert all(count > 0 for _, count in rows)
        return counted(rows)

    async def held(self, as_of: int, column: int, value: int | str) -> Counter[str]:
        contents = await self.client.contents(VIEW.shard_id, DESC, Timestamp(as_of))
        return counted([(row, count) for row, count in contents.rows if row[column] == value])


def counted(rows: list[tuple[Row, int]]) -> Counter[str]:
    """By their text, in which -0.0 is not 0.0."""
    found: Counter[str] = Counter()
    for row, count in rows:
        found[repr(row)] += count
    return found


@pytest.fixture
async def view() -> AsyncIterator[View]:
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, MemoryBlob()) as client:
        txns = Txns(client, ShardId("txns"))
        await txns.ensure()
        await client.append_all([], also=[register_table(TABLE.shard_id)])
        await client.create_shard(VIEW.shard_id, since=Timestamp(1), writer=VIEW.global_id)
        yield View(client, Storage(client, txns))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Timestamp]:
    """The timestamps at which images were asked for."""
    asked: list[Timestamp] = []
    plain = TableImages.at

    async def at(self: TableImages, *args: object, **kwargs: object) -> object:
        asked.append(args[2])  # type: ignore[arg-type]
        return await plain(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(TableImages, "at", at)
    return asked


def random_row(rng: Random) -> Row:
    return (
        rng.randrange(5),
        rng.choice(["x", "y", None]),
        rng.choice([0.0, -0.0, 1.5, float("nan")]),
    )


@pytest.mark.parametrize("seed", range(20))
async def test_what_is_found_is_what_is_there(view: View, seed: int) -> None:
    rng = Random(seed)
    live: list[Row] = []
    for step in range(40):
        changes: list[tuple[Row, int]] = []
        for _ in range(rng.randrange(4)):
            if live and rng.random() < 0.5:
                changes.append((live.pop(rng.randrange(len(live))), -1))
            else:
                live.append(random_row(rng))
                changes.append((live[-1], 1))
        await view.append(changes)
        if step < 3 or rng.random() < 0.4:
            continue
        value, text = rng.randrange(6), rng.choice(["x", "y", "z"])
        for as_of in {view.upper - 1, rng.randrange(max(1, view.upper - 6), view.upper)}:
            assert await view.found(as_of, equals_a(value)) == await view.held(as_of, 0, value)
            assert await view.found(as_of, equals_b(text)) == await view.held(as_of, 1, text)


async def test_few_changes_do_not_bring_the_image_forward(
    view: View, made: list[Timestamp], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near, "MOST_CHANGES", 12)
    await view.append([((1, "x", 1.5), 1)])
    assert await view.found(view.upper - 1, equals_a(1)) == {"(1, 'x', 1.5)": 1}
    assert len(made) == 1
    for number in range(10):
        await view.append([((number, "y", 1.5), 1)])
        assert await view.found(view.upper - 1, equals_a(number)) is not None
    assert len(made) == 1, "it was still near enough"
    for number in range(5):
        await view.append([((number, "z", 1.5), 1)])
    found = await view.found(view.upper - 1, equals_a(3))
    assert found == {"(3, 'y', 1.5)": 1, "(3, 'z', 1.5)": 1}
    assert len(made) == 2, "so many changes are not kept beside it"


async def test_a_row_that_changes_all_the_time_brings_the_image_forward(
    view: View, made: list[Timestamp], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near, "MOST_PICKED", 6)
    await view.append([((1, "x", 0.5), 1), ((2, "x", 0.5), 1)])
    for number in range(12):
        await view.append([((1, "x", number + 0.5), -1), ((1, "x", number + 1.5), 1)])
        assert await view.found(view.upper - 1, equals_a(2)) == {"(2, 'x', 0.5)": 1}
    assert len(made) == 1, "the row that was looked for has stayed the same"
    for number in range(12, 24):
        await view.append([((1, "x", number + 0.5), -1), ((1, "x", number + 1.5), 1)])
        found = await view.found(view.upper - 1, equals_a(1))
        assert found == {f"(1, 'x', {number + 1.5})": 1}
    assert 1 < len(made) < 6, "after some changes, not after each of them"


async def test_large_changes_bring_the_image_forward(
    view: View, made: list[Timestamp], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near, "MOST_BYTES", 1_000)
    for number in range(6):
        await view.append([((number, "x" * 400, 1.5), 1)])
        found = await view.found(view.upper - 1, equals_a(number))
        assert found == {repr((number, "x" * 400, 1.5)): 1}
    assert len(made) == 2, "at first, and when those beside it were too large"


async def test_an_error_is_for_others_to_tell(view: View) -> None:
    await view.append([((1, "x", 1.5), 1)])
    assert await view.found(view.upper - 1, equals_a(1)) == {"(1, 'x', 1.5)": 1}
    await view.append([((1, "y", 1.5), 1)], ERROR)
    assert await view.found(view.upper - 1, equals_a(1)) is None


async def test_a_row_that_goes_without_having_come_is_for_others_to_tell(view: View) -> None:
    await view.append([((1, "x", 1.5), 1)])
    assert await view.found(view.upper - 1, equals_a(1)) == {"(1, 'x', 1.5)": 1}
    await view.append([((2, "x", 1.5), -1)])
    assert await view.found(view.upper - 1, equals_a(2)) is None
    assert await view.found(view.upper - 1, equals_a(1)) == {"(1, 'x', 1.5)": 1}


async def test_what_went_and_was_not_looked_for_is_not_found(view: View) -> None:
    await view.append([((1, "x", 1.5), 1), ((1, "y", 1.5), 1)])
    assert await view.found(view.upper - 1, equals_a(1), equals_b("y")) == {"(1, 'y', 1.5)": 1}
    await view.append([((1, "x", 1.5), -1)])
    assert await view.found(view.upper - 1, equals_a(1), equals_b("y")) == {"(1, 'y', 1.5)": 1}


def test_where_a_predicate_can_fail_all_rows_are_looked_at() -> None:
    divided = Call(function("/(bigint,bigint)"), (Literal(1, INT8), BY_A), INT8)
    fallible = Call(function("=(bigint,bigint)"), (divided, Literal(1, INT8)), BOOL)
    assert pinned_for_rows((equals_b("x"),)) is not None
    assert pinned_for_rows((equals_b("x"), fallible)) is None
