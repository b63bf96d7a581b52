"""Version 2 knows privileges, cluster profiles, storage usage, and what clusters report.

Everything here is as it was when version 2 came, whatever those things are called today.
"""

from collections.abc import Iterator, Sequence

from evertide.catalog.durable.upgrade.plain import PlainRow

_FIRST_OID = 20_000
_REPORTS = ("mz_hydration_statuses", "mz_tick_records")
# Role (p is everyone), type of object, grantee, privileges.
_DEFAULTS = (
    ("p", "cluster", "s2", "U"),
    ("p", "database", "s2", "U"),
    ("p", "schema", "s2", "U"),
    ("p", "type", "p", "U"),
)
# Grantee, grantor, privileges.
_SYSTEM = (("s1", "s1", "RBN"), ("u1", "s1", "RBN"))


def from_1_to_2(rows: Sequence[PlainRow]) -> Sequence[PlainRow]:
    """Adds what a new environment has, as far as the roles that it names exist."""
    clusters = sorted((str(r.key["cluster_id"]) for r in rows if r.kind == "cluster"), key=_age)
    reports = [(cluster, name) for cluster in clusters for name in _REPORTS]
    first_oid = _next_oid(rows)
    kept = [row for row in rows if not _is_allocator(row, "oid")]
    return [
        *kept,
        PlainRow("config", {"name": "deployment_generation"}, {"value": 0}),
        _allocator("oid", first_oid + len(reports)),
        _allocator("cluster_profile", 1),
        _allocator("introspection_source_index", 1 + len(reports)),
        _allocator("storage_usage", 1),
        *_report_indexes(reports, first_oid),
        *_grants({str(row.key["role_id"]) for row in rows if row.kind == "role"}),
    ]


def _report_indexes(reports: Sequence[tuple[str, str]], first_oid: int) -> Iterator[PlainRow]:
    for number, (cluster_id, name) in enumerate(reports):
        yield PlainRow(
            "introspection_source_index",
            {"cluster_id": cluster_id, "name": name},
            {"index_id": f"si{number + 1}", "oid": first_oid + number},
        )


def _grants(roles: set[str]) -> Iterator[PlainRow]:
    for role_id, object_type, grantee, privileges in _DEFAULTS:
        if grantee in roles | {"p"}:
            yield PlainRow(
                "default_privilege",
                {
                    "role_id": role_id,
                    "database_id": None,
                    "schema_id": None,
                    "object_type": object_type,
                    "grantee": grantee,
                },
                {"privileges": privileges},
            )
    for grantee, grantor, privileges in _SYSTEM:
        if {grantee, grantor} <= roles:
            key = {"grantee": grantee, "grantor": grantor}
            yield PlainRow("system_privilege", {**key}, {"privileges": privileges})


def _next_oid(rows: Sequence[PlainRow]) -> int:
    for row in rows:
        if _is_allocator(row, "oid"):
            return int(str(row.value["next_number"]))
    return _FIRST_OID


def _is_allocator(row: PlainRow, name: str) -> bool:
    return row.kind == "id_allocator" and row.key == {"name": name}


def _allocator(name: str, next_number: int) -> PlainRow:
    return PlainRow("id_allocator", {"name": name}, {"next_number": next_number})


def _age(identifier: str) -> tuple[int, str]:
    """Ids grow, but as text u10 comes before u9."""
    return len(identifier), identifier
