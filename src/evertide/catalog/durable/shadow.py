"""Two logs at once, the second of which must always tell what the first tells.

Every transaction goes to the primary, then at the same timestamp to the secondary. A process may
stop in between, so the secondary may be one commit behind; whoever wants to append brings it level
first, hence never two. Every reading is compared as far as both are complete. Any other difference
is a fault that somebody must look at: it ends the process.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn

import structlog

from evertide.catalog.durable.log import CatalogLog, RowChange, RowUpdate
from evertide.catalog.durable.meaning import rows_apart, updates_apart
from evertide.catalog.durable.protocol import AppendOutcome, ShadowDifference
from evertide.catalog.durable.rows import StoredRow
from evertide.persist.append import Appended
from evertide.persist.faults import BelowSince, StoreFailing, StoreFull
from evertide.persist.state import ShardChange, UpperMismatch
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back, step_forward

_log = structlog.get_logger()


class ShadowLog:
    """Answers with what the primary says, once the secondary has been seen to agree."""

    name = "shadow"

    def __init__(
        self,
        primary: CatalogLog,
        secondary: CatalogLog,
        confirm_leadership: Callable[[], Awaitable[None]],
    ) -> None:
        self._primary = primary
        self._secondary = secondary
        # Raises Fenced. What an older generation sees may differ because the catalog has moved.
        self._confirm_leadership = confirm_leadership
        # An upper that both are known to have reached; another writer may have gone on since.
        self._level_at: Timestamp | None = None
        # Where comparing updates goes on: the secondary had not got further at the last look.
        self._compared_to: Timestamp | None = None

    async def prepare(self) -> None:
        await self._primary.prepare()
        await self._secondary.prepare()
        await self._level()

    async def upper(self) -> Timestamp:
        upper = await self._primary.upper()
        await self._common_upper(upper)
        return upper

    async def rows(self, as_of: Timestamp, kind: str | None = None) -> list[StoredRow]:
        rows = await self._primary.rows(as_of, kind)
        common = await self._common_upper(step_forward(as_of))
        if common == step_forward(as_of):
            await self._compare_rows(rows, as_of, kind)
        elif common > MIN_TS:
            earlier = step_back(common)
            await self._compare_rows(await self._primary.rows(earlier, kind), earlier, kind)
        if kind is None:
            self._compared_to = common
        return rows

    async def wait_beyond(self, beyond: Timestamp) -> Timestamp:
        return await self._primary.wait_beyond(beyond)

    async def updates(self, lower: Timestamp, upper: Timestamp) -> list[RowUpdate]:
        start = lower if self._compared_to is None else min(lower, self._compared_to)
        found = await self._primary.updates(start, upper)
        common = await self._common_upper(upper)
        if common > start:
            below = [update for update in found if update.ts < common]
            await self._compare_updates(below, start, common)
        self._compared_to = max(start, common)
        return [update for update in found if update.ts >= lower]

    async def append(
        self,
        changes: Sequence[RowChange],
        *,
        expected_upper: Timestamp,
        shard_changes: Sequence[ShardChange] = (),
        raises_epoch: bool = False,
        at: Timestamp | None = None,
    ) -> AppendOutcome:
        assert at is None, "a shadow is nobody's secondary"
        if self._level_at != expected_upper:
            upper = await self._level()
            if upper != expected_upper:
                return UpperMismatch(upper)
        outcome = await self._primary.append(
            changes,
            expected_upper=expected_upper,
            shard_changes=shard_changes,
            raises_epoch=raises_epoch,
        )
        # An epoch that was raised fences this very log: the next generation's has to go on.
        if isinstance(outcome, Appended) and not raises_epoch:
            await self._append_second(changes, expected_upper, outcome.upper)
        return outcome

    async def _append_second(
        self, changes: Sequence[RowChange], expected_upper: Timestamp, upper: Timestamp
    ) -> None:
        """What the primary has just taken. The transaction is durable, whatever happens here."""
        write_ts = step_back(upper)
        try:
            outcome = await self._secondary.append(
                changes, expected_upper=expected_upper, at=write_ts
            )
        except (StoreFull, StoreFailing) as fault:
            _log.warning("the secondary catalog is one commit behind", reason=str(fault))
            return
        if isinstance(outcome, UpperMismatch):
            # Somebody who wanted to go on has brought it level: with this very transaction.
            if outcome.actual < upper:
                await self._refuse_behind(outcome.actual, upper)
            updates = [RowUpdate(change.row, write_ts, change.diff) for change in changes]
            await self._compare_updates(updates, expected_upper, upper)
        self._level_at = upper

    async def _level(self) -> Timestamp:
        """Bring a secondary that is one commit behind to the primary's upper, and return that."""
        while True:
            upper = await self._primary.upper()
            common = await self._common_upper(upper)
            if common == upper:
                self._level_at = upper
                return upper
            missing = await self._primary.updates(common, upper)
            write_ts = missing[-1].ts if missing else step_back(upper)
            changes = [RowChange(update.row, update.diff) for update in missing]
            # Whether this or somebody else's repair was first shows at the next look.
            await self._secondary.append(changes, expected_upper=common, at=write_ts)

    async def _common_upper(self, upper: Timestamp) -> Timestamp:
        """How far both are complete, given an upper that the primary had before this call.

        The secondary is looked at later, so it cannot honestly be more than one commit behind.
        """
        second = await self._secondary.upper()
        if second > upper:
            newest = await self._primary.upper()
            if newest < second:
                await self._refuse(
                    f"{self._secondary.name} is complete up to {second},"
                    f" {self._primary.name} only up to {newest}"
                )
        elif second < upper and await self._commits(second, upper) > 1:
            await self._refuse_behind(second, upper)
        return min(second, upper)

    async def _commits(self, lower: Timestamp, upper: Timestamp) -> int:
        try:
            return len({update.ts for update in await self._primary.updates(lower, upper)})
        except BelowSince:
            return await self._refuse_behind(lower, upper)

    async def _refuse_behind(self, second: Timestamp, upper: Timestamp) -> NoReturn:
        await self._refuse(
            f"{self._primary.name} is complete up to {upper}, {self._secondary.name} only up to"
            f" {second}, more than one commit behind"
        )

    async def _refuse(self, difference: str) -> NoReturn:
        await self._confirm_leadership()
        raise ShadowDifference(difference)

    async def _compare_rows(
        self, rows: Sequence[StoredRow], as_of: Timestamp, kind: str | None
    ) -> None:
        second = await self._secondary.rows(as_of, kind)
        apart = rows_apart(rows, second, (self._primary.name, self._secondary.name))
        if apart is not None:
            await self._refuse(f"at {as_of} {apart}")

    async def _compare_updates(
        self, updates: Sequence[RowUpdate], lower: Timestamp, upper: Timestamp
    ) -> None:
        second = await self._secondary.updates(lower, upper)
        apart = updates_apart(updates, second, (self._primary.name, self._secondary.name))
        if apart is not None:
            await self._refuse(f"from {lower} to {upper} {apart}")
