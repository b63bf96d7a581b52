"""SUBSCRIBE: chooses where and from when a subscription begins, and holds that readable."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from evertide.adapter.environment import Environment
from evertide.adapter.reading.question import Question
from evertide.adapter.reading.read import THREAD_ROWS, run_read
from evertide.adapter.reading.timestamp import check_explicit_as_of, select_as_of
from evertide.adapter.session import Session
from evertide.adapter.subscribe.catalog import CatalogSource, Followed
from evertide.adapter.subscribe.cluster import Asked, ClusterSource
from evertide.adapter.subscribe.feed import Listener
from evertide.adapter.subscribe.rows import ChangeRows
from evertide.adapter.subscribe.sources import ConstantSource, StoredSource
from evertide.adapter.subscribe.stream import Source, Subscription
from evertide.adapter.subscribe.subscriptions import Reads
from evertide.adapter.temporary.constants import HeldRows
from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import replica_processes
from evertide.controller.follow import imports_of
from evertide.dataflow.description import Import
from evertide.expr.codec import encode_relation
from evertide.expr.relation import Finishing, Get, Relation
from evertide.expr.scalar import Literal
from evertide.expr.transform.passes import optimize
from evertide.expr.transform.substitute import substitute
from evertide.expr.traverse import gets
from evertide.persist.faults import BelowSince
from evertide.persist.leases import ReadHold
from evertide.sql.plan.plans import SubscribePlan
from evertide.sql.resolve import resolve_cluster
from evertide.sql.views import inline_views
from evertide.vocab.datum import Row
from evertide.vocab.errors import DataException, FeatureNotSupported
from evertide.vocab.ids import ClusterId
from evertide.vocab.timestamp import Timeline, Timestamp, step_forward


@dataclass(frozen=True, slots=True)
class _Start:
    """A subscription with every choice made."""

    plan: SubscribePlan
    relation: Relation
    collections: tuple[Import, ...]
    snapshot: Snapshot
    cluster_id: ClusterId
    as_of: Timestamp
    hold: ReadHold

    @property
    def runs_on(self) -> ClusterId | None:
        """The cluster that computes it; None: it is only read, or constant."""
        return self.cluster_id if self.collections and not self.stored else None

    @property
    def stored(self) -> bool:
        return isinstance(self.relation, Get)


async def run_subscribe(
    plan: SubscribePlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> Subscription:
    """A subscription that begins with what is due now; it ends with its transaction."""
    transaction = session.transaction
    assert transaction is not None, "every statement runs in one"
    if plan.as_of is None:
        transaction.start_subscribing()
    bindings = Question(plan.relation, Finishing(), parameters).bindings
    relation = inline_views(substitute(plan.relation, bindings), snapshot, ())
    held = HeldRows(snapshot, session.temporary)
    relation = held.put_into(relation)
    few = held.count <= THREAD_ROWS
    relation = optimize(relation) if few else await asyncio.to_thread(optimize, relation)
    system = _system_relations(relation)
    collections = () if system else imports_of(relation, snapshot)
    cluster = resolve_cluster(session.cluster, snapshot)
    as_of, hold = await _choose(plan, collections, env)
    start = _Start(plan, relation, collections, snapshot, cluster.cluster_id, as_of, hold)
    try:
        if plan.as_of is None:
            await _until_readable(as_of, env)
        if system:
            question = Question(plan.relation, Finishing(), parameters)
            source: Source = _catalog_source(start, question, session, env)
        else:
            source = _source(start, env)
    except BaseException:
        hold.release()
        raise
    subscription = Subscription(source, ChangeRows(plan), as_of=as_of, up_to=plan.up_to)
    env.subscriptions.add(subscription, Reads(plan.depends_on, start.runs_on, snapshot))
    transaction.streams.append(subscription)
    return subscription


def _system_relations(relation: Relation) -> bool:
    """Whether it reads those, whose rows follow from the catalog; others are refused."""
    read = gets(relation)
    builtins = [builtin for g in read if (builtin := builtin_of(g)) is not None]
    refused = [b for b in builtins if b.dynamic or len(builtins) < len(read)]
    for builtin in refused:
        why = "together with stored relations " if not builtin.dynamic else ""
        raise FeatureNotSupported(
            f"SUBSCRIBE to system relation {builtin.schema}.{builtin.name} {why}is not supported",
            hint="Select from it instead.",
        )
    return bool(builtins)


def _catalog_source(
    start: _Start, question: Question, session: Session, env: Environment
) -> CatalogSource:
    plan = start.plan

    async def rows_at(snapshot: Snapshot) -> Sequence[Row]:
        return await run_read(question, session, env, session.temporary.over(snapshot))

    start.hold.release()
    asked = Followed(
        rows_at=rows_at,
        types=plan.columns.types,
        as_of=start.as_of,
        snapshot=plan.snapshot,
        timed=plan.progress or plan.up_to is not None,
    )
    return CatalogSource(env, asked, start.snapshot)


async def _choose(
    plan: SubscribePlan, collections: Sequence[Import], env: Environment
) -> tuple[Timestamp, ReadHold]:
    """Where it begins, held: what the user said, or the freshest that is due."""
    read_ts = await env.oracle.read_ts(Timeline.EPOCH_MS)
    while True:
        sinces = await env.storage.sinces(collections)
        as_of = _as_of(plan, read_ts, sinces)
        try:
            return as_of, await env.storage.hold(collections, as_of)
        except BelowSince:
            continue  # since moved in between: choose again, or be told that it cannot be


async def _until_readable(as_of: Timestamp, env: Environment) -> None:
    """A since may force it into the future of the oracle: its rows are told only once any later
    read would see them too."""
    while await env.oracle.read_ts(Timeline.EPOCH_MS) < as_of:  # noqa: ASYNC110  sets no event
        await asyncio.sleep(0.01)


def _as_of(plan: SubscribePlan, read_ts: Timestamp, sinces: Sequence[Timestamp]) -> Timestamp:
    if plan.as_of is not None and not plan.at_least:
        as_of = check_explicit_as_of(plan.as_of, sinces)
    else:
        as_of = select_as_of(oracle_read_ts=read_ts, sinces=sinces)
        as_of = as_of if plan.as_of is None else max(as_of, plan.as_of)
    if plan.up_to is not None and as_of > plan.up_to:
        raise DataException(
            "subscription lower bound (`AS OF`) is greater than its upper bound (`UP TO`):"
            f" {as_of} > {plan.up_to}"
        )
    return as_of


def _source(start: _Start, env: Environment) -> Source:
    plan, as_of = start.plan, start.as_of
    if not start.collections:
        start.hold.release()
        return ConstantSource(start.relation, as_of, snapshot=plan.snapshot)
    if start.stored:
        (collection,) = start.collections
        listener = Listener(
            step_forward(as_of), start.hold, progress=plan.progress, until=plan.up_to
        )
        snapshot_at = as_of if plan.snapshot else None
        return StoredSource(env.storage, env.subscriptions.feeds, collection, listener, snapshot_at)
    asked = Asked(
        catalog_ts=start.snapshot.catalog_ts,
        relation=encode_relation(start.relation),
        imports=tuple(c.global_id for c in start.collections),
        desc=plan.columns,
        as_of=as_of,
        snapshot=plan.snapshot,
        up_to=plan.up_to,
        progress=plan.progress,
        replicas=partial(_replicas, env, start.cluster_id),
    )
    return ClusterSource(env.compute, asked, start.hold)


def _replicas(env: Environment, cluster_id: ClusterId) -> list[str]:
    """Those there are by now."""
    return replica_processes(env.catalog.newest, cluster_id)
