"""Types and secrets as text."""

from __future__ import annotations

from typing import assert_never

from evertide.sql.printer.expression import expression
from evertide.sql.printer.names import data_type, name, quote_ident
from evertide.sql.syntax.expression import ListType, MapType
from evertide.sql.syntax.named import (
    AlterSecretStatement,
    CreateSecretStatement,
    CreateTypeStatement,
    NamedStatement,
    RecordFields,
)


def named_statement(node: NamedStatement) -> str:
    match node:
        case CreateTypeStatement():
            return f"CREATE TYPE {name(node.name)} AS {type_form(node.form)}"
        case CreateSecretStatement():
            exists = "IF NOT EXISTS " if node.if_not_exists else ""
            return f"CREATE SECRET {exists}{name(node.name)} AS {expression(node.value)}"
        case AlterSecretStatement():
            exists = "IF EXISTS " if node.if_exists else ""
            return f"ALTER SECRET {exists}{name(node.name)} AS {expression(node.value)}"
        case _:
            assert_never(node)


def type_form(form: ListType | MapType | RecordFields) -> str:
    """What a type is made of."""
    match form:
        case ListType():
            return f"LIST (ELEMENT TYPE = {data_type(form.element)})"
        case MapType():
            return f"MAP (KEY TYPE = {data_type(form.key)}, VALUE TYPE = {data_type(form.value)})"
        case RecordFields():
            fields = [f"{quote_ident(one.name)} {data_type(one.type_)}" for one in form.fields]
            return f"({', '.join(fields)})"
        case _:
            assert_never(form)
