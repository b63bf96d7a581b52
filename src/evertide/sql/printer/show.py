"""SHOW as text; it may stand in FROM, so queries print it too."""

from __future__ import annotations

from typing import Final, assert_never

from evertide.sql.printer import expression
from evertide.sql.printer.names import in_cluster, name, object_name, quote_ident, quote_literal
from evertide.sql.syntax.command import (
    LikeFilter,
    ShowCreateStatement,
    ShowKind,
    ShowObjectsStatement,
    ShowStatement,
    ShowVariableStatement,
    WhereFilter,
)

# Words that mean a list of objects when SHOW stands before them.
_SHOW_WORDS: Final = frozenset(
    {"CLUSTERS", "COLUMNS", "DATABASES", "INDEX", "INDEXES", "KEYS", "OBJECTS", "ROLES", "SCHEMAS"}
    | {"PRIVILEGES", "SINKS", "SOURCES", "TABLES", "VIEWS"}
)


def show(node: ShowStatement) -> str:
    match node:
        case ShowVariableStatement():
            return f"SHOW {'ALL' if node.name is None else variable(node.name)}"
        case ShowCreateStatement():
            head = "SHOW REDACTED CREATE" if node.redacted else "SHOW CREATE"
            return f"{head} {node.kind} {object_name(node.kind, node.name)}"
        case ShowObjectsStatement():
            text = f"SHOW {node.kind}"
            text += "" if node.from_ is None else f" FROM {name(node.from_)}"
            text += "" if node.on is None else f" ON {_on(node)}"
            text += "" if node.for_ is None else f" FOR {quote_ident(node.for_)}"
            return text + in_cluster(node.cluster) + _filter(node.filter_)
        case _:
            assert_never(node)


def _on(node: ShowObjectsStatement) -> str:
    """A relation, or the word for a type of objects."""
    assert node.on is not None, "asked for what is there"
    typed = node.kind in (ShowKind.PRIVILEGES, ShowKind.DEFAULT_PRIVILEGES)
    return node.on.parts[0] if typed else name(node.on)


def _filter(node: LikeFilter | WhereFilter | None) -> str:
    match node:
        case LikeFilter(pattern):
            return f" LIKE {quote_literal(pattern)}"
        case WhereFilter(condition):
            return f" WHERE {expression.expression(condition)}"
        case None:
            return ""
        case _:
            assert_never(node)


def variable(dotted_name: str) -> str:
    return ".".join([quote_ident(part, _SHOW_WORDS) for part in dotted_name.split(".")])
