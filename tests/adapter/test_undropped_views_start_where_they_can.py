"""Goal: a view that comes back goes on where its rows ended only if everything it reads is still
known from there on, or if nothing will ever change in it; else it begins at a time at which all of
it is exact, and not before now."""

from dataclasses import replace

import msgspec

from evertide.adapter.ddl.undropping import Start, Starts, View, choose_starts
from evertide.catalog.dropped_ops import Returning
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.kinds.refresh import StoredEvery, StoredRefresh
from evertide.catalog.objects import DroppedItem, Item, MaterializedView
from evertide.dataflow.description import Import
from evertide.persist.state import ShardState
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from tests.catalog.samples import PUBLIC, after, item, populated
from tests.catalog.undropping import drop

READ_TS = Timestamp(1_000)
NOTHING = RelationDesc(())


def state(since: int, upper: int, writer: str | None = None) -> ShardState:
    owner = None if writer is None else GlobalId(writer)
    return ShardState(since=Timestamp(since), upper=Timestamp(upper), since_lag=1_000, writer=owner)


def table(shard: str) -> Import:
    return Import(GlobalId(shard), ShardId(shard), NOTHING, is_table=True)


def view(name: str, *inputs: Import, as_of: int = 5, handing_over: bool = False) -> View:
    """A dropped view whose shard has its name, and which was written by "old"."""
    snapshot = populated()
    made: Item = item(snapshot, "m")
    assert isinstance(made.definition, MaterializedView)
    gone = after(snapshot, drop(snapshot, made)).dropped_items[made.item_id]
    definition = msgspec.structs.replace(
        made.definition,
        shard_id=ShardId(name),
        as_of=Timestamp(as_of),
        handing_over=handing_over,
    )
    versions = (msgspec.structs.replace(made.versions[0], global_id=GlobalId("old")),)
    kept: DroppedItem = msgspec.structs.replace(
        gone, item=msgspec.structs.replace(made, definition=definition, versions=versions)
    )
    item_id = type(made.item_id)(name)
    returning = Returning(
        item_id=item_id, schema_id=PUBLIC, name=name, owner=DEFAULT_ROLE_ID, create_sql=""
    )
    own = Import(GlobalId(name), ShardId(name), NOTHING, is_table=False)
    return View(returning, kept, own, inputs)


def starts(views: list[View], **states: ShardState) -> dict[str, Start]:
    found = chosen(views, **states)
    assert not found.refused
    return {str(k): v for k, v in found.starts.items()}


def chosen(views: list[View], **states: ShardState) -> Starts:
    known = {ShardId(shard): found for shard, found in states.items()}
    return choose_starts(views, known, READ_TS)


def test_it_goes_on_if_its_inputs_are_known_from_there_on() -> None:
    found = starts([view("m", table("t"))], t=state(499, 900), m=state(10, 500, "old"))
    assert found == {"m": Start(Timestamp(499))}


def test_it_begins_anew_if_one_of_them_is_not() -> None:
    views = [view("m", table("t"), table("u"))]
    m = state(10, 500, "old")
    found = starts(views, t=state(400, 900), u=state(500, 900), m=m)
    assert found == {"m": Start(READ_TS, READ_TS)}
    late = starts(views, t=state(2_000, 3_000), u=state(400, 900), m=m)
    assert late == {"m": Start(Timestamp(2_000), Timestamp(2_000))}


def test_one_that_was_never_hydrated_begins_where_it_was_to_begin() -> None:
    found = starts([view("m", table("t"), as_of=500)], t=state(500, 900), m=state(500, 500, "old"))
    assert found == {"m": Start(Timestamp(500))}


def test_a_view_over_one_that_begins_anew_begins_anew() -> None:
    m = view("m", table("t"))
    n = view("n", m.own)
    known = {"t": state(700, 900), "m": state(10, 500, "old"), "n": state(10, 600, "old")}
    assert starts([m, n], **known) == {
        "m": Start(READ_TS, READ_TS),
        "n": Start(READ_TS, READ_TS),
    }
    goes_on = starts([m, n], **{**known, "t": state(400, 900)})
    assert goes_on == {"m": Start(Timestamp(499)), "n": Start(Timestamp(599))}


def test_what_is_not_the_last_definition_s_is_not_gone_on_with() -> None:
    t = state(10, 900)
    anew = {"m": Start(READ_TS, READ_TS)}
    assert starts([view("m", table("t"), handing_over=True)], t=t, m=state(1, 500, "old")) == anew
    assert starts([view("m", table("t"))], t=t, m=state(1, 500, "other")) == anew
    frozen = msgspec.structs.replace(state(1, 500, "old"), pending=Timestamp(500))
    assert starts([view("m", table("t"))], t=t, m=frozen) == anew


COMPLETE = state(1, EMPTY_FRONTIER, "old")
GOES_ON = {"m": Start(None)}
ANEW = {"m": Start(READ_TS, READ_TS)}
ONCE = StoredRefresh(at=(Timestamp(300),))
EVERY = StoredRefresh(every=(StoredEvery(interval_ms=300, aligned_to=Timestamp(0)),))


def test_one_that_is_complete_needs_nothing_that_it_read() -> None:
    assert starts([view("m")], m=COMPLETE) == GOES_ON
    reads = view("m", table("t"))
    once = refreshed(reads, ONCE)
    for since in (5, 6, 299, 301, 899):
        assert starts([once], m=COMPLETE, t=state(since, 900)) == GOES_ON
        assert starts([reads], m=COMPLETE, t=state(since, EMPTY_FRONTIER)) == GOES_ON
    # Its inputs may be known to the last refresh and beyond when the clock of reads is not there.
    soon = refreshed(reads, StoredRefresh(at=(Timestamp(1_005),)))
    assert starts([soon], m=COMPLETE, t=state(1_004, 1_006)) == GOES_ON


def test_one_that_was_complete_because_its_inputs_were_is_not_if_they_go_on() -> None:
    reads = view("m", table("t"), table("u"))
    known = {"m": COMPLETE, "u": state(5, EMPTY_FRONTIER)}
    assert starts([reads], t=state(5, 900), **known) == ANEW
    every = refreshed(reads, EVERY)
    assert starts([every], t=state(5, EMPTY_FRONTIER), **known) == GOES_ON
    at_next = {"m": Start(Timestamp(1_200), Timestamp(1_200))}
    assert starts([every], t=state(5, 900), **known) == at_next


def test_one_that_is_complete_but_reads_what_begins_anew_begins_anew() -> None:
    below = view("m", handing_over=True)
    above = view("n", below.own)
    found = starts([below, above], m=COMPLETE, n=COMPLETE)
    assert found == {**ANEW, "n": Start(READ_TS, READ_TS)}


def test_one_that_is_refreshed_at_times_begins_anew_at_the_next() -> None:
    known = {"t": state(700, 900), "m": state(10, 301, "old")}
    found = starts([refreshed(view("m", table("t")), EVERY)], **known)
    assert found == {"m": Start(Timestamp(1_200), Timestamp(1_200))}


def test_one_without_another_refresh_cannot_begin_nor_can_what_reads_it() -> None:
    lost = refreshed(view("m", table("t")), ONCE)
    above, beside = view("n", lost.own), view("o", table("t"))
    known = {"t": state(700, 900), "m": state(10, 200, "old")}
    ended = {"n": state(10, 200, "old"), "o": state(10, 900, "old")}
    found = chosen([lost, above, beside], **known, **ended)
    assert {str(k): str(v) for k, v in found.refused.items()} == {
        "m": 'cannot undrop materialized view "m": its last refresh is over, and what it read then'
        " is no longer known"
    }
    assert {str(k): v for k, v in found.starts.items()} == {"o": Start(Timestamp(899))}


def refreshed(found: View, refresh: StoredRefresh) -> View:
    item = found.dropped.item
    definition = msgspec.structs.replace(found.definition, refresh=refresh)
    item = msgspec.structs.replace(item, definition=definition)
    return replace(found, dropped=msgspec.structs.replace(found.dropped, item=item))
