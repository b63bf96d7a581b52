"""Goal: a staged view holds back its inputs' history from the start and has no shard of its own;
the old version's holds go when, and only when, nothing can need them any more.

Method: ops on a catalog, and what they do to the states of the shards.
"""

from collections.abc import Sequence

from evertide.adapter.writing.shard_changes import shard_changes
from evertide.catalog.drop import with_dependants
from evertide.catalog.objects import Item
from evertide.catalog.ops import DropItemsOp, Op
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.controller.storage import collection_of
from evertide.dataflow.description import hold_owner
from evertide.persist.state import ShardState
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.timestamp import Timestamp
from tests.catalog.replacing import apply, finish, stage
from tests.catalog.samples import create_mv, create_table, create_view, item, new_snapshot


class Site:
    """A catalog, and the shards that its transactions change. m reads t and u, r is to read u."""

    def __init__(self) -> None:
        self.snapshot: Snapshot = new_snapshot()
        self.states: dict[ShardId, ShardState] = {}
        self.do(create_table("t"), create_table("u"))
        self.do(create_view("v", self.item("u")))
        self.do(create_mv("m", self.item("t"), self.item("v")), reads="tu")
        self.first = self.item("m").global_id

    def do(self, *ops: Op, reads: Sequence[str] = ()) -> list[ShardId]:
        """The shards that changed."""
        result = transact(self.snapshot, ops, now_ms=2_000, user="materialize")
        imports = [collection_of(self.item(name), self.snapshot) for name in reads]
        found = [one for one in imports if one is not None]
        changes = shard_changes(result, found, self.snapshot)
        for change in changes:
            state = change.transition(self.states.get(change.shard_id))
            assert isinstance(state, ShardState), state
            self.states[change.shard_id] = state
        self.snapshot = self.snapshot.apply(result.updates, Timestamp(self.snapshot.upper + 1))
        return [change.shard_id for change in changes]

    def item(self, name: str) -> Item:
        return item(self.snapshot, name)

    def stage(self) -> GlobalId:
        self.do(stage("r", self.item("m"), self.item("v")), reads="u")
        return self.item("r").global_id

    def holds(self, name: str) -> dict[str, Timestamp]:
        shard_id = self.item(name).shard_id
        assert shard_id is not None
        return {hold.owner: hold.hold_ts for hold in self.states[shard_id].holds}


def test_staging_holds_the_inputs_and_makes_no_shard() -> None:
    site = Site()
    shards = dict(site.states)
    staged = site.stage()
    assert site.states.keys() == shards.keys()
    target = site.item("m").shard_id
    assert target is not None
    assert site.states[target] == shards[target]
    assert site.holds("u") == {
        hold_owner(site.first): Timestamp(5),
        hold_owner(staged): Timestamp(9),
    }
    assert site.holds("t") == {hold_owner(site.first): Timestamp(5)}


def test_discarding_releases_its_own_holds_only() -> None:
    site = Site()
    before = dict(site.states)
    site.stage()
    site.do(DropItemsOp((site.item("r").item_id,)))
    assert {shard: state.holds for shard, state in site.states.items()} == {
        shard: state.holds for shard, state in before.items()
    }
    assert not any(state.forgotten for state in site.states.values())


def test_applying_changes_no_shard_and_finishing_releases_the_old_holds() -> None:
    site = Site()
    staged = site.stage()
    assert site.do(apply(site.snapshot, "m", "r")) == []
    assert set(site.holds("u")) == {hold_owner(site.first), hold_owner(staged)}
    t, u = site.item("t").shard_id, site.item("u").shard_id
    assert set(site.do(finish(site.snapshot, "m"))) == {t, u}
    assert site.holds("t") == {}
    assert site.holds("u") == {hold_owner(staged): Timestamp(9)}
    assert not any(state.forgotten for state in site.states.values())


def test_dropping_it_while_it_is_handing_over_releases_both_versions_holds() -> None:
    site = Site()
    site.stage()
    site.do(apply(site.snapshot, "m", "r"))
    shard_id = site.item("m").shard_id
    site.do(DropItemsOp((site.item("m").item_id,)))
    assert (site.holds("t"), site.holds("u")) == ({}, {})
    assert [shard for shard, state in site.states.items() if state.forgotten] == [shard_id]


def test_the_target_and_its_replacement_go_together() -> None:
    site = Site()
    site.stage()
    shard_id = site.item("m").shard_id
    site.do(DropItemsOp(with_dependants(site.snapshot, [site.item("m").item_id])))
    assert (site.holds("t"), site.holds("u")) == ({}, {})
    assert [shard for shard, state in site.states.items() if state.forgotten] == [shard_id]


def test_everything_may_go_at_once_while_it_is_handing_over() -> None:
    site = Site()
    site.stage()
    site.do(apply(site.snapshot, "m", "r"))
    tables = [site.item(name).item_id for name in "tu"]
    site.do(DropItemsOp(with_dependants(site.snapshot, tables)))
    assert all(state.forgotten for state in site.states.values())
