"""Operators that say nothing, or what their neighbour could say too, go."""

from dataclasses import replace

from evertide.expr.relation import (
    Distinct,
    Filter,
    Join,
    Map,
    Negate,
    Project,
    Reduce,
    Relation,
    Union,
)
from evertide.expr.relation_walk import rewrite_up
from evertide.expr.scalar_walk import columns_of, is_fallible


def fuse(relation: Relation) -> Relation:
    """The relation with neighbouring Projects, Maps, Filters, Unions and Negates put together."""
    return rewrite_up(relation, _fused)


def _fused(node: Relation) -> Relation:
    match node:
        case Project(input=Project(input=source, columns=inner), columns=outer):
            return _fused(Project(source, tuple(inner[i] for i in outer)))
        case Project(input=source, columns=columns) if columns == tuple(range(len(source.types))):
            return source
        case Map(input=source, scalars=()) | Filter(input=source, predicates=()):
            return source
        case Map(input=Map(input=source, scalars=inner), scalars=outer) if all(
            columns_of(scalar) <= set(range(len(source.types))) for scalar in outer
        ):
            return Map(source, inner + outer)
        case Filter(input=Filter(input=source, predicates=inner), predicates=outer) if not any(
            map(is_fallible, outer)
        ):
            return Filter(source, inner + outer)
        case Negate(input=Negate(input=source)):
            return source
        case Union(inputs=(only,)) | Join(inputs=(only,), equivalences=()):
            return only
        case Union(inputs=inputs) if any(isinstance(source, Union) for source in inputs):
            return replace(node, inputs=_flat_union(inputs))
        case Distinct(input=Distinct() | Reduce()):
            return node.input
        case _:
            return node


def _flat_union(inputs: tuple[Relation, ...]) -> tuple[Relation, ...]:
    flat: list[Relation] = []
    for source in inputs:
        flat += source.inputs if isinstance(source, Union) else (source,)
    return tuple(flat)
