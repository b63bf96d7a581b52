"""In which order the inputs of an n-ary join are bound to one another, and by which columns.

Used by everything that joins: starting from one input, always bind next an input that is connected
by most equivalences, so that products appear only where the query has one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Extension:
    """Bind one more input.

    Its `key` columns must equal the columns `probe` of the row bound so far, which is in path
    order: the source's columns, then those of each input in the order bound. `also_equal` are
    pairs (bound column, column of the new input) to check in addition.
    """

    relation: int
    key: tuple[int, ...]
    probe: tuple[int, ...]
    also_equal: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class JoinOrder:
    """All extensions from one source; `columns` puts a path-ordered row into the join's order."""

    extensions: tuple[Extension, ...]
    columns: tuple[int, ...]


def connected_order(
    arities: Sequence[int], equivalences: Sequence[tuple[int, ...]], source: int
) -> JoinOrder:
    """A greedy order; ties go to the input that the query names first.

    An equivalence inside one input is not looked at: see `inner_equivalences`.
    """
    offsets = offsets_of(arities)
    owner = [relation for relation, arity in enumerate(arities) for _ in range(arity)]
    position = {offsets[source] + i: i for i in range(arities[source])}
    linked: set[int] = set()
    extensions: list[Extension] = []
    waiting = [relation for relation in range(len(arities)) if relation != source]
    while waiting:
        relation = max(waiting, key=lambda r: _connections(r, equivalences, owner, position))
        waiting.remove(relation)
        extensions.append(
            _extension(relation, offsets[relation], equivalences, owner, position, linked)
        )
        width = len(position)
        position |= {offsets[relation] + i: width + i for i in range(arities[relation])}
    return JoinOrder(tuple(extensions), tuple(position[i] for i in range(len(position))))


def inner_equivalences(
    arities: Sequence[int], equivalences: Sequence[tuple[int, ...]]
) -> list[tuple[int, tuple[int, ...]]]:
    """Equivalences whose columns all belong to one input, as (input, its columns)."""
    offsets = offsets_of(arities)
    owner = [relation for relation, arity in enumerate(arities) for _ in range(arity)]
    return [
        (owner[members[0]], tuple(column - offsets[owner[members[0]]] for column in members))
        for members in equivalences
        if len({owner[column] for column in members}) == 1
    ]


def offsets_of(arities: Sequence[int]) -> list[int]:
    """Where each input's columns start in the joined row."""
    return list(accumulate(arities, initial=0))


def _connections(
    relation: int,
    equivalences: Sequence[tuple[int, ...]],
    owner: Sequence[int],
    position: dict[int, int],
) -> int:
    return sum(
        any(owner[column] == relation for column in members)
        and any(column in position for column in members)
        for members in equivalences
    )


def _extension(
    relation: int,
    offset: int,
    equivalences: Sequence[tuple[int, ...]],
    owner: Sequence[int],
    position: dict[int, int],
    linked: set[int],
) -> Extension:
    """`linked` are equivalences that an earlier extension checked: their bound columns are equal.

    In the others all bound columns are of one input, and if there are several, nobody has compared
    them yet.
    """
    key, probe, also_equal = [], [], []
    for number, members in enumerate(equivalences):
        bound = [position[column] for column in members if column in position]
        new = [column - offset for column in members if owner[column] == relation]
        if not bound or not new:
            continue
        key.append(new[0])
        probe.append(bound[0])
        also_equal += [(bound[0], column) for column in new[1:]]
        if number not in linked:
            also_equal += [(column, new[0]) for column in bound[1:]]
            linked.add(number)
    return Extension(relation, tuple(key), tuple(probe), tuple(also_equal))
