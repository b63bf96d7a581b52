"""The keys of one index that a query asks for."""

from collections.abc import Sequence

from evertide.adapter.reading.asked import Asked
from evertide.adapter.reading.index_lookup import KeySpans, key_spans, telling
from evertide.catalog.objects import Index, Item
from evertide.catalog.snapshot import Snapshot
from evertide.expr.scalar import Call, ColumnRef, Literal, Scalar
from evertide.expr.scalar_codec import scalar_key
from evertide.expr.scalar_walk import columns_of, is_fallible
from evertide.sql.plan.rewrite import replace_parts
from evertide.sql.views import index_expressions
from evertide.vocab.relation_desc import RelationDesc


def spans_of(index: Item, on: RelationDesc, asked: Asked, snapshot: Snapshot) -> KeySpans | None:
    """The keys of all rows for which everything asked can be true; None: any key."""
    assert isinstance(index.definition, Index), "indexes are asked about"
    expressions = index_expressions(index, snapshot)
    types = (*on.types, *(expression.type for expression in expressions))
    key = [(place, types[place]) for place in index.definition.key_places(on.arity)]
    found = [key_spans(asked.near, key)]
    if expressions:
        found.append(key_spans(_by_values(expressions, on.arity, asked), key))
    return max((spans for spans in found if spans is not None), key=telling, default=None)


def _by_values(expressions: Sequence[Scalar], arity: int, asked: Asked) -> list[Scalar]:
    """Predicates that see the values of the index's expressions as columns behind the others.

    Of rows that are left out nobody learns whether a predicate fails for them. So if one still may,
    only those choose that stand below it.
    """
    places = {
        scalar_key(expression): ColumnRef(arity + number, expression.type)
        for number, expression in enumerate(expressions)
        if not isinstance(expression, ColumnRef) and columns_of(expression)
    }
    heads = {_head(expression) for expression in expressions}

    def value_of(part: Scalar) -> ColumnRef | None:
        if isinstance(part, ColumnRef | Literal) or _head(part) not in heads:
            return None
        return places.get(scalar_key(part))

    changed = [replace_parts(predicate, value_of) for predicate in asked.near + asked.further]
    if any(map(is_fallible, changed)):
        sure = [predicate for predicate in asked.near if not is_fallible(predicate)]
        return [replace_parts(predicate, value_of) for predicate in sure]
    return changed


def _head(scalar: Scalar) -> object:
    """What equal expressions have in common, seen without looking into them."""
    return scalar.function.signature if isinstance(scalar, Call) else type(scalar)
