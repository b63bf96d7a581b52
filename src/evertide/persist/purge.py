"""Shards that were dropped for good: their contents go, and what is left says so.

A dropped shard stays as it was for a while, for whoever is still reading it, and for as long as
somebody holds it to bring it back (shelf.py). Then it is purged: without batches, with since and
upper at the end of all times. Nothing is readable there, so a read is answered BelowSince, an
append Forgotten, and a restore Purged. The record stays for good: it is what tells the shard's
parts from a stranger's.
"""

from typing import Final

import msgspec

from evertide.persist.state import Changed, NotPurgeable, ShardState, drop_expired, initial_state
from evertide.vocab.timestamp import EMPTY_FRONTIER

DROP_GRACE_MS: Final = 3_600_000


def is_purged(state: ShardState) -> bool:
    """Whether its contents are gone. No other shard's since comes to the end of all times."""
    return state.since == EMPTY_FRONTIER


def purged_state() -> ShardState:
    """The record of a shard of which nothing else is known."""
    return msgspec.structs.replace(_without_contents(initial_state()), forgotten=True)


def note_forgotten(state: ShardState, *, now_ms: int) -> ShardState:
    """Let the time until the purge run from now on, unless it runs already."""
    if not state.forgotten or state.forgotten_at_ms is not None:
        return state
    return msgspec.structs.replace(state, forgotten_at_ms=now_ms)


def purge(state: ShardState, *, now_ms: int, grace_ms: int = DROP_GRACE_MS) -> Changed:
    """Give up all contents; refused while somebody may restore the shard, or holds it."""
    forgotten_at_ms = state.forgotten_at_ms
    if not state.forgotten or forgotten_at_ms is None or now_ms - forgotten_at_ms < grace_ms:
        return NotPurgeable()
    if drop_expired(state, now_ms).holds:
        return NotPurgeable()
    return _without_contents(state)


def _without_contents(state: ShardState) -> ShardState:
    return msgspec.structs.replace(
        state, since=EMPTY_FRONTIER, upper=EMPTY_FRONTIER, batches=(), holds=(), pending=None
    )
