"""ASSERT NOT NULL: columns of a materialized view that the user knows never to be NULL.

A row in which one is NULL makes the view fail, as any error in data does, until the row is gone.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from evertide.expr.functions.internal import MUST_NOT_BE_NULL
from evertide.expr.relation import Filter, Relation
from evertide.expr.scalar import Call, ColumnRef, IsNull, Literal
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.option import Option
from evertide.vocab.errors import DuplicateColumn, InvalidParameterValue, UndefinedColumn
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import BOOL, TEXT

ASSERT_NOT_NULL: Final = "ASSERT NOT NULL"


def asserted_columns(options: Sequence[Option], desc: RelationDesc) -> tuple[int, ...]:
    """The columns that are asserted not to be NULL."""
    found: list[int] = []
    for option in options:
        if option.name != ASSERT_NOT_NULL:
            continue
        position = position_of(option.at)
        if not isinstance(option.value, Name):
            raise InvalidParameterValue(
                f"invalid {ASSERT_NOT_NULL}: the name of a column is needed", position=position
            )
        name = option.value.parts[0]
        if name not in desc.names:
            raise UndefinedColumn(
                f'column "{name}" in {ASSERT_NOT_NULL} option not found', position=position
            )
        column = desc.names.index(name)
        if column in found:
            raise DuplicateColumn(
                f'duplicate column "{name}" in non-null assertions', position=position
            )
        found.append(column)
    return tuple(found)


def with_assertions(relation: Relation, columns: Sequence[int], desc: RelationDesc) -> Relation:
    """The relation, with an error for each row in which one of the columns is NULL."""
    checks = tuple(
        Call(
            MUST_NOT_BE_NULL,
            (
                IsNull(ColumnRef(column, desc.columns[column].type)),
                Literal(f'column "{desc.names[column]}" must not be null', TEXT),
            ),
            BOOL,
        )
        for column in columns
    )
    return Filter(relation, checks) if checks else relation


def without_nulls(desc: RelationDesc, columns: Sequence[int]) -> RelationDesc:
    """What readers may rely on: such a column holds no NULL while the view can be read."""
    return RelationDesc(
        tuple(
            replace(column, nullable=False) if number in columns else column
            for number, column in enumerate(desc.columns)
        )
    )
