"""Goal: any number of replicas write one and the same definite collection, through kills and
restarts, and the tables of a source agree at every time.

Method: seeded simulations. Writers race over a store that answers late; some are cancelled in the
middle of an append and others take their place; what the shards hold in the end is compared with
the plain rule, update by update.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

import pytest

from evertide.catalog.objects import AuctionLoad, CounterLoad, Load
from evertide.dataflow.external import SourceDescription
from evertide.external.generate import Gone, SourceWriter
from evertide.external.runner import External
from evertide.external.status import Status
from evertide.external.write_out import Collections
from evertide.persist.faults import StoreFailing
from evertide.persist.handle import Append, Appended, Refused
from evertide.persist.state import ShardChange, existing, forget
from evertide.persist.txn import Txns
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp
from tests.external.written import AS_OF, Site, contents_by_rule, described

LOADS: tuple[Load, ...] = (
    CounterLoad(tick_ms=100),
    CounterLoad(tick_ms=7, max_cardinality=3),
    CounterLoad(tick_ms=500, from_tick=4, up_to_tick=9),
    AuctionLoad(tick_ms=60, seed=3),
    AuctionLoad(tick_ms=1_000, seed=1, from_tick=25, up_to_tick=25),
)


async def replica(site: Site, source: SourceDescription, stop: asyncio.Event) -> None:
    """Rounds without pauses, by processes that are killed now and then."""
    while not stop.is_set():
        async with site.client(jittery=True) as client:
            writer, _ = site.writer(source, client)
            rounds = asyncio.create_task(_rounds(writer.round, stop))
            for _ in range(site.rng.randrange(5, 200)):
                await asyncio.sleep(0)
            if site.rng.random() < 0.5:
                rounds.cancel()
            await asyncio.gather(rounds, return_exceptions=True)


async def _rounds(one: Callable[[], Awaitable[float]], stop: asyncio.Event) -> None:
    while not stop.is_set():
        await one()
        await asyncio.sleep(0)


@pytest.mark.parametrize("load", LOADS, ids=str)
@pytest.mark.parametrize("seed", range(6))
async def test_racing_and_killed_replicas_agree(load: Load, seed: int) -> None:
    site = Site(seed)
    await site.open()
    source = described(load)
    await site.create(source)
    stop = asyncio.Event()
    replicas = [asyncio.create_task(replica(site, source, stop)) for _ in range(3)]
    for _ in range(30):
        site.clock.advance(site.rng.choice([0, 1, 40, 700, 2_500]))
        for _ in range(40):
            await asyncio.sleep(0)
    stop.set()
    for failed in await asyncio.gather(*replicas, return_exceptions=True):
        assert failed is None
    upper = await site.upper(source)
    assert upper > AS_OF, "something was written"
    assert await site.updates(source) == contents_by_rule(load, upper)


async def test_what_is_known_reaches_the_clock_and_table_time() -> None:
    site = Site()
    await site.open()
    source = described(CounterLoad(tick_ms=1_000))
    await site.create(source)
    async with site.client() as client:
        writer, _ = site.writer(source, client)
        site.clock.advance(3_300)
        while await writer.round() == 0:
            pass
        assert await site.upper(source) == AS_OF + 4_000
        # Tables of a host whose clock is ahead: readers there must not wait for this clock.
        ahead = Timestamp(AS_OF + 20_500)
        await Txns(client, ShardId("txns")).commit({}, at=ahead)
        while await writer.round() == 0:
            pass
        assert await site.upper(source) > ahead


class FailingTables:
    """Tables of a store that fails once, while the writer waits."""

    def __init__(self, inner: Txns) -> None:
        self._inner = inner
        self.asked = 0

    @property
    def shard_id(self) -> ShardId:
        return self._inner.shard_id

    async def upper(self) -> Timestamp:
        self.asked += 1
        if self.asked == 2:
            raise StoreFailing("disk I/O error")
        return await self._inner.upper()


async def test_a_store_that_fails_while_nothing_is_due_ends_no_writer() -> None:
    site = Site()
    await site.open()
    source = described(CounterLoad(tick_ms=1_000))
    await site.create(source)
    async with site.client() as client:
        tables = FailingTables(Txns(client, ShardId("txns")))
        status = Status(source.global_id, source.cluster_id)
        writer = SourceWriter(source, client, tables, site.clock, status)
        writing = asyncio.create_task(writer.run())
        async with asyncio.timeout(20):
            while tables.asked < 3 and not writing.done():
                await asyncio.sleep(0.005)
            assert not writing.done(), "it goes on after the failure"
            site.clock.advance(5_000)
            while await site.upper(source) < AS_OF + 5_000:
                await asyncio.sleep(0.005)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


async def test_two_seeds_differ_and_one_seed_does_not() -> None:
    upper = Timestamp(AS_OF + 10_000)
    one, same, other = (
        contents_by_rule(AuctionLoad(tick_ms=100, seed=seed), upper) for seed in (1, 1, 2)
    )
    assert one == same
    assert one["bids"] != other["bids"]


async def test_a_dropped_source_is_written_no_more() -> None:
    site = Site()
    await site.open()
    source = described(AuctionLoad(tick_ms=100))
    await site.create(source)
    async with site.client() as client:
        writer, _ = site.writer(source, client)
        await writer.round()
        upper = await site.upper(source)
        gone = ShardChange(source.tables[0].shard_id, existing(forget))
        await client.machine.apply_all([gone])
        site.clock.advance(5_000)
        with pytest.raises(Gone):
            await writer.round()
        assert await site.upper(source) == upper


async def test_a_table_that_is_dropped_meanwhile_stops_all_of_them() -> None:
    """Tables that went on alone would part from one another for ever."""
    site = Site()
    await site.open()
    source = described(AuctionLoad(tick_ms=100))
    await site.create(source)
    async with site.client() as client:
        inner = client.append_all

        async def drop_first(appends: Sequence[Append]) -> Appended | Refused:
            gone = ShardChange(source.tables[0].shard_id, existing(forget))
            await site.client().machine.apply_all([gone])
            return await inner(appends)

        client.append_all = drop_first  # type: ignore[method-assign, assignment]
        writer, _ = site.writer(source, client)
        with pytest.raises(Gone):
            await writer.round()
        assert await site.upper(source) == AS_OF


async def test_the_runner_keeps_exactly_what_is_wanted() -> None:
    site = Site()
    await site.open()
    first, second = described(CounterLoad(tick_ms=100)), described(CounterLoad(tick_ms=200))
    await site.create(first)
    async with site.client() as client:
        txns = Txns(client, ShardId("txns"))
        nothing = cast(Collections, object())  # sources read no collection
        external = External(client, txns, nothing, site.clock, None)
        await external.set_wanted([first], [])
        for _ in range(1_000):
            if external.statuses("mz_source_statuses")[0][2] == "running":
                break
            await asyncio.sleep(0.001)
        assert await site.upper(first) > AS_OF
        told = external.statuses("mz_source_statuses")
        assert [(row[0], row[1], row[2]) for row in told] == [("u9", "u1", "running")]
        await external.set_wanted([second], [])
        assert external.statuses("mz_source_statuses")[0][2] == "starting", "a change starts anew"
        await external.set_wanted([], [])
        assert external.statuses("mz_source_statuses") == []
        await external.close()


def test_bids_are_for_the_auction_that_is_on() -> None:
    found = contents_by_rule(AuctionLoad(tick_ms=10, seed=5), Timestamp(AS_OF + 10_000))
    ends = {row[0]: row[3] for row, _, _ in found["auctions"]}
    begins = {row[0]: at for row, at, _ in found["auctions"]}
    users = {row[0] for row, _, _ in found["users"]}
    for (_, buyer, auction, _, bid_us), at, _ in found["bids"]:
        assert buyer in users
        assert bid_us == at * 1_000
        begun_us, end_us = begins[auction] * 1_000, ends[auction]
        assert isinstance(end_us, int)
        assert begun_us < at * 1_000 < end_us
    assert len({row[0] for row, _, _ in found["bids"]}) == len(found["bids"])
