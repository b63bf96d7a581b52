"""The shape of a relation: its columns in order."""

from collections.abc import Sequence
from dataclasses import dataclass

from evertide.vocab.sql_type import SqlType


@dataclass(frozen=True, slots=True)
class ColumnDesc:
    """One column. Names need not be unique in a relation: a query may give two the same."""

    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class RelationDesc:
    """Columns in order."""

    columns: tuple[ColumnDesc, ...]

    @property
    def arity(self) -> int:
        """How many columns."""
        return len(self.columns)

    @property
    def types(self) -> tuple[SqlType, ...]:
        """The columns' types in order."""
        return tuple(column.type for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in order."""
        return tuple(column.name for column in self.columns)


def relation_desc(*columns: tuple[str, SqlType] | ColumnDesc) -> RelationDesc:
    """Short form for relations written by hand: pairs are nullable columns."""
    return RelationDesc(
        tuple(c if isinstance(c, ColumnDesc) else ColumnDesc(c[0], c[1]) for c in columns)
    )


def renamed(desc: RelationDesc, names: Sequence[str]) -> RelationDesc:
    """The same columns under other names; fewer names than columns rename the first ones."""
    kept = desc.columns[len(names) :]
    changed = tuple(
        ColumnDesc(name, column.type, column.nullable)
        for name, column in zip(names, desc.columns, strict=False)
    )
    return RelationDesc(changed + kept)
