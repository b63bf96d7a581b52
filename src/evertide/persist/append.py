"""Appending: parts are stored first, then the states that refer to them are changed."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from evertide.persist.coding.batch import UpdateBatch, to_batch
from evertide.persist.coding.schemas import column_types
from evertide.persist.faults import DamagedState, PersistFault, StoreFull
from evertide.persist.machine import Applied, ApplyOutcome, Machine, Refused
from evertide.persist.owned_blob import OwnedBlob
from evertide.persist.prepare import discard, inline_part, store_updates
from evertide.persist.read import ShardReader
from evertide.persist.state import (
    Changed,
    ColumnTypes,
    Forgotten,
    InlinePart,
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
)
from evertide.persist.store.protocol import (
    AppliedWrite,
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


class Append(NamedTuple):
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


# So few are coded at once; whether there are more is looked at where they may be put elsewhere.
_FEW_ROWS: Final = 32
# Shards whose columns are known without a look.
_MOST_KNOWN: Final = 10_000


class Appender:
    """Appends of one process. What it brings is kept for the process's own readers, and looked
    after by its maintenance."""

    def __init__(
        self, machine: Machine, blob: OwnedBlob, reader: ShardReader, maintenance: Maintenance
    ) -> None:
        self._machine = machine
        self._blob = blob
        self._reader = reader
        self._maintenance = maintenance
        self._columns: dict[ShardId, tuple[RelationDesc, ColumnTypes]] = {}

    async def append_one(self, one: Append) -> AppendOutcome:
        """One append by itself. Few updates take the shortest way: they lie in the state, so there
        is nothing to store before, and nothing to take away after a refusal."""
        if len(one.updates) > _FEW_ROWS:
            return (await self._append_each([one]))[0]
        batch = _batch(one)
        part = inline_part(batch) if one.updates else None
        if one.updates and part is None:
            return (await self._append_each([one._replace(updates=batch)]))[0]
        made = _Prepared(one, batch, () if part is None else (part,))
        result = await self._machine.apply_one(self._change(made))
        if not isinstance(result, ShardState):
            return _outcome(result)
        if part is not None and self._keep(made, result):
            await self._maintenance.keep_up()
        return Appended(result.upper)

    async def append_each(self, appends: Sequence[Append]) -> list[AppendOutcome]:
        """Each for itself, in one store transaction; outcomes in the order of appends."""
        if len(appends) == 1:
            return [await self.append_one(appends[0])]
        return await self._append_each(appends)

    async def _append_each(self, appends: Sequence[Append]) -> list[AppendOutcome]:
        prepared = await self._prepare(appends)
        try:
            results = await self._machine.apply_each([self._change(one) for one in prepared])
        except StoreFull:
            await self._take_back(prepared)
            raise
        for one, result in zip(prepared, results, strict=True):
            await self._finish(one, result if isinstance(result, ShardState) else None)
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
        try:
            outcome = await apply([self._change(one) for one in prepared])
        except (StoreFull, DamagedState):
            await self._take_back(prepared)
            raise
        states = outcome.states if isinstance(outcome, Applied) else {}
        for one in prepared:
            await self._finish(one, states.get(one.append.shard_id))
        if not isinstance(outcome, Applied):
            return outcome
        uppers = [one.upper for one in appends]
        if stash is not None:
            uppers.append(step_forward(stash.write_ts))
        return Appended(max(uppers, default=MIN_TS))

    async def _prepare(self, appends: Sequence[Append]) -> list["_Prepared"]:
        batches = [_batch(one) for one in appends]
        prepared: list[_Prepared] = []
        try:
            for one, batch in zip(appends, batches, strict=True):
                small = inline_part(batch) if 0 < len(batch) <= _FEW_ROWS else None
                if small is not None:
                    prepared.append(_Prepared(one, batch, (small,)))
                    continue
                parts = await store_updates(self._blob, one.shard_id, one.desc, batch)
                prepared.append(_Prepared(one, batch, parts))
        except PersistFault:
            await self._take_back(prepared)
            raise
        return prepared

    def _change(self, prepared: "_Prepared") -> ShardChange:
        one, parts = prepared.append, prepared.parts
        columns = self._column_types(one.shard_id, one.desc) if parts else None
        return ShardChange(one.shard_id, partial(_append_to, one, parts, columns))

    def _column_types(self, shard_id: ShardId, desc: RelationDesc) -> ColumnTypes:
        """Mostly those of the append before: only a description that is another object is read."""
        known = self._columns.get(shard_id)
        if known is None or known[0] is not desc:
            if len(self._columns) > _MOST_KNOWN:
                self._columns.clear()
            known = self._columns[shard_id] = (desc, column_types(desc))
        return known[1]

    async def _take_back(self, prepared: Sequence["_Prepared"]) -> None:
        """Free the room of parts that no state will ever refer to.

        Only after faults that say that nothing was done: a change that is in doubt may come to
        light.
        """
        try:
            for one in prepared:
                await discard(self._blob, one.parts)
        except PersistFault:
            pass  # garbage, which is found by its age

    async def _finish(self, made: "_Prepared", state: ShardState | None) -> None:
        """Keep what was appended for readers of this process; what was refused is garbage."""
        if state is None:
            await discard(self._blob, made.parts)
        elif made.parts and self._keep(made, state):
            await self._maintenance.keep_up()

    def _keep(self, made: "_Prepared", state: ShardState) -> bool:
        """Keep what was appended and look after the shard; whether to wait until that is done."""
        one, newest = made.append, state.batches[-1]
        if newest.upper == one.upper:
            self._reader.keep_appended(one.shard_id, one.desc, newest, made.updates)
        self._maintenance.after_append(one.shard_id, one.desc, state)
        return self._maintenance.behind(state)


@dataclass(slots=True)
class _Prepared:
    """An append, its updates in the form that is stored and kept, and the parts that hold them."""

    append: Append
    updates: UpdateBatch
    parts: tuple[Part, ...]


def _batch(one: Append) -> UpdateBatch:
    batch = to_batch(one.desc, one.updates)
    if len(batch):
        first, last = batch.span
        lower = MIN_TS if one.lower is None else one.lower
        assert lower <= first <= last < one.upper, "updates lie in the append"
    return batch


def _append_to(
    one: Append, parts: tuple[Part, ...], columns: ColumnTypes | None, state: ShardState | None
) -> Changed:
    if state is None:
        return Missing()
    if parts and not isinstance(parts[0], InlinePart):
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
        columns=columns,
        completes_pending=one.completes_pending,
    )


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
