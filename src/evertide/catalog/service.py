"""CATALOG as every process uses it: a local copy that follows the log, and appends to it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from evertide.catalog.durable.protocol import AppendOutcome, Progress, WritableCatalog
from evertide.catalog.faults import CatalogFault
from evertide.catalog.objects import AuditEvent, CatalogUpdate, StorageUsage
from evertide.catalog.snapshot import Snapshot, all_objects
from evertide.oracle.protocol import TimestampOracle
from evertide.persist.faults import Fenced, StoreFailing, StoreFull
from evertide.persist.handle import Appended
from evertide.persist.state import ShardChange
from evertide.persist.trouble import Trouble
from evertide.vocab.timestamp import Timeline, Timestamp


@dataclass(frozen=True, slots=True)
class Change:
    """Updates of at most one transaction, the snapshot with them, and how far that is complete.

    The first change of a subscription is different: its updates are all objects there are.
    """

    updates: tuple[CatalogUpdate, ...]
    snapshot: Snapshot
    upper: Timestamp


Inbox: TypeAlias = asyncio.Queue[Change | Exception]


class CatalogService:
    """One per process; all methods are for one event loop.

    `start` reads the catalog and begins to follow it, `close` ends that. A failure to follow is
    raised to everyone who waits for the catalog, then and later.
    """

    def __init__(self, catalog: WritableCatalog, oracle: TimestampOracle) -> None:
        self._catalog = catalog
        self._oracle = oracle
        self._snapshot = Snapshot()
        self._moved = asyncio.Event()
        self._inboxes: set[Inbox] = set()
        self._following: asyncio.Task[None] | None = None
        self._failure: Exception | None = None

    async def start(self) -> None:
        self._snapshot = await self._catalog.load()
        self._following = asyncio.create_task(self._follow(), name="follow catalog")

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    @property
    def newest(self) -> Snapshot:
        """What this process knows by now; not linearizable, for metrics and background work."""
        return self._snapshot

    async def snapshot_at(self, catalog_ts: Timestamp) -> Snapshot:
        """A snapshot that holds every change up to this timestamp, and perhaps later ones."""
        while self._snapshot.upper <= catalog_ts:
            self._raise_failure()
            await self._moved.wait()
        return self._snapshot

    async def current(self) -> Snapshot:
        """A snapshot with every DDL that was acknowledged before this was called, anywhere."""
        return await self.snapshot_at(await self._oracle.read_ts(Timeline.CATALOG))

    async def subscribe_at(self, catalog_ts: Timestamp) -> AsyncIterator[Change]:
        """All objects as of `catalog_ts` or later, then every transaction after that, for ever."""
        snapshot = await self.snapshot_at(catalog_ts)
        self._raise_failure()
        inbox: Inbox = asyncio.Queue()
        self._inboxes.add(inbox)
        try:
            everything = tuple(CatalogUpdate(found, 1) for found in all_objects(snapshot))
            yield Change(everything, snapshot, snapshot.upper)
            while True:
                change = await inbox.get()
                if isinstance(change, Exception):
                    raise change
                yield change
        finally:
            self._inboxes.discard(inbox)

    async def compare_and_append(
        self,
        updates: Sequence[CatalogUpdate],
        *,
        expected_upper: Timestamp,
        shard_changes: Sequence[ShardChange] = (),
    ) -> AppendOutcome:
        """Commit what was decided against the snapshot with this upper, all or nothing.

        UpperMismatch: somebody else was first; decide again on `snapshot_at(actual - 1)`.
        Refused: a data shard is not as the caller thought (its since passed a wished hold, say).
        Raises Fenced in an old generation.
        """
        with self._failing():
            outcome = await self._catalog.compare_and_append(
                updates, expected_upper=expected_upper, shard_changes=shard_changes
            )
        if isinstance(outcome, Appended) and self._snapshot.upper == expected_upper:
            # Known before the notification comes round: the next statement need not wait.
            self._advance(Progress(tuple(updates), outcome.upper))
        return outcome

    async def audit_events(self, catalog_ts: Timestamp) -> list[AuditEvent]:
        """All audit events up to this timestamp, oldest first, read from the store."""
        with self._failing():
            return await self._catalog.get(AuditEvent, catalog_ts)

    async def storage_usage(self, catalog_ts: Timestamp) -> list[StorageUsage]:
        """What was measured up to this timestamp, oldest first, read from the store."""
        with self._failing():
            return await self._catalog.get(StorageUsage, catalog_ts)

    async def wait_failed(self) -> Exception:
        """Returns why this copy no longer follows; the process that owns it must then end."""
        while self._failure is None:
            await self._moved.wait()
        return self._failure

    async def _follow(self) -> None:
        """A store that cannot be read just now is asked again; any other failure is the end."""
        trouble = Trouble("following the catalog")
        while self._failure is None:
            try:
                async for progress in self._catalog.follow(self._snapshot.upper):
                    trouble.over()
                    if progress.upper > self._snapshot.upper:
                        self._advance(progress)
                return
            except (StoreFull, StoreFailing) as fault:
                trouble.met(fault)
                await asyncio.sleep(trouble.wait_s)
            except Exception as failure:  # noqa: BLE001  handed to everyone who waits
                self._fail(await self._cause(failure))

    async def _cause(self, failure: Exception) -> Exception:
        """A newer generation may write what this one cannot read: then that is the reason."""
        try:
            await self._catalog.confirm_leadership()
        except Exception as fault:  # noqa: BLE001  the store may be what failed
            return fault if isinstance(fault, Fenced) else failure
        return failure

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """What is wrong with the stored catalog concerns the process, not one statement of it."""
        try:
            yield
        except CatalogFault as fault:
            self._fail(fault)
            raise

    def _advance(self, progress: Progress) -> None:
        self._snapshot = self._snapshot.apply(progress.updates, progress.upper)
        change = Change(progress.updates, self._snapshot, progress.upper)
        for inbox in self._inboxes:
            inbox.put_nowait(change)
        self._wake()

    def _fail(self, failure: Exception) -> None:
        self._failure = failure
        for inbox in self._inboxes:
            inbox.put_nowait(failure)
        self._wake()

    def _wake(self) -> None:
        """Everyone who waits looks again; whoever comes later waits for the next move."""
        self._moved.set()
        self._moved = asyncio.Event()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
