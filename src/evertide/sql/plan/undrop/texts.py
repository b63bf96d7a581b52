"""Definitions of dropped items in names of today."""

from collections.abc import Callable
from dataclasses import replace

from evertide.catalog.objects import DroppedItem
from evertide.sql.kept_meaning import keeps_meaning
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.names_of_today import renamings
from evertide.sql.pretty import to_sql
from evertide.sql.renaming import with_relations
from evertide.sql.syntax.definition import (
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateTableStatement,
    CreateViewStatement,
)
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.named import CreateTypeStatement
from evertide.sql.syntax.statement import Statement
from evertide.vocab.errors import DependentObjectsStillExist
from evertide.vocab.ids import ItemId


def text_of_today(
    dropped: DroppedItem,
    name: tuple[str, ...],
    cluster: str | None,
    today: Callable[[ItemId], tuple[str, ...]],
) -> str:
    """The definition under this full name; `today` gives the full name of what it reads."""
    definition = parse_statement(dropped.item.create_sql)
    renamed = _renamed(definition, dropped, name, cluster, today)
    if not keeps_meaning(definition, renamed):
        raise DependentObjectsStillExist(
            f'cannot undrop {dropped.kind.sql_words} "{dropped.name}": renaming conflict: what it'
            " reads has other names now, and a column in it would be ambiguous",
            hint="Rename what it reads so that its schemas and names differ.",
        )
    return to_sql(renamed)


def _renamed(
    definition: Statement,
    dropped: DroppedItem,
    name: tuple[str, ...],
    cluster: str | None,
    today: Callable[[ItemId], tuple[str, ...]],
) -> Statement:
    read = dropped.item.reads
    meant = {named.name: named.item_id for named in dropped.names if named.item_id in read}
    relation, column = renamings(meant, today)
    match definition:
        case CreateTypeStatement():
            form = with_relations(definition.form, relation, column)
            return replace(definition, name=Name(name), form=form)
        case CreateTableStatement():
            columns = with_relations(definition.columns, relation, column)
            return replace(definition, name=Name(name), columns=columns)
        case CreateViewStatement(query=query):
            named = with_relations(query, relation, column)
            return replace(definition, name=Name(name), query=named)
        case CreateMaterializedViewStatement(query=query):
            named = with_relations(query, relation, column)
            return replace(definition, name=Name(name), query=named, cluster=cluster)
        case CreateIndexStatement(on=on):
            renamed = Name(relation(on.parts))
            return replace(definition, name=name[-1], on=renamed, cluster=cluster)
        case _:
            raise AssertionError(f"{dropped.kind.value} is not kept")
