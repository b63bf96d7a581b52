"""Finding equalities among predicates, and putting equal columns together."""

from collections.abc import Iterable, Sequence
from typing import Final

from evertide.expr.relation import Map, Relation
from evertide.expr.row_key import same_key
from evertide.expr.scalar import And, Call, ColumnRef, Scalar
from evertide.vocab.sql_type import Kind

EQUALS: Final = "="
_REFERENCES: Final = (Kind.REGCLASS, Kind.REGPROC, Kind.REGTYPE)
# Casts to a kind, from which kinds, that give back the same datum.
_KEPT_BY_CAST_TO: Final[dict[Kind, tuple[Kind, ...]]] = {
    Kind.INT4: (Kind.INT2,),
    Kind.INT8: (Kind.INT2, Kind.INT4, Kind.OID, *_REFERENCES),
    Kind.OID: _REFERENCES,
    Kind.TEXT: (Kind.VARCHAR, Kind.NAME),
}


def conjuncts(predicates: Iterable[Scalar]) -> list[Scalar]:
    """Predicates with their Ands taken apart; And in And means the same as one And."""
    parts: list[Scalar] = []
    for predicate in predicates:
        if isinstance(predicate, And):
            parts += conjuncts(predicate.arguments)
        else:
            parts.append(predicate)
    return parts


def equality(predicate: Scalar) -> tuple[Scalar, Scalar] | None:
    """Both sides of an equality by which rows can be joined, or None."""
    match predicate:
        case Call(function=function, arguments=(left, right)) if (
            function.name == EQUALS and same_key(left.type, right.type)
        ):
            return _without_cast(left), _without_cast(right)
        case _:
            return None


def _without_cast(scalar: Scalar) -> Scalar:
    """What a cast is of, if the cast changes neither datum nor key.

    So `int4_column = int8_column` joins by the columns as they are: no third one need be kept.
    """
    match scalar:
        case Call(function=function, arguments=(inner,)) if (
            function.name == function.result.kind.value
            and inner.type.kind in _KEPT_BY_CAST_TO.get(function.result.kind, ())
        ):
            assert same_key(inner.type, scalar.type), "such types have one encoding of keys"
            return _without_cast(inner)
        case _:
            return scalar


def merged(equivalences: Iterable[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Equivalences that share a column are one; each is ascending, and so are their first columns.

    >>> merged([(0, 3), (1, 2), (3, 5)])
    ((0, 3, 5), (1, 2))
    """
    classes: list[set[int]] = []
    for members in equivalences:
        touching = [known for known in classes if known & set(members)]
        classes = [known for known in classes if known not in touching]
        classes.append(set(members).union(*touching))
    return tuple(sorted(tuple(sorted(members)) for members in classes))


def with_key_columns(
    relation: Relation, keys: Sequence[Scalar]
) -> tuple[Relation, tuple[int, ...]]:
    """The relation with a column for every key, and where they are; a column is its own."""
    width = len(relation.types)
    added: list[Scalar] = []
    columns: list[int] = []
    for key in keys:
        if isinstance(key, ColumnRef):
            columns.append(key.index)
        else:
            columns.append(width + len(added))
            added.append(key)
    return (Map(relation, tuple(added)) if added else relation), tuple(columns)
