"""Changes of a query, computed by a dataflow on the replicas of a cluster.

Every replica runs the dataflow; all compute the same definite collection, so whoever is further
tells what is new, and what another says of the same times is dropped. A replica that went away is
asked again to go on from where this subscription stands, which its hold keeps possible.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from evertide.adapter.subscribe.feed import Batch, add_up
from evertide.controller.compute import (
    ComputeClient,
    RunningSubscribe,
    Unanswered,
    error_of,
)
from evertide.dataflow.protocol import (
    BatchResponse,
    FailedResponse,
    Response,
    SubscribeCommand,
)
from evertide.persist.coding.inline import decode_inline
from evertide.persist.leases import ReadHold
from evertide.vocab.errors import SqlError
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp, step_back, step_forward

_FIRST_RETRY_S: Final = 0.05
_LONGEST_RETRY_S: Final = 1.0
# More bytes than this are decoded on a thread.
_THREAD_BYTES: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the replicas are to run, and who they are by now."""

    catalog_ts: Timestamp
    relation: bytes
    imports: tuple[str, ...]
    desc: RelationDesc
    as_of: Timestamp
    snapshot: bool
    up_to: Timestamp | None
    progress: bool
    replicas: Callable[[], list[str]]


class Runs:
    """Has a dataflow run on every replica of a cluster; those that went away are asked again."""

    def __init__(
        self,
        compute: ComputeClient,
        replicas: Callable[[], list[str]],
        command: Callable[[int], SubscribeCommand],
        on_response: Callable[[str, Response], None],
    ) -> None:
        self._compute = compute
        self._replicas = replicas
        self._command = command
        self._on_response = on_response
        self._running: dict[str, RunningSubscribe] = {}
        self._lost = asyncio.Event()
        self._keeping = asyncio.create_task(self._keep_running())

    def acknowledge(self, name: str) -> None:
        """The last batch of this replica was taken."""
        running = self._running.get(name)
        if running is not None:
            running.acknowledge()

    def close(self) -> None:
        self._keeping.cancel()
        for running in self._running.values():
            running.close()
        self._running.clear()

    async def _keep_running(self) -> None:
        retry_s = _FIRST_RETRY_S
        while True:
            self._lost.clear()
            names = self._replicas()
            for name in names:
                if name not in self._running:
                    await self._start(name)
            if names and all(name in self._running for name in names):
                await self._lost.wait()
                retry_s = _FIRST_RETRY_S
            # Nobody is asked again and again without pause, whatever the reason.
            await asyncio.sleep(retry_s)
            retry_s = min(retry_s * 2, _LONGEST_RETRY_S)

    async def _start(self, name: str) -> None:
        try:
            running = await self._compute.subscribe(name, self._command, partial(self._heard, name))
        except Unanswered:
            return
        self._running[name] = running

    def _heard(self, name: str, response: Response | None) -> None:
        match response:
            case BatchResponse() | FailedResponse():
                self._on_response(name, response)
            case _:
                running = self._running.pop(name, None)
                if running is not None:
                    running.close()
                self._lost.set()


class ClusterSource:
    """Implements Source. Keeps at most one batch of each replica."""

    def __init__(self, compute: ComputeClient, asked: Asked, hold: ReadHold) -> None:
        self._asked = asked
        self._hold = hold
        # All below was told.
        self._frontier = asked.as_of if asked.snapshot else step_forward(asked.as_of)
        self._batches: dict[str, BatchResponse] = {}
        self._failure: SqlError | None = None
        self._told = asyncio.Event()
        self._runs = Runs(compute, asked.replicas, self._command, self._heard)

    async def next_batch(self) -> Batch:
        while True:
            if self._failure is not None:
                raise self._failure
            for name, response in list(self._batches.items()):
                batch = await self._decoded(response)
                if self._batches.get(name) is response:
                    del self._batches[name]
                    self._runs.acknowledge(name)
                if batch is not None:
                    return batch
            if not self._batches:
                self._told.clear()
                await self._told.wait()

    async def _decoded(self, response: BatchResponse) -> Batch | None:
        """What is new of a batch; None: another replica told all of it."""
        if response.upper <= self._frontier:
            return None
        desc = self._asked.desc
        if len(response.updates) > _THREAD_BYTES:
            columns = await asyncio.to_thread(decode_inline, desc, response.updates)
        else:
            columns = decode_inline(desc, response.updates)
        new = [u for u in columns.updates() if u.ts >= self._frontier]
        new.sort(key=lambda update: update.ts)
        self._frontier = Timestamp(response.upper)
        if self._frontier != EMPTY_FRONTIER:
            self._hold.move(step_back(self._frontier))
        return Batch(add_up(new, desc.types), self._frontier)

    def _command(self, request_id: int) -> SubscribeCommand:
        """From where this subscription stands by now."""
        asked = self._asked
        return SubscribeCommand(
            request_id=request_id,
            catalog_ts=asked.catalog_ts,
            relation=asked.relation,
            imports=asked.imports,
            as_of=max(asked.as_of, step_back(self._frontier)),
            from_ts=self._frontier,
            up_to=asked.up_to,
            progress=asked.progress,
        )

    def _heard(self, name: str, response: Response) -> None:
        match response:
            case BatchResponse():
                self._batches[name] = response
                self._told.set()
            case FailedResponse():
                self.fail(error_of(response))
            case _:
                raise AssertionError(f"a subscribe is not answered by {response}")

    def fail(self, failure: SqlError) -> None:
        self._failure = failure
        self._told.set()

    def close(self) -> None:
        self._runs.close()
        self._batches.clear()
        self._hold.release()
