"""Runs a tree over rows, in memory, all at once: the oracle of every other executor.

Also what answers constants, VALUES, queries on system relations and small one-shot SELECTs, so it
works with hashes and compiled closures; it keeps nothing between calls. A subtree that appears in
several places as one object is evaluated once.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, TypeAlias, assert_never

from evertide.expr.budget import Budget
from evertide.expr.compile import Evaluate, compile_predicates, compile_scalar
from evertide.expr.flat_rows import compile_flat_rows
from evertide.expr.group_rows import (
    Counted,
    consolidated,
    distinct_rows,
    positive_rows,
    reduce_rows,
)
from evertide.expr.join_rows import join_rows
from evertide.expr.outer_columns import bind_row, free_columns
from evertide.expr.recursion import Recursion, iterate, once_each, readers, split_recursion
from evertide.expr.relation import (
    Apply,
    Constant,
    Distinct,
    Filter,
    Finishing,
    FlatMap,
    Get,
    Join,
    LetRec,
    LocalGet,
    Map,
    Negate,
    OrderKey,
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
from evertide.expr.row_key import (
    group_key,
    identity_function,
    in_order,
    picker,
)
from evertide.expr.window import Windowing
from evertide.vocab.datum import Row
from evertide.vocab.errors import InternalError, SqlError, decode_error, encode_error
from evertide.vocab.ids import GlobalId

# Of so many rows it is worth a look whether there is anything to add up.
_MANY_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Collection:
    """Rows and encoded errors with multiplicities; equal ones may appear more than once."""

    rows: list[Counted]
    errors: list[tuple[str, int]] = field(default_factory=list)


GetCollection: TypeAlias = Callable[[GlobalId], Collection]
# What a recursion comes to over these rows of its inputs.
Solve: TypeAlias = Callable[[Recursion, Sequence[list[Counted]], Budget], Collection]


def evaluate(
    relation: Relation,
    get: GetCollection,
    budget: Budget | None = None,
    solve: Solve | None = None,
) -> Collection:
    """The contents of a lowered relation; `get` gives those of the collections it names.

    `solve`: a quicker way to do recursions than `solve_anew`.
    """
    return _Evaluation(get, budget or Budget(), solve or solve_anew).of(relation)


def solve_anew(recursion: Recursion, inputs: Sequence[list[Counted]], budget: Budget) -> Collection:
    """A recursion in which every iteration computes all of its bindings' contents."""
    core, affected = recursion.core, readers(recursion.core)
    evaluation = _Evaluation(_no_collection, budget, solve_anew)
    for name, rows in zip(recursion.input_names, inputs, strict=True):
        evaluation.hold(name, Collection(rows), ())
    for name in core.names:
        evaluation.hold(name, Collection([]), ())
    held: list[object] = [({}, []) for _ in core.names]

    def advance(number: int) -> bool:
        value = core.values[number]
        found = evaluation.of(value)
        rows, errors = consolidated(found.rows, value.types), once_each(found.errors)
        budget.spend(1 + len(rows))
        identity = identity_function(value.types)
        contents = {row if identity is None else identity(row): count for row, count in rows}
        if held[number] == (contents, errors):
            return False
        held[number] = contents, errors
        name = core.names[number]
        evaluation.hold(name, Collection(rows, errors), affected.get(name, ()))
        return True

    failure = iterate(core, advance)
    if failure is not None:
        return Collection([], [(failure, 1)])
    found = evaluation.of(core.body)
    return Collection(found.rows, once_each(found.errors))


def _no_collection(global_id: GlobalId) -> Collection:
    raise AssertionError(f"{global_id} is no input of the recursion")


def finish(collection: Collection, finishing: Finishing, types: Types) -> list[Row]:
    """The rows a client sees: sorted, cut and with its columns picked; or the least error."""
    _check_errors(collection.errors)
    rows = _in_order(collection.rows, finishing.order, types)
    end = None if finishing.limit is None else finishing.offset + finishing.limit
    rows = rows[finishing.offset : end]
    if finishing.project is None:
        return rows
    pick = picker(finishing.project)
    return [pick(row) for row in rows]


def _in_order(found: Sequence[Counted], order: tuple[OrderKey, ...], types: Types) -> list[Row]:
    """Each row as often as it is there, sorted if that is asked for."""
    if not order and len(found) >= _MANY_ROWS and set(map(itemgetter(1), found)) == {1}:
        return [row for row, _ in found]  # rows that are the same need not come together
    return [row for row, count in _counted(found, order, types) for _ in range(count)]


def in_finishing_order(
    rows: Sequence[Counted],
    errors: Sequence[tuple[str, int]],
    order: tuple[OrderKey, ...],
    types: Types,
) -> list[Counted]:
    """A query's rows in order, each once with how often it is there; raises the least error."""
    _check_errors(errors)
    return _counted(rows, order, types)


def _counted(found: Sequence[Counted], order: tuple[OrderKey, ...], types: Types) -> list[Counted]:
    counted = list(consolidated(found, types))
    if any(count < 0 for _, count in counted):
        raise InternalError("a row of the result has a negative multiplicity")
    return list(in_order(counted, itemgetter(0), types, order)) if order else counted


def _check_errors(errors: Iterable[tuple[str, int]]) -> None:
    """Raises the least of those that are left."""
    totals = _totals(errors)
    if totals:
        raise decode_error(min(totals))


def _totals(errors: Iterable[tuple[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for error, count in errors:
        totals[error] = totals.get(error, 0) + count
    return {error: count for error, count in totals.items() if count}


class _Evaluation:
    """One run over one tree. Results are kept by object, so that shared subtrees run once."""

    def __init__(self, get: GetCollection, budget: Budget, solve: Solve) -> None:
        self._get = get
        self._budget = budget
        self._solve = solve
        # The relation is kept beside its result, so that its id is not given to another object.
        self._done: dict[int, tuple[Relation, Collection]] = {}
        # What a recursion's inputs and bindings hold.
        self._held: dict[str, Collection] = {}

    def of(self, relation: Relation) -> Collection:
        """The contents of this subtree."""
        known = self._done.get(id(relation))
        if known is None:
            known = relation, self._evaluate(relation)
            self._done[id(relation)] = known
            self._budget.spend(0)
        return known[1]

    def _evaluate(self, relation: Relation) -> Collection:
        match relation:
            case Constant(rows=rows):
                return Collection(list(rows))
            case Get(global_id=global_id):
                return self._get(global_id)
            case LocalGet(name=name):
                return self._held[name]
            case LetRec():
                return self._recursion(relation)
            case Project(input=source, columns=columns):
                return _project(self.of(source), columns)
            case Map(input=source, scalars=scalars):
                return _map(self.of(source), [compile_scalar(scalar) for scalar in scalars])
            case Filter(input=source, predicates=predicates):
                return _filter(self.of(source), compile_predicates(predicates))
            case FlatMap(input=source):
                return _flat_map(relation, self.of(source), self._budget)
            case Apply():
                return self._apply(relation)
            case Join(inputs=inputs):
                return _join(relation, [self.of(source) for source in inputs], self._budget)
            case Reduce(input=source):
                return _reduce(relation, self.of(source))
            case Distinct(input=source):
                return _by_rows(distinct_rows, self.of(source), source.types)
            case TopK(input=source):
                return _top_k(relation, self.of(source))
            case Window(input=source):
                return _window(relation, self.of(source))
            case Negate(input=source):
                return _negate(self.of(source))
            case Threshold(input=source):
                return _by_rows(positive_rows, self.of(source), source.types)
            case Union(inputs=inputs):
                return _union([self.of(source) for source in inputs], relation.types)
            case OuterJoin():
                raise AssertionError("outer joins are lowered before anything runs")
            case _:
                assert_never(relation)

    def hold(self, name: str, contents: Collection, readers: Iterable[int]) -> None:
        """A binding holds this from now on; what these objects gave before is forgotten."""
        self._held[name] = contents
        for reader in readers:
            self._done.pop(reader, None)

    def _recursion(self, node: LetRec) -> Collection:
        parts = split_recursion(node)
        inputs = [self.of(source) for source in parts.inputs]
        found = self._solve(parts, [source.rows for source in inputs], self._budget)
        return Collection(found.rows, [e for part in (*inputs, found) for e in part.errors])

    def _apply(self, apply: Apply) -> Collection:
        """Right once for each combination of the values it looks at, in rows of left."""
        left = self.of(apply.left)
        used = sorted({c.index for c in free_columns(apply.right) if c.depth == 0})
        types = tuple(apply.left.types[column] for column in used)
        identity, pick = identity_function(types), picker(tuple(used))
        known: dict[Hashable, Collection] = {}
        rows: list[Counted] = []
        errors = list(left.errors)
        for row, count in left.rows:
            key: Hashable = pick(row) if identity is None else identity(pick(row))
            if key not in known:
                known[key] = self.of(bind_row(apply.right, row))
            right = known[key]
            rows += [(row + other, count * times) for other, times in right.rows]
            errors += [(error, count * times) for error, times in right.errors]
        return Collection(rows, errors)


def _project(source: Collection, columns: tuple[int, ...]) -> Collection:
    pick = picker(columns)
    return Collection([(pick(row), count) for row, count in source.rows], source.errors)


def _map(source: Collection, scalars: list[Evaluate]) -> Collection:
    rows: list[Counted] = []
    errors = list(source.errors)
    for row, count in source.rows:
        try:
            rows.append((row + tuple([scalar(row) for scalar in scalars]), count))
        except SqlError as error:
            errors.append((encode_error(error), count))
    return Collection(rows, errors)


def _filter(source: Collection, holds: Callable[[Row], bool]) -> Collection:
    rows: list[Counted] = []
    errors = list(source.errors)
    for counted in source.rows:
        try:
            if holds(counted[0]):
                rows.append(counted)
        except SqlError as error:
            errors.append((encode_error(error), counted[1]))
    return Collection(rows, errors)


def _flat_map(node: FlatMap, source: Collection, budget: Budget) -> Collection:
    rows_of = compile_flat_rows(node.function, node.arguments, ordinality=node.ordinality)
    rows: list[Counted] = []
    errors = list(source.errors)
    for row, count in source.rows:
        try:
            given = rows_of(row)
        except SqlError as error:
            errors.append((encode_error(error), count))
            continue
        budget.spend(len(given))
        rows += [(row + one, count) for one in given]
    return Collection(rows, errors)


def _negate(source: Collection) -> Collection:
    return Collection([(row, -count) for row, count in source.rows], source.errors)


def _union(sources: list[Collection], types: Types) -> Collection:
    """Added up where something is subtracted: a chain of outer joins would triple with each."""
    rows = [counted for source in sources for counted in source.rows]
    if any(count < 0 for _, count in rows):
        rows = consolidated(rows, types)
    return Collection(rows, [error for source in sources for error in source.errors])


def _join(join: Join, sources: list[Collection], budget: Budget) -> Collection:
    rows = join_rows(join, [source.rows for source in sources], budget)
    return Collection(rows, [error for source in sources for error in source.errors])


def _reduce(reduce: Reduce, source: Collection) -> Collection:
    rows, errors = reduce_rows(reduce, source.rows)
    return Collection(rows, source.errors + errors)


def _by_rows(
    operator: Callable[[list[Counted], Types], list[Counted]], source: Collection, types: Types
) -> Collection:
    return Collection(operator(source.rows, types), source.errors)


def _top_k(top_k: TopK, source: Collection) -> Collection:
    types = top_k.types
    rows: list[Counted] = []
    for group in _partitions(source, types, top_k.group):
        rows += slice_of(group, types, top_k.order, top_k.limit, top_k.offset)
    return Collection(rows, source.errors)


def _partitions(
    source: Collection, types: Types, columns: tuple[int, ...]
) -> Iterable[list[Counted]]:
    """Rows with equal values in these columns, consolidated."""
    key = group_key(types, columns)
    groups: dict[Hashable, list[Counted]] = {}
    for counted in consolidated(source.rows, types):
        groups.setdefault(key(counted[0]), []).append(counted)
    return groups.values()


def _window(window: Window, source: Collection) -> Collection:
    types = window.input.types
    windowing = Windowing(types, window.order, window.calls)
    rows, errors = windowing.over_all(_partitions(source, types, window.group))
    return Collection(rows, [*source.errors, *errors])


def slice_of(
    group: list[Counted], types: Types, order: tuple[OrderKey, ...], limit: int | None, offset: int
) -> list[Counted]:
    """Rows `offset` to `offset + limit` of a group, a row counting as often as it is there."""
    kept: list[Counted] = []
    skip, left = offset, limit
    present = [counted for counted in group if counted[1] > 0]
    for row, count in in_order(present, itemgetter(0), types, order):
        taken = max(count - skip, 0)
        skip = max(skip - count, 0)
        if left is not None:
            taken = min(taken, left)
            left -= taken
        if taken:
            kept.append((row, taken))
        if left == 0:
            break
    return kept
