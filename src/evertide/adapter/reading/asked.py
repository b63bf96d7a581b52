"""What a query asks of the rows of each collection that it reads."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from evertide.expr.relation import Filter, Get, Project, Relation
from evertide.expr.relation_walk import inputs_of
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_walk import move_columns
from evertide.expr.traverse import walk
from evertide.vocab.ids import GlobalId


@dataclass(frozen=True, slots=True)
class Asked:
    """Predicates over a collection's columns: first `near`, then those that may fail for some row
    and see only what `near` has left."""

    near: tuple[Scalar, ...] = ()
    further: tuple[Scalar, ...] = ()


EVERYTHING: Final = Asked()


def asked_of_gets(relation: Relation) -> dict[GlobalId, Asked]:
    """Predicates that stand over a Get, or over a Project of one, by collection."""
    uses = Counter(id(source) for node in walk(relation) for source in inputs_of(node))
    found: dict[GlobalId, Asked] = {}
    for node in walk(relation):  # a Filter comes before those below it
        if not isinstance(node, Filter):
            continue
        filters = _stack(node, uses)
        source = filters[-1].input
        columns = source.columns if isinstance(source, Project) else None
        get = source.input if isinstance(source, Project) else source
        if isinstance(get, Get) and get.global_id not in found:
            found[get.global_id] = _asked(filters, columns)
    return found


def _stack(node: Filter, uses: Counter[int]) -> list[Filter]:
    """Filters one over the other, this one first.

    What stands over a Filter with several users says nothing of what the others need.
    """
    filters = [node]
    while isinstance(node.input, Filter) and uses[id(node.input)] == 1:
        node = node.input
        filters.append(node)
    return filters


def _asked(filters: list[Filter], columns: tuple[int, ...] | None) -> Asked:
    """Their predicates, over the columns of the Get."""
    moved = None if columns is None else dict(enumerate(columns))
    *further, near = [
        tuple(p if moved is None else move_columns(p, moved) for p in one.predicates)
        for one in filters
    ]
    return Asked(near, tuple(predicate for predicates in further for predicate in predicates))
