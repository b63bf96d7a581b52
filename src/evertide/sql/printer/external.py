"""CREATE SOURCE and CREATE SINK as text."""

from __future__ import annotations

from evertide.sql.printer.names import in_cluster, name, quote_ident, quote_literal
from evertide.sql.printer.option import options, with_options
from evertide.sql.syntax.external import (
    CreateSinkStatement,
    CreateSourceStatement,
    CreateSubsourceStatement,
    LoadTable,
)


def source(node: CreateSourceStatement) -> str:
    text = "CREATE MATERIALIZED SOURCE " if node.materialized else "CREATE SOURCE "
    text += "IF NOT EXISTS " if node.if_not_exists else ""
    text += f"{name(node.name)}{in_cluster(node.cluster)} FROM LOAD GENERATOR {node.generator}"
    text += f" ({options(node.load_options)})" if node.load_options else ""
    return text + _tables(node.tables) + with_options(node.options)


def _tables(tables: tuple[LoadTable, ...] | None) -> str:
    if tables is None:
        return ""
    if not tables:
        return " FOR ALL TABLES"
    return f" FOR TABLES ({', '.join([_table(table) for table in tables])})"


def _table(node: LoadTable) -> str:
    renamed = "" if node.name is None else f" AS {name(node.name)}"
    return quote_ident(node.table) + renamed


def subsource(node: CreateSubsourceStatement) -> str:
    of = f"OF SOURCE {name(node.source)} (TABLE {quote_ident(node.table)})"
    return f"CREATE SUBSOURCE {name(node.name)} {of}"


def sink(node: CreateSinkStatement) -> str:
    text = "CREATE SINK " + ("IF NOT EXISTS " if node.if_not_exists else "")
    text += f"{name(node.name)}{in_cluster(node.cluster)} FROM {name(node.from_)}"
    text += f" INTO FILE {quote_literal(node.path)} FORMAT {node.format}"
    return text + with_options(node.options)
