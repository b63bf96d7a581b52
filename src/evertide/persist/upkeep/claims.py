"""Who is busy with a large merge of a shard.

A large merge takes minutes, and of two processes that do the same one only one would have the
result. So it is claimed in the state, with an expiry that is put off while the work goes on.
Nothing but work depends on claims: a merge whose batches were replaced meanwhile is refused.

A claim is kept among the holds, which expire in the same way. It lies beyond all times, so it holds
nothing back.
"""

from typing import Final

from evertide.persist.state import BatchesGone, Changed, ShardState, release_hold, set_hold
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp

CLAIM_MS: Final = 300_000
_PREFIX: Final = "merge"


def claim_name(upper: Timestamp, run_id: str) -> str:
    """The name of a claim to the batches below `upper`."""
    return f"{_PREFIX}/{upper}/{run_id}"


def claimed_below(state: ShardState, now_ms: int) -> Timestamp | None:
    """The upper of the batches that somebody is merging; None: nobody is."""
    for hold in state.holds:
        prefix, _, rest = hold.owner.partition("/")
        live = hold.expires_ms is not None and hold.expires_ms > now_ms
        if prefix == _PREFIX and live and hold.hold_ts == EMPTY_FRONTIER:
            return Timestamp(int(rest.partition("/")[0]))
    return None


def claim(state: ShardState, name: str, now_ms: int) -> Changed:
    """Take the claim; refused while somebody else has one."""
    if claimed_below(state, now_ms) is not None:
        return BatchesGone()
    return set_hold(state, owner=name, hold_ts=EMPTY_FRONTIER, expires_ms=now_ms + CLAIM_MS)


def renew_claim(state: ShardState, name: str, now_ms: int) -> Changed:
    """Put off its end; one that has ended already stays so, as somebody else may be at it."""
    if all(hold.owner != name for hold in state.holds):
        return BatchesGone()
    return set_hold(state, owner=name, hold_ts=EMPTY_FRONTIER, expires_ms=now_ms + CLAIM_MS)


def end_claim(state: ShardState, name: str) -> ShardState:
    """Let others merge."""
    return release_hold(state, owner=name)
