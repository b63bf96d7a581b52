"""Goal: shards and holds of sources and sinks come and go with their items, in one transaction.

Method: ops on a catalog, and what they do to the states of the shards.
"""

from collections.abc import Sequence

from evertide.adapter.writing.shard_changes import shard_changes
from evertide.catalog.drop import without_cascade
from evertide.catalog.load_tables import AUCTION, COUNTER
from evertide.catalog.new_external import Beside, NewSink, NewSource, NewSubsource
from evertide.catalog.objects import AuctionLoad, CounterLoad, Item
from evertide.catalog.ops import DropItemsOp, Op
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.controller.follow_external import sinks_of, sources_of
from evertide.controller.storage import collection_of
from evertide.dataflow.description import hold_owner
from evertide.persist.state import ShardState
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp
from tests.catalog.samples import DEFAULT, PUBLIC, create, new_snapshot

AS_OF = Timestamp(700)
NUMBERS = create(
    "numbers",
    NewSource(cluster_id=DEFAULT, as_of=AS_OF, load=CounterLoad(tick_ms=5), stored=True),
    desc=COUNTER,
)
HOUSE: tuple[Op, ...] = (
    create(
        "house",
        NewSource(cluster_id=DEFAULT, as_of=AS_OF, load=AuctionLoad(tick_ms=5), stored=False),
        desc=RelationDesc(()),
    ),
    *(
        create(
            table,
            NewSubsource(of=Beside(PUBLIC, "house"), table=table, as_of=AS_OF),
            desc=AUCTION[table],
        )
        for table in ("auctions", "bids")
    ),
)


class Site:
    """A catalog, and the shards that its transactions change."""

    def __init__(self) -> None:
        self.snapshot: Snapshot = new_snapshot()
        self.states: dict[ShardId, ShardState] = {}

    def do(self, *ops: Op, reads: Sequence[Item] = ()) -> None:
        result = transact(self.snapshot, ops, now_ms=2_000, user="materialize")
        imports = [collection_of(item, self.snapshot) for item in reads]
        found = [one for one in imports if one is not None]
        for change in shard_changes(result, found, self.snapshot):
            state = change.transition(self.states.get(change.shard_id))
            assert isinstance(state, ShardState), state
            self.states[change.shard_id] = state
        self.snapshot = self.snapshot.apply(result.updates, Timestamp(self.snapshot.upper + 1))

    def item(self, name: str) -> Item:
        found = self.snapshot.item_named(PUBLIC, name)
        assert found is not None
        return found

    def state(self, name: str) -> ShardState:
        shard_id = self.item(name).shard_id
        assert shard_id is not None
        return self.states[shard_id]

    def sink(self, from_: str) -> None:
        item = self.item(from_)
        sink = NewSink(
            from_id=item.item_id, cluster_id=DEFAULT, as_of=AS_OF, path="out", snapshot=True
        )
        self.do(create("sink", sink, item, desc=RelationDesc(())), reads=[item])


def test_a_source_begins_where_it_was_created_and_only_it_may_write() -> None:
    site = Site()
    site.do(NUMBERS)
    state = site.state("numbers")
    assert (state.since, state.upper) == (AS_OF, AS_OF)
    assert state.writer == site.item("numbers").global_id


def test_every_table_of_a_source_has_a_shard_and_the_source_has_none() -> None:
    site = Site()
    site.do(*HOUSE)
    assert site.item("house").shard_id is None
    (source,) = sources_of(site.snapshot, [DEFAULT])
    assert [table.table for table in source.tables] == ["auctions", "bids"]
    for table in source.tables:
        assert site.states[table.shard_id].writer == table.global_id


def test_a_source_goes_with_its_tables_and_takes_no_more_appends() -> None:
    site = Site()
    site.do(*HOUSE)
    shards = list(site.states)
    site.do(DropItemsOp(without_cascade(site.snapshot, [site.item("house").item_id])))
    assert [site.states[shard].forgotten for shard in shards] == [True, True]
    assert sources_of(site.snapshot, [DEFAULT]) == ()


def test_one_table_can_go_alone() -> None:
    site = Site()
    site.do(*HOUSE)
    site.do(DropItemsOp(without_cascade(site.snapshot, [site.item("bids").item_id])))
    (source,) = sources_of(site.snapshot, [DEFAULT])
    assert [table.table for table in source.tables] == ["auctions"]


def test_a_sink_holds_its_collection_until_it_is_dropped() -> None:
    site = Site()
    site.do(NUMBERS)
    site.sink("numbers")
    (sink,) = sinks_of(site.snapshot, [DEFAULT])
    (hold,) = site.state("numbers").holds
    assert hold.owner == hold_owner(sink.global_id)
    assert (hold.hold_ts, hold.expires_ms) == (AS_OF, None)
    assert (sink.path, sink.as_of, sink.collection.global_id) == (
        "out",
        AS_OF,
        site.item("numbers").global_id,
    )
    site.do(DropItemsOp((site.item("sink").item_id,)))
    assert site.state("numbers").holds == ()
    assert not site.state("numbers").forgotten
    assert sinks_of(site.snapshot, [DEFAULT]) == ()
