"""What a view's replicas are asked for before its shard has it, and what they tell."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType

from evertide.catalog.objects import Item, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import ComputeClient, Unanswered
from evertide.controller.stillness import Look
from evertide.dataflow.description import Import
from evertide.dataflow.protocol import Response, RowsResponse
from evertide.persist.coding.batch import from_payload
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import Timestamp, step_back


@dataclass(frozen=True, slots=True)
class Ahead:
    """Asked for: what changed after `durable`, up to which the view's shard is complete.

    Leave the context once the answer is of no use any more.
    """

    view: Import
    durable: Timestamp
    # By whose current version the replicas compute.
    item: Item
    asked: "list[asyncio.Future[Response]]"

    def __enter__(self) -> "Ahead":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for future in self.asked:
            future.cancel()

    async def first_told(
        self, at_most_s: float
    ) -> "tuple[bytes | None, set[asyncio.Future[Response]]]":
        """What the first of them told by then, and who has not answered yet."""
        until_s = asyncio.get_running_loop().time() + at_most_s
        found, waiting = told(self.asked)
        while found is None and waiting and await _until_one_is_done(waiting, until_s):
            found, waiting = told(waiting)
        return found, waiting

    def rows(self, payload: bytes) -> Sequence[tuple[Row, int]] | None:
        """The changes that were told; None if there are errors among them."""
        if not payload:
            return ()
        columns = from_payload(self.view.desc, payload).columns
        if columns.errors is not None and any(columns.errors):
            return None
        return list(zip(columns.rows, columns.diffs, strict=True))


def told(
    waiting: "Iterable[asyncio.Future[Response]]",
) -> "tuple[bytes | None, set[asyncio.Future[Response]]]":
    """What one of them has told, and who has not answered yet."""
    left: set[asyncio.Future[Response]] = set()
    found: bytes | None = None
    for future in waiting:
        if not future.done():
            left.add(future)
        elif found is None and not future.cancelled():
            found = _told(future)
    return found, left


def _told(future: "asyncio.Future[Response]") -> bytes | None:
    try:
        response = future.result()
    except Unanswered:
        return None  # it went away
    return response.updates if isinstance(response, RowsResponse) else None


async def _until_one_is_done(waiting: "Iterable[asyncio.Future[Response]]", until_s: float) -> bool:
    """False: none was by then."""
    loop = asyncio.get_running_loop()
    some: asyncio.Future[bool] = loop.create_future()

    def wake(future: "asyncio.Future[Response] | None" = None) -> None:
        if not some.done():
            some.set_result(future is not None)

    timer = loop.call_at(until_s, wake)
    for future in waiting:
        future.add_done_callback(wake)
    try:
        return await some
    finally:
        timer.cancel()
        for future in waiting:
            future.remove_done_callback(wake)


def settled(item: Item) -> bool:
    """Whether a view has one definition, which is not about to give way to another, and is computed
    as far as its inputs are: who waits for a refresh waits for the shard."""
    definition = item.definition
    return (
        isinstance(definition, MaterializedView)
        and not definition.handing_over
        and definition.refresh is None
    )


def ask(
    view: Import, snapshot: Snapshot, compute: ComputeClient, look: Look, as_of: Timestamp
) -> Ahead | None:
    """Ask the view's replicas for what its shard lacks; None where there is nothing to ask for.

    Where it was looked at before the view changed hands, it holds the old definition's contents
    up to there. Replicas of the new one tell no changes from below where that one took over
    (`TakeoverSink.ordinary`), so then the shard is waited for.
    """
    item = snapshot.item_of(view.global_id)
    if item is None or item.cluster_id is None or not settled(item) or look.upper(view) > as_of:
        return None
    durable = step_back(look.state(view).upper)
    asked = compute.ask_changes(snapshot, item.cluster_id, item.global_id, durable, as_of)
    return Ahead(view, durable, item, asked) if asked else None
