"""Goal: every fault of the storage layer has its SQLSTATE, and names what someone must look at."""

import asyncio

import pytest
from structlog.testing import capture_logs

from evertide.persist.faults import (
    BelowSince,
    BlobMissing,
    Corrupt,
    DamagedState,
    Fenced,
    PersistFault,
    ShardMissing,
    StoreFailing,
    StoreFull,
    StoreUnreachable,
)
from evertide.persist.told import ends_the_process, told
from evertide.persist.trouble import Trouble, until_done
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timestamp

SHARD = ShardId("s1")


@pytest.mark.parametrize(
    ("fault", "sqlstate", "names"),
    [
        (StoreFull("disk /x"), "53100", "disk /x"),
        (StoreFailing("disk /x"), "58030", "disk /x"),
        (Corrupt("bad", shard_id=SHARD, key="s1/p"), "XX001", "shard s1, part s1/p: bad"),
        (Corrupt("bad"), "XX001", "bad"),
        (DamagedState(SHARD, ": bad"), "XX001", "the state of shard s1 is damaged: bad"),
        (BlobMissing("s1/p", shard_id=SHARD), "XX001", "shard s1, part s1/p does not exist"),
        (BelowSince(SHARD, Timestamp(1), Timestamp(2)), "55000", "s1"),
        (ShardMissing(SHARD), "42P01", "s1"),
    ],
)
def test_faults_of_a_statement(fault: PersistFault, sqlstate: str, names: str) -> None:
    error = told(fault)
    assert error.code == sqlstate
    assert names in f"{error.message} {error.detail}"
    assert not ends_the_process(fault)


def test_damage_is_called_by_the_name_of_what_is_damaged() -> None:
    state = told(DamagedState(SHARD, ": bad"), 'table "t"')
    assert (state.message, state.detail) == (
        'table "t" is damaged',
        "the state of shard s1 is damaged: bad",
    )
    part = told(Corrupt("bad", shard_id=SHARD, key="s1/p"), 'table "t"')
    assert (part.message, part.detail) == ('table "t" is damaged', "shard s1, part s1/p: bad")
    assert state.hint != part.hint, "they lie in different stores"


@pytest.mark.parametrize("fault", [Fenced(Epoch(1), Epoch(2)), StoreUnreachable("gone")])
def test_faults_of_the_whole_process(fault: PersistFault) -> None:
    assert ends_the_process(fault)


async def test_trouble_is_logged_once_and_its_end_too() -> None:
    trouble = Trouble("work")
    with capture_logs() as logs:
        for _ in range(5):
            trouble.met(StoreFull("no room"))
        assert trouble.wait_s > 0
        trouble.over()
        trouble.over()
        assert trouble.wait_s == 0
    assert [entry["event"] for entry in logs] == ["work failed, trying again", "work went on"]


async def test_work_that_may_be_repeated_is_until_it_is_done() -> None:
    answers = iter([StoreFull("no room"), StoreFailing("EIO"), None])

    async def call() -> str:
        fault = next(answers)
        if fault is not None:
            raise fault
        return "done"

    assert await asyncio.wait_for(until_done("work", call), 30) == "done"
