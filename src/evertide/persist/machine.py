"""The compare-and-set loop around the pure transitions of state.py."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

from evertide.persist.faults import DamagedState, ShardMissing, StoreFailing, StoreFull
from evertide.persist.news import UNREADABLE, Heard, news_of
from evertide.persist.purge import purged_state
from evertide.persist.state import (
    Refusal,
    ShardChange,
    ShardState,
    decode_state,
)
from evertide.persist.state_encoder import StateEncoder
from evertide.persist.store.protocol import (
    STASH_SHARD,
    AllSet,
    AppliedWrite,
    ChangeOutcome,
    ClaimedWrite,
    ClaimLost,
    CompareAndSet,
    Consensus,
    Head,
    SetMismatch,
    SetOutcome,
    StashAppend,
    StashMismatch,
    TellingConsensus,
    Unchanged,
)
from evertide.persist.turns import Turns
from evertide.vocab.ids import ShardId


class Known(NamedTuple):
    """A state and its seqno; both None where there is no shard."""

    seqno: int | None
    state: ShardState | None
    # The state stands for one that is damaged, which others may know as it was.
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """Every change was made; the states that resulted."""

    states: Mapping[ShardId, ShardState]


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing of the group was changed, because of this shard."""

    shard_id: ShardId
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Riders:
    """What one store transaction does besides changing shards; see Consensus."""

    applied: Sequence[AppliedWrite] = ()
    claimed: ClaimedWrite | None = None
    stash: StashAppend | None = None
    raises_epoch: bool = False


ApplyOutcome: TypeAlias = Applied | Refused | StashMismatch
T = TypeVar("T")

_NOTHING = Known(None, None)
# The event loop itself refers to tasks only weakly.
_under_way: set[object] = set()


class Machine:
    """Shard states, read through a cache by seqno and changed by compare-and-set.

    A refusal is always one of a state read after the call began, so it is as good as a refusal by
    the store itself.
    """

    def __init__(
        self, consensus: Consensus, on_change: Callable[[Collection[ShardId]], None]
    ) -> None:
        """`on_change` hears of each change that was made here."""
        self._consensus = consensus
        self._telling = consensus if isinstance(consensus, TellingConsensus) else None
        self._on_change = on_change
        self._known: dict[ShardId, Known] = {}
        # Shards whose known state is one that this process set.
        self._own: set[ShardId] = set()
        self._turns = Turns()
        self._encoder = StateEncoder()

    async def read(self, shard_id: ShardId) -> Known:
        """The newest state."""
        known = self._known.get(shard_id, _NOTHING)
        return self._learn(shard_id, known, await self._consensus.head(shard_id, known.seqno))

    def known_state(self, shard_id: ShardId) -> ShardState | None:
        """The state that was read or set last, which may not be the newest; None: none was."""
        return self._known.get(shard_id, _NOTHING).state

    async def read_all(
        self, shard_ids: Iterable[ShardId], *, ending: Collection[ShardId] = ()
    ) -> dict[ShardId, Known]:
        """The newest states as of one moment. Those that are `ending` may be damaged."""
        known = {shard_id: self._known.get(shard_id, _NOTHING) for shard_id in shard_ids}
        if not known:
            return {}
        heads = await self._consensus.heads({shard: known[shard].seqno for shard in known})
        return {
            shard: self._learn(shard, known[shard], heads[shard], ends=shard in ending)
            for shard in known
        }

    async def states(self, shard_ids: Iterable[ShardId]) -> dict[ShardId, ShardState]:
        """The newest states as of one moment; raises ShardMissing."""
        found: dict[ShardId, ShardState] = {}
        for shard_id, known in (await self.read_all(shard_ids)).items():
            if known.state is None:
                raise ShardMissing(shard_id)
            found[shard_id] = known.state
        return found

    async def apply_all(
        self,
        changes: Sequence[ShardChange],
        *,
        applied: Sequence[AppliedWrite] = (),
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> ApplyOutcome:
        """All changes, the oracle writes and the stash in one store transaction, or nothing.

        Several changes of one shard are made one after the other. A damaged state raises
        DamagedState before anything is asked of the store, unless the change ends the shard.
        """
        riders = Riders(applied, None, stash, raises_epoch)
        with self._turns.take({change.shard_id for change in changes}) as turn:
            if not turn.come:
                await turn.wait()
            outcome = await self._apply_all(changes, riders)
        assert not isinstance(outcome, ClaimLost), "nothing was claimed"
        return outcome

    async def apply_claiming(
        self,
        changes: Sequence[ShardChange],
        claimed: ClaimedWrite,
        *,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> ApplyOutcome | ClaimLost:
        """As apply_all, with a write timestamp that the same transaction takes and applies."""
        riders = Riders((), claimed, stash, raises_epoch)
        with self._turns.take({change.shard_id for change in changes}) as turn:
            if not turn.come:
                await turn.wait()
            return await self._apply_all(changes, riders)

    async def _apply_all(
        self, changes: Sequence[ShardChange], riders: Riders
    ) -> ApplyOutcome | ClaimLost:
        shard_ids = sorted({change.shard_id for change in changes})
        ending = {change.shard_id for change in changes if change.ends}
        guess = self._own_states(shard_ids)
        while True:
            known = guess or await self.read_all(shard_ids, ending=ending)
            decided = _decide_all(known, changes)
            if isinstance(decided, Refused):
                if guess is None:
                    return decided
                guess = None  # perhaps only the guess was wrong
                continue
            guess = None
            outcome = await self._set_all(self._sets(known, decided), decided, riders)
            match outcome:
                case AllSet():
                    return Applied(decided)
                case ClaimLost() | StashMismatch():
                    return outcome
                case SetMismatch():
                    continue  # decided again, against what the other one left

    async def apply_each(self, changes: Sequence[ShardChange]) -> list[ShardState | Refusal]:
        """Each change for itself, in one store transaction; outcomes in the order of changes.

        Those that lost a race to another writer are decided again against what that one left.
        """
        waiting = {change.shard_id: change for change in changes}
        assert len(waiting) == len(changes), "each shard is changed once"
        with self._turns.take(waiting) as turn:
            if not turn.come:
                await turn.wait()
            outcomes = await self._apply_each(waiting, self._own_states(waiting))
        return [outcomes[change.shard_id] for change in changes]

    async def apply_one(self, change: ShardChange) -> ShardState | Refusal:
        """As apply_each, for a single change: the shortest way, since most are that."""
        shard_id = change.shard_id
        if not self._turns.take_free(shard_id):
            return (await self.apply_each([change]))[0]
        try:
            if shard_id in self._own:
                known = self._known[shard_id]
                after = change.transition(known.state)
                if isinstance(after, ShardState):
                    one = self._set(shard_id, known, after)
                    if isinstance(await self._set_one(one, after), AllSet):
                        return after
            return (await self._apply_each({shard_id: change}, None))[shard_id]
        finally:
            self._turns.pass_on(shard_id)

    async def _apply_each(
        self, waiting: Mapping[ShardId, ShardChange], guess: Mapping[ShardId, Known] | None
    ) -> dict[ShardId, ShardState | Refusal]:
        outcomes: dict[ShardId, ShardState | Refusal] = {}
        while waiting:
            known = guess or await self.read_all(sorted(waiting))
            decided: dict[ShardId, ShardState] = {}
            for shard_id, change in waiting.items():
                after = change.transition(known[shard_id].state)
                if isinstance(after, ShardState):
                    decided[shard_id] = after
                elif guess is None:
                    outcomes[shard_id] = after
            guess = None
            try:
                done = await self._set_each(self._sets(known, decided), decided)
            except StoreFull as fault:
                if any(isinstance(outcome, ShardState) for outcome in outcomes.values()):
                    # Some were made before others had to be decided again: "nothing was done" is
                    # not true, and their parts must stay.
                    raise StoreFailing(fault.reason) from fault
                raise
            outcomes.update((shard_id, decided[shard_id]) for shard_id in done)
            waiting = {shard: c for shard, c in waiting.items() if shard not in outcomes}
        return outcomes

    async def _set_all(
        self,
        sets: Sequence[CompareAndSet],
        decided: Mapping[ShardId, ShardState],
        riders: Riders,
    ) -> ChangeOutcome:
        def heard(outcome: ChangeOutcome) -> None:
            if isinstance(outcome, AllSet):
                self._remember(sets, decided, stash_changed=riders.stash is not None)

        async def attempt() -> ChangeOutcome:
            outcome = await self._consensus.compare_and_set_all(
                sets,
                applied=riders.applied,
                claimed=riders.claimed,
                stash=riders.stash,
                raises_epoch=riders.raises_epoch,
            )
            heard(outcome)
            return outcome

        if self._telling is None:
            return await _to_the_end(attempt)
        return await self._telling.set_all_telling(
            sets,
            heard,
            applied=riders.applied,
            claimed=riders.claimed,
            stash=riders.stash,
            raises_epoch=riders.raises_epoch,
        )

    def _set_one(self, change: CompareAndSet, after: ShardState) -> Awaitable[SetOutcome]:
        def heard(outcome: SetOutcome) -> None:
            if isinstance(outcome, AllSet):
                self._keep(change.shard_id, Known(change.next_seqno, after), own=True)
                self._on_change([change.shard_id])

        return self._try_each((change,), heard)

    async def _set_each(
        self, sets: Sequence[CompareAndSet], decided: Mapping[ShardId, ShardState]
    ) -> list[ShardId]:
        def heard(outcome: SetOutcome) -> None:
            self._remember(_done(sets, outcome), decided)

        if not sets:
            return []
        outcome = await self._try_each(sets, heard)
        return [change.shard_id for change in _done(sets, outcome)]

    def _try_each(
        self, sets: Sequence[CompareAndSet], heard: Callable[[SetOutcome], None]
    ) -> Awaitable[SetOutcome]:
        async def attempt() -> SetOutcome:
            outcome = await self._consensus.compare_and_set_each(sets)
            heard(outcome)
            return outcome

        if self._telling is not None:
            return self._telling.set_each_telling(sets, heard)
        return _to_the_end(attempt)

    def _sets(
        self, known: Mapping[ShardId, Known], decided: Mapping[ShardId, ShardState]
    ) -> list[CompareAndSet]:
        return [self._set(shard, known[shard], decided[shard]) for shard in sorted(decided)]

    def _set(self, shard_id: ShardId, before: Known, after: ShardState) -> CompareAndSet:
        value = self._encoder.encode(shard_id, after)
        seqno = before.seqno
        news = None
        if seqno is not None and not before.damaged:
            news = news_of(shard_id, seqno + 1, before.state, after)
        return CompareAndSet(shard_id, seqno, value, news)

    def _own_states(self, shard_ids: Collection[ShardId]) -> dict[ShardId, Known] | None:
        """The states that this process set last, and nothing for shards it never heard of.

        Nobody else may have changed the former since, and the latter are mostly about to be made.
        So a change is tried from them without a look: if they are not the newest, the store says
        so. A refusal, though, needs a look. None: others have changed one of these shards.
        """
        if not shard_ids or any(s in self._known and s not in self._own for s in shard_ids):
            return None
        return {shard_id: self._known.get(shard_id, _NOTHING) for shard_id in shard_ids}

    def _remember(
        self,
        done: Sequence[CompareAndSet],
        decided: Mapping[ShardId, ShardState],
        *,
        stash_changed: bool = False,
    ) -> None:
        """Keep the states that were set, then tell the watchers, who find them decoded."""
        for change in done:
            known = Known(change.next_seqno, decided[change.shard_id])
            self._keep(change.shard_id, known, own=True)
        changed = [change.shard_id for change in done]
        self._on_change([*changed, STASH_SHARD] if stash_changed else changed)

    def _learn(
        self, shard_id: ShardId, known: Known, head: Head | Unchanged | None, *, ends: bool = False
    ) -> Known:
        match head:
            case Unchanged():
                return known
            case None:
                return _NOTHING
            case Head(seqno, value):
                try:
                    learned = Known(seqno, decode_state(value, shard_id))
                except DamagedState:
                    if ends:
                        return Known(seqno, purged_state(), damaged=True)
                    raise
                if known.seqno is not None and seqno < known.seqno:
                    # The store lost what it had said before: what is known of it was lost as well.
                    self._known.pop(shard_id, None)
                self._keep(shard_id, learned, own=False)
                return learned

    def hear(self, news: Sequence[Heard]) -> None:
        """Other processes changed shards. Where the state before is known, so is the next one: a
        look finds it decoded."""
        for one in news:
            known = self._known.get(one.shard_id, _NOTHING)
            if known.state is not None and known.seqno == one.seqno - 1:
                with suppress(*UNREADABLE):  # it is read then, and says what is wrong
                    state = one.state_after(known.state)
                    self._keep(one.shard_id, Known(one.seqno, state), own=False)

    def _keep(self, shard_id: ShardId, known: Known, *, own: bool) -> None:
        """Unless a later one is known: answers and news may overtake each other."""
        newest = self._known.get(shard_id, _NOTHING).seqno
        if newest is None or known.seqno is None or newest < known.seqno:
            self._known[shard_id] = known
            (self._own.add if own else self._own.discard)(shard_id)


def _done(sets: Sequence[CompareAndSet], outcome: SetOutcome) -> Sequence[CompareAndSet]:
    if not isinstance(outcome, SetMismatch):
        return sets
    return [change for change in sets if change.shard_id not in outcome.shard_ids]


def _decide_all(
    known: Mapping[ShardId, Known], changes: Sequence[ShardChange]
) -> dict[ShardId, ShardState] | Refused:
    states = {shard_id: found.state for shard_id, found in known.items()}
    decided: dict[ShardId, ShardState] = {}
    for change in changes:
        after = change.transition(states[change.shard_id])
        if not isinstance(after, ShardState):
            return Refused(change.shard_id, after)
        states[change.shard_id] = decided[change.shard_id] = after
    return decided


async def _to_the_end(attempt: Callable[[], Awaitable[T]]) -> T:
    """Make it so that it runs to its end even if whoever asked is cancelled meanwhile.

    A cancelled caller does not stop a commit that is under way; unannounced, its watchers would
    wait for the next poll.
    """
    outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(_report(attempt, outcome))
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)
    return await outcome


async def _report(attempt: Callable[[], Awaitable[T]], outcome: "asyncio.Future[T]") -> None:
    """Tell whoever asked, if it still waits: one step of the loop sooner than a shield would."""
    try:
        value = await attempt()
    except asyncio.CancelledError:
        outcome.cancel()
        raise
    except Exception as error:  # noqa: BLE001 - not this task's to handle: the asker is told
        if not outcome.done():
            outcome.set_exception(error)
    else:
        if not outcome.done():
            outcome.set_result(value)
