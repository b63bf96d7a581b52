"""Scalars over columns: what compile_scalar does row by row, for all rows at once.

A kernel gives exactly the row-wise value, or raises ByRows: because a row has an error, or because
it holds a value that the kernel does not treat. Whoever called then computes the whole batch by
rows, so that errors are always found, and chosen, by the same code.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from evertide.expr.columnar.column import Column, Mask, Numbers, Others, all_null, from_datums
from evertide.expr.columnar.numeric_columns import common_scale
from evertide.expr.columnar.scalar_bodies import by_body
from evertide.expr.columnar.scalar_choice import case, coalesce
from evertide.expr.columnar.scalar_junction import junction
from evertide.expr.columnar.scalar_kernel import ByRows, Part, expanded, null_mask
from evertide.expr.columnar.scalar_membership import Membership, in_lists
from evertide.expr.columnar.scalar_node import Evaluate, Node
from evertide.expr.columnar.scalar_table import KERNELS
from evertide.expr.relation import Types
from evertide.expr.scalar import (
    And,
    Call,
    Case,
    Coalesce,
    ColumnRef,
    IsNull,
    Literal,
    Or,
    OuterColumn,
    Parameter,
    Scalar,
    SessionCall,
)
from evertide.expr.scalar_walk import columns_of, is_fallible
from evertide.persist.coding.encoding import is_storable
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import Kind, SqlType

__all__ = ["ByRows", "ColumnFunction", "MaskFunction", "compile_column_predicates",
           "compile_columns"]  # fmt: skip

ColumnFunction: TypeAlias = Callable[[Sequence[Column], int], Column]
MaskFunction: TypeAlias = Callable[[Sequence[Column], int], Mask]


class _NoKernel(Exception):  # not an error: the tree is computed by rows
    """Some type in the tree has no columns."""


def compile_columns(scalar: Scalar, types: Types) -> ColumnFunction | None:
    """A function from columns of these types, and their length, to the scalar's column.

    It raises ByRows for a batch that must be computed by rows; None: every batch must.
    """
    if isinstance(scalar, ColumnRef):
        return partial(_column, scalar.index)
    try:
        node = _node(scalar, types)
    except _NoKernel:
        return None
    return partial(_computed, node.evaluate, scalar.type)


def compile_column_predicates(predicates: Sequence[Scalar], types: Types) -> MaskFunction | None:
    """A function from columns to where all predicates are true, by the rules of one And."""
    both = predicates[0] if len(predicates) == 1 else And(tuple(predicates))
    compute = compile_columns(both, types)
    return None if compute is None else partial(_mask, compute)


def _column(index: int, columns: Sequence[Column], _length: int) -> Column:
    return columns[index]


def _computed(
    evaluate: Evaluate, sql_type: SqlType, columns: Sequence[Column], length: int
) -> Column:
    if not length:
        return all_null(sql_type, 0)
    try:
        with np.errstate(all="ignore"):
            return expanded(evaluate(columns, length), length)
    except (pa.ArrowInvalid, pa.ArrowCapacityError):
        raise ByRows from None  # more bytes than one Arrow array can hold


def _mask(compute: ColumnFunction, columns: Sequence[Column], length: int) -> Mask:
    """Below NULLs the values are false."""
    found = compute(columns, length)
    assert isinstance(found, Numbers), "booleans are numbers"
    mask: Mask = found.values
    return mask


def _node(scalar: Scalar, types: Types) -> Node:
    if not is_storable(scalar.type):
        raise _NoKernel
    return Node(_evaluate(scalar, types), columns_of(scalar), is_fallible(scalar))


def _evaluate(scalar: Scalar, types: Types) -> Evaluate:
    match scalar:
        case ColumnRef(index=index):
            if not is_storable(types[index]):
                raise _NoKernel
            return partial(_column, index)
        case Literal(value=value, type=sql_type):
            one = _constant(value, sql_type)
            return lambda _columns, _length: one
        case Call():
            return _call(scalar, types)
        case And(arguments):
            return junction([_node(part, types) for part in arguments], decisive=False)
        case Or(arguments):
            return _or(arguments, types)
        case Case(branches, otherwise):
            pairs = [(_node(test, types), _node(value, types)) for test, value in branches]
            return case(pairs, _node(otherwise, types))
        case Coalesce(arguments=arguments):
            return coalesce([_node(part, types) for part in arguments])
        case IsNull(argument):
            return partial(_is_null, _node(argument, types).evaluate)
        case OuterColumn() | Parameter() | SessionCall():
            raise AssertionError(f"{scalar} must be substituted before anything runs")
        case _:
            assert_never(scalar)


def _or(arguments: Sequence[Scalar], types: Types) -> Evaluate:
    """An IN list is an Or of equalities; a long one is computed by a search."""
    lists, others = in_lists(arguments)
    nodes = [_node(part, types) for part in others]
    for operand, test in lists:
        inner = _node(operand, types)
        compute = partial(_tested, test, inner.evaluate)
        nodes.append(Node(compute, inner.columns, inner.fallible))
    return junction(nodes, decisive=True)


def _tested(
    test: Membership, evaluate: Evaluate, columns: Sequence[Column], length: int
) -> Numbers:
    return test(evaluate(columns, length))


def _constant(value: Datum, sql_type: SqlType) -> Part:
    """One value for all rows; a numeric is made ready for both arithmetic and comparison."""
    one = from_datums(sql_type, [value])
    if sql_type.kind is not Kind.NUMERIC:
        return one
    assert isinstance(one, Others), "numerics are no numbers to numpy"
    found = common_scale(one.array)
    return one if found is None else replace(found, encoding=one)


def _is_null(evaluate: Evaluate, columns: Sequence[Column], length: int) -> Numbers:
    part = evaluate(columns, length)
    nulls = null_mask(part)
    return Numbers(np.zeros(len(part), np.bool_) if nulls is None else nulls)


def _call(call: Call, types: Types) -> Evaluate:
    build = KERNELS.get(call.function)
    kernel = None if build is None else build(call.arguments)
    if kernel is None:
        kernel = by_body(call.function, call.arguments)
    apply = kernel
    parts = [_node(argument, types).evaluate for argument in call.arguments]
    match parts:
        case [only]:
            return lambda columns, length: apply((only(columns, length),))
        case [first, second]:
            return lambda columns, length: apply((first(columns, length), second(columns, length)))
    return lambda columns, length: apply([part(columns, length) for part in parts])
