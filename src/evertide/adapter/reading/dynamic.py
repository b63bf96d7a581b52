"""Rows of system relations that are not in the catalog: replicas' reports, frontiers, settings."""

from collections.abc import Sequence
from typing import Final

from evertide.adapter.environment import Environment
from evertide.adapter.introspection import reports
from evertide.adapter.introspection.external_statuses import external_statuses
from evertide.adapter.introspection.resources import resource_rows
from evertide.adapter.lookups.listed_functions import listed_functions
from evertide.adapter.rights.listed import rights_rows
from evertide.adapter.session import Session
from evertide.adapter.variables import Scope, lookup
from evertide.catalog.builtin.notes import recent_storage_usage_rows, storage_usage_rows
from evertide.catalog.builtin.project import audit_event_rows
from evertide.catalog.builtin.relation import Builtin
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Row

# What PostgreSQL calls who may set a variable.
_CONTEXTS: Final = {Scope.SESSION: "user", Scope.SYSTEM: "sighup", Scope.FIXED: "internal"}


async def dynamic_rows(
    builtin: Builtin, session: Session, env: Environment, snapshot: Snapshot
) -> Sequence[Row]:
    """The rows of one dynamic relation now; a relation nobody reports on is empty."""
    rights = rights_rows(builtin.name, session, snapshot)
    if rights is not None:
        return rights
    match builtin.name:
        case "pg_settings":
            return _settings(builtin, session)
        case "pg_proc" | "pg_operator" | "pg_cast" | "mz_functions" | "mz_operators":
            return listed_functions(builtin.name)
        case "mz_frontiers":
            return await reports.frontiers(env, snapshot)
        case "mz_audit_events":
            return list(audit_event_rows(await env.catalog.audit_events(snapshot.catalog_ts)))
        case "mz_storage_usage":
            return list(storage_usage_rows(await env.catalog.storage_usage(snapshot.catalog_ts)))
        case "mz_recent_storage_usage":
            usages = await env.catalog.storage_usage(snapshot.catalog_ts)
            return list(recent_storage_usage_rows(usages))
        case "mz_source_statuses" | "mz_sink_statuses":
            return await external_statuses(builtin.name, env, snapshot)
        case "mz_hydration_statuses":
            return await reports.hydration_statuses(env, snapshot)
        case (
            "mz_tick_records"
            | "mz_arrangement_sizes"
            | "mz_cluster_replica_frontiers"
            | "mz_replacement_changes"
        ):
            return await reports.reported(builtin.name, env, snapshot)
        case _:
            return await resource_rows(builtin.name, env, snapshot)


def _settings(builtin: Builtin, session: Session) -> list[Row]:
    """pg_settings: the columns we know by name, NULL elsewhere."""
    rows: list[Row] = []
    for name, value, description in session.variables.all():
        variable = lookup(name)
        known = {
            "name": name,
            "setting": value,
            "category": "Session",
            "short_desc": description,
            "context": _CONTEXTS[variable.scope],
            "vartype": "string",
            "source": "default" if value == variable.default else "session",
            "boot_val": variable.default,
            "reset_val": variable.default,
            "pending_restart": False,
        }
        rows.append(tuple(known.get(column.name) for column in builtin.desc.columns))
    return rows
