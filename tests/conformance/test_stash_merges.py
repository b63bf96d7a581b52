"""Goal: merging a stash's history changes no read that is allowed, and does a bounded bit of work.

Method: appends at random beside a list of all rows ever appended, which says what a read must give.
"""

import random
from collections import Counter

import pytest

from evertide.persist.store.protocol import AllSet, StashRow, Store
from evertide.persist.store.stash import MERGE_EVERY, MERGE_ROWS
from evertide.vocab.timestamp import Timestamp
from tests.conformance.stash_rows import ITEM, ROLE, append, contents, row, ts


def expected(rows: list[StashRow], lower: int, since: int) -> dict[StashRow, int]:
    """All rows from `lower` on, those up to since counted at since; by row without its diff."""
    sums = Counter[StashRow]()
    for one in rows:
        if one.ts >= lower:
            sums[one._replace(ts=Timestamp(max(one.ts, since)), diff=0)] += one.diff
    return {one: diff for one, diff in sums.items() if diff}


async def check(store: Store, rows: list[StashRow]) -> int:
    """Every read that is allowed gives what was appended; the since that there is now."""
    page = await store.stash().read()
    for lower in (0, page.since + 1, page.since + 7, page.upper - 1):
        if lower == 0 or lower > page.since:
            found = (await store.stash().read(ts(lower))).rows
            assert expected(found, lower, page.since) == expected(rows, lower, page.since)
    return page.since


def step(rng: random.Random, at: int, live: dict[tuple[str, str], str]) -> list[StashRow]:
    """Values come, change, go and come back: few keys and few values, so that rows repeat."""
    rows: list[StashRow] = []
    for key in rng.sample(range(6), rng.randrange(3)):
        place = (rng.choice([ITEM, ROLE]), f"k{key}")
        if place in live and rng.random() < 0.9:
            rows.append(row(at, place[1], live.pop(place), -1, place[0]))
        if place not in live and rng.random() < 0.7:
            live[place] = f"v{rng.randrange(3)}"
            rows.append(row(at, place[1], live[place], 1, place[0]))
    return rows


@pytest.mark.parametrize("seed", range(3))
async def test_reads_are_those_of_all_rows_ever_appended(store: Store, seed: int) -> None:
    rng = random.Random(seed)
    consensus = store.consensus(await store.raise_epoch())
    await store.stash().ensure([ITEM, ROLE])
    live: dict[tuple[str, str], str] = {}
    written: list[StashRow] = []
    sinces = set[int]()
    upper = since = 0
    for number in range(400):
        at = upper + rng.randrange(4)
        rows = step(rng, at, live)
        since = max(since, at - rng.randrange(40))
        assert (
            await consensus.compare_and_set_all([], stash=append(upper, rows, at=at, since=since))
            == AllSet()
        )
        upper, written = at + 1, written + rows
        if number % 10 == 0:
            sinces.add(await check(store, written))
    page = await store.stash().read()
    assert len(sinces) > 2, "history was merged again and again"
    assert contents(page) == {(kind, key, live[kind, key]): 1 for kind, key in live}
    assert len(page.rows) < len(written) / 2, "and takes less room"


async def test_a_retraction_outlives_the_merge_of_what_it_retracts(store: Store) -> None:
    """The row is merged already, its retraction not yet; then both, and nothing is left."""
    consensus, stash = store.consensus(await store.raise_epoch()), store.stash()
    await stash.ensure([ITEM])
    n = MERGE_EVERY
    for stored in (
        append(0, [row(1, "k"), row(1, "other")], at=1),
        append(2, [], at=n, since=n),
        append(n + 1, [row(n + 5, "k", diff=-1)], at=n + 5, since=n + 4),
    ):
        assert await consensus.compare_and_set_all([], stash=stored) == AllSet()
    page = await stash.read()
    retracted = [row(n, "k"), row(n, "other"), row(n + 5, "k", diff=-1)]
    assert (page.since, sorted(page.rows)) == (n, sorted(retracted))
    await consensus.compare_and_set_all([], stash=append(n + 6, [], at=3 * n, since=3 * n))
    page = await stash.read()
    assert (page.since, page.rows) == (3 * n, [row(3 * n, "other")])


async def test_a_merge_looks_at_so_many_rows_and_goes_on_later(store: Store) -> None:
    """Never at half of an append: those at one timestamp are merged together."""
    consensus, stash = store.consensus(await store.raise_epoch()), store.stash()
    await stash.ensure([ITEM, ROLE])
    many, half = MERGE_ROWS + 10, MERGE_ROWS // 2
    sizes = {1: many, 2: half, 3: half, 4: half}
    for at, size in sizes.items():
        rows = [row(at, f"{at} {i}") for i in range(size)]
        await consensus.compare_and_set_all([], stash=append(at if at > 1 else 0, rows, at=at))
    sinces: list[int] = []
    for at in range(5, 10):
        at += 1_000
        upper = await stash.upper()
        await consensus.compare_and_set_all([], stash=append(upper, [], at=at, since=at))
        page = await stash.read()
        assert len(page.rows) == sum(sizes.values())
        sinces.append(page.since)
    assert sinces == [1, 3, 1_007, 1_007, 1_007]
