"""CREATE SINK."""

from typing import Final

from evertide.sql.parser import option
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import if_not_exists, one_of, qualified_name, string_literal
from evertide.sql.parser.objects import optional_cluster
from evertide.sql.syntax.external import CreateSinkStatement

_OPTIONS: Final[option.Grammar] = {"SNAPSHOT": option.optional_value}


def create_sink(cursor: Cursor, at: int) -> CreateSinkStatement:
    """After the word SINK."""
    exists_ok = if_not_exists(cursor)
    name = qualified_name(cursor)
    cluster = optional_cluster(cursor)
    cursor.expect("FROM")
    from_ = qualified_name(cursor)
    cursor.expect("INTO", "FILE")
    path = string_literal(cursor)
    cursor.expect("FORMAT")
    form = one_of(cursor, "JSON")
    options = option.with_options(cursor, _OPTIONS)
    return CreateSinkStatement(
        name, from_, path.value, form, cluster, options, exists_ok, path_at=path.at, at=at
    )
