"""Predicates that compare the time itself, mz_now(), with a value of the row.

Such a predicate is true for a row from one timestamp on, or until one, so a view can hold it: the
row appears and disappears as time passes. Nothing else of mz_now() can be maintained.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, cast

from evertide.expr.compile import compile_scalar
from evertide.expr.recursion import split_recursion
from evertide.expr.relation import Filter, LetRec, OuterJoin, Relation
from evertide.expr.relation_walk import in_order_of_use, scalars_of
from evertide.expr.scalar import Call, Literal, Scalar, SessionCall
from evertide.expr.scalar_walk import children
from evertide.expr.show import show_scalar
from evertide.expr.transform.equalities import conjuncts
from evertide.expr.transform.substitute import Bindings, substitute_scalar
from evertide.vocab.datum import Row
from evertide.vocab.errors import FeatureNotSupported, SqlError, encode_error
from evertide.vocab.sql_type import MZ_TIMESTAMP
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp

MZ_NOW: Final = SessionCall("mz_now", MZ_TIMESTAMP)
# What a comparison says with its sides exchanged, and what it says when it is not true.
_EXCHANGED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_OPPOSITE: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class Stay(NamedTuple):
    """What a row gives at start <= ts < end: itself, or this error. Before and after: nothing."""

    start: int
    end: int
    error: str | None


StayOf: TypeAlias = Callable[[Row], Stay | None]


@dataclass(frozen=True, slots=True)
class Bound:
    """`mz_now() comparison value`; value looks at the row only."""

    comparison: str
    value: Scalar

    def interval(self, value: int) -> tuple[int, int]:
        """Where it is true: from the first timestamp until the second."""
        match self.comparison:
            case "<":
                return MIN_TS, value
            case "<=":
                return MIN_TS, value + 1
            case ">":
                return value + 1, EMPTY_FRONTIER
            case ">=":
                return value, EMPTY_FRONTIER
            case _:
                return value, value + 1


def is_temporal(scalar: Scalar) -> bool:
    """Whether the time itself is looked at."""
    return scalar == MZ_NOW or any(is_temporal(part) for part in children(scalar))


def has_temporal(relation: Relation) -> bool:
    """Whether the relation's contents change as time passes."""
    return any(is_temporal(s) for node in in_order_of_use(relation) for s in scalars_of(node))


def check_temporal(relation: Relation) -> None:
    """Raise where something else than a predicate looks at the time, or one that is no bound."""
    for node in in_order_of_use(relation):
        if isinstance(node, LetRec):
            check_core(split_recursion(node).core)
        looking = [scalar for scalar in scalars_of(node) if is_temporal(scalar)]
        if looking and not isinstance(node, Filter | OuterJoin):
            raise FeatureNotSupported(
                "cannot materialize call to mz_now",
                hint="Compare it with an expression in WHERE, HAVING or ON.",
            )
        for predicate in conjuncts(looking):
            if is_temporal(predicate):
                bound_of(predicate)


def check_core(core: LetRec) -> None:
    """Raise if what goes round looks at the time: it would have to go round at every moment."""
    if has_temporal(core):
        raise FeatureNotSupported(
            "mz_now() within a recursion is not supported",
            hint="Filter by time before the recursion, or after it.",
        )


def bound_of(predicate: Scalar) -> Bound:
    """A predicate that looks at the time, as a bound; raises if it is none."""
    bound = _bound(predicate)
    if bound is None:
        raise FeatureNotSupported(
            "Unsupported temporal predicate. Note: `mz_now()` must be directly compared to a"
            " non-temporal expression of mz_timestamp-castable type. Expression found:"
            f" {show_scalar(predicate)}"
        )
    return bound


def _bound(predicate: Scalar) -> Bound | None:
    match predicate:
        case Call(function=function, arguments=(left, right)) if function.name in _EXCHANGED:
            if left == MZ_NOW and not is_temporal(right):
                return Bound(function.name, right)
            if right == MZ_NOW and not is_temporal(left):
                return Bound(_EXCHANGED[function.name], left)
        case Call(function=function, arguments=(inner,)) if function.name == "not":
            bound = _bound(inner)
            if bound is not None and bound.comparison in _OPPOSITE:
                return Bound(_OPPOSITE[bound.comparison], bound.value)
        case _:
            pass
    return None


def at_time(predicates: Iterable[Scalar], ts: Timestamp) -> tuple[Scalar, ...]:
    """The predicates at one timestamp."""
    now: Bindings = {MZ_NOW: Literal(ts, MZ_TIMESTAMP)}
    return tuple(substitute_scalar(predicate, now) for predicate in predicates)


def compile_stay(predicates: Sequence[Scalar]) -> StayOf:
    """When a row is in, by the rules of one And: None if it never is.

    While a predicate is false the others do not count. Else one that fails makes an error of the
    row, and one that is NULL keeps it out; neither depends on the time.
    """
    parts = conjuncts(predicates)
    bounds = [bound_of(part) for part in parts if is_temporal(part)]
    timed = [(bound, compile_scalar(bound.value)) for bound in bounds]
    plain = [compile_scalar(part) for part in parts if not is_temporal(part)]

    def stay(row: Row) -> Stay | None:
        start, end = MIN_TS, EMPTY_FRONTIER
        errors: list[str] = []
        known = True
        for holds in plain:
            try:
                verdict = holds(row)
            except SqlError as error:
                errors.append(encode_error(error))
                continue
            if verdict is False:
                return None
            known = known and verdict is not None
        for bound, value_of in timed:
            try:
                value = value_of(row)
            except SqlError as error:
                errors.append(encode_error(error))
                continue
            if value is None:
                known = False
                continue
            first, last = bound.interval(cast(int, value))
            start, end = Timestamp(max(start, first)), Timestamp(min(end, last))
        if start >= end or not (known or errors):
            return None
        return Stay(start, end, min(errors) if errors else None)

    return stay
