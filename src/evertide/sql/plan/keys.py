"""Keys that a table declares.

Nothing here sees to it that rows differ in them, so a system variable, whose name says that it is
unsafe, must allow them first. Then they are a statement of whoever writes the table: shown with its
definition, and a primary key's columns are NOT NULL, which is enforced.
"""

from collections.abc import Sequence
from typing import Final

from evertide.sql.plan.context import QueryContext
from evertide.sql.resolve import position_of
from evertide.sql.syntax.definition import CreateTableStatement, TableKey
from evertide.vocab.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    InvalidTableDefinition,
    UndefinedColumn,
)
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc

ALLOWED: Final = "unsafe_enable_table_keys"
_ON: Final = ("on", "true", "t", "yes", "y", "1")


def check_keys(statement: CreateTableStatement, query: QueryContext) -> None:
    """Keys must be allowed, name columns of the table once each, and one of them at most lead."""
    for key in statement.keys:
        _check_allowed(key, query)
        _check_columns(key, [column.name for column in statement.columns])
    primary = [key for key in statement.keys if key.primary]
    if len(primary) > 1:
        raise InvalidTableDefinition(
            f'multiple primary keys for table "{statement.name.parts[-1]}" are not allowed',
            position=position_of(primary[1].at),
        )


def _check_allowed(key: TableKey, query: QueryContext) -> None:
    value = query.plan.snapshot.system_configurations.get(ALLOWED, "off")
    if value.lower() not in _ON:
        words = "PRIMARY KEY" if key.primary else "UNIQUE"
        raise FeatureNotSupported(
            f"{words} constraints are not supported", position=position_of(key.at)
        )


def _check_columns(key: TableKey, names: Sequence[str]) -> None:
    for index, name in enumerate(key.columns):
        if name not in names:
            raise UndefinedColumn(
                f'column "{name}" named in key does not exist', position=position_of(key.at)
            )
        if name in key.columns[:index]:
            words = "primary key" if key.primary else "unique"
            raise DuplicateColumn(
                f'column "{name}" appears twice in {words} constraint',
                position=position_of(key.at),
            )


def with_keys(desc: RelationDesc, keys: Sequence[TableKey]) -> RelationDesc:
    """The columns of a primary key are never NULL."""
    never_null = {name for key in keys if key.primary for name in key.columns}
    columns = (
        ColumnDesc(one.name, one.type, one.nullable and one.name not in never_null)
        for one in desc.columns
    )
    return RelationDesc(tuple(columns))
