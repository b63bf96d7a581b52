"""What is known when the query is planned is worked out then: constants, empty branches."""

from dataclasses import replace
from itertools import chain
from math import prod
from typing import Final

from evertide.expr.flat_rows import compile_flat_rows
from evertide.expr.group_rows import consolidated
from evertide.expr.heavy import has_heavy_call, holds_heavy
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.relation import (
    Constant,
    Filter,
    FlatMap,
    Get,
    Join,
    LetRec,
    LocalGet,
    Relation,
    Union,
)
from evertide.expr.relation_walk import inputs_of, rewrite_scalars, rewrite_up, scalars_of
from evertide.expr.scalar import Literal
from evertide.expr.scalar_walk import is_bound
from evertide.expr.transform.equalities import conjuncts
from evertide.expr.transform.fold_scalar import TRUE, fold_heavy_scalar, fold_scalar
from evertide.vocab.datum import Row
from evertide.vocab.errors import ProgramLimitExceeded, SqlError
from evertide.vocab.ids import GlobalId

# Products of constants are left for run time beyond this many rows.
_MOST_ROWS = 1_000
# And so are table functions, once those of the whole relation have given as many.
MOST_FLAT_ROWS: Final = 10_000


def fold_constants(relation: Relation, *, heavy: bool = False) -> Relation:
    """The relation with its constants worked out; `heavy`: also those that take long."""
    flat_maps = _FlatMaps()
    return rewrite_up(relation, lambda node: _folded(node, flat_maps, heavy=heavy))


class _FlatMaps:
    """Table functions over constants, while few rows come of them."""

    def __init__(self) -> None:
        self._left = MOST_FLAT_ROWS

    def folded(self, node: FlatMap) -> Relation:
        if not isinstance(node.input, Constant) or not all(map(is_bound, node.arguments)):
            return node
        found: list[tuple[Row, int]] = []
        for row, count in node.input.rows:
            if self._left <= 0:
                return node
            rows_of = compile_flat_rows(
                node.function, node.arguments, ordinality=node.ordinality, most=self._left
            )
            try:
                given = rows_of(row)
            except ProgramLimitExceeded:
                self._left = 0
                return node
            except SqlError:
                return node  # it fails when it runs
            self._left -= len(given)
            found += [(row + one, count) for one in given]
        return Constant(tuple(consolidated(found, node.types)), node.types)


def _folded(node: Relation, flat_maps: _FlatMaps, *, heavy: bool) -> Relation:
    node = rewrite_scalars(node, fold_heavy_scalar if heavy else fold_scalar)
    match node:
        case FlatMap():
            return flat_maps.folded(node)
        case Filter():
            node = _fold_filter(node)
        case Union():
            node = _fold_union(node)
        case Join(inputs=inputs) if any(map(_is_empty, inputs)):
            return Constant((), node.types)
        case _:
            pass
    return _evaluated(node, heavy=heavy)


def _is_empty(node: Relation) -> bool:
    return isinstance(node, Constant) and not node.rows


def _fold_filter(node: Filter) -> Relation:
    """A predicate that is never true leaves no rows. (Errors below go too: nobody needs them.)"""
    predicates = [part for part in conjuncts(node.predicates) if part != TRUE]
    if any(isinstance(part, Literal) for part in predicates):
        return Constant((), node.types)
    return replace(node, predicates=tuple(predicates)) if predicates else node.input


def _fold_union(node: Union) -> Relation:
    """Constants are added up into one; a constant without rows is nothing."""
    constants = [source for source in node.inputs if isinstance(source, Constant)]
    others: list[Relation] = [source for source in node.inputs if not isinstance(source, Constant)]
    rows = consolidated(chain.from_iterable(source.rows for source in constants), node.types)
    if rows or not others:
        others.append(Constant(tuple(rows), node.types))
    return others[0] if len(others) == 1 else Union(tuple(others))


def _evaluated(node: Relation, *, heavy: bool) -> Relation:
    """An operator over constants is a constant, unless it fails: then that waits for run time."""
    inputs = [source for source in inputs_of(node) if isinstance(source, Constant)]
    leaf = isinstance(node, Constant | Get | LocalGet)
    # How often a recursion goes round, and whether it ends, shows when it runs.
    if leaf or isinstance(node, LetRec) or len(inputs) != len(inputs_of(node)):
        return node
    if not all(map(is_bound, scalars_of(node))):
        return node
    if isinstance(node, Join) and prod(len(source.rows) for source in inputs) > _MOST_ROWS:
        return node
    if not heavy and (has_heavy_call(scalars_of(node)) or any(map(holds_heavy, inputs))):
        return node
    result = evaluate(node, _no_collection)
    if result.errors:
        return node
    return Constant(tuple(consolidated(result.rows, node.types)), node.types)


def _no_collection(global_id: GlobalId) -> Collection:
    raise AssertionError(f"{global_id} is not a constant")
