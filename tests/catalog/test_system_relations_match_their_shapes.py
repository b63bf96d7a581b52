"""Rows of every system relation are of the types that its columns promise."""

import re
from collections.abc import Iterable
from decimal import Decimal

import pytest

from evertide.catalog.builtin.project import audit_event_rows
from evertide.catalog.builtin.registry import BUILTINS, builtin_of, builtin_rows, find_builtin
from evertide.catalog.builtin.relation import Builtin
from evertide.catalog.builtin.rights import MY_RELATIONS
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import AuditEvent
from evertide.catalog.ops import CreateDatabaseOp, SetSystemConfigurationOp
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.vocab.datum import Datum, Interval, Row
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import Kind, SqlType
from tests.catalog.samples import after, create_index, item, new_snapshot, populated

PYTHON_TYPES: dict[Kind, type] = {
    Kind.BOOL: bool,
    Kind.FLOAT4: float,
    Kind.FLOAT8: float,
    Kind.NUMERIC: Decimal,
    Kind.TEXT: str,
    Kind.VARCHAR: str,
    Kind.NAME: str,
    Kind.CHAR: str,
    Kind.JSONB: str,
    Kind.BYTEA: bytes,
    Kind.INTERVAL: Interval,
    Kind.ARRAY: tuple,
    Kind.LIST: tuple,
}


def fits(datum: Datum, sql_type: SqlType) -> bool:
    """Exactly the datum's type: True is no integer here."""
    if type(datum) is not PYTHON_TYPES.get(sql_type.kind, int):
        return False
    if isinstance(datum, tuple) and sql_type.element is not None:
        element = sql_type.element
        return all(part is None or fits(part, element) for part in datum)
    return True


def wrong(desc: RelationDesc, rows: Iterable[Row]) -> list[tuple[ColumnDesc, Datum]]:
    found: list[tuple[ColumnDesc, Datum]] = []
    for row in rows:
        for column, datum in zip(desc.columns, row, strict=True):
            if not (column.nullable if datum is None else fits(datum, column.type)):
                found.append((column, datum))
    return found


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    made = after(populated(), SetSystemConfigurationOp("max_tables", "3"))
    made = after(made, CreateDatabaseOp(name="other", owner=DEFAULT_ROLE_ID))
    return after(made, create_index("mi", item(made, "m")))


def rows(snapshot: Snapshot, name: str, *, database: str = "materialize") -> list[dict[str, Datum]]:
    """Rows of a relation by column name; `name` is schema.relation."""
    builtin = find_builtin(*name.split("."))
    assert builtin is not None, f"no relation {name}"
    found = builtin_rows(builtin, snapshot, database=database)
    return [dict(zip(builtin.desc.names, row, strict=True)) for row in found]


@pytest.mark.parametrize(
    "builtin", [b for b in BUILTINS if not b.dynamic], ids=lambda b: f"{b.schema}.{b.name}"
)
def test_rows_fit_the_columns(builtin: Builtin, snapshot: Snapshot) -> None:
    assert not wrong(builtin.desc, builtin_rows(builtin, snapshot, database="materialize"))
    assert not wrong(builtin.desc, builtin_rows(builtin, new_snapshot(), database="nowhere"))


def test_audit_events_fit_the_columns() -> None:
    builtin = find_builtin("mz_catalog", "mz_audit_events")
    assert builtin is not None
    result = transact(new_snapshot(), [SetSystemConfigurationOp("a", "b")], now_ms=1_500, user=None)
    events = [u.object for u in result.updates if isinstance(u.object, AuditEvent)]
    projected = list(audit_event_rows(events))
    assert not wrong(builtin.desc, projected)
    assert projected[0][3] == '{"name":"a","value":"b"}'
    assert projected[0][5] == 1_500_000


def test_names_and_ids_are_unique_and_lead_to_the_relation() -> None:
    assert len({b.oid for b in BUILTINS}) == len(BUILTINS)
    for builtin in BUILTINS:
        assert find_builtin(builtin.schema, builtin.name) is builtin
        assert builtin_of(builtin.global_id) is builtin
        assert builtin.item_id == f"s{builtin.oid}"
    assert find_builtin("public", "pg_class") is None


def test_rows_that_the_catalog_does_not_hold_are_declared() -> None:
    assert {f"{b.schema}.{b.name}" for b in BUILTINS if b.dynamic} == {
        "mz_catalog.mz_audit_events",
        "mz_catalog.mz_cluster_replica_frontiers",
        "mz_catalog.mz_cluster_replica_sizes",
        "mz_catalog.mz_functions",
        "mz_catalog.mz_operators",
        "mz_catalog.mz_recent_storage_usage",
        "mz_catalog.mz_storage_usage",
        "mz_internal.mz_cluster_replica_statuses",
        "mz_internal.mz_cluster_cpu_usage",
        "mz_internal.mz_cluster_memory_usage",
        "mz_internal.mz_cluster_replica_history",
        "mz_internal.mz_cluster_replica_metrics",
        "mz_internal.mz_cluster_replica_metrics_history",
        "mz_internal.mz_cluster_replica_status_history",
        "mz_internal.mz_cluster_replica_utilization",
        "mz_internal.mz_cluster_replica_utilization_history",
        "mz_internal.mz_cluster_usage",
        "mz_internal.mz_arrangement_sizes",
        "mz_internal.mz_replacement_changes",
        "mz_internal.mz_frontiers",
        "mz_internal.mz_hydration_statuses",
        "mz_internal.mz_tick_records",
        "mz_internal.mz_source_statuses",
        "mz_internal.mz_sink_statuses",
        "pg_catalog.pg_cast",
        "pg_catalog.pg_operator",
        "pg_catalog.pg_proc",
        "pg_catalog.pg_settings",
        "information_schema.role_table_grants",
        "information_schema.table_privileges",
        *(f"mz_internal.{name}" for name in MY_RELATIONS),
    }


def test_every_relation_that_psql_reads_exists() -> None:
    named = """pg_class pg_namespace pg_attribute pg_attrdef pg_type pg_am pg_index pg_constraint
        pg_proc pg_roles pg_auth_members pg_database pg_tablespace pg_collation pg_description
        pg_settings pg_inherits pg_policy pg_publication pg_publication_rel
        pg_publication_namespace pg_statistic_ext pg_cast pg_operator pg_extension
        pg_event_trigger pg_ts_config pg_foreign_server pg_foreign_data_wrapper
        pg_db_role_setting"""
    for name in named.split():
        assert find_builtin("pg_catalog", name) is not None, name


def test_system_schemas_exist_for_every_relation(snapshot: Snapshot) -> None:
    for builtin in BUILTINS:
        assert snapshot.schema_named(None, builtin.schema) is not None


def test_the_default_cluster_is_virtual_with_one_replica_of_no_size(snapshot: Snapshot) -> None:
    (cluster,) = rows(snapshot, "mz_catalog.mz_clusters")
    (replica,) = rows(snapshot, "mz_catalog.mz_cluster_replicas")
    assert (cluster["id"], cluster["name"], cluster["virtual"]) == ("u1", "default", True)
    assert (replica["name"], replica["cluster_id"], replica["size"]) == ("r1", "u1", None)


def test_index_columns_name_their_column_or_expression(snapshot: Snapshot) -> None:
    index_id = item(snapshot, "i").item_id
    found = [r for r in rows(snapshot, "mz_catalog.mz_index_columns") if r["index_id"] == index_id]
    shown = [(r["index_position"], r["on_position"], r["on_expression"]) for r in found]
    assert shown == [(1, 1, None), (2, None, "upper(name)")]


def test_values_do_not_appear_in_redacted_sql(snapshot: Snapshot) -> None:
    (view,) = [r for r in rows(snapshot, "mz_catalog.mz_views") if r["name"] == "v"]
    assert view["definition"] == "SELECT 1, 'secret';"
    assert re.search("secret|1", str(view["redacted_create_sql"])) is None


def psql_describe(snapshot: Snapshot, name: str, database: str) -> list[tuple[Datum, ...]]:
    """What psql's \\d joins: the relation by name, then its columns, types and defaults."""
    namespaces = {n["oid"]: n["nspname"] for n in rows(snapshot, "pg_catalog.pg_namespace")}
    found = [
        relation
        for relation in rows(snapshot, "pg_catalog.pg_class", database=database)
        if relation["relname"] == name and namespaces[relation["relnamespace"]] == "public"
    ]
    types = {t["oid"]: t["typname"] for t in rows(snapshot, "pg_catalog.pg_type")}
    defaults = {
        (d["adrelid"], d["adnum"]): d["adbin"] for d in rows(snapshot, "pg_catalog.pg_attrdef")
    }
    return [
        (a["attname"], types[a["atttypid"]], a["attnotnull"], defaults.get((r["oid"], a["attnum"])))
        for r in found
        for a in rows(snapshot, "pg_catalog.pg_attribute")
        if a["attrelid"] == r["oid"]
    ]


def test_psql_finds_a_table_and_its_columns(snapshot: Snapshot) -> None:
    assert psql_describe(snapshot, "t", "materialize") == [
        ("id", "int4", True, None),
        ("price", "numeric", False, "1.50"),
    ]


def test_pg_catalog_shows_one_database_at_a_time(snapshot: Snapshot) -> None:
    assert psql_describe(snapshot, "t", "other") == []


def test_psql_finds_the_indexes_of_a_table(snapshot: Snapshot) -> None:
    relations = {r["oid"]: r["relname"] for r in rows(snapshot, "pg_catalog.pg_class")}
    found = {
        (relations[i["indrelid"]], relations[i["indexrelid"]], i["indkey"])
        for i in rows(snapshot, "pg_catalog.pg_index")
    }
    assert found == {("t", "i", (1, 0)), ("m", "mi", (1, 0))}


def test_every_reference_between_pg_relations_leads_somewhere(snapshot: Snapshot) -> None:
    """Goal: inner joins lose no row, whoever writes them."""
    oids = {
        name: {r["oid"] for r in rows(snapshot, f"pg_catalog.{name}")}
        for name in ("pg_class", "pg_namespace", "pg_type", "pg_authid", "pg_am", "pg_collation")
    }
    references = {
        ("pg_attribute", "attrelid"): "pg_class",
        ("pg_attribute", "atttypid"): "pg_type",
        ("pg_attribute", "attcollation"): "pg_collation",
        ("pg_class", "relnamespace"): "pg_namespace",
        ("pg_class", "relowner"): "pg_authid",
        ("pg_class", "relam"): "pg_am",
        ("pg_database", "datdba"): "pg_authid",
        ("pg_index", "indrelid"): "pg_class",
        ("pg_namespace", "nspowner"): "pg_authid",
        ("pg_type", "typarray"): "pg_type",
        ("pg_type", "typelem"): "pg_type",
        ("pg_type", "typnamespace"): "pg_namespace",
        ("pg_type", "typowner"): "pg_authid",
    }
    for (relation, column), target in references.items():
        named = {r[column] for r in rows(snapshot, f"pg_catalog.{relation}")} - {0}
        assert named <= oids[target], f"{relation}.{column}"


def test_every_id_in_mz_catalog_leads_somewhere(snapshot: Snapshot) -> None:
    objects = {r["id"] for r in rows(snapshot, "mz_catalog.mz_objects")}
    schemas = {r["id"] for r in rows(snapshot, "mz_catalog.mz_schemas")}
    roles = {r["id"] for r in rows(snapshot, "mz_catalog.mz_roles")}
    for row in rows(snapshot, "mz_catalog.mz_objects"):
        assert row["schema_id"] in schemas
        assert row["owner_id"] in roles
    assert len(objects) == len(rows(snapshot, "mz_catalog.mz_objects"))
    assert {r["id"] for r in rows(snapshot, "mz_catalog.mz_columns")} <= objects
    assert {r["on_id"] for r in rows(snapshot, "mz_catalog.mz_indexes")} <= objects
    for row in rows(snapshot, "mz_internal.mz_object_dependencies"):
        assert {row["object_id"], row["referenced_object_id"]} <= objects


def test_information_schema_describes_a_column(snapshot: Snapshot) -> None:
    found = rows(snapshot, "information_schema.columns")
    (price,) = [r for r in found if r["table_name"] == "t" and r["column_name"] == "price"]
    wanted = {"data_type": "numeric", "column_default": "1.50", "is_nullable": "YES"}
    assert {name: price[name] for name in wanted} == wanted
