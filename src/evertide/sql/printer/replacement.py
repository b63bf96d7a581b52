"""Statements about replacements, as text."""

from __future__ import annotations

from typing import assert_never

from evertide.sql.printer.names import name
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.replacement import (
    ApplyReplacementStatement,
    ExplainReplacementStatement,
    ReplacementStatement,
    RestoreVersionStatement,
    ShowReplacementChangesStatement,
)


def replacing(target: Name | None) -> str:
    """The clause that makes a definition a replacement, with a blank before it; or nothing."""
    return "" if target is None else f" REPLACING {name(target)}"


def replacement_statement(node: ReplacementStatement) -> str:
    exists = "IF EXISTS " if node.if_exists else ""
    head = f"ALTER MATERIALIZED VIEW {exists}{name(node.name)}"
    match node:
        case ApplyReplacementStatement():
            text = f"{head} APPLY REPLACEMENT {name(node.replacement)}"
            text += " WITH (FORWARD TIME)" if node.forward_time else ""
            return text + (" WHEN READY" if node.when_ready else "")
        case RestoreVersionStatement():
            return f"{head} RESTORE VERSION {node.version}"
        case _:
            assert_never(node)


def replacement_looked_at(
    node: ExplainReplacementStatement | ShowReplacementChangesStatement,
) -> str:
    match node:
        case ExplainReplacementStatement():
            return f"EXPLAIN REPLACEMENT {name(node.name)}"
        case ShowReplacementChangesStatement():
            limit = "" if node.limit is None else f" LIMIT {node.limit}"
            return f"SHOW REPLACEMENT CHANGES FOR {name(node.name)}{limit}"
        case _:
            assert_never(node)
