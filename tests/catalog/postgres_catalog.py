"""What PostgreSQL 16 says about its own system relations, in the form that builtin/data keeps.

A test compares the files with the server; `make golden` writes them anew.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import sql

from evertide.vocab.sql_type import Kind

# Types beside our own kinds that clients ask for by name.
PSEUDO_TYPES = ("any", "anyarray", "anyelement", "anynonarray", "void")

# Relations whose rows do not depend on what users made, and which of those we have use for.
ROW_FILTERS = {
    "pg_type": "typnamespace = 'pg_catalog'::regnamespace AND typname = ANY(%(types)s)",
    "pg_proc": """oid = ANY(ARRAY(
        SELECT unnest(ARRAY[typinput, typoutput, typreceive, typsend, typmodin, typmodout,
                            typsubscript]::oid[])
        FROM pg_type
        WHERE typnamespace = 'pg_catalog'::regnamespace AND typname = ANY(%(types)s)))""",
    "pg_am": "amname IN ('heap', 'btree')",
    "pg_collation": "collname IN ('default', 'C', 'POSIX')",
    "pg_language": "lanname IN ('internal', 'sql')",
    "pg_tablespace": "true",
}

# initdb hands out oids from here on, in an order that depends on what the host has installed (its
# locales become collations, which lie between); below they are part of PostgreSQL's source.
FIRST_OID_OF_INITDB, FIRST_OID_OF_USERS = 12_000, 16_384

# Values that the driver would not give as plain JSON.
CASTS = {
    "regproc": "{}::oid::int8",
    "oid": "{}::int8",
    "xid": "{}::text::int8",
    "int2vector": "{}::int2[]::int4[]",
    "oidvector": "{}::oid[]::int8[]",
    "_oid": "{}::int8[]",
    "_aclitem": "NULL::text[]",
    "pg_node_tree": "{}::text",
}


def relations_text(connection: psycopg.Connection[Any]) -> str:
    """builtin/data/relations.json: every table and view with all its columns."""
    lines = (json.dumps([*relation[:4], columns]) for relation, columns in _relations(connection))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def stable(name: str, text: str) -> Any:
    """What a file says on every host: oids that initdb hands out are told as such."""
    rows = json.loads(text)
    if name != "relations":
        return rows
    return [
        [schema, relation, oid if oid < FIRST_OID_OF_INITDB else "of initdb", *others]
        for schema, relation, oid, *others in rows
    ]


def _relations(
    connection: psycopg.Connection[Any],
) -> Iterator[tuple[Sequence[Any], list[list[Any]]]]:
    """(schema, name, oid, is view) and (name, type, nullable) of each column."""
    found = connection.execute(
        """SELECT nspname, relname, pg_class.oid, relkind = 'v'
           FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid
           WHERE nspname IN ('pg_catalog', 'information_schema') AND relkind IN ('r', 'v')
           ORDER BY nspname DESC, relname COLLATE "C" """
    ).fetchall()
    for relation in found:
        columns = connection.execute(
            """SELECT attname, coalesce(base.typname, pg_type.typname), NOT attnotnull
               FROM pg_attribute
               JOIN pg_type ON atttypid = pg_type.oid
               LEFT JOIN pg_type AS base ON pg_type.typbasetype = base.oid
               WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
               ORDER BY attnum""",
            (relation[2],),
        ).fetchall()
        yield relation, [list(column) for column in columns]


def rows_text(connection: psycopg.Connection[Any], relation: str) -> str:
    """builtin/data/<relation>.json: rows in the order of the relation's columns."""
    columns = connection.execute(
        """SELECT attname, typname FROM pg_attribute JOIN pg_type ON atttypid = pg_type.oid
           WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum""",
        (f"pg_catalog.{relation}",),
    ).fetchall()
    selected = sql.SQL(", ").join(
        sql.SQL(CASTS.get(type_name, "{}")).format(sql.Identifier(name))
        for name, type_name in columns
    )
    query = sql.SQL("SELECT {} FROM {} WHERE " + ROW_FILTERS[relation] + " ORDER BY oid").format(
        selected, sql.Identifier("pg_catalog", relation)
    )
    rows = connection.execute(query, {"types": _type_names()}).fetchall()
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


def _type_names() -> list[str]:
    kinds = [kind.value for kind in Kind]
    return [*kinds, *(f"_{kind}" for kind in kinds), *PSEUDO_TYPES]
