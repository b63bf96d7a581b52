"""A read at one timestamp: choose leaves and as_of, fetch the leaves, finish the rows."""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TypeAlias

from evertide.adapter.environment import Environment
from evertide.adapter.lookups.catalog_functions import bind_catalog_functions
from evertide.adapter.lookups.session_values import session_bindings
from evertide.adapter.reading.ahead import Early, look_early
from evertide.adapter.reading.at_leisure import worked_out
from evertide.adapter.reading.by_replica import by_spark
from evertide.adapter.reading.domain import check_within, hold_domain, read_domain
from evertide.adapter.reading.fetching import fetch_leaf, found_by_columns
from evertide.adapter.reading.isolation import Freshness, choose, freshness_of, known_uppers
from evertide.adapter.reading.leaves import IndexLeaf, choose_leaves
from evertide.adapter.reading.plans import ReadPlan
from evertide.adapter.reading.question import Question, Read
from evertide.adapter.reading.result_stream import ResultStream, drain
from evertide.adapter.reading.timestamp import (
    check_explicit_as_of,
    check_fixed_as_of,
    check_in_time,
)
from evertide.adapter.session import Session
from evertide.adapter.transaction import Reading
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import Unanswered
from evertide.controller.stillness import follows_time
from evertide.expr.budget import Budget
from evertide.expr.heavy import has_heavy
from evertide.expr.interpret import Collection, evaluate, finish
from evertide.expr.recursion import is_recursive
from evertide.expr.relation import Constant, FlatMap, Join, Relation
from evertide.expr.scalar import Literal
from evertide.expr.transform.fold_constants import fold_constants
from evertide.expr.transform.passes import optimize
from evertide.expr.transform.substitute import substitute
from evertide.expr.traverse import walk
from evertide.persist.faults import BelowSince
from evertide.persist.leases import ReadHold
from evertide.sql.plan.pause import pause_seconds
from evertide.vocab.datum import Row
from evertide.vocab.errors import ObjectNotInPrerequisiteState
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

# Above this many rows the interpreter runs on a thread, so that other sessions go on.
THREAD_ROWS = 2_000
# The same for queries with joins, which may multiply them.
THREAD_ROWS_JOINED = 200

# What a read gives: all rows, or those of a large one as they are taken from where they lie.
Found: TypeAlias = list[Row] | ResultStream


def plan_read(
    question: Question,
    session: Session,
    env: Environment,
    snapshot: Snapshot,
    *,
    as_of: Timestamp,
    use_indexes: bool = True,
) -> Read:
    """Put parameters and session values in, inline views, optimise, choose leaves."""
    plan = read_plan(question, session, env, snapshot, use_indexes=use_indexes)
    return _filled(plan, question, session, env, snapshot, as_of)


def read_plan(
    question: Question,
    session: Session,
    env: Environment,
    snapshot: Snapshot,
    *,
    use_indexes: bool = True,
) -> ReadPlan:
    """What of a question can be worked out once."""
    cluster = snapshot.cluster_named(session.cluster)
    cluster_id = None if cluster is None or not use_indexes else cluster.cluster_id
    return env.read_plans.plan(question.relation, snapshot, cluster_id)


def _filled(
    plan: ReadPlan,
    question: Question,
    session: Session,
    env: Environment,
    snapshot: Snapshot,
    as_of: Timestamp,
) -> Read:
    """The plan with all that was left open in it."""
    relation = plan.relation
    if plan.has_parameters or plan.has_session_calls:
        bindings = question.bindings
        if plan.has_session_calls:
            bindings |= session_bindings(session, env, snapshot, as_of)
            bindings |= dict.fromkeys(plan.pauses, Literal("", TEXT))
        relation = substitute(relation, bindings)
    if plan.asks_catalog:
        relation = optimize(bind_catalog_functions(relation, snapshot, session))
    elif relation is not plan.relation and _leaves_to_fold(plan, question):
        relation = fold_constants(relation)
    leaves = choose_leaves(relation, snapshot, plan.cluster_id)
    cluster = snapshot.cluster_named(session.cluster)
    cluster_id = None if cluster is None else cluster.cluster_id
    pause = sum(map(pause_seconds, plan.pauses))
    heavy = plan.may_be_heavy and has_heavy(relation)
    return Read(relation, question.finishing, snapshot, cluster_id, leaves, pause, heavy)


def _leaves_to_fold(plan: ReadPlan, question: Question) -> bool:
    if plan.has_session_calls or not plan.only_compares:
        return True
    return any(literal.value is None for literal in question.parameters)


async def run_read(
    question: Question, session: Session, env: Environment, snapshot: Snapshot
) -> list[Row]:
    """All rows of a query, for who works with them; as open_read else."""
    found = await open_read(question, session, env, snapshot)
    return await drain(found) if isinstance(found, ResultStream) else found


async def open_read(
    question: Question,
    session: Session,
    env: Environment,
    snapshot: Snapshot,
    *,
    wanted_as_of: Timestamp | None = None,
    at_least: Timestamp | None = None,
) -> Found:
    """The rows of a query, strict serializable: nothing finished before it began is missed.

    `at_least`: not before this time either, which may be one that is yet to come.
    """
    plan = read_plan(question, session, env, snapshot)
    relation = await worked_out(plan, question.parameters, question.bindings)
    if relation is not None:
        question = Question(relation, question.finishing)
        plan = read_plan(question, session, env, snapshot)
    if plan.pauses:
        await asyncio.sleep(sum(map(pause_seconds, plan.pauses)))
    if wanted_as_of is None and plan.is_timeless:
        read = _filled(plan, question, session, env, snapshot, MIN_TS)
        return await compute_rows(read, {})
    read_ts = await env.oracle.read_ts(Timeline.EPOCH_MS)
    freshness = freshness_of(session, read_ts, at_least)
    timed = wanted_as_of is not None or at_least is not None
    early = None if timed else await _look_early(plan, session, env, snapshot, freshness)
    with (early and early.ahead) or nullcontext():
        asked = _Asked(question, plan, freshness, early, wanted_as_of, at_least)
        as_of, found = await _rows_of(asked, session, env, snapshot)
    if as_of is None:
        return found
    try:
        if wanted_as_of is None and not freshness.complete:
            await _wait_for_read_ts(env, as_of, read_ts)
    except BaseException:
        if isinstance(found, ResultStream):
            found.close()
        raise
    session.own.note_read(as_of)
    return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, and all that is known of when it is to be answered."""

    question: Question
    plan: ReadPlan
    freshness: Freshness
    early: Early | None
    wanted_as_of: Timestamp | None
    at_least: Timestamp | None

    @property
    def timed(self) -> bool:
        return self.wanted_as_of is not None or self.at_least is not None

    def read(
        self, session: Session, env: Environment, snapshot: Snapshot, as_of: Timestamp
    ) -> Read:
        """What to read, as it is at a timestamp."""
        read = _filled(self.plan, self.question, session, env, snapshot, as_of)
        return read if self.early is None else replace(read, early=self.early)


async def _look_early(
    plan: ReadPlan, session: Session, env: Environment, snapshot: Snapshot, freshness: Freshness
) -> Early | None:
    """Only for what is read by itself, at a timestamp that is as good as known."""
    transaction = session.transaction
    if plan.view is None or freshness.complete or (transaction and transaction.goes_on):
        return None
    return await look_early(plan.view, snapshot, env, freshness.least)


async def _rows_of(
    asked: _Asked, session: Session, env: Environment, snapshot: Snapshot
) -> tuple[Timestamp | None, Found]:
    """The rows, and when they are so; None: at any time."""
    question, freshness, wanted, timed = (
        asked.question,
        asked.freshness,
        asked.wanted_as_of,
        asked.timed,
    )
    guess = max(freshness.least, freshness.usual) if wanted is None else wanted
    read = asked.read(session, env, snapshot, guess)
    if not read.needs_timestamp:
        return None, await _finish(read, env, session, guess)
    transaction = session.transaction
    fixed = None if transaction is None else transaction.reading_as_of(timed=timed)
    check_fixed_as_of(fixed, asked.at_least)
    if transaction is not None and isinstance(transaction.work, Reading) and not timed:
        check_within(read.leaves, transaction.work.domain, snapshot)
    as_of, hold = await _choose_and_hold(read, env, session, freshness, fixed, wanted, timed=timed)
    with hold:
        if as_of != guess:
            # mz_now() stands for the timestamp that was chosen.
            read = asked.read(session, env, snapshot, as_of)
        try:
            return as_of, await _finish(read, env, session, as_of)
        except Unanswered:
            # No replica holds the index at this timestamp: compute from what is durable instead.
            direct = plan_read(question, session, env, snapshot, as_of=as_of, use_indexes=False)
            return await _read_directly(direct, env, session, as_of, wanted)


async def _read_directly(
    read: Read, env: Environment, session: Session, as_of: Timestamp, wanted: Timestamp | None
) -> tuple[Timestamp, Found]:
    """The rows from shards alone, and their timestamp; a transaction's is fixed by now."""
    in_transaction = session.transaction is not None and session.transaction.goes_on
    fixed = as_of if in_transaction else None
    as_of, hold = await _choose_and_hold(read, env, session, Freshness(as_of), fixed, wanted)
    with hold:
        return as_of, await _finish(read, env, session, as_of)


async def _choose_and_hold(
    read: Read,
    env: Environment,
    session: Session,
    freshness: Freshness,
    fixed: Timestamp | None,
    wanted: Timestamp | None,
    *,
    timed: bool = False,
) -> tuple[Timestamp, ReadHold]:
    """A timestamp, and what keeps it readable while the statement runs.

    The first read of a transaction holds it for all that a later one is likely to read.
    """
    while True:
        as_of = await choose_as_of(read, env, freshness, fixed=fixed, wanted=wanted)
        if wanted is not None:
            await _check_in_time(read, env, session, wanted)
        try:
            hold = await env.storage.hold([leaf.collection for leaf in read.shard_leaves], as_of)
        except BelowSince:
            read = replace(read, early=None)
            continue  # since moved in between: choose again, or be told that it cannot be
        transaction = session.transaction
        if transaction is not None and transaction.goes_on and fixed is None and not timed:
            transaction.holds.append(hold)
            domain = read_domain(read.leaves, read.snapshot)
            transaction.holds.append(await hold_domain(domain, env, as_of))
            transaction.start_reading(as_of, frozenset(one.shard_id for one in domain))
        return as_of, hold


async def _check_in_time(read: Read, env: Environment, session: Session, wanted: Timestamp) -> None:
    """Rather than letting a statement wait in vain for a time that is far."""
    limit_ms, now = session.statement_timeout_ms, Timestamp(env.clock.now_ms())
    if not limit_ms or wanted <= now + limit_ms:
        return
    collections = [c for c in (x.collection for x in read.shard_leaves) if follows_time(c)]
    if collections:
        uppers = await known_uppers(collections, (), env, read.snapshot)
        check_in_time(wanted, uppers, now, limit_ms)


async def choose_as_of(
    read: Read,
    env: Environment,
    freshness: Freshness,
    *,
    fixed: Timestamp | None,
    wanted: Timestamp | None,
) -> Timestamp:
    """The timestamp of a read: the user's, the transaction's, or one that is fresh enough."""
    if read.early is not None:
        return read.early.as_of
    collections = [leaf.collection for leaf in read.shard_leaves]
    sinces = await env.storage.sinces(collections)
    if wanted is not None:
        return check_explicit_as_of(wanted, sinces)
    if fixed is not None:
        if any(since > fixed for since in sinces):
            raise ObjectNotInPrerequisiteState(
                "the transaction's timestamp is no longer readable",
                hint="Restart the transaction.",
            )
        return fixed
    if not freshness.complete:
        return choose(freshness, sinces, ())
    indexes = [leaf for leaf in read.leaves.values() if isinstance(leaf, IndexLeaf)]
    return choose(freshness, sinces, await known_uppers(collections, indexes, env, read.snapshot))


async def _wait_for_read_ts(env: Environment, as_of: Timestamp, read_ts: Timestamp) -> None:
    """A since may force a read into the future of the oracle: its rows are told only once any
    later read would see them too."""
    while as_of > read_ts:
        await asyncio.sleep(0.01)
        read_ts = await env.oracle.read_ts(Timeline.EPOCH_MS)


async def _finish(read: Read, env: Environment, session: Session, as_of: Timestamp) -> Found:
    await _wait_for_views(read, env, as_of)
    found = await found_by_columns(read, env, as_of)
    if found is not None:
        return await compute_rows(read, found)
    stream = await by_spark(read, env, as_of)
    if stream is not None:
        return stream
    fetched = {
        global_id: await fetch_leaf(leaf, read, env, session, as_of)
        for global_id, leaf in read.leaves.items()
    }
    return await compute_rows(read, fetched)


async def _wait_for_views(read: Read, env: Environment, as_of: Timestamp) -> None:
    """Views that are still being built come first: how to read one depends on how large it is."""
    for leaf in read.shard_leaves:
        if await env.storage.following.is_unfilled(leaf.collection):
            await env.storage.wait_for_upper(leaf.collection, as_of)


async def compute_rows(read: Read, fetched: Mapping[GlobalId, Collection]) -> list[Row]:
    """The rows of a read whose leaves are at hand."""
    total = sum(len(leaf.rows) for leaf in fetched.values())
    budget = Budget()

    def compute() -> list[Row]:
        found = evaluate(read.relation, fetched.__getitem__, budget)
        return finish(found, read.finishing, read.relation.types)

    if not read.heavy and _is_short(read.relation, total):
        return compute()
    try:
        return await asyncio.to_thread(compute)
    finally:
        budget.cancel()  # nobody waits for it any more, if it still runs


def _is_short(relation: Relation, total: int) -> bool:
    """Whether it takes no time over so many rows, as far as one can see."""
    few = THREAD_ROWS
    for node in walk(relation):
        match node:
            case FlatMap():  # many rows may come of a few, or of none
                return False
            case Join():
                few = min(few, THREAD_ROWS_JOINED)
            case Constant(rows=rows):
                total += len(rows)
            case _:
                pass
    return total <= few and not is_recursive(relation)  # which may go on without any rows
