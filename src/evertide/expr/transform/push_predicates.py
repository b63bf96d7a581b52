"""Predicates go down to where their columns come from; equalities become join equivalences.

Only predicates that cannot fail move, since below a join they see rows that it would have dropped.
The one exception are equalities between two inputs of a join that nothing else connects: without
them the join is a product, which nobody can wait for. Their sides are computed for every row of the
input they belong to, after the predicates that moved there, so `kind = 'int' AND value::int = id`
is guarded by its first half.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from evertide.expr.join_order import offsets_of
from evertide.expr.relation import (
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
    Types,
    Union,
    Window,
)
from evertide.expr.relation_walk import inputs_of, with_inputs
from evertide.expr.row_key import is_ambiguous
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.expr.scalar_codec import scalar_key
from evertide.expr.scalar_walk import (
    columns_of,
    inline_columns,
    is_fallible,
    move_columns,
    shift_columns,
    size_of,
)
from evertide.expr.transform.equalities import conjuncts, equality, merged, with_key_columns

Predicates: TypeAlias = Sequence[Scalar]

# A scalar up to this size may be computed once more to let a predicate over it move.
_SMALL = 16


def push_predicates(relation: Relation) -> Relation:
    """The relation with its predicates as far down as they may go."""
    return _Push().below(relation, ())


class _Push:
    """One run. Results are kept by object and predicates, so that shared subtrees stay shared."""

    def __init__(self) -> None:
        self._done: dict[tuple[int, tuple[bytes, ...]], tuple[Relation, Relation]] = {}

    def below(self, node: Relation, predicates: Predicates) -> Relation:
        """The same as Filter(node, predicates)."""
        key = id(node), tuple(map(scalar_key, predicates))
        known = self._done.get(key)
        if known is None:
            # The old object is kept, so that its id is not given to another.
            known = node, self._push(node, predicates)
            self._done[key] = known
        return known[1]

    def _push(self, node: Relation, predicates: Predicates) -> Relation:
        match node:
            case Filter(input=source, predicates=own):
                return self._filter(source, conjuncts(own), predicates)
            case Join():
                return self._join(node, predicates)
            case OuterJoin() | Apply():
                raise AssertionError("outer joins and Applies are lowered first")
            case _:
                moving = [part for part in predicates if not is_fallible(part)]
                staying = [part for part in predicates if is_fallible(part)]
                return filtered(self._single(node, moving), staying)

    def _filter(self, source: Relation, own: Predicates, predicates: Predicates) -> Relation:
        """Own predicates guard the others, which must not fail for rows that these drop."""
        moving = [part for part in predicates if not is_fallible(part)]
        staying = [part for part in predicates if is_fallible(part)]
        return filtered(self.below(source, [*own, *moving]), staying)

    def _single(self, node: Relation, predicates: Predicates) -> Relation:
        """`predicates` cannot fail."""
        match node:
            case Project(input=source, columns=columns):
                positions = dict(enumerate(columns))
                moved = [move_columns(part, positions) for part in predicates]
                return replace(node, input=self.below(source, moved))
            case Map(input=source, scalars=scalars):
                moving, staying = _through_scalars(predicates, source.types, scalars)
                return filtered(replace(node, input=self.below(source, moving)), staying)
            case Reduce(input=source, keys=keys):
                moving, staying = _through_keys(predicates, keys)
                return filtered(replace(node, input=self.below(source, moving)), staying)
            case Union() | Negate():
                inputs = tuple(self.below(source, predicates) for source in inputs_of(node))
                return with_inputs(node, inputs)
            case Distinct(input=source) | Threshold(input=source):
                moving, staying = _split(predicates, _plain_columns(node.types))
                return filtered(replace(node, input=self.below(source, moving)), staying)
            case TopK(input=source, group=group, limit=limit):
                whole_groups = _plain_columns(node.types) & set(group) if limit != 0 else set()
                moving, staying = _split(predicates, frozenset(whole_groups))
                return filtered(replace(node, input=self.below(source, moving)), staying)
            case Window(input=source, group=group):
                partition = _plain_columns(source.types) & frozenset(group)
                moving, staying = _split(predicates, partition)
                return filtered(replace(node, input=self.below(source, moving)), staying)
            case FlatMap(input=source):
                moving, staying = _split(predicates, frozenset(range(len(source.types))))
                return filtered(replace(node, input=self.below(source, moving)), staying)
            case LetRec(values=values, body=body):
                whole = tuple(self.below(value, ()) for value in values)
                return filtered(replace(node, values=whole, body=self.below(body, ())), predicates)
            case Constant() | Get() | LocalGet():
                return filtered(node, predicates)
            case Filter() | Join() | OuterJoin() | Apply():
                raise AssertionError("handled by the caller")
            case _:
                assert_never(node)

    def _join(self, join: Join, predicates: Predicates) -> Relation:
        inputs = [len(source.types) for source in join.inputs]
        parts = _take_apart(inputs, predicates)
        sources = [
            self.below(source, alone)
            for source, alone in zip(join.inputs, parts.alone, strict=True)
        ]
        return filtered(_with_equalities(join, sources, parts.equalities), parts.rest)


def filtered(node: Relation, predicates: Predicates) -> Relation:
    """Filter, where there is something to filter."""
    return Filter(node, tuple(predicates)) if predicates else node


def _split(predicates: Predicates, columns: frozenset[int]) -> tuple[list[Scalar], list[Scalar]]:
    """Those that look at no other than these columns, and the rest."""
    moving = [part for part in predicates if columns_of(part) <= columns]
    staying = [part for part in predicates if not columns_of(part) <= columns]
    return moving, staying


def _plain_columns(types: Types) -> frozenset[int]:
    """Columns in which equal values look the same, so that a predicate treats a group alike."""
    return frozenset(i for i, sql_type in enumerate(types) if not is_ambiguous(sql_type))


def _through_scalars(
    predicates: Predicates, types: Types, scalars: tuple[Scalar, ...]
) -> tuple[list[Scalar], list[Scalar]]:
    """What can be said of the input's columns alone, if need be with small scalars put in."""
    values: dict[int, Scalar] = {i: ColumnRef(i, sql_type) for i, sql_type in enumerate(types)}
    small = [size_of(scalar) <= _SMALL and not is_fallible(scalar) for scalar in scalars]
    values |= {len(types) + i: scalars[i] for i, fits in enumerate(small) if fits}
    moving, staying = _split(predicates, frozenset(values))
    return [inline_columns(part, values) for part in moving], staying


def _through_keys(
    predicates: Predicates, keys: tuple[Scalar, ...]
) -> tuple[list[Scalar], list[Scalar]]:
    """What holds for a group's key holds for each of its rows, and the other way round."""
    values = {
        i: key
        for i, key in enumerate(keys)
        if not is_ambiguous(key.type) and not is_fallible(key) and size_of(key) <= _SMALL
    }
    moving, staying = _split(predicates, frozenset(values))
    return [inline_columns(part, values) for part in moving], staying


@dataclass(frozen=True, slots=True)
class _JoinPredicates:
    """Predicates over a join: those of one input each, over its own columns; equalities; the rest.

    An equality is two pairs (input, scalar over that input's columns).
    """

    alone: list[list[Scalar]]
    equalities: list[tuple[tuple[int, Scalar], tuple[int, Scalar]]] = field(default_factory=list)
    rest: list[Scalar] = field(default_factory=list)


def _take_apart(arities: Sequence[int], predicates: Predicates) -> _JoinPredicates:
    offsets = offsets_of(arities)
    owner = [number for number, arity in enumerate(arities) for _ in range(arity)]
    parts = _JoinPredicates([[] for _ in arities])

    def home(scalar: Scalar) -> tuple[int, Scalar] | None:
        """The only input that the scalar looks at, and the scalar over its columns."""
        owners = {owner[column] for column in columns_of(scalar)}
        if len(owners) != 1:
            return None
        (number,) = owners
        return number, shift_columns(scalar, -offsets[number])

    connected: set[frozenset[int]] = set()
    for predicate in sorted(predicates, key=is_fallible):
        sides = _equal_sides(predicate, home)
        at_home = home(predicate)
        pair = frozenset() if sides is None else frozenset((sides[0][0], sides[1][0]))
        if sides is not None and not (pair in connected and is_fallible(predicate)):
            connected.add(pair)
            parts.equalities.append(sides)
        elif at_home is None or is_fallible(predicate):
            parts.rest.append(predicate)
        else:
            parts.alone[at_home[0]].append(at_home[1])
    return parts


def _equal_sides(
    predicate: Scalar, home: Callable[[Scalar], tuple[int, Scalar] | None]
) -> tuple[tuple[int, Scalar], tuple[int, Scalar]] | None:
    sides = equality(predicate)
    if sides is None:
        return None
    left, right = home(sides[0]), home(sides[1])
    if left is None or right is None or left[0] == right[0]:
        return None
    return left, right


def _with_equalities(
    join: Join,
    sources: list[Relation],
    equalities: list[tuple[tuple[int, Scalar], tuple[int, Scalar]]],
) -> Relation:
    """Give every side a column of its input; a last Project takes added columns away again."""
    old_arities = [len(source.types) for source in join.inputs]
    keys: list[list[Scalar]] = [[] for _ in sources]
    pairs: list[list[tuple[int, int]]] = []
    for sides in equalities:
        pairs.append([(number, len(keys[number])) for number, _ in sides])
        for number, scalar in sides:
            keys[number].append(scalar)
    keyed = [with_key_columns(source, own) for source, own in zip(sources, keys, strict=True)]
    offsets = offsets_of([len(source.types) for source, _ in keyed])
    positions = [
        offsets[number] + column
        for number, arity in enumerate(old_arities)
        for column in range(arity)
    ]
    known = [[positions[column] for column in members] for members in join.equivalences]
    new = [[offsets[number] + keyed[number][1][i] for number, i in pair] for pair in pairs]
    joined = Join(tuple(source for source, _ in keyed), merged([*known, *new]))
    if len(joined.types) == len(positions):
        return joined
    return Project(joined, tuple(positions))
