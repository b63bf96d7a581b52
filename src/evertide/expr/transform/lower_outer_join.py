"""OuterJoin becomes Join, Distinct, Threshold, Negate and Union: executors know no outer joins.

LEFT JOIN is J + pad(S - matched), J the inner join and S the left input. What is matched is known
in one of two ways:

- `on` is equalities and infallible predicates over one side each. A row of S is matched if it
  passes S's predicates and its key is among the keys of B, B the right input after its own
  predicates: matched = S' join distinct keys of B. A row finds its key there once at most, so
  multiplicities are kept, and NULL keys find nothing, as they should.
- otherwise: a matched row appears in J at least as often as in S, so subtracting J's left columns
  from S leaves nothing of it, and S's multiplicity of any other row: Threshold(S - J's columns).
  (Rows that are equal in SQL but look different count as one row here; only an `on` that can tell
  0.0 from -0.0 notices.)

Errors: an operator passes on its inputs' errors, so each use of an input counts them once, and
Negate turns the sign. Were nothing done, B's errors would appear once in J and once, negated, in
what is matched, and vanish. Therefore a branch `errors only` (TopK with limit 0: errors and no
rows) is added for S and for what Negate subtracts. Counts of one error then are:

               J   S   -matched   errors of S   errors of B (or J)     sum
    of S       1   1   -1         1             0   (or 1)             2 (or 3)
    of B       1   0   -1         0             1                      1
    of `on`    1   0   -1         0             1                      1   (second form only)

so an error is there, positive, if and only if an input or `on` has it; and still if a later rewrite
finds that J can have no rows and drops it. RIGHT is LEFT with its sides swapped; FULL pads both.
"""

from dataclasses import dataclass

from evertide.expr.relation import (
    Distinct,
    Filter,
    Join,
    Map,
    Negate,
    OuterJoin,
    Project,
    Relation,
    Threshold,
    TopK,
    Types,
    Union,
)
from evertide.expr.relation_walk import rewrite_up
from evertide.expr.scalar import Literal, Scalar
from evertide.expr.scalar_walk import columns_of, is_fallible, shift_columns
from evertide.expr.transform.equalities import conjuncts, equality, merged, with_key_columns


def lower_outer_join(relation: Relation) -> Relation:
    """The relation without OuterJoin in it."""
    return rewrite_up(
        relation, lambda node: _lowered(node) if isinstance(node, OuterJoin) else node
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """One input of the join: all its rows with key columns added, and those `on` does not bar."""

    all_rows: Relation
    candidates: Relation
    keys: tuple[int, ...]
    types: Types

    @property
    def width(self) -> int:
        return len(self.all_rows.types)


@dataclass(frozen=True, slots=True)
class _Condition:
    """`on` taken apart. Predicates over one side see that side's columns only."""

    left_keys: tuple[Scalar, ...]
    right_keys: tuple[Scalar, ...]
    left_only: tuple[Scalar, ...]
    right_only: tuple[Scalar, ...]
    rest: tuple[Scalar, ...]


def _lowered(outer: OuterJoin) -> Relation:
    condition = _taken_apart(outer)
    left = _side(outer.left, condition.left_keys, condition.left_only)
    right = _side(outer.right, condition.right_keys, condition.right_only)
    inner = _inner(left, right, condition.rest)
    branches: list[Relation] = [inner]
    if outer.kind in ("left", "full"):
        unmatched = _unmatched(left, right, inner, 0, has_rest=bool(condition.rest))
        branches += [_padded(part, (), right.types) for part in unmatched]
    if outer.kind in ("right", "full"):
        start = len(left.types)
        unmatched = _unmatched(right, left, inner, start, has_rest=bool(condition.rest))
        branches += [_padded(part, left.types, ()) for part in unmatched]
    return Union(tuple(branches))


def _taken_apart(outer: OuterJoin) -> _Condition:
    """Fallible predicates over one side stay in the rest: they fail for pairs, not for rows."""
    width = len(outer.left.types)
    keys: list[tuple[Scalar, Scalar]] = []
    left_only: list[Scalar] = []
    right_only: list[Scalar] = []
    rest: list[Scalar] = []
    for predicate in conjuncts(outer.on):
        columns = columns_of(predicate)
        pair = _key_pair(predicate, width)
        if pair is not None:
            keys.append(pair)
        elif is_fallible(predicate):
            rest.append(predicate)
        elif all(column >= width for column in columns):
            right_only.append(shift_columns(predicate, -width))
        elif all(column < width for column in columns):
            left_only.append(predicate)
        else:
            rest.append(predicate)
    lefts, rights = tuple(left for left, _ in keys), tuple(right for _, right in keys)
    return _Condition(lefts, rights, tuple(left_only), tuple(right_only), tuple(rest))


def _key_pair(predicate: Scalar, width: int) -> tuple[Scalar, Scalar] | None:
    """An equality between the sides as (over left's columns, over right's columns)."""
    sides = equality(predicate)
    if sides is None:
        return None
    for left, right in (sides, sides[::-1]):
        of_left, of_right = columns_of(left), columns_of(right)
        if of_left and of_right and max(of_left) < width <= min(of_right):
            return left, shift_columns(right, -width)
    return None


def _side(relation: Relation, keys: tuple[Scalar, ...], only: tuple[Scalar, ...]) -> _Side:
    keyed, columns = with_key_columns(relation, keys)
    candidates = Filter(keyed, only) if only else keyed
    return _Side(keyed, candidates, columns, relation.types)


def _inner(left: _Side, right: _Side, rest: tuple[Scalar, ...]) -> Relation:
    """J: the left input's columns, then the right one's."""
    pairs = [(a, left.width + b) for a, b in zip(left.keys, right.keys, strict=True)]
    joined: Relation = Join((left.candidates, right.candidates), merged(pairs))
    own_left = range(len(left.types))
    own_right = range(left.width, left.width + len(right.types))
    inner: Relation = Project(joined, (*own_left, *own_right))
    return Filter(inner, rest) if rest else inner


def _unmatched(
    side: _Side, other: _Side, inner: Relation, start: int, *, has_rest: bool
) -> list[Relation]:
    """Branches whose union is the rows of `side` without a partner, and the errors due."""
    own = tuple(range(len(side.types)))
    everything = Project(side.all_rows, own)
    if has_rest:
        matched = Project(inner, tuple(start + column for column in own))
        left_over: Relation = Threshold(Union((everything, Negate(matched))))
        return [left_over, _errors_only(everything), _errors_only(matched)]
    distinct = Distinct(Project(other.candidates, other.keys))
    pairs = [(key, side.width + number) for number, key in enumerate(side.keys)]
    matched = Project(Join((side.candidates, distinct), merged(pairs)), own)
    other_errors = _null_row(_errors_only(Project(other.candidates, ())), side.types)
    return [everything, Negate(matched), _errors_only(everything), other_errors]


def _errors_only(relation: Relation) -> Relation:
    return TopK(relation, (), (), limit=0)


def _null_row(relation: Relation, types: Types) -> Relation:
    """Give a relation without columns these, all NULL."""
    return Map(relation, tuple(Literal(None, sql_type) for sql_type in types))


def _padded(relation: Relation, before: Types, after: Types) -> Relation:
    """NULL columns before and after the relation's own."""
    width = len(relation.types)
    nulls = tuple(Literal(None, sql_type) for sql_type in before + after)
    added = tuple(range(width, width + len(nulls)))
    columns = (*added[: len(before)], *range(width), *added[len(before) :])
    return Project(Map(relation, nulls), columns)
