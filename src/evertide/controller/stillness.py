"""How far a collection is known, which may be further than its shard says.

A view is a function of its inputs. Where none of them changed from the view's upper on, it did not
change either, so it is known as far as they are: its contents are those just below its upper. That
spares readers from waiting until the view's replica has moved its upper once more, and the replica
from moving the uppers of hundreds of idle views after every write to some other table.
"""

from collections.abc import Mapping

from evertide.dataflow.description import Import
from evertide.persist.state import ShardState
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp


def shards_below(collection: Import) -> list[ShardId]:
    """Its own shard and those that it follows from, directly or not."""
    found: dict[ShardId, None] = {}
    waiting = [collection]
    while waiting:
        one = waiting.pop()
        if one.shard_id not in found:
            found[one.shard_id] = None
            waiting.extend(() if one.derived is None else one.derived.inputs)
    return list(found)


def follows_time(collection: Import) -> bool:
    """Whether it is never known further than the present, unless it has ended.

    Not so what follows from constants alone: it is known for ever once it is there.
    """
    derived = collection.derived
    return derived is None or derived.by_time or any(map(follows_time, derived.inputs))


class Look:
    """States of shards read at one moment, and what follows from them.

    Views over views may share what is below them many times over: each is looked at once.
    """

    def __init__(self, states: Mapping[ShardId, ShardState], tables_upper: Timestamp) -> None:
        self._states = states
        self._tables_upper = tables_upper
        self._uppers: dict[ShardId, Timestamp] = {}

    def upper(self, collection: Import) -> Timestamp:
        """The first timestamp at which the collection was not known yet."""
        if collection.is_table:
            return self._tables_upper
        known = self._uppers.get(collection.shard_id)
        if known is None:
            known = self._uppers[collection.shard_id] = self._upper(collection)
        return known

    def state(self, collection: Import) -> ShardState:
        """What its shard said at that moment."""
        return self._states[collection.shard_id]

    def unchanged(self, collection: Import, from_ts: Timestamp) -> bool:
        """Whether it certainly has no updates from this timestamp up to its upper.

        At since and below, history may have been merged.
        """
        state = self._states[collection.shard_id]
        # Batches are in order of time, each beginning where the one before it ended.
        return state.since < from_ts and (not state.batches or state.batches[-1].upper <= from_ts)

    def _upper(self, collection: Import) -> Timestamp:
        own = self._states[collection.shard_id].upper
        if not self._written(collection):
            return own
        assert collection.derived is not None, "checked by _written"
        if collection.derived.refresh is not None:
            # Nothing happens to it before its next refresh, nor after its last one. Never beyond
            # the present: what follows from it must not be known there, nor forget so much.
            return max(own, min(collection.derived.refresh.next_at(own), self._tables_upper))
        if not self._follows(collection):
            return own
        inputs = collection.derived.inputs
        if not all(self.unchanged(below, own) for below in inputs):
            return own
        return max(own, min(map(self.upper, inputs), default=EMPTY_FRONTIER))

    def _written(self, collection: Import) -> bool:
        """Whether the shard holds the view: not before it is hydrated, not while another version
        has the shard or is about to take it."""
        state = self._states[collection.shard_id]
        return (
            collection.derived is not None
            and state.upper > collection.derived.as_of
            and state.writer == collection.derived.writer
            and state.pending is None
        )

    def _follows(self, collection: Import) -> bool:
        """Whether only its inputs can change a view that the shard holds, from now on.

        Not if it changes as time passes. Nor if it has come to follow from others meanwhile, which
        were not looked at.
        """
        return (
            collection.derived is not None
            and not collection.derived.by_time
            and all(below.shard_id in self._states for below in collection.derived.inputs)
        )
