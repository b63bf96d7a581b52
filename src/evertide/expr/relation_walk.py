"""Looking into relational trees and rebuilding them.

A tree may hold one object in several places: lowering an outer join uses its inputs three times, so
a chain of them would grow by powers of three if each place were looked at on its own. Everything
here therefore treats the tree as the graph of its objects, and keeps shared objects shared.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias, assert_never

from evertide.expr.relation import (
    AggregateCall,
    Apply,
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    LetRec,
    LocalGet,
    Map,
    Negate,
    OuterJoin,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
    Window,
    WindowCall,
)
from evertide.expr.scalar import Scalar

Rewrite: TypeAlias = Callable[[Relation], Relation]


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """The relations directly below, in order."""
    match relation:
        case Constant() | Get() | LocalGet():
            return ()
        case LetRec(values=values, body=body):
            return (*values, body)
        case Join(inputs=inputs) | Union(inputs=inputs):
            return inputs
        case OuterJoin(left=left, right=right) | Apply(left=left, right=right):
            return (left, right)
        case (
            Project(input=source) | Map(input=source) | Filter(input=source) | Reduce(input=source)
            | FlatMap(input=source) | Distinct(input=source) | TopK(input=source)
            | Window(input=source) | Negate(input=source) | Threshold(input=source)
        ):  # fmt: skip
            return (source,)
        case _:
            assert_never(relation)


def with_inputs(relation: Relation, inputs: tuple[Relation, ...]) -> Relation:
    """The same operator over other inputs; the same object if they are the same objects."""
    if all(old is new for old, new in zip(inputs_of(relation), inputs, strict=True)):
        return relation
    match relation:
        case Constant() | Get() | LocalGet():
            return relation
        case LetRec():
            return replace(relation, values=inputs[:-1], body=inputs[-1])
        case Join() | Union():
            return replace(relation, inputs=inputs)
        case OuterJoin() | Apply():
            return replace(relation, left=inputs[0], right=inputs[1])
        case (
            Project() | Map() | Filter() | FlatMap() | Reduce() | Distinct() | TopK() | Window()
            | Negate() | Threshold()
        ):  # fmt: skip
            return replace(relation, input=inputs[0])
        case _:
            assert_never(relation)


def rewrite_up(relation: Relation, change: Rewrite) -> Relation:
    """Apply `change` to every operator, inputs first, once per object."""
    done: dict[int, tuple[Relation, Relation]] = {}

    def visit(node: Relation) -> Relation:
        known = done.get(id(node))
        if known is None:
            inputs = tuple(visit(source) for source in inputs_of(node))
            known = node, change(with_inputs(node, inputs))
            # The old object is kept, so that its id is not given to another.
            done[id(node)] = known
        return known[1]

    return visit(relation)


def in_order_of_use(relation: Relation) -> list[Relation]:
    """Every object once, each after all of its inputs; the relation itself comes last."""
    seen: dict[int, Relation] = {}
    ordered: list[Relation] = []

    def visit(node: Relation) -> None:
        if id(node) in seen:
            return
        seen[id(node)] = node
        for source in inputs_of(node):
            visit(source)
        ordered.append(node)

    visit(relation)
    return ordered


def scalars_of(relation: Relation) -> tuple[Scalar, ...]:
    """The operator's own scalars."""
    match relation:
        case Map(scalars=scalars):
            return scalars
        case Filter(predicates=predicates):
            return predicates
        case OuterJoin(on=on):
            return on
        case FlatMap(arguments=arguments):
            return arguments
        case Reduce(keys=keys, aggregates=aggregates):
            given = tuple(scalar for call in aggregates for scalar in argument_scalars(call))
            return keys + given
        case Window(calls=calls):
            return tuple(scalar for call in calls for scalar in call.arguments)
        case (
            Constant() | Get() | LocalGet() | LetRec() | Project() | Join() | Apply() | Distinct()
            | TopK() | Negate() | Threshold() | Union()
        ):  # fmt: skip
            return ()
        case _:
            assert_never(relation)


def argument_scalars(call: AggregateCall) -> tuple[Scalar, ...]:
    """What an aggregate computes from each row: its argument, then what that is ordered by."""
    keys = tuple(order.key for order in call.order)
    return keys if call.argument is None else (call.argument, *keys)


def rewrite_arguments(call: AggregateCall, change: Callable[[Scalar], Scalar]) -> AggregateCall:
    """The same aggregate with `change` applied to each of these as a whole."""
    if call.argument is None:
        return call
    order = tuple(replace(order, key=change(order.key)) for order in call.order)
    return replace(call, argument=change(call.argument), order=order)


def rewrite_window_call(call: WindowCall, change: Callable[[Scalar], Scalar]) -> WindowCall:
    """The same call with `change` applied to each argument; a column must stay a column."""
    return replace(call, arguments=tuple(map(change, call.arguments)))


def rewrite_scalars(relation: Relation, change: Callable[[Scalar], Scalar]) -> Relation:
    """The same operator with `change` applied to each of its own scalars as a whole."""
    match relation:
        case Map(scalars=scalars):
            return replace(relation, scalars=tuple(map(change, scalars)))
        case Filter(predicates=predicates):
            return replace(relation, predicates=tuple(map(change, predicates)))
        case FlatMap(arguments=arguments):
            return replace(relation, arguments=tuple(map(change, arguments)))
        case OuterJoin(on=on):
            return replace(relation, on=tuple(map(change, on)))
        case Reduce(keys=keys, aggregates=aggregates):
            calls = tuple(rewrite_arguments(call, change) for call in aggregates)
            return replace(relation, keys=tuple(map(change, keys)), aggregates=calls)
        case Window(calls=window_calls):
            changed = tuple(rewrite_window_call(call, change) for call in window_calls)
            return replace(relation, calls=changed)
        case (
            Constant() | Get() | LocalGet() | LetRec() | Project() | Join() | Apply() | Distinct()
            | TopK() | Negate() | Threshold() | Union()
        ):  # fmt: skip
            return relation
        case _:
            assert_never(relation)
