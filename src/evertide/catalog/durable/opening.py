"""What every opening for writing brings up to date, whatever version the catalog was of."""

import hashlib
from collections.abc import Mapping

from evertide.catalog.builtin.mz_catalog import REPORTED_BY_REPLICAS
from evertide.catalog.builtin.registry import BUILTINS
from evertide.catalog.builtin.relation import Builtin
from evertide.catalog.clusters import introspection_index
from evertide.catalog.draft import Draft
from evertide.catalog.durable.codec import GENERATION_CONFIG
from evertide.catalog.objects import (
    CatalogUpdate,
    IntrospectionSourceIndex,
    SystemObjectMapping,
    TimelineTimestamp,
    object_key,
)
from evertide.catalog.ops import SetConfigOp
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import apply_op
from evertide.vocab.timestamp import Timeline, Timestamp


def opened_updates(
    snapshot: Snapshot,
    *,
    now_ms: int,
    deployment_generation: int | None,
    timestamps: Mapping[Timeline, Timestamp],
) -> tuple[CatalogUpdate, ...]:
    """The changes that opening makes of a snapshot of today's version; none if all is as it was."""
    draft = Draft(snapshot, now_ms=now_ms, user=None)
    _map_builtins(draft)
    _keep_reports(draft)
    for timeline, ts in timestamps.items():
        _advance(draft, timeline, ts)
    if deployment_generation is not None:
        apply_op(draft, SetConfigOp(GENERATION_CONFIG, deployment_generation))
    return draft.updates()


def fingerprint(builtin: Builtin) -> str:
    """Changes whenever a reader of the relation could tell: its name, its columns, their types."""
    columns = (
        f"{column.name} {column.type}{'' if column.nullable else ' NOT NULL'}"
        for column in builtin.desc.columns
    )
    text = f"{builtin.schema}.{builtin.name} ({', '.join(columns)})"
    return hashlib.sha256(text.encode()).hexdigest()


def _map_builtins(draft: Draft) -> None:
    wanted = {object_key(mapping): mapping for mapping in map(_mapping, BUILTINS)}
    for before in list(draft.snapshot.of_type(SystemObjectMapping)):
        after = wanted.pop(object_key(before), None)
        if after is None:
            draft.remove(before)
        elif after != before:
            draft.replace(before, after)
    for mapping in wanted.values():
        draft.create(mapping)


def _mapping(builtin: Builtin) -> SystemObjectMapping:
    return SystemObjectMapping(
        schema=builtin.schema,
        object_type="view" if builtin.is_view else "table",
        name=builtin.name,
        object_id=builtin.item_id,
        fingerprint=fingerprint(builtin),
    )


def _keep_reports(draft: Draft) -> None:
    """Each cluster has an index on each relation that its replicas report, and on no other."""
    for index in list(draft.snapshot.of_type(IntrospectionSourceIndex)):
        if index.name not in REPORTED_BY_REPLICAS:
            draft.remove(index)
    for cluster in list(draft.snapshot.clusters.values()):
        kept = draft.snapshot.referrers(IntrospectionSourceIndex, object_key(cluster))
        for name in REPORTED_BY_REPLICAS:
            if name not in {index.name for index in kept}:
                draft.create(introspection_index(draft, cluster, name))


def _advance(draft: Draft, timeline: Timeline, ts: Timestamp) -> None:
    """A timeline never goes back: a store that lost its oracle must not take the catalog along."""
    before = draft.snapshot.timestamps.get(timeline)
    if before is None:
        draft.create(TimelineTimestamp(timeline=timeline, ts=ts))
    elif before < ts:
        draft.replace(
            TimelineTimestamp(timeline=timeline, ts=before),
            TimelineTimestamp(timeline=timeline, ts=ts),
        )
