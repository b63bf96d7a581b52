"""The columns that names in an expression may mean.

A scope lists columns in the order of `*`. A column knows the table it belongs to and the scalar
that computes it from the row the expression stands on: mostly a position, but COALESCE of two for
the shared column of FULL JOIN ... USING.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from evertide.expr.scalar import ColumnRef, Literal, Scalar
from evertide.sql.resolve import RelationName, position_of
from evertide.sql.syntax.expression import Name, Star
from evertide.vocab.errors import (
    AmbiguousColumn,
    DuplicateAlias,
    SqlError,
    UndefinedColumn,
    UndefinedTable,
)
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import OID


@dataclass(frozen=True, slots=True)
class TableName:
    """How columns may be qualified. An alias hides the relation's own name."""

    name: str
    qualifier: tuple[str, ...] = ()  # database and schema, where no alias hides them
    aliased: str | None = None  # the name an alias hides, for hints
    blank: bool = False  # an outer join may leave its row out

    def answers_to(self, parts: tuple[str, ...]) -> bool:
        """Whether `parts`, given before a column, mean this table.

        >>> TableName("t", ("materialize", "public")).answers_to(("public", "t"))
        True
        """
        return (*self.qualifier, self.name)[-len(parts) :] == parts


def table_name(name: RelationName) -> TableName:
    """A relation under its own name."""
    return TableName(name.name, name.parts[:-1])


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """`merged` columns are shown once for both tables by USING: only a qualified name finds one."""

    name: str
    scalar: Scalar
    nullable: bool
    table: TableName | None = None
    merged: bool = False
    # A system column: `*` leaves it out, and a column of the user's by that name hides it.
    hidden: bool = False
    # An array whose first element is number 0.
    from_zero: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """Columns in the order of `*`; tables apart, because one may have no columns."""

    columns: tuple[ScopeColumn, ...] = ()
    tables: tuple[TableName, ...] = ()

    @property
    def starred(self) -> tuple[ScopeColumn, ...]:
        """What `*` means, and where unqualified names are looked for."""
        return tuple(c for c in self.columns if not c.merged and not c.hidden)

    @property
    def hidden(self) -> tuple[ScopeColumn, ...]:
        """The tables' system columns."""
        return tuple(column for column in self.columns if column.hidden)


def scope_of(desc: RelationDesc, table: TableName | None) -> Scope:
    """The scope over one relation's row."""
    columns = tuple(
        ScopeColumn(column.name, ColumnRef(index, column.type), column.nullable, table)
        for index, column in enumerate(desc.columns)
    )
    return Scope(columns, () if table is None else (table,))


def with_vectors(scope: Scope, names: Container[str]) -> Scope:
    """The scope with these columns' elements counted from 0."""
    columns = tuple(replace(c, from_zero=c.name in names) for c in scope.columns)
    return Scope(columns, scope.tables)


def with_table_oid(scope: Scope, oid: int) -> Scope:
    """The scope of one table with its hidden column `tableoid`, the table's own oid."""
    (table,) = scope.tables
    tableoid = ScopeColumn("tableoid", Literal(oid, OID), nullable=False, table=table, hidden=True)
    return Scope((*scope.columns, tableoid), scope.tables)


def combine_scopes(left: Scope, right: Scope, *, position: int | None = None) -> Scope:
    """Both scopes over one joined row; positions must be those of that row already."""
    for table in right.tables:
        if any(_clash(table, other) for other in left.tables):
            raise DuplicateAlias(
                f'table name "{table.name}" specified more than once', position=position
            )
    return Scope(left.columns + right.columns, left.tables + right.tables)


def _clash(one: TableName, other: TableName) -> bool:
    """Equal names clash unless both stand under full names that differ (a.t and b.t)."""
    if one.name != other.name:
        return False
    return not (one.qualifier and other.qualifier) or one.qualifier == other.qualifier


def map_scope(scope: Scope, change: Callable[[Scalar], Scalar], *, nullable: bool = False) -> Scope:
    """The scope with every column's scalar changed; `nullable`: an outer join may blank them.

    Hidden columns are constants, which nothing blanks: there they are not offered.
    """
    columns = tuple(
        replace(
            column,
            scalar=change(column.scalar),
            nullable=column.nullable or nullable,
            table=_blanked(column.table) if nullable and column.table else column.table,
        )
        for column in scope.columns
        if not (nullable and column.hidden)
    )
    return Scope(columns, tuple(map(_blanked, scope.tables)) if nullable else scope.tables)


def _blanked(table: TableName) -> TableName:
    return replace(table, blank=True)


def find_column(name: Name, scopes: Sequence[Scope]) -> tuple[int, ScopeColumn]:
    """The one column that this reference means, and in which scope it is.

    Scopes of queries around come after the query's own: what is nearer hides what is further.
    """
    qualifier = name.parts[:-1]
    for depth, scope in enumerate(scopes):
        matches = _matches(name, scope)
        if len(matches) > 1:
            raise AmbiguousColumn(
                f'column reference "{name.parts[-1]}" is ambiguous', position=position_of(name.at)
            )
        if matches:
            return depth, matches[0]
        if qualifier and any(table.answers_to(qualifier) for table in scope.tables):
            raise _missing(name, scope)  # the nearest table by that name is the one meant
    known = (s for s in scopes if qualifier and any(t.answers_to(qualifier) for t in s.tables))
    raise _missing(name, next(known, scopes[0]))


def is_whole_row(name: Name, scopes: Sequence[Scope]) -> bool:
    """Whether a bare name means a table's row: a column by that name, also further out, wins."""
    if len(name.parts) != 1 or any(_matches(name, scope) for scope in scopes):
        return False
    return any(table.name == name.parts[0] for scope in scopes for table in scope.tables)


def has_column(name: str, scope: Scope) -> bool:
    """Whether an unqualified name means a column here."""
    return any(column.name == name for column in scope.starred)


def _matches(name: Name, scope: Scope) -> list[ScopeColumn]:
    *qualifier, column_name = name.parts
    if qualifier:
        of_table = _columns_of(tuple(qualifier), scope)
        found = [column for column in of_table if column.name == column_name]
    else:
        shown = (*scope.starred, *scope.hidden)
        found = [column for column in shown if column.name == column_name]
    return [column for column in found if not column.hidden] or found


def _columns_of(qualifier: tuple[str, ...], scope: Scope) -> list[ScopeColumn]:
    return [
        column
        for column in scope.columns
        if column.table is not None and column.table.answers_to(qualifier)
    ]


def expand_star(star: Star, scope: Scope) -> tuple[ScopeColumn, ...]:
    """The columns of `*` or `t.*`."""
    if not star.qualifier:
        return scope.starred
    if not any(table.answers_to(star.qualifier) for table in scope.tables):
        shown = ".".join(star.qualifier)
        raise missing_table(star.qualifier, scope, star.at, f"no table named '{shown}' in scope")
    return tuple(c for c in _columns_of(star.qualifier, scope) if not c.hidden)


def _missing(name: Name, scope: Scope) -> SqlError:
    *qualifier, column_name = name.parts
    if not qualifier:
        return UndefinedColumn(
            f'column "{column_name}" does not exist',
            hint=_similar(column_name, scope.starred),
            position=position_of(name.at),
        )
    parts = tuple(qualifier)
    if not any(table.answers_to(parts) for table in scope.tables):
        shown = ".".join(name.parts)
        return missing_table(parts, scope, name.at, f'column "{shown}" does not exist')
    return UndefinedColumn(
        f'column "{".".join(name.parts)}" does not exist',
        hint=_similar(column_name, _columns_of(parts, scope)),
        position=position_of(name.at),
    )


def missing_table(
    qualifier: tuple[str, ...], scope: Scope, at: int, message: str
) -> UndefinedTable:
    """What to say of a table that is not there."""
    name = qualifier[-1]
    alias = next((table.name for table in scope.tables if table.aliased == name), None)
    return UndefinedTable(
        message,
        detail=f'There is no entry for table "{name}" in FROM.',
        hint=f'Perhaps you meant to reference the table alias "{alias}".' if alias else None,
        position=position_of(at),
    )


def _similar(name: str, columns: Sequence[ScopeColumn]) -> str | None:
    """A hint for a slip of the keyboard."""
    found = get_close_matches(name, [column.name for column in columns], n=1)
    if not found:
        return None
    column = next(column for column in columns if column.name == found[0])
    shown = column.name if column.table is None else f"{column.table.name}.{column.name}"
    return f'Perhaps you meant to reference the column "{shown}".'
