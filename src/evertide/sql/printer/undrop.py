"""UNDROP as text."""

from __future__ import annotations

from evertide.sql.printer.names import name, quote_ident, quote_literal
from evertide.sql.syntax.undrop import UndropStatement


def undrop(node: UndropStatement) -> str:
    kind = "" if node.kind is None else f" {node.kind}"
    exists = " IF EXISTS" if node.if_exists else ""
    what = f"ID {quote_literal(node.item_id or '')}" if node.name is None else name(node.name)
    renamed = "" if node.new_name is None else f" AS {quote_ident(node.new_name)}"
    return f"UNDROP{kind}{exists} {what}{renamed}{' RESTRICT' if node.restrict else ''}"
