"""Materialized views: two replicas each, which race to append the same definite collection."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial

from evertide.dataflow.description import ShardExport
from evertide.persist.faults import BelowSince, StoreFailing, StoreFull
from evertide.persist.handle import Append
from evertide.persist.state import ShardChange, existing, move_hold, set_writer
from evertide.spark.sink import ShardSink
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.timestamp import Timestamp, step_back, step_forward
from evertide.vocab.update import Update
from tests.sim.history import DESC, Followed, Rows, require
from tests.sim.node import Node
from tests.sim.stored import Definition, Table, View, count_kinds
from tests.sim.work import Client

# How long the upper of a view whose inputs stand still may trail.
STILL_S = 0.9


class Replica:
    """Keeps one view up to date, from where its shard stands."""

    def __init__(self, node: Node, view: View) -> None:
        self.view = view
        self._node = node
        self._inputs: dict[ShardId, Rows] = {}
        self._output: Rows = Counter()
        self._definition: Definition = count_kinds
        self.frontier = view.as_of
        # The earliest time at which inputs are read next.
        self.needs = view.as_of
        # None: the shard has to be looked at again.
        self.sink: ShardSink | None = None

    async def hydrate(self) -> None:
        """Read all inputs where the output ends, and bring over what a new version owes."""
        view = self.view
        state = await self._node.client.state(view.shard_id)
        assert state.writer is not None, "a view has a writer"
        start = self.needs = max(view.as_of, step_back(state.upper))
        self._definition = view.definitions[state.writer]
        self._inputs = {shard: await self._input(shard, start) for shard in view.inputs}
        self._output = self._definition(self._inputs)
        self.frontier = step_forward(start)
        if state.pending is not None:
            await self._complete(state.writer, state.pending)
            return
        self.sink = ShardSink(state.writer, ShardExport(view.shard_id, DESC), state.upper)
        if state.upper == view.as_of:
            self.sink.stage(_at(self._output, view.as_of), self.frontier)

    async def _complete(self, writer: GlobalId, at: Timestamp) -> None:
        """The append that a new version owes: from the old contents to its own."""
        view, client = self.view, self._node.client
        old: Rows = Counter()
        if at > view.as_of:
            found = await client.contents(view.shard_id, DESC, step_back(at))
            old = Counter(dict(found.rows))
            await self._node.txns.wait_for_upper(at)
            for shard, updates in (await self._updates(at, step_forward(at))).items():
                for update in updates:
                    _add(self._inputs[shard], update.row, update.diff)
        updates = _at(_minus(self._definition(self._inputs), old), at)
        append = Append(
            view.shard_id, DESC, updates, at, step_forward(at), writer, completes_pending=True
        )
        await client.append_each([append])  # won or lost: look again where the shard stands

    async def advance(self) -> None:
        """Compute up to where all inputs are complete."""
        assert self.sink is not None
        imports = [Table(shard_id).imported for shard_id in self.view.inputs]
        look = await self._node.storage.look(imports)
        upper = min(map(look.upper, imports))
        self.needs = step_back(self.frontier)
        if upper <= self.frontier:
            return
        if all(look.unchanged(one, self.frontier) for one in imports):
            self.sink.stage([], upper, still=True)
        else:
            self.sink.stage(await self._changes(upper), upper)
        self.frontier = upper

    async def _changes(self, upper: Timestamp) -> list[Update]:
        by_time: defaultdict[Timestamp, list[tuple[ShardId, Update]]] = defaultdict(list)
        for shard, updates in (await self._updates(self.frontier, upper)).items():
            for update in updates:
                by_time[update.ts].append((shard, update))
        changes: list[Update] = []
        for ts in sorted(by_time):
            for shard, update in by_time[ts]:
                _add(self._inputs[shard], update.row, update.diff)
            output = self._definition(self._inputs)
            changes += _at(_minus(output, self._output), ts)
            self._output = output
        return changes

    def hold_changes(self) -> list[ShardChange]:
        """A restart begins at the output's end: earlier input is not needed any more."""
        if self.sink is None:
            return []
        hold_ts = max(self.view.as_of, step_back(self.sink.upper))
        move = partial(move_hold, owner=self.view.owner, hold_ts=hold_ts)
        return [ShardChange(shard_id, existing(move)) for shard_id in self.view.inputs]

    async def _input(self, shard_id: ShardId, as_of: Timestamp) -> Rows:
        contents = await self._node.txns.table_contents(shard_id, DESC, as_of)
        return Counter(dict(contents.rows))

    async def _updates(self, lower: Timestamp, upper: Timestamp) -> dict[ShardId, list[Update]]:
        txns = self._node.txns
        return {
            shard: await txns.table_updates(shard, DESC, lower, upper) for shard in self.view.inputs
        }


async def run_replicas(client: Client, views: Sequence[View]) -> None:
    """Keep all views: what is due for any of them goes into one store transaction."""
    replicas = [Replica(client.node, view) for view in views]
    still_due_s = 0.0
    while True:
        try:
            for replica in replicas:
                await _advance(client.node, replica)
            now_s = client.node.place.loop.time()
            still_too = now_s >= still_due_s
            if still_too:
                still_due_s = now_s + STILL_S
            if not await _append_due(client, replicas, still_too):
                await _wait(client.node, replicas)
            if client.rng.random() < 0.2:
                for change in client.rng.choice(replicas).hold_changes():
                    await client.node.client.machine.apply_all([change])
        except (StoreFull, StoreFailing):
            await asyncio.sleep(0.1)  # what is staged is tried again


async def _advance(node: Node, replica: Replica) -> None:
    """Bring it as far as its inputs are; one that was overtaken starts again."""
    try:
        if replica.sink is None:
            await replica.hydrate()
        if replica.sink is not None:
            await replica.advance()
    except BelowSince as error:
        # The other replica appended, and moved the hold to where a restart begins.
        begin = step_back((await node.client.state(replica.view.shard_id)).upper)
        require(begin > replica.needs, f"a view's hold on its input was not respected: {error}")
        replica.sink = None
    except StoreFailing:
        replica.sink = None  # some of its inputs may have been added already
        raise


async def _append_due(client: Client, replicas: Sequence[Replica], still_too: bool) -> bool:
    due: list[tuple[ShardSink, Append]] = []
    for replica in replicas:
        append = None if replica.sink is None else replica.sink.due(still_too=still_too)
        if replica.sink is not None and append is not None:
            due.append((replica.sink, append))
    if not due:
        return False
    # Not always all of them, so that races are lost for some and won for others.
    due = client.rng.sample(due, client.rng.randint(1, len(due)))
    outcomes = await client.node.client.append_each([append for _, append in due])
    for (sink, append), outcome in zip(due, outcomes, strict=True):
        sink.settle(append, outcome)
    for replica in replicas:
        if replica.sink is not None and replica.sink.stopped is not None:
            replica.sink = None
    return True


async def _wait(node: Node, replicas: Sequence[Replica]) -> None:
    """Until the tables move, or it is time to look at other things."""
    if any(replica.sink is None for replica in replicas):
        return
    frontier = min(replica.frontier for replica in replicas)
    try:
        await asyncio.wait_for(node.txns.wait_for_upper(frontier), STILL_S)
    except TimeoutError:
        pass


async def replace_view(client: Client, views: Sequence[View]) -> None:
    """ALTER ... REPLACE: give the shard to the next definition, frozen until that has written."""
    view = client.rng.choice(views)
    state = await client.node.client.state(view.shard_id)
    assert state.writer is not None
    writer = view.next_writer(state.writer)
    if writer is None or state.pending is not None:
        return
    replace = partial(set_writer, writer=writer, expected_upper=state.upper, pending=True)
    change = ShardChange(view.shard_id, existing(replace))
    await client.node.client.machine.apply_all([change])


async def listen_to_view(client: Client, views: Sequence[View]) -> None:
    """Listen to a view's shard from its since on, without a hold, while that lasts."""
    view = client.rng.choice(views)
    state = await client.node.client.state(view.shard_id)
    lower = step_forward(state.since)
    followed = Followed(client.node.process.name, view.shard_id, lower, lower, listening=True)
    client.history.followed.append(followed)
    try:
        async for updates, upper in client.node.client.listen(view.shard_id, DESC, lower):
            followed.add(updates, upper)
    except (BelowSince, StoreFailing):
        followed.listening = False  # nobody promised more


def _at(rows: Rows, ts: Timestamp) -> list[Update]:
    return [Update(row, ts, diff) for row, diff in rows.items() if diff]


def _minus(rows: Rows, other: Rows) -> Rows:
    result: Rows = Counter(rows)
    for row, diff in other.items():
        _add(result, row, -diff)
    return result


def _add(rows: Rows, row: Row, diff: int) -> None:
    rows[row] += diff
    if not rows[row]:
        del rows[row]
