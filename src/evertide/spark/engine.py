"""What an executor of delta plans offers to the worker."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeAlias, TypeVar

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.spark.arrangements.key_order import OrderPending
from evertide.spark.evaluate import Evaluator
from evertide.spark.operators.arrange import Wanted
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

Inputs: TypeAlias = Mapping[GlobalId, Sequence[Update]]
P = ParamSpec("P")
T = TypeVar("T")


class EngineLost(Exception):
    """The executor's process is gone and its state with it; rebuild on the next incarnation."""

    def __init__(self, engine: "Engine") -> None:
        super().__init__("the engine is gone")
        self.engine = engine


class EngineFailing(Exception):
    """The executor could not do what it was asked to, for a reason that may pass: a full disk.

    `broken`: nor will it do anything else for this dataflow until its state is built again.
    """

    def __init__(self, message: str, *, broken: bool = False) -> None:
        super().__init__(message)
        self.broken = broken


@dataclass(frozen=True, slots=True)
class Peeked:
    """An index's contents at a timestamp, with multiplicities."""

    rows: Sequence[tuple[Row, int]]
    errors: Sequence[tuple[str, int]]

    def updates(self, as_of: Timestamp) -> list[Update]:
        """The same as updates at a timestamp."""
        updates = [Update(row, as_of, diff) for row, diff in self.rows]
        updates += [Update((), as_of, diff, error) for error, diff in self.errors]
        return updates


class Engine(Protocol):
    """Keeps the state of dataflows and turns input changes into output changes.

    Calls for one dataflow come one at a time, except peeks, which may come at any moment. Any call
    may raise EngineLost.
    """

    @property
    def executor(self) -> str:
        """The word for tick records: driver, resident or job."""
        ...

    async def create(
        self,
        dataflow_id: GlobalId,
        plan: DeltaPlan,
        *,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
        whole_from: Timestamp | None = None,
    ) -> None:
        """Make room for a dataflow with empty state.

        `whole_from`: what it is given before is only a part of what its inputs held then.
        """
        ...

    async def prepared(self, dataflow_id: GlobalId, inputs: Inputs) -> Inputs:
        """Many changes as a tick takes them soonest, which may be asked for during the one before.

        Columns that the plan does not look at may be NULL in them.
        """
        ...

    async def tick(
        self,
        dataflow_id: GlobalId,
        inputs: Inputs,
        lower: Timestamp,
        upper: Timestamp,
    ) -> Sequence[Update]:
        """The output's changes at lower <= ts < upper, consolidated.

        Inputs and output may be batches in any form, which are to be left in it.
        """
        ...

    def due(self, dataflow_id: GlobalId) -> Timestamp | None:
        """When the output may change next though no input does, as of the last tick; None: never.

        Time must not pass beyond that without a tick.
        """
        ...

    async def peek(self, dataflow_id: GlobalId, keys: Wanted, as_of: Timestamp) -> Peeked:
        """An index's rows with one of the keys, or all of them; may raise LookupRefused."""
        ...

    async def allow_compaction(self, dataflow_id: GlobalId, since: Timestamp) -> None:
        """Nobody will read the dataflow's state below `since` again."""
        ...

    async def drop(self, dataflow_id: GlobalId) -> None:
        """Forget the dataflow; nothing if there is none."""
        ...

    async def sizes(self, dataflow_id: GlobalId) -> Mapping[str, int]:
        """How large its state is: records, bytes, arrangements; empty if there is none."""
        ...


class DriverEngine:
    """The evaluator in the replica's own process, until the first resident task is up.

    Work runs on a thread, so that the replica's loop goes on answering; one call at a time, because
    the evaluator is not made for more.
    """

    executor = "driver"

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._turn = asyncio.Lock()

    async def create(
        self,
        dataflow_id: GlobalId,
        plan: DeltaPlan,
        *,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
        whole_from: Timestamp | None = None,
    ) -> None:
        async with self._turn:
            self._evaluator.create(
                dataflow_id, plan, index_key=index_key, as_of=as_of, whole_from=whole_from
            )

    async def prepared(self, dataflow_id: GlobalId, inputs: Inputs) -> Inputs:
        del dataflow_id
        return inputs

    async def tick(
        self,
        dataflow_id: GlobalId,
        inputs: Inputs,
        lower: Timestamp,
        upper: Timestamp,
    ) -> Sequence[Update]:
        return await self._on_thread(self._evaluator.tick, dataflow_id, inputs, lower, upper)

    def due(self, dataflow_id: GlobalId) -> Timestamp | None:
        return self._evaluator.due.get(dataflow_id)

    async def peek(self, dataflow_id: GlobalId, keys: Wanted, as_of: Timestamp) -> Peeked:
        while True:
            try:
                found = await self._on_thread(self._evaluator.peek, dataflow_id, keys, as_of)
            except OrderPending as pending:
                await asyncio.wait([asyncio.wrap_future(pending.done)])
            else:
                return Peeked(*found)

    async def _on_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One call at a time. A cancelled caller leaves, but not before the thread is done."""
        async with self._turn:
            running = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                await asyncio.wait([running])
                raise

    async def allow_compaction(self, dataflow_id: GlobalId, since: Timestamp) -> None:
        async with self._turn:
            self._evaluator.allow_compaction(dataflow_id, since)

    async def drop(self, dataflow_id: GlobalId) -> None:
        async with self._turn:
            self._evaluator.drop(dataflow_id)

    async def sizes(self, dataflow_id: GlobalId) -> Mapping[str, int]:
        async with self._turn:
            return self._evaluator.sizes(dataflow_id)
