"""Appending: parts are stored first, then the states that refer to them are changed."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evertide.persist.coding.schemas import column_types
from evertide.persist.faults import PersistFault, StoreFull
from evertide.persist.machine import Applied, ApplyOutcome, Machine, Refused
from evertide.persist.prepare import discard, store_updates
from evertide.persist.read import ShardReader
from evertide.persist.state import (
    Changed,
    Forgotten,
    Missing,
    Part,
    PendingWrite,
    Refusal,
    SchemaMismatch,
    ShardChange,
    ShardState,
    UpperMismatch,
    WriterMismatch,
    append,
    existing,
)
from evertide.persist.store.protocol import (
    AppliedWrite,
    Blob,
    ClaimedWrite,
    ClaimLost,
    StashAppend,
    StashMismatch,
)
from evertide.persist.upkeep.maintenance import Maintenance
from evertide.persist.upkeep.part_age import check_young
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_forward
from evertide.vocab.update import Update


@dataclass(frozen=True, slots=True)
class Append:
    """Updates with lower <= ts < upper for one shard; none: only advance the upper."""

    shard_id: ShardId
    desc: RelationDesc
    updates: Sequence[Update]
    # None: wherever the upper is; for shards that another shard of the transaction protects.
    lower: Timestamp | None
    upper: Timestamp
    writer: GlobalId | None = None
    # The append that a new writer owes after set_writer(..., pending=True).
    completes_pending: bool = False


@dataclass(frozen=True, slots=True)
class Appended:
    """Durable; the upper of shard or stash now, the greatest one for a group."""

    upper: Timestamp


AppendOutcome: TypeAlias = (
    Appended | UpperMismatch | WriterMismatch | SchemaMismatch | PendingWrite | Forgotten | Missing
)


class Appender:
    """Appends of one process. What it brings is kept for the process's own readers, and looked
    after by its maintenance."""

    def __init__(
        self, machine: Machine, blob: Blob, reader: ShardReader, maintenance: Maintenance
    ) -> None:
        self._machine = machine
        self._blob = blob
        self._reader = reader
        self._maintenance = maintenance

    async def append_each(self, appends: Sequence[Append]) -> list[AppendOutcome]:
        """Each for itself, in one store transaction; outcomes in the order of appends."""
        prepared = await self._prepare(appends)
        changes = [_change(one, parts) for one, parts in zip(appends, prepared, strict=True)]
        try:
            results = await self._machine.apply_each(changes)
        except StoreFull:
            await self._take_back(prepared)
            raise
        for one, parts, result in zip(appends, prepared, results, strict=True):
            await self._finish(one, parts, result if isinstance(result, ShardState) else None)
        return [_outcome(result) for result in results]

    async def append_all(
        self,
        appends: Sequence[Append],
        *,
        also: Sequence[ShardChange] = (),
        applied: Sequence[AppliedWrite] = (),
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> Appended | Refused | StashMismatch:
        """Appends, other changes, oracle writes and the stash in one store transaction, or nothing.

        `also` comes first, so that a shard may be created and appended to at once.
        """

        async def apply(changes: list[ShardChange]) -> ApplyOutcome:
            return await self._machine.apply_all(
                [*also, *changes], applied=applied, stash=stash, raises_epoch=raises_epoch
            )

        outcome = await self._append_all(appends, stash, apply)
        assert not isinstance(outcome, ClaimLost), "nothing was claimed"
        return outcome

    async def append_claiming(
        self,
        appends: Sequence[Append],
        claimed: ClaimedWrite,
        *,
        also: Sequence[ShardChange] = (),
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> Appended | Refused | ClaimLost | StashMismatch:
        """As append_all, with a write timestamp that the same transaction takes and applies."""

        async def apply(changes: list[ShardChange]) -> ApplyOutcome | ClaimLost:
            return await self._machine.apply_claiming(
                [*also, *changes], claimed, stash=stash, raises_epoch=raises_epoch
            )

        return await self._append_all(appends, stash, apply)

    async def _append_all(
        self,
        appends: Sequence[Append],
        stash: StashAppend | None,
        apply: Callable[[list[ShardChange]], Awaitable[ApplyOutcome | ClaimLost]],
    ) -> Appended | Refused | ClaimLost | StashMismatch:
        prepared = await self._prepare(appends)
        changes = [_change(one, parts) for one, parts in zip(appends, prepared, strict=True)]
        try:
            outcome = await apply(changes)
        except StoreFull:
            await self._take_back(prepared)
            raise
        states = outcome.states if isinstance(outcome, Applied) else {}
        for one, parts in zip(appends, prepared, strict=True):
            await self._finish(one, parts, states.get(one.shard_id))
        if not isinstance(outcome, Applied):
            return outcome
        uppers = [one.upper for one in appends]
        if stash is not None:
            uppers.append(step_forward(stash.write_ts))
        return Appended(max(uppers, default=MIN_TS))

    async def _prepare(self, appends: Sequence[Append]) -> list[tuple[Part, ...]]:
        for one in appends:
            lower = MIN_TS if one.lower is None else one.lower
            assert all(lower <= u.ts < one.upper for u in one.updates), "updates lie in the append"
        prepared: list[tuple[Part, ...]] = []
        try:
            for one in appends:
                parts = await store_updates(self._blob, one.shard_id, one.desc, one.updates)
                prepared.append(parts)
        except PersistFault:
            await self._take_back(prepared)
            raise
        return prepared

    async def _take_back(self, prepared: Sequence[tuple[Part, ...]]) -> None:
        """Free the room of parts that no state will ever refer to.

        Not after other faults than a full store: a change that is in doubt may come to light.
        """
        try:
            for parts in prepared:
                await discard(self._blob, parts)
        except PersistFault:
            pass  # garbage, which is found by its age

    async def _finish(self, one: Append, parts: tuple[Part, ...], state: ShardState | None) -> None:
        """Keep what was appended for readers of this process; what was refused is garbage."""
        if state is None:
            await discard(self._blob, parts)
        elif parts:
            newest = state.batches[-1]
            if newest.upper == one.upper:
                self._reader.keep_appended(one.shard_id, one.desc, newest, one.updates)
            self._maintenance.after_append(one.shard_id, one.desc, state)
            await self._maintenance.keep_up(state)


def _change(one: Append, parts: tuple[Part, ...]) -> ShardChange:
    def transition(state: ShardState) -> Changed:
        check_young(parts)
        lower = state.upper if one.lower is None else one.lower
        if lower >= one.upper:
            # No later timestamp would help a table that is gone.
            return Forgotten() if state.forgotten else UpperMismatch(state.upper)
        return append(
            state,
            lower=lower,
            upper=one.upper,
            writer=one.writer,
            parts=parts,
            columns=column_types(one.desc) if parts else None,
            completes_pending=one.completes_pending,
        )

    return ShardChange(one.shard_id, existing(transition))


def _outcome(result: ShardState | Refusal) -> AppendOutcome:
    match result:
        case ShardState():
            return Appended(result.upper)
        case UpperMismatch() | WriterMismatch() | SchemaMismatch() | PendingWrite():
            return result
        case Forgotten() | Missing():
            return result
        case _:
            raise AssertionError(f"an append is not refused by {result}")
