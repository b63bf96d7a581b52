"""The relations of mz_catalog and mz_internal: the peer's columns, then our own."""

from typing import Final

from evertide.catalog.builtin import (
    clusters,
    external,
    notes,
    project,
    refreshes,
    replacements,
    rights,
    user_types,
)
from evertide.catalog.builtin.relation import Builtin, Projection, no_rows, shape

_PRIVILEGES: Final = "privileges text[]!"
_CREATED: Final = "create_sql text, redacted_create_sql text"
_ITEM: Final = "id text!, oid oid!, schema_id text!, name text!"
_STATUS: Final = (
    "id text!, name text!, type text!, last_status_change_at timestamptz, status text!, "
    "error text, details jsonb"
)
_OBJECT: Final = f"{_ITEM}, type text!, owner_id text!, cluster_id text, privileges text[]"


def _mz(oid: int, name: str, columns: str, rows: Projection | None = no_rows) -> Builtin:
    return Builtin(oid=oid, schema="mz_catalog", name=name, desc=shape(columns), rows=rows)


def _internal(oid: int, name: str, columns: str, rows: Projection | None = no_rows) -> Builtin:
    return Builtin(oid=oid, schema="mz_internal", name=name, desc=shape(columns), rows=rows)


# Relations of mz_internal that each cluster keeps an index on, because its replicas report them.
# Every environment has these stored: one more is a new version of the catalog.
REPORTED_BY_REPLICAS: Final = ("mz_hydration_statuses", "mz_tick_records")

# Numbers are for ever: stored views name them. A new relation takes the next free one.
MZ_CATALOG: Final = (
    _mz(
        16_700,
        "mz_databases",
        f"id text!, oid oid!, name text!, owner_id text!, {_PRIVILEGES}",
        project.databases,
    ),
    _mz(
        16_701,
        "mz_schemas",
        f"id text!, oid oid!, database_id text, name text!, owner_id text!, {_PRIVILEGES}",
        project.schemas,
    ),
    _mz(
        16_702,
        "mz_roles",
        "id text!, oid oid!, name text!, inherit bool!, rolcanlogin bool, rolsuper bool",
        project.roles,
    ),
    _mz(
        16_703,
        "mz_clusters",
        f"id text!, name text!, owner_id text!, {_PRIVILEGES}, managed bool!, size text, "
        "replication_factor uint4, disk bool, availability_zones text-list, "
        "introspection_debugging bool, introspection_interval interval, virtual bool!",
        clusters.clusters,
    ),
    _mz(
        16_704,
        "mz_cluster_replicas",
        "id text!, name text!, cluster_id text!, size text, availability_zone text, "
        "owner_id text!, disk bool, profile_id text",
        clusters.cluster_replicas,
    ),
    _mz(
        16_705,
        "mz_cluster_replica_sizes",
        "size text!, processes uint8!, workers uint8!, cpu_nano_cores uint8!, "
        "memory_bytes uint8!, disk_bytes uint8, credits_per_hour numeric!",
        None,
    ),
    _mz(
        16_706,
        "mz_tables",
        f"{_ITEM}, owner_id text!, {_PRIVILEGES}, {_CREATED}, source_id text",
        project.tables,
    ),
    _mz(
        16_707,
        "mz_views",
        f"{_ITEM}, definition text, owner_id text!, {_PRIVILEGES}, {_CREATED}",
        project.views,
    ),
    _mz(
        16_708,
        "mz_materialized_views",
        f"{_ITEM}, cluster_id text!, definition text!, owner_id text!, {_PRIVILEGES}, {_CREATED}, "
        "replacement_for text",
        project.materialized_views,
    ),
    _mz(
        16_709,
        "mz_indexes",
        "id text!, oid oid!, name text!, on_id text!, cluster_id text!, owner_id text!, "
        f"{_CREATED}",
        project.indexes,
    ),
    _mz(
        16_710,
        "mz_index_columns",
        "index_id text!, index_position uint8!, on_position uint8, on_expression text, "
        "nullable bool!",
        project.index_columns,
    ),
    _mz(
        16_711,
        "mz_columns",
        "id text!, name text!, position uint8!, nullable bool!, type text!, default text, "
        "type_oid oid!, type_mod int4!",
        project.columns,
    ),
    _mz(16_712, "mz_objects", _OBJECT, project.objects),
    _mz(16_713, "mz_relations", _OBJECT, project.relations),
    _mz(
        16_714,
        "mz_sources",
        f"{_ITEM}, type text!, connection_id text, size text, envelope_type text, "
        "key_format text, value_format text, cluster_id text, owner_id text!, "
        f"{_PRIVILEGES}, {_CREATED}",
        external.sources,
    ),
    _mz(
        16_715,
        "mz_sinks",
        f"{_ITEM}, type text!, connection_id text, size text, envelope_type text, format text, "
        f"key_format text, value_format text, cluster_id text!, owner_id text!, {_CREATED}",
        external.sinks,
    ),
    _mz(
        16_716,
        "mz_types",
        f"{_ITEM}, category text!, owner_id text!, {_PRIVILEGES}, {_CREATED}",
        project.types,
    ),
    _mz(16_717, "mz_base_types", "id text!", project.base_types),
    _mz(16_718, "mz_pseudo_types", "id text!", project.pseudo_types),
    _mz(16_719, "mz_array_types", "id text!, element_id text!", project.array_types),
    _mz(
        16_720,
        "mz_list_types",
        "id text!, element_id text!, element_modifiers int8-list",
        user_types.list_types,
    ),
    _mz(
        16_721,
        "mz_map_types",
        "id text!, key_id text!, value_id text!, key_modifiers int8-list, "
        "value_modifiers int8-list",
        user_types.map_types,
    ),
    _mz(
        16_722,
        "mz_connections",
        f"{_ITEM}, type text!, owner_id text!, {_PRIVILEGES}, {_CREATED}",
    ),
    _mz(16_723, "mz_secrets", f"{_ITEM}, owner_id text!, {_PRIVILEGES}", notes.secrets),
    _mz(
        16_724,
        "mz_functions",
        f"{_ITEM}, argument_type_ids text[]!, variadic_argument_type_id text, "
        "return_type_id text, returns_set bool!, owner_id text!",
        None,
    ),
    _mz(
        16_725,
        "mz_operators",
        "oid oid!, name text!, argument_type_ids text[]!, return_type_id text",
        None,
    ),
    _mz(
        16_726,
        "mz_role_members",
        "role_id text!, member text!, grantor text!",
        notes.role_members,
    ),
    _mz(
        16_727,
        "mz_role_parameters",
        "role_id text!, parameter_name text!, parameter_value text!",
        rights.role_parameters,
    ),
    _mz(
        16_728,
        "mz_default_privileges",
        "role_id text!, database_id text, schema_id text, object_type text!, grantee text!, "
        "privileges text!",
        notes.default_privileges,
    ),
    _mz(16_729, "mz_system_privileges", "privileges text!", notes.system_privileges),
    _mz(
        16_730,
        "mz_audit_events",
        "id uint8!, event_type text!, object_type text!, details jsonb!, user text, "
        "occurred_at timestamptz!",
        None,
    ),
    _mz(
        16_731,
        "mz_storage_usage",
        "object_id text!, size_bytes uint8!, collection_timestamp timestamptz!",
        None,
    ),
    _mz(16_732, "mz_recent_storage_usage", "object_id text!, size_bytes uint8", None),
    _mz(
        16_733,
        "mz_cluster_replica_frontiers",
        "object_id text!, replica_id text!, write_frontier mz_timestamp, "
        "read_frontier mz_timestamp",
        None,
    ),
    _mz(
        16_734,
        "mz_cluster_profiles",
        "cluster_id text!, profile_id text!, name text!, managed bool!, size text, "
        "replication_factor uint4, billed_as text, introspection_debugging bool!, "
        "introspection_interval interval, owner_id text!, expires_at timestamptz",
        clusters.cluster_profiles,
    ),
)

MZ_INTERNAL: Final = (
    _internal(
        16_800,
        "mz_object_dependencies",
        "object_id text!, referenced_object_id text!",
        project.object_dependencies,
    ),
    _internal(
        16_801,
        "mz_object_transitive_dependencies",
        "object_id text!, referenced_object_id text!",
        project.transitive_dependencies,
    ),
    _internal(
        16_802, "mz_object_global_ids", "id text!, global_id text!", project.object_global_ids
    ),
    _internal(
        16_803, "mz_storage_shards", "object_id text!, shard_id text!", project.storage_shards
    ),
    _internal(
        16_804,
        "mz_object_fully_qualified_names",
        "id text!, name text!, object_type text!, schema_id text!, schema_name text!, "
        "database_id text, database_name text, cluster_id text",
        project.fully_qualified_names,
    ),
    _internal(
        16_805,
        "mz_overridden_system_parameters",
        "name text!, value text!",
        project.overridden_system_parameters,
    ),
    _internal(
        16_806,
        "mz_comments",
        "id text!, object_type text!, object_sub_id int4, comment text!",
        notes.comments,
    ),
    _internal(16_807, "mz_replacements", "id text!, target_id text!", replacements.replacements),
    _internal(
        16_808,
        "mz_frontiers",
        "object_id text!, read_frontier mz_timestamp, write_frontier mz_timestamp",
        None,
    ),
    _internal(
        16_809,
        "mz_hydration_statuses",
        "object_id text!, replica_id text, hydrated bool, nodes_done int8, nodes int8, reason text",
        None,
    ),
    _internal(
        16_810,
        "mz_cluster_replica_statuses",
        "replica_id text!, process_id uint8!, status text!, reason text, updated_at timestamptz!",
        None,
    ),
    _internal(
        16_811,
        "mz_tick_records",
        "object_id text!, replica_id text!, started_at timestamptz!, rows_in int8!, "
        "rows_out int8!, executor text!, duration_ms float8!, upper mz_timestamp!",
        None,
    ),
    _internal(
        16_812,
        "mz_arrangement_sizes",
        "object_id text!, replica_id text!, records int8!, bytes int8!, arrangements int8!",
        None,
    ),
    _internal(
        16_813,
        "mz_history_retention_strategies",
        "id text!, strategy text!, value jsonb!",
        project.history_retention_strategies,
    ),
    _internal(
        16_814,
        "mz_materialized_view_refresh_strategies",
        "materialized_view_id text!, type text!, interval interval, aligned_to timestamptz, "
        "at timestamptz",
        refreshes.refresh_strategies,
    ),
    _internal(
        16_850,
        "mz_materialized_view_versions",
        "id text!, version int8!, global_id text!, create_sql text!, current bool!",
        replacements.view_versions,
    ),
    _internal(16_870, "mz_source_statuses", _STATUS, None),
    _internal(16_871, "mz_sink_statuses", _STATUS, None),
    _internal(16_840, "mz_internal_cluster_replicas", "id text!", clusters.internal_replicas),
    _internal(16_841, "mz_pending_cluster_replicas", "id text!", clusters.pending_replicas),
    _internal(
        16_842,
        "mz_cluster_workload_classes",
        "id text!, workload_class text",
        clusters.workload_classes,
    ),
    _internal(
        16_843,
        "mz_cluster_schedules",
        "cluster_id text!, type text!, refresh_hydration_time_estimate interval",
        clusters.schedules,
    ),
    _internal(
        16_844,
        "mz_cluster_reconfigurations",
        "cluster_id text!, status text!, started_at timestamptz!, deadline timestamptz!, "
        "on_timeout text!, target_size text!, target_replication_factor uint4!",
        clusters.reconfigurations,
    ),
)
