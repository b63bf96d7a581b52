"""A shard that is appended to by itself, by whoever is first: what a single append promises.

Each process goes on from where it believes the shard to stand, sometimes gives up waiting, and
remembers what it was told.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from evertide.persist.append import Appended, AppendOutcome
from evertide.persist.faults import BelowSince, StoreFull
from evertide.persist.state import UpperMismatch
from evertide.vocab.datum import Row
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back
from evertide.vocab.update import Update
from tests.sim.history import DESC, Fed, Followed, Read, Violation, require
from tests.sim.truth import ShardTruth, Truth
from tests.sim.work import Client

FEED: Final = ShardId("feed")
# More rows than this do not take the shortest way.
_MANY: Final = 40


async def feed(client: Client) -> None:
    """One append after the other, until one is refused."""
    rng = client.rng
    upper = await _believed_upper(client)
    for _ in range(rng.randint(1, 6)):
        fed = _draw(client, upper)
        client.history.fed.append(fed)
        outcome = await _append(client, fed)
        if not isinstance(outcome, Appended):
            return
        upper = outcome.upper
        if rng.random() < 0.3:
            await _read(client, fed)


async def _believed_upper(client: Client) -> Timestamp:
    """What this process knows, however old, or what others say."""
    if client.rng.random() < 0.3:
        said = [one.upper for one in client.history.fed if one.acknowledged]
        return max(said, default=MIN_TS)
    known = client.node.client.machine.known_state(FEED)
    return (known or await client.node.client.state(FEED)).upper


def _draw(client: Client, lower: Timestamp) -> Fed:
    rng, operation = client.rng, client.history.next_operation()
    count = _MANY if rng.random() < 0.05 else rng.choice((0, 1, 1, 2, 3))
    return Fed(
        operation=operation,
        process=client.node.process.name,
        lower=lower,
        upper=Timestamp(lower + rng.randint(1, 3)),
        rows=tuple(("fed", number, operation) for number in range(count)),
        invoked=client.moment,
    )


async def _append(client: Client, fed: Fed) -> AppendOutcome | None:
    """What was told; None: nothing, because nobody waited for it."""
    updates = [Update(row, fed.lower, 1) for row in fed.rows]
    appending = client.node.client.compare_and_append(FEED, DESC, updates, fed.lower, fed.upper)
    patience_s = client.rng.expovariate(300) if client.rng.random() < 0.15 else None
    try:
        outcome = await asyncio.wait_for(appending, patience_s)
    except TimeoutError:
        return None
    except StoreFull:
        fed.refused = True
        raise
    fed.told = client.moment
    if isinstance(outcome, Appended):
        require(outcome.upper == fed.upper, f"appended up to {fed.upper}, told {outcome.upper}")
        fed.acknowledged = True
    elif isinstance(outcome, UpperMismatch):
        fed.refused, fed.stands_at = True, outcome.actual
    else:
        raise Violation(f"an append was refused by {outcome}")
    return outcome


async def _read(client: Client, fed: Fed) -> None:
    """What was appended is there at once, for whoever appended it first of all."""
    history, name, as_of = client.history, client.node.process.name, step_back(fed.upper)
    try:
        contents = await client.node.client.contents(FEED, DESC, as_of)
        updates = await client.node.client.read_updates(FEED, DESC, fed.lower, fed.upper)
    except BelowSince:
        return  # others were so quick that this is history already
    history.reads.append(Read(name, FEED, as_of, Counter(dict(contents.rows))))
    followed = Followed(name, FEED, fed.lower, fed.lower)
    followed.add(updates, fed.upper)
    history.followed.append(followed)


def check_feed(fed: Sequence[Fed], truth: Truth) -> None:
    """What was acknowledged was there by then; what was refused never; nothing is there twice."""
    if not fed:
        return
    shard = truth.shards[FEED]
    at: dict[Row, Timestamp] = {row: ts for (row, ts), diff in shard.changes.items() if diff}
    require(all(diff in (0, 1) for diff in shard.changes.values()), "something was fed twice")
    known = {row for one in fed for row in one.rows}
    require(at.keys() <= known, f"nobody fed {at.keys() - known}")
    reached = {v.state.upper: v.moment for v in reversed(shard.versions)}
    taken = Counter((one.lower, one.upper) for one in fed if one.acknowledged)
    appends = {(lower, upper) for lower, upper, _ in shard.appends}
    for one in fed:
        there = {at.get(row) for row in one.rows}
        require(there <= {None} or there <= {one.lower}, f"{one} is there in part")
        if one.refused:
            require(there <= {None}, f"{one} was refused, and happened")
        if one.acknowledged:
            require(there <= {one.lower}, f"{one} was acknowledged, and is lost")
            require(taken[one.lower, one.upper] == 1, f"{one} is not alone in its place")
            require((one.lower, one.upper) in appends, f"{one} was acknowledged, and is not there")
            require(reached[one.upper] <= one.told, f"{one} was acknowledged before it was done")
        if one.stands_at is not None:
            _check_refusal(one, one.stands_at, shard)


def _check_refusal(one: Fed, stands_at: Timestamp, shard: ShardTruth) -> None:
    """The upper that it was refused by was the newest at some moment of the call."""
    versions = shard.versions
    until = [later.moment for later in versions[1:]]
    require(
        any(
            version.state.upper == stands_at and version.moment <= one.told and end >= one.invoked
            for version, end in zip(versions, [*until, one.told], strict=True)
        ),
        f"{one} was refused by an upper that the shard did not have meanwhile",
    )
