"""How fresh a read must be, by the session's isolation level.

Strict serializable reads see every write that was acknowledged before they began, and wait for it.
The weaker levels read at a time that is complete already, so they never wait for a view that lags:
`serializable` at whatever that is, `strong session serializable` not before what the session itself
has read or written, `bounded staleness <d>` only if that is at most so long ago. What a transaction
sees is one moment of history at all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evertide.adapter.environment import Environment
from evertide.adapter.introspection import reports
from evertide.adapter.reading.leaves import IndexLeaf
from evertide.adapter.reading.timestamp import select_as_of
from evertide.adapter.session import Session
from evertide.adapter.variables import BOUNDED_STALENESS, duration_ms
from evertide.catalog.snapshot import Snapshot
from evertide.dataflow.description import Import
from evertide.vocab.errors import ReadOnlyTransaction, SerializationFailure
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp, step_back

STRICT: Final = "strict serializable"
_SESSION: Final = "strong session serializable"


@dataclass(frozen=True, slots=True)
class Freshness:
    """A read is not before `least`.

    `complete`: at the last time that is known, rather than at the least, for which it would wait;
    where nobody tells, or everything is finished, at `usual`. `bound` is the level's name if being
    older than `least` is an error.
    """

    least: Timestamp
    usual: Timestamp = MIN_TS
    complete: bool = False
    bound: str | None = None


def freshness_of(
    session: Session, read_ts: Timestamp, at_least: Timestamp | None = None
) -> Freshness:
    """What the session asks of a read that begins now, when the oracle says `read_ts`."""
    level = session.variables.get("transaction_isolation")
    wanted = MIN_TS if at_least is None else at_least
    if level == STRICT:
        return Freshness(max(read_ts, wanted))
    if level == _SESSION:
        return Freshness(max(wanted, session.own.seen_at(read_ts)), read_ts, complete=True)
    if level.startswith(BOUNDED_STALENESS):
        staleness_ms = duration_ms(level.removeprefix(BOUNDED_STALENESS))
        assert staleness_ms is not None, "variables keep what is one"
        earliest = Timestamp(max(read_ts - staleness_ms, MIN_TS))
        return Freshness(max(wanted, earliest), read_ts, complete=True, bound=level)
    return Freshness(wanted, read_ts, complete=True)


def choose(
    freshness: Freshness, sinces: Sequence[Timestamp], uppers: Sequence[Timestamp]
) -> Timestamp:
    """The timestamp of a read of collections that are exact from and complete below these.

    >>> choose(Freshness(Timestamp(7)), [Timestamp(3)], [])
    7
    >>> weak = Freshness(Timestamp(0), Timestamp(7), complete=True)
    >>> choose(weak, [Timestamp(3)], [Timestamp(9), Timestamp(6)])
    5
    """
    if not freshness.complete:
        return select_as_of(oracle_read_ts=freshness.least, sinces=sinces)
    upper = min(uppers, default=EMPTY_FRONTIER)
    known = freshness.usual if upper == EMPTY_FRONTIER else step_back(upper)
    if freshness.bound is not None and known < max([freshness.least, *sinces]):
        raise SerializationFailure(
            f"cannot serve query under {freshness.bound}",
            detail="What it reads has not been brought up to date for longer than that.",
            hint="Try it again, or allow it to be older.",
        )
    return max([known, freshness.least, *sinces])


async def known_uppers(
    collections: Sequence[Import],
    indexes: Sequence[IndexLeaf],
    env: Environment,
    snapshot: Snapshot,
) -> list[Timestamp]:
    """Up to where these are known now; of an index that nobody tells of, nothing is said."""
    found: list[Timestamp] = []
    if collections:
        look = await env.storage.look(collections)
        found = [look.upper(collection) for collection in collections]
    if indexes:
        told = await reports.replica_frontiers(env, snapshot)
        uppers = {GlobalId(str(index_id)): upper for index_id, _, upper in told}
        ours = (uppers.get(leaf.index_id) for leaf in indexes)
        found += [Timestamp(upper) for upper in ours if isinstance(upper, int)]
    return found


def refuse_stale_writes(session: Session) -> None:
    """Staleness is for reading: what is written must follow from what is there."""
    level = session.variables.get("transaction_isolation")
    if level.startswith(BOUNDED_STALENESS):
        raise ReadOnlyTransaction(
            "transaction in read-only mode",
            hint=f"Nothing can be written under {level}: SET transaction_isolation first.",
        )
