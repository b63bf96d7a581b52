"""Goal: a shard's state and the catalog always agree on what is kept: shards of dropped items take
no appends and cannot be purged, those of items that came back go on, and all others may go.

Method: random drops, returns and purges on a catalog, and what they do to the states of shards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import msgspec
import pytest

from evertide.adapter.writing.shard_changes import ViewStart, shard_changes
from evertide.catalog.checks import faults_of
from evertide.catalog.dropped_ops import PurgeDroppedOp
from evertide.catalog.objects import Item, MaterializedView
from evertide.catalog.ops import Op
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import TransactResult, transact
from evertide.controller.storage import collection_of
from evertide.dataflow.description import Import, hold_owner
from evertide.persist.purge import note_forgotten, purge
from evertide.persist.shelf import shelf_owner
from evertide.persist.state import Forgotten, ShardState, append
from evertide.vocab.ids import GlobalId, ItemId, ShardId
from evertide.vocab.timestamp import Timestamp
from tests.catalog.samples import (
    create_index,
    create_mv,
    create_table,
    create_view,
    item,
    new_snapshot,
)
from tests.catalog.undropping import drop, undrop

SEEDS = range(10)


@dataclass
class Site:
    """A catalog and the shards that its transactions change.

    m reads t through v, n reads m and u, i is an index on m.
    """

    snapshot: Snapshot = field(default_factory=new_snapshot)
    states: dict[ShardId, ShardState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.do(create_table("t"), create_table("u"))
        self.do(create_view("v", self.item("t")))
        self.do(create_mv("m", self.item("v")), imports=self.imports("t"))
        self.do(create_mv("n", self.item("m"), self.item("u")), imports=self.imports("mu"))
        self.do(create_index("i", self.item("m")))

    def do(
        self,
        *ops: Op,
        imports: tuple[Import, ...] = (),
        returning: Mapping[ItemId, ViewStart] | None = None,
    ) -> None:
        result = self.decided(*ops)
        for change in shard_changes(result, imports, self.snapshot, returning):
            state = change.transition(self.states.get(change.shard_id))
            assert isinstance(state, ShardState), (change.shard_id, state)
            self.states[change.shard_id] = state
        self.snapshot = self.snapshot.apply(result.updates, Timestamp(self.snapshot.upper + 1))

    def decided(self, *ops: Op) -> TransactResult:
        return transact(self.snapshot, ops, now_ms=2_000, user="materialize")

    def item(self, name: str) -> Item:
        return item(self.snapshot, name)

    def imports(self, names: str) -> tuple[Import, ...]:
        found = [collection_of(self.item(name), self.snapshot) for name in names]
        return tuple(one for one in found if one is not None)

    def undrop(self, *item_ids: ItemId, anew: Mapping[ItemId, Timestamp] | None = None) -> None:
        op = undrop(self.snapshot, *item_ids, anew=anew)
        after = self.snapshot.apply(self.decided(op).updates, self.snapshot.upper)
        starts: dict[ItemId, ViewStart] = {}
        for item_id in item_ids:
            definition = after.items[item_id].definition
            if isinstance(definition, MaterializedView):
                read = [collection_of(one, after) for one in _inputs(after, item_id)]
                inputs = tuple(one for one in read if one is not None)
                starts[item_id] = ViewStart(inputs, definition.as_of)
        self.do(op, returning=starts)

    def state(self, name: str) -> ShardState:
        shard_id = self.item(name).shard_id
        assert shard_id is not None
        return self.states[shard_id]


def _inputs(snapshot: Snapshot, item_id: ItemId) -> list[Item]:
    return snapshot.stored_inputs(snapshot.items[item_id].reads)


def purged(state: ShardState) -> bool:
    """Whether the sweeper would give up what the shard holds, however late it comes."""
    noted = note_forgotten(state, now_ms=0)
    return isinstance(purge(noted, now_ms=10**15), ShardState)


def takes(state: ShardState, writer: GlobalId | None) -> bool:
    upper = Timestamp(state.upper + 1)
    outcome = append(state, lower=state.upper, upper=upper, writer=writer)
    assert isinstance(outcome, ShardState | Forgotten), outcome
    return isinstance(outcome, ShardState)


def check(site: Site) -> None:
    """Everything that must hold of every shard."""
    assert faults_of(site.snapshot) == []
    live = {i.shard_id: i for i in site.snapshot.items.values() if i.shard_id is not None}
    kept = {d.item.shard_id: d for d in site.snapshot.dropped_items.values()}
    wanted: dict[ShardId, set[str]] = {shard_id: set() for shard_id in site.states}
    for found in live.values():
        if isinstance(found.definition, MaterializedView):
            for below in _inputs(site.snapshot, found.item_id):
                assert below.shard_id is not None
                wanted[below.shard_id].add(hold_owner(found.global_id))
    for shard_id, dropped in kept.items():
        if shard_id is not None:
            wanted[shard_id].add(shelf_owner(dropped.item_id))
    for shard_id, state in site.states.items():
        assert {hold.owner for hold in state.holds} == wanted[shard_id]
        if shard_id in live:
            is_view = isinstance(live[shard_id].definition, MaterializedView)
            assert takes(state, live[shard_id].global_id if is_view else None)
        else:
            assert not takes(state, state.writer)
        assert purged(state) == (shard_id not in live and shard_id not in kept)


def test_a_dropped_table_is_shelved_and_goes_on_with_its_rows() -> None:
    site = Site()
    t = site.item("t")
    before = {name: site.state(name) for name in "tmn"}
    site.do(drop(site.snapshot, t))
    check(site)
    order = sorted(site.snapshot.dropped_items, key=lambda one: (len(one), one))
    site.undrop(*order)
    check(site)
    assert msgspec.structs.replace(before["t"], holds=site.state("t").holds) == site.state("t")
    m = site.item("m")
    assert site.state("m").writer == m.global_id == m.versions[1].global_id
    assert site.state("m").batches == before["m"].batches


def test_a_view_computed_anew_leaves_its_old_shard_to_the_sweeper() -> None:
    site = Site()
    n = site.item("n")
    assert n.shard_id is not None
    site.do(drop(site.snapshot, n))
    site.undrop(n.item_id, anew={n.item_id: Timestamp(90)})
    check(site)
    assert purged(site.states[n.shard_id])
    assert (site.state("n").since, site.state("n").upper) == (90, 90)
    holds = {hold.owner: hold.hold_ts for hold in site.state("u").holds}
    assert holds == {hold_owner(site.item("n").global_id): 90}


@pytest.mark.parametrize("seed", SEEDS)
def test_any_history_of_drops_and_returns_leaves_catalog_and_shards_agreed(seed: int) -> None:
    draw = Random(seed)
    site = Site()
    undropped = 0
    for _ in range(40):
        chosen = draw.choice(["drop", "drop", "undrop", "undrop", "undrop", "purge"])
        dropped = sorted(site.snapshot.dropped_items, key=lambda one: (len(one), one))
        if chosen == "drop" and site.snapshot.items:
            going = draw.choice(list(site.snapshot.items.values()))
            site.do(drop(site.snapshot, going))
        elif chosen == "undrop":
            ready = [one for one in dropped if _can_come(one, site.snapshot)]
            if ready:
                one = draw.choice(ready)
                site.undrop(one, anew=_anew(one, site, draw))
                undropped += 1
        elif dropped and draw.random() < 0.2:
            site.do(PurgeDroppedOp((draw.choice(dropped),)))
        check(site)
    assert undropped > 2


def _anew(item_id: ItemId, site: Site, draw: Random) -> dict[ItemId, Timestamp]:
    """Where a view begins anew: because it must, or now and then."""
    found = site.snapshot.dropped_items[item_id].item
    if not isinstance(found.definition, MaterializedView):
        return {}
    inputs = site.snapshot.stored_inputs(found.reads)
    sinces = [site.states[one.shard_id].since for one in inputs if one.shard_id is not None]
    latest = max(sinces)
    must = latest > found.definition.as_of
    return {item_id: Timestamp(latest + draw.randrange(50))} if must or draw.random() < 0.5 else {}


def _can_come(item_id: ItemId, snapshot: Snapshot) -> bool:
    found = snapshot.dropped_items[item_id].item
    return all(read in snapshot.items for read in found.reads)
