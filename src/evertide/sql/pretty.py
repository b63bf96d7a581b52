"""Prints a statement tree back as SQL, on one line.

The catalog stores what this prints, so it must not depend on how the user wrote a statement, and
parsing it must give an equal tree; tests/sql/test_pretty_text_parses_to_an_equal_tree.py holds it
to that. Parentheses count as nesting, so a tree at the parser's limit may print as a text beyond
it: what is to be stored is parsed once more before it is.
"""

from evertide.sql.printer.command import command
from evertide.sql.printer.definition import definition
from evertide.sql.printer.expression import expression
from evertide.sql.printer.names import data_type
from evertide.sql.printer.names import quote_ident as quote_ident
from evertide.sql.printer.names import quote_literal as quote_literal
from evertide.sql.printer.query import query
from evertide.sql.syntax.definition import DefinitionStatement
from evertide.sql.syntax.expression import DataType, Expression
from evertide.sql.syntax.query import Query
from evertide.sql.syntax.statement import Statement


def to_sql(node: Statement | Query | Expression | DataType) -> str:
    """The text of a statement, or of a query, expression or type by itself."""
    if isinstance(node, DefinitionStatement):
        return definition(node)
    if isinstance(node, Query):
        return query(node)
    if isinstance(node, DataType):
        return data_type(node)
    if isinstance(node, Expression):
        return expression(node)
    return command(node)
