"""`row_number() <= k` becomes a top-k, which keeps less to look at and has columns of its own.

Numbers of rows do not depend on the rows after them, so a partition may be cut before it is
numbered. Where nothing else asks for the numbers they go, and the top-k alone is left.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from evertide.expr.functions.window import WindowFunction
from evertide.expr.relation import Filter, Map, Relation, TopK, Window
from evertide.expr.relation_walk import rewrite_up
from evertide.expr.scalar import Call, ColumnRef, Literal, Scalar
from evertide.expr.transform.equalities import conjuncts
from evertide.expr.transform.push_predicates import filtered

# Functions whose value does not depend on later rows.
_NUMBERS: Final = frozenset(
    {WindowFunction.ROW_NUMBER, WindowFunction.RANK, WindowFunction.DENSE_RANK}
)
# A comparison seen from its other side.
_TURNED: Final = {"<": ">", "<=": ">=", "=": "=", ">": "<", ">=": "<="}


def limit_windows(relation: Relation) -> Relation:
    """The relation with numbered partitions cut to the rows whose numbers are wanted."""
    return rewrite_up(relation, _limited)


def _limited(node: Relation) -> Relation:
    match node:
        case Filter(input=Window() as window, predicates=predicates):
            if all(call.function in _NUMBERS for call in window.calls):
                return _cut(node, window, conjuncts(predicates))
    return node


def _cut(node: Filter, window: Window, predicates: Sequence[Scalar]) -> Relation:
    bounds = [(part, bound) for part in predicates if (bound := _bound(part, window)) is not None]
    if not bounds or _is_cut(window):
        return node
    last = max(min(bound for _, bound in bounds), 0)
    exact = next((part for part, bound in bounds if _is_equality(part) and bound == last), None)
    said = [part for part, _ in bounds if not _is_equality(part)]
    only_rows = all(call.function is WindowFunction.ROW_NUMBER for call in window.calls)
    if exact is not None and only_rows and last > 0:
        one = TopK(window.input, window.group, window.order, limit=1, offset=last - 1)
        rest = [part for part in predicates if part not in said and part is not exact]
        return filtered(Map(one, tuple(Literal(last, call.type) for call in window.calls)), rest)
    few = TopK(window.input, window.group, window.order, limit=last)
    rest = [part for part in predicates if part not in said]
    return filtered(replace(window, input=few), rest)


def _is_cut(window: Window) -> bool:
    source = window.input
    if not isinstance(source, TopK):
        return False
    return (source.group, source.order) == (window.group, window.order)


def _is_equality(predicate: Scalar) -> bool:
    return isinstance(predicate, Call) and predicate.function.name == "="


def _bound(predicate: Scalar, window: Window) -> int | None:
    """The greatest number of a row for which this holds; None: it says nothing of the kind."""
    match predicate:
        case Call(arguments=(ColumnRef(index=index), Literal(value=int(value)))):
            name = predicate.function.name
        case Call(arguments=(Literal(value=int(value)), ColumnRef(index=index))):
            name = _TURNED.get(predicate.function.name, "")
        case _:
            return None
    number = index - len(window.input.types)
    if number < 0 or window.calls[number].function is not WindowFunction.ROW_NUMBER:
        return None
    match name:
        case "<=" | "=":
            return value
        case "<":
            return value - 1
        case _:
            return None
