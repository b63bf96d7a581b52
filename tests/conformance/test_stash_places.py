"""What a stash promises wherever it lives, when answers get lost and when others wait for it."""

import asyncio
import random

import pytest

from evertide.persist.handle import Append, Appended, PersistClient
from evertide.persist.machine import Applied, Refused
from evertide.persist.push.notify import LocalNotifier
from evertide.persist.state import UpperMismatch, create, initial_state
from evertide.persist.store.protocol import (
    STASH_SHARD,
    AllSet,
    ClaimedWrite,
    ClaimLost,
    StashMismatch,
    StashPage,
)
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timeline, Timestamp
from evertide.vocab.update import Update
from tests.conformance.conftest import Place
from tests.conformance.stash_rows import ITEM, append, row, ts
from tests.support.owned import OURS

SHARD, DESC = ShardId("s"), relation_desc(("n", INT8))


@pytest.mark.parametrize("seed", range(3))
async def test_every_append_is_done_once_though_answers_get_lost(place: Place, seed: int) -> None:
    rng = random.Random(seed)
    await place.store.stash().ensure([ITEM])
    epoch = await place.store.raise_epoch()
    consensus = place.unreliable(epoch, rng)
    for at in range(15):
        stored = append(at, [row(at, f"k{at}")])
        assert await consensus.compare_and_set_all([], stash=stored) == AllSet()
    page = await place.store.stash().read()
    assert page == StashPage([row(at, f"k{at}") for at in range(15)], ts(0), ts(15))


@pytest.mark.parametrize("seed", range(3))
async def test_every_generation_is_opened_once_though_answers_get_lost(
    place: Place, seed: int
) -> None:
    rng = random.Random(seed)
    await place.store.stash().ensure([ITEM])
    for at in range(8):
        consensus = place.unreliable(Epoch(at), rng)
        stored = append(at, [row(at, f"k{at}")])
        outcome = await consensus.compare_and_set_all([], stash=stored, raises_epoch=True)
        assert outcome == AllSet()
        assert await place.store.current_epoch() == at + 1
    assert len((await place.store.stash().read()).rows) == 8


async def test_whoever_waits_for_the_stash_is_told(place: Place) -> None:
    """By the append itself, whatever else it changes; a refused one is not announced."""
    epoch, stash, notifier = await place.store.raise_epoch(), place.store.stash(), LocalNotifier()
    ours, theirs = (
        PersistClient(place.store.consensus(epoch), place.blob, notifier=notifier, owner=OURS)
        for _ in range(2)
    )
    heard: list[ShardId] = []
    notifier.subscribe(lambda ids: heard.extend(ids or ()))
    waiting = asyncio.create_task(
        ours.watch.until([STASH_SHARD], stash.upper, lambda upper: upper > 0)
    )
    await asyncio.sleep(0.05)
    lost = await theirs.machine.apply_all([], stash=append(4, []))
    assert (lost, heard) == (StashMismatch(ts(0)), [])
    assert isinstance(await theirs.machine.apply_all([], stash=append(0, [])), Applied)
    assert heard == [STASH_SHARD]
    async with asyncio.timeout(0.7):
        assert await waiting == 1


async def test_shards_and_stash_are_appended_to_at_once(place: Place) -> None:
    """With a claim and without, and with nothing but the stash."""
    epoch, stash = await place.store.raise_epoch(), place.store.stash()
    client = PersistClient(place.store.consensus(epoch), place.blob, owner=OURS)
    await stash.ensure([ITEM])
    appender, made = client.appender, create(SHARD, initial_state())

    def rows(lower: int, upper: int) -> Append:
        return Append(SHARD, DESC, [Update((lower,), ts(lower), 1)], ts(lower), ts(upper))

    done = await appender.append_all([rows(0, 1)], also=[made], stash=append(0, [row(0, "k")]))
    assert done == Appended(ts(1))
    claimed = ClaimedWrite(Timeline.CATALOG, ts(3))
    both = await appender.append_claiming([rows(1, 2)], claimed, stash=append(1, [], at=3))
    assert both == Appended(ts(4))
    assert await appender.append_all([], stash=append(4, [])) == Appended(ts(5))
    later = ClaimedWrite(Timeline.CATALOG, ts(9))
    for outcome, expected in (
        (await appender.append_all([rows(2, 3)], stash=append(4, [])), StashMismatch(ts(5))),
        (await appender.append_claiming([], later, stash=append(4, [])), StashMismatch(ts(5))),
        (await appender.append_claiming([], claimed, stash=append(5, [])), ClaimLost(ts(3))),
        (
            await appender.append_all([rows(1, 3)], stash=append(5, [])),
            Refused(SHARD, UpperMismatch(Timestamp(2))),
        ),
    ):
        assert outcome == expected
    assert (await client.state(SHARD)).upper == 2
    assert await stash.upper() == 5
    opened = await appender.append_all([rows(2, 3)], stash=append(5, []), raises_epoch=True)
    assert opened == Appended(ts(6))
    assert await place.store.current_epoch() == epoch + 1
    await client.__aexit__()
