"""Which columns a replacement may have: those of its target, and new ones behind them."""

from collections.abc import Iterator
from itertools import zip_longest

from evertide.vocab.errors import FeatureNotSupported
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc


def check_schema(target: RelationDesc, replacement: RelationDesc) -> None:
    """Refuse what those who read the target could not go on reading."""
    found = list(differences(target, replacement))
    if found:
        raise FeatureNotSupported(
            "replacement schema differs from target schema", detail="\n".join(found)
        )


def differences(target: RelationDesc, replacement: RelationDesc) -> Iterator[str]:
    """All that keeps one from taking the other's place, in words.

    Rows that were stored before a column came have nothing for it, so a new one must be nullable.
    """
    pairs = zip_longest(target.columns, replacement.columns)
    for position, (old, new) in enumerate(pairs, start=1):
        if new is None:
            assert old is not None, "one of the two is there"
            yield f'missing column "{old.name}" at position {position}'
        elif old is not None:
            yield from _column(old, new, position)
        elif not new.nullable:
            yield f'extra column "{new.name}" at position {position}'


def _column(old: ColumnDesc, new: ColumnDesc, position: int) -> Iterator[str]:
    if old.name != new.name:
        names = f'target: "{old.name}", replacement: "{new.name}"'
        yield f"column at position {position}: name mismatch ({names})"
        return
    place = f'column "{old.name}" at position {position}'
    if old.type != new.type:
        yield f"{place}: type mismatch (target: {old.type}, replacement: {new.type})"
    elif old.nullable != new.nullable:
        nullable = f"target: {_null(old)}, replacement: {_null(new)}"
        yield f"{place}: nullability mismatch ({nullable})"


def _null(column: ColumnDesc) -> str:
    return "NULL" if column.nullable else "NOT NULL"
