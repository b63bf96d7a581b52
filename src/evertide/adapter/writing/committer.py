"""One try to commit table writes at a timestamp of its own, known to the oracle once it is durable.

Where the oracle lives in the consensus store, the store transaction that commits also takes the
timestamp and applies it: one durable commit. Elsewhere the timestamp is asked for first and applied
afterwards.
"""

from collections.abc import Coroutine, Mapping
from typing import Protocol

from evertide.oracle.protocol import TimestampOracle
from evertide.persist.faults import Corrupt, StoreFailing, StoreFull
from evertide.persist.txn import (
    CommitOutcome,
    Committed,
    TableForgotten,
    TableWrite,
    TimestampTaken,
    Txns,
    TxnsUpperMismatch,
)
from evertide.vocab.clock import Clock
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp, step_back, step_forward


class Committer(Protocol):
    """How a round of writes reaches the tables."""

    def commit(
        self, writes: Mapping[ShardId, TableWrite], expected_upper: Timestamp | None
    ) -> Coroutine[None, None, CommitOutcome]:
        """Commit at a new write timestamp; Committed means durable and applied.

        With `expected_upper`, only if nothing was committed since the upper was that.
        """
        ...


class ClaimingCommitter:
    """Takes the timestamp in the transaction that writes at it."""

    def __init__(self, txns: Txns, clock: Clock) -> None:
        self._txns = txns
        self._clock = clock
        # The largest timestamp known to be taken; a claim beyond it usually wins.
        self._last = MIN_TS

    async def commit(
        self, writes: Mapping[ShardId, TableWrite], expected_upper: Timestamp | None
    ) -> CommitOutcome:
        while True:
            at = max(
                Timestamp(self._clock.now_ms()), step_forward(self._last), expected_upper or MIN_TS
            )
            outcome = await self._txns.commit_claiming(writes, at=at, expected_upper=expected_upper)
            match outcome:
                case TimestampTaken(last):
                    self._last = max(self._last, last)
                case Committed():
                    self._last = max(self._last, at)
                    return outcome
                case TxnsUpperMismatch(actual):
                    # Where this clock lags behind others, it would lose to the same one again.
                    self._last = max(self._last, step_back(actual))
                    return outcome
                case TableForgotten():
                    return outcome


class AskingCommitter:
    """Asks an oracle that lives elsewhere: for the timestamp before, to apply it after."""

    def __init__(self, txns: Txns, oracle: TimestampOracle) -> None:
        self._txns = txns
        self._oracle = oracle

    async def commit(
        self, writes: Mapping[ShardId, TableWrite], expected_upper: Timestamp | None
    ) -> CommitOutcome:
        write_ts = await self._oracle.write_ts(Timeline.EPOCH_MS)
        outcome = await self._txns.commit(writes, at=write_ts, expected_upper=expected_upper)
        if isinstance(outcome, Committed):
            await self._apply(write_ts)
        return outcome

    async def _apply(self, write_ts: Timestamp) -> None:
        try:
            await self._oracle.apply_write(Timeline.EPOCH_MS, write_ts)
        except (StoreFull, Corrupt) as fault:
            # The rows are there, and will be seen with the next write that is applied: whoever
            # asked must not take them for refused.
            raise StoreFailing(str(fault)) from fault
