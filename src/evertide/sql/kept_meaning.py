"""Whether a definition's columns are still those of the same relations, after a renaming.

A column may be named with its relation, and that with its schema and database: whichever relation
of the query at hand, or of those around it, ends in these names is meant. Other names for the
relations, or for the columns, can make that another one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations
from typing import TypeAlias

from evertide.sql.syntax.definition import CreateMaterializedViewStatement, CreateViewStatement
from evertide.sql.syntax.expression import FunctionCall, Name, Star
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.sql.syntax.query import FunctionTable, JoinUsing, TableAlias, TableRef
from evertide.sql.syntax.statement import Statement

Parts: TypeAlias = tuple[str, ...]

_QUERIES = (CreateViewStatement, CreateMaterializedViewStatement)


def keeps_meaning(before: Statement, after: Statement) -> bool:
    """Whether every column that is named with its relation finds the one that it found.

    `after` is `before` with other names, and with aliases for relations that had none.
    """
    if not (isinstance(before, _QUERIES) and isinstance(after, _QUERIES)):
        return True  # nothing else has columns of more than one relation
    return _agree(_names_of(before.query), _names_of(after.query))


@dataclass(frozen=True, slots=True)
class _Names:
    """What a query calls its relations, and what it names columns by, each in the tree's order."""

    relations: tuple[Parts, ...]
    qualifiers: tuple[Parts, ...]
    rows: tuple[Parts, ...]  # names alone: of a column, or of a relation's whole row


def _agree(before: _Names, after: _Names) -> bool:
    relations = set(zip(before.relations, after.relations, strict=True))
    for name, now in set(zip(before.qualifiers, after.qualifiers, strict=True)):
        if any(_ends(old, name) != _ends(new, now) for old, new in relations):
            return False
    for name, now in set(zip(before.rows, after.rows, strict=True)):
        # What was no relation was a column, which goes before any relation of its name.
        if any(_ends(old, name) for old, _ in relations) and any(
            _ends(old, name) != _ends(new, now) for old, new in relations
        ):
            return False
    by_name: dict[str, list[tuple[Parts, Parts]]] = {}
    for old, new in relations:
        by_name.setdefault(new[-1], []).append((old, new))
    return not any(
        _clash(one[1], other[1]) and not _clash(one[0], other[0])
        for same in by_name.values()
        for one, other in combinations(same, 2)
    )


def _ends(relation: Parts, name: Parts) -> bool:
    return relation[-len(name) :] == name


def _clash(one: Parts, other: Parts) -> bool:
    """Whether one FROM cannot have both: only full names tell two of one name apart."""
    return one[-1] == other[-1] and (len(one) == 1 or len(other) == 1 or one == other)


def _names_of(query: object) -> _Names:
    relations: list[Parts] = []
    qualifiers: list[Parts] = []
    rows: list[Parts] = []
    for part in _parts(query):
        match part:
            case TableRef(alias=TableAlias(name=known)) | TableAlias(name=known):
                relations.append((known,))
            case TableRef(name=Name(parts=parts)):
                relations.append(parts)
            case JoinUsing(alias=str(known)):
                relations.append((known,))
            case FunctionTable(alias=None, calls=calls):
                relations.extend(call.name.parts[-1:] for call in calls)
            case Name(parts=(*qualifier, _)) if qualifier:
                qualifiers.append(tuple(qualifier))
            case Name(parts=parts):
                rows.append(parts)
            case Star(qualifier=named) if named:
                qualifiers.append(named)
            case _:
                pass
    return _Names(tuple(relations), tuple(qualifiers), tuple(rows))


def _parts(query: object) -> Iterator[object]:
    """All nodes, but for the names of relations and functions: those are no columns."""
    waiting = [query]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting.extend(part)
        elif is_dataclass(part) and not isinstance(part, type | LiteralValues):
            yield part
            if not isinstance(part, TableRef):
                named = isinstance(part, FunctionCall)
                within = (f.name for f in fields(part) if not (named and f.name == "name"))
                waiting.extend(getattr(part, name) for name in within)
