"""Where definitions may be broken into lines."""

from evertide.sql.pretty import to_sql
from evertide.sql.printer.definition import column_or_key
from evertide.sql.printer.names import columns, name, quote_ident
from evertide.sql.printer.option import shown_options
from evertide.sql.printer.replacement import replacing
from evertide.sql.shown.full_types import with_schemas_of_types
from evertide.sql.shown.layout import EMPTY, LINE, Doc, Group, Nested, laid_out, separated, titled
from evertide.sql.shown.queries import query_doc
from evertide.sql.syntax.definition import (
    CreateMaterializedViewStatement,
    CreateTableStatement,
    CreateViewStatement,
)
from evertide.sql.syntax.option import Option, Refresh
from evertide.sql.syntax.statement import Statement


def shown_definition(statement: Statement) -> str:
    """The statement that would create an item, for people to read."""
    return laid_out((_doc(with_schemas_of_types(statement)), ";"))


def _doc(statement: Statement) -> Doc:
    match statement:
        case CreateViewStatement():
            head = "CREATE TEMPORARY VIEW" if statement.temporary else "CREATE VIEW"
            named = name(statement.name) + columns(statement.columns)
            return _parts([head, named, titled("AS", query_doc(statement.query))])
        case CreateMaterializedViewStatement():
            return _materialized_view(statement)
        case CreateTableStatement():
            return _table(statement)
        case _:
            return to_sql(statement)


def _parts(parts: list[Doc]) -> Doc:
    return Group(Nested(separated(parts, LINE)))


def _materialized_view(node: CreateMaterializedViewStatement) -> Doc:
    """Every option, that it follows its inputs too."""
    options = node.options
    if not any(option.name == "REFRESH" for option in options):
        options = (*options, Option("REFRESH", Refresh("ON COMMIT")))
    parts: list[Doc] = [
        f"CREATE MATERIALIZED VIEW {name(node.name)}{columns(node.columns)}"
        + replacing(node.replacing)
    ]
    if node.cluster is not None:
        parts.append(f"IN CLUSTER {quote_ident(node.cluster)}")
    parts.append(f"WITH ({shown_options(options)})")
    parts.append(titled("AS", query_doc(node.query)))
    return _parts(parts)


def _table(node: CreateTableStatement) -> Doc:
    head = "CREATE TEMPORARY TABLE" if node.temporary else "CREATE TABLE"
    inside: list[Doc] = [*map(column_or_key, node.columns), *map(column_or_key, node.keys)]
    listed = (EMPTY, separated(inside, (",", LINE)))
    body = Group((f"{head} {name(node.name)} (", Nested(listed), EMPTY, ")"))
    return (body, f" WITH ({shown_options(node.options)})") if node.options else body
