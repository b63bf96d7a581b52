"""mz_catalog and mz_internal: grants, comments, secrets, storage usage."""

from collections.abc import Iterable, Iterator

from evertide.catalog.builtin.relation import OWNER_OF_BUILTINS, Builtin, Viewpoint
from evertide.catalog.builtin.rights import acl_text, acl_texts
from evertide.catalog.objects import (
    Comment,
    DefaultPrivilege,
    IntrospectionSourceIndex,
    Item,
    RoleMembership,
    StorageUsage,
    SystemPrivilege,
    kind_name,
)
from evertide.vocab.datum import Row
from evertide.vocab.ids import ItemId


def role_members(at: Viewpoint) -> Iterable[Row]:
    for m in at.snapshot.of_type(RoleMembership):
        yield m.role_id, m.member_id, m.grantor


def default_privileges(at: Viewpoint) -> Iterable[Row]:
    for p in at.snapshot.of_type(DefaultPrivilege):
        scope = (p.role_id, p.database_id, p.schema_id, p.object_type)
        yield *scope, p.grantee, p.privileges


def system_privileges(at: Viewpoint) -> Iterable[Row]:
    for p in at.snapshot.of_type(SystemPrivilege):
        yield (acl_text(at.snapshot, p.grantee, p.privileges, p.grantor),)


def comments(at: Viewpoint) -> Iterable[Row]:
    for c in at.snapshot.of_type(Comment):
        found = at.snapshot.find((c.object_kind.value, c.object_id))
        assert found is not None, "a comment goes with what it is on"
        kind = found.kind.value if isinstance(found, Item) else kind_name(found).replace("_", "-")
        yield c.object_id, kind, c.sub_id, c.comment


def secrets(at: Viewpoint) -> Iterable[Row]:
    for s in at.snapshot.secrets.values():
        yield s.secret_id, s.oid, s.schema_id, s.name, s.owner, acl_texts(s, at.snapshot)


def introspection_indexes(
    at: Viewpoint,
) -> Iterator[tuple[IntrospectionSourceIndex, Builtin, str]]:
    """With the relation that each is on, and the name it is shown under."""
    relations = {b.name: b for b in at.builtins if b.schema == "mz_internal"}
    for index in at.snapshot.of_type(IntrospectionSourceIndex):
        # One of a relation that is no more is taken away when the catalog is opened for writing.
        if index.name in relations:
            name = f"{index.name}_{index.cluster_id}_primary_idx"
            yield index, relations[index.name], name


def introspection_index_rows(at: Viewpoint) -> Iterator[Row]:
    """Their rows of mz_indexes."""
    for index, relation, name in introspection_indexes(at):
        named = (index.index_id, index.oid, name, relation.item_id, index.cluster_id)
        cluster = at.snapshot.clusters[index.cluster_id].name
        text = (
            f"CREATE INDEX {name} IN CLUSTER {_quoted(cluster)} ON {relation.schema}"
            f".{relation.name} (object_id, replica_id)"
        )
        yield *named, OWNER_OF_BUILTINS, text, text


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def storage_usage_rows(usages: Iterable[StorageUsage]) -> Iterator[Row]:
    """Rows of mz_storage_usage, which is dynamic: snapshots do not keep the history."""
    for usage in usages:
        yield usage.object_id, usage.size_bytes, usage.collected_at_ms * 1_000


def recent_storage_usage_rows(usages: Iterable[StorageUsage]) -> Iterator[Row]:
    """Rows of mz_recent_storage_usage: of each object the newest measurement."""
    newest: dict[ItemId, StorageUsage] = {}
    for usage in sorted(usages, key=lambda each: (each.collected_at_ms, each.usage_id)):
        newest[usage.object_id] = usage
    return ((usage.object_id, usage.size_bytes) for usage in newest.values())
