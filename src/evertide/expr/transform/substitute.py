"""Values known when a statement starts are put in the place of parameters and session calls."""

from collections.abc import Mapping
from typing import TypeAlias

from evertide.expr.relation import Relation
from evertide.expr.relation_walk import rewrite_scalars, rewrite_up
from evertide.expr.scalar import Parameter, Scalar, SessionCall
from evertide.expr.scalar_walk import rewrite

Bindings: TypeAlias = Mapping[Parameter | SessionCall, Scalar]


def substitute(relation: Relation, bindings: Bindings) -> Relation:
    """The relation with every parameter and session call that has a binding replaced by it."""
    if not bindings:
        return relation
    return rewrite_up(
        relation,
        lambda node: rewrite_scalars(node, lambda scalar: substitute_scalar(scalar, bindings)),
    )


def substitute_scalar(scalar: Scalar, bindings: Bindings) -> Scalar:
    """The same for one scalar."""

    def bound(part: Scalar) -> Scalar:
        return bindings.get(part, part) if isinstance(part, Parameter | SessionCall) else part

    return rewrite(scalar, bound)
