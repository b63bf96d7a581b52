"""A catalog that is not open yet, over any log."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from evertide.catalog.durable.catalog import LogCatalog, WritableLogCatalog
from evertide.catalog.durable.codec import GENERATION_CONFIG
from evertide.catalog.durable.log import CatalogLog, Stored, difference, read_all
from evertide.catalog.durable.memory import MemoryLog, no_shard
from evertide.catalog.durable.protocol import ReadableCatalog, Uninitialized, WritableCatalog
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.today import Opening, check_version, opened
from evertide.catalog.objects import ObjectKind
from evertide.catalog.snapshot import Snapshot
from evertide.persist.append import Appended
from evertide.persist.faults import Fenced
from evertide.persist.machine import Refused
from evertide.persist.state import ShardState
from evertide.persist.store.protocol import Store
from evertide.vocab.clock import Clock
from evertide.vocab.ids import EnvironmentId, Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp, step_back, step_forward

# Lost races after which the older generation is fenced first, so that it cannot win for ever.
_PATIENCE: Final = 5


class LogOpenableCatalog:
    """The catalog of one environment.

    `log_for` gives the log as it is written under an epoch. Which log that is may change with the
    epoch, so it is asked for anew whenever the epoch is another one. `shard_state` looks at a data
    shard on behalf of a savepoint.
    """

    def __init__(
        self,
        store: Store,
        log_for: Callable[[Epoch], Awaitable[CatalogLog]],
        environment_id: EnvironmentId,
        clock: Clock,
        *,
        shard_state: Callable[[ShardId], Awaitable[ShardState | None]] = no_shard,
    ) -> None:
        self._store = store
        self._log_for = log_for
        self._environment_id = environment_id
        self._clock = clock
        self._shard_state = shard_state
        self._boot_ts = clock.now_ms()

    @property
    def boot_ts(self) -> int:
        return self._boot_ts

    async def is_initialized(self) -> bool:
        return await (await self._log()).upper() > MIN_TS

    async def current_epoch(self) -> Epoch:
        return await self._store.current_epoch()

    async def deployment_generation(self) -> int | None:
        log = await self._log()
        upper = await log.upper()
        if upper == MIN_TS:
            return None
        for row in await log.rows(step_back(upper), ObjectKind.CONFIG.value):
            if json.loads(row.key) == {"name": GENERATION_CONFIG}:
                return int(json.loads(row.value)["value"])
        return None

    async def open(self, deployment_generation: int | None = None) -> WritableCatalog:
        lost_races = 0
        while True:
            epoch = await self.current_epoch()
            opened = await self._try_to_open(epoch, deployment_generation)
            if opened is not None:
                return opened
            lost_races += 1
            if lost_races == _PATIENCE:
                await self._store.raise_epoch()

    async def _try_to_open(
        self, epoch: Epoch, deployment_generation: int | None
    ) -> WritableCatalog | None:
        """None if somebody else was first: with a change of the catalog, or with opening it."""
        try:
            log = await self._log_for(epoch)
            stored = await _stored(log)
            opening = await self._opening(epoch, stored.rows, deployment_generation)
            await log.prepare()
            outcome = await log.append(
                difference(stored.rows, opening.rows),
                expected_upper=stored.upper,
                raises_epoch=True,
            )
        except Fenced:
            return None
        assert not isinstance(outcome, Refused), "opening touches no other shard"
        if not isinstance(outcome, Appended):
            return None
        raised = Epoch(epoch + 1)
        log = await self._log_for(raised)
        await log.prepare()
        return self._writable(log, raised, opening.at(outcome.upper))

    async def join(self, epoch: Epoch) -> WritableCatalog:
        catalog = self._writable(await self._log_for(epoch), epoch)
        # After the log was chosen: under a current epoch, the choice is current too.
        await catalog.confirm_leadership()
        return catalog

    async def open_read_only(self) -> ReadableCatalog:
        log = await self._log()
        check_version((await read_all(log)).rows)
        return LogCatalog(log)

    async def open_savepoint(self) -> WritableCatalog:
        epoch, stored, opening = await self._look()
        upper = step_forward(max(stored.upper, Timestamp(1)))
        log, own_epoch = MemoryLog(opening.rows, upper, self._shard_state), Epoch(epoch + 1)

        async def unfenced() -> Epoch:
            return own_epoch

        return WritableLogCatalog(log, LogCatalog(log), own_epoch, self._clock, unfenced)

    async def check_open(self) -> Snapshot:
        await read_all(await self._log())
        _, stored, opening = await self._look()
        return opening.at(stored.upper)

    async def _look(self) -> tuple[Epoch, Stored, Opening]:
        """What is stored, under which epoch, and what opening would make of it."""
        while True:
            epoch = await self.current_epoch()
            try:
                stored = await _stored(await self._log_for(epoch))
                return epoch, stored, await self._opening(epoch, stored.rows, None)
            except Fenced:
                continue  # somebody opened the environment meanwhile

    async def _log(self) -> CatalogLog:
        return await self._log_for(await self.current_epoch())

    async def _opening(
        self, epoch: Epoch, rows: Sequence[StoredRow], deployment_generation: int | None
    ) -> Opening:
        oracle_rows = self._store.oracle_rows(epoch)
        timestamps = {timeline: (await oracle_rows.read(timeline)).read_ts for timeline in Timeline}
        return opened(
            rows,
            environment_id=self._environment_id,
            now_ms=self._clock.now_ms(),
            deployment_generation=deployment_generation,
            timestamps=timestamps,
        )

    def _writable(
        self, log: CatalogLog, epoch: Epoch, snapshot: Snapshot | None = None
    ) -> WritableLogCatalog:
        readable = LogCatalog(log, snapshot)
        return WritableLogCatalog(log, readable, epoch, self._clock, self._store.current_epoch)


async def _stored(log: CatalogLog) -> Stored:
    """Everything in the log; nothing in one that was never written."""
    try:
        return await read_all(log)
    except Uninitialized:
        return Stored([], MIN_TS)
