"""Walks over relational trees that only look."""

from collections.abc import Iterator

from evertide.expr.relation import Get, Relation
from evertide.expr.relation_walk import inputs_of
from evertide.vocab.ids import GlobalId


def walk(relation: Relation) -> Iterator[Relation]:
    """Every node object once, the root first.

    A tree may hold one object in several places (relation_walk.py says why), so visiting places
    instead of objects could take for ever.
    """
    seen: set[int] = set()
    stack = [relation]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(reversed(inputs_of(node)))


def gets(relation: Relation) -> list[GlobalId]:
    """The collections it reads, each once, in order of appearance."""
    found = dict.fromkeys(node.global_id for node in walk(relation) if isinstance(node, Get))
    return list(found)
