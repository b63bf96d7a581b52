"""mz_catalog: sources and sinks."""

from collections.abc import Iterable

from evertide.catalog.builtin.relation import Viewpoint
from evertide.catalog.builtin.rights import acl_texts
from evertide.catalog.builtin.text import redacted
from evertide.catalog.kinds.external import external_type
from evertide.catalog.objects import Item, Sink, Source, Subsource
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Row
from evertide.vocab.ids import ClusterId


def sources(at: Viewpoint) -> Iterable[Row]:
    for i in at.snapshot.items.values():
        if not isinstance(i.definition, Source | Subsource):
            continue
        envelope = None if i.shard_id is None else "none"
        named = (i.item_id, i.oid, i.schema_id, i.name, external_type(i.definition))
        shown = (*named, None, None, envelope, None, None, writing_cluster(i, at.snapshot))
        yield *shown, i.owner, acl_texts(i, at.snapshot), i.create_sql, redacted(i.create_sql)


def sinks(at: Viewpoint) -> Iterable[Row]:
    for i in at.snapshot.items.values():
        if isinstance(i.definition, Sink):
            named = (i.item_id, i.oid, i.schema_id, i.name, external_type(i.definition))
            shown = (*named, None, None, None, "json", None, "json", i.definition.cluster_id)
            yield *shown, i.owner, i.create_sql, redacted(i.create_sql)


def writing_cluster(item: Item, snapshot: Snapshot) -> ClusterId | None:
    """The cluster that writes a source or sink: a subsource's is that of its source."""
    if isinstance(item.definition, Subsource):
        return snapshot.items[item.definition.source_id].cluster_id
    return item.cluster_id
