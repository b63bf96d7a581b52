"""Version 3 knows reconfigurations, internal replicas, who pays for profiles and when they end.

Everything here is as it was when version 3 came, whatever those things are called today.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from evertide.catalog.durable.upgrade.plain import Plain, PlainRow

Fields: TypeAlias = dict[str, Plain]

_PART = r'(?:"(?:[^"]|"")*"|[^\s".(]+)'
_COLUMN = r'(?:"(?:[^"]|"")*"|[^\s".(),]+)'
_COLUMNS = rf"(?: \({_COLUMN}(?:, {_COLUMN})*\))?"
# Up to where a definition says in which cluster it runs, if it does.
_DEFINED = re.compile(rf"CREATE (?:INDEX|MATERIALIZED VIEW) {_PART}(?:\.{_PART})*{_COLUMNS}(?=\s)")
_CLAUSE = re.compile(r"\s+IN CLUSTER\s")


def from_2_to_3(rows: Sequence[PlainRow]) -> Sequence[PlainRow]:
    """Gives every record the fields it has now, and every running item its explicit cluster."""
    clusters = {str(r.key["cluster_id"]): str(r.value["name"]) for r in rows if r.kind == "cluster"}
    return [_changed(row, clusters) for row in rows]


def _changed(row: PlainRow, clusters: Mapping[str, str]) -> PlainRow:
    if row.kind == "item":
        return row._replace(value=_item(row.value, clusters))
    change = _CHANGES.get(row.kind)
    return row if change is None else row._replace(value=change(row.value))


def _cluster(value: Fields) -> Fields:
    variant = value["variant"]
    if isinstance(variant, dict) and variant["is"] == "managed":
        variant = {**variant, "introspection": _introspection(), "pending": None, "ended": None}
    return {**value, "variant": variant, "workload_class": None}


def _replica(value: Fields) -> Fields:
    added: Fields = {"internal": False, "billed_as": None, "pending": False}
    return {**value, **added, "introspection": _introspection()}


def _profile(value: Fields) -> Fields:
    kept = {name: field for name, field in value.items() if name != "billed"}
    billed_as = None if value["billed"] else "unbilled"
    added: Fields = {"billed_as": billed_as, "expires_at_ms": None}
    return {**kept, **added, "introspection": _introspection()}


def _introspection() -> Fields:
    return {"interval_ms": 1_000, "debugging": False}


def _item(value: Fields, clusters: Mapping[str, str]) -> Fields:
    """A definition that says in which cluster it runs stays as it is."""
    definition, text = value["definition"], str(value["create_sql"])
    name = clusters.get(str(definition.get("cluster_id"))) if isinstance(definition, dict) else None
    found = _DEFINED.match(text)
    if name is None or found is None or _CLAUSE.match(text, found.end()):
        return value
    quoted = name.replace('"', '""')
    clause = f' IN CLUSTER "{quoted}"'
    return {**value, "create_sql": f"{text[: found.end()]}{clause}{text[found.end() :]}"}


_CHANGES: Mapping[str, Callable[[Fields], Fields]] = {
    "cluster": _cluster,
    "cluster_profile": _profile,
    "cluster_replica": _replica,
}
