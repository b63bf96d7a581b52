"""A join of joins becomes one join of all inputs.

Delta joins keep an arrangement per input and nothing for what lies between, so a flat join keeps
the tables' rows only, never an intermediate result. What stands between the joins moves above the
flat one: Project always, Filter and Map if they cannot fail (above, they see other rows).
"""

from dataclasses import dataclass

from evertide.expr.join_order import offsets_of
from evertide.expr.relation import Filter, Join, Map, Project, Relation
from evertide.expr.relation_walk import rewrite_up
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.expr.scalar_walk import inline_columns, is_fallible, shift_columns
from evertide.expr.transform.equalities import merged


def flatten_joins(relation: Relation) -> Relation:
    """The relation with nested inner joins made flat."""
    return rewrite_up(relation, lambda node: _flat(node) if isinstance(node, Join) else node)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A relation as columns and predicates over a join: the rows of `join` that pass, mapped."""

    join: Join
    columns: tuple[Scalar, ...]
    predicates: tuple[Scalar, ...] = ()


def _flat(join: Join) -> Relation:
    offsets = offsets_of([len(source.types) for source in join.inputs])
    keys = {column for members in join.equivalences for column in members}
    opened = [
        _opened_with_plain_keys(source, {column - offset for column in keys})
        for source, offset in zip(join.inputs, offsets, strict=False)
    ]
    if not any(isinstance(part, _Opened) for part in opened):
        return join
    parts = [part if isinstance(part, _Opened) else _closed(part) for part in opened]
    starts = offsets_of([len(part.join.types) for part in parts])
    columns, predicates, equivalences = [], [], []
    for part, start in zip(parts, starts, strict=False):
        columns += [shift_columns(scalar, start) for scalar in part.columns]
        predicates += [shift_columns(scalar, start) for scalar in part.predicates]
        equivalences += [[start + i for i in members] for members in part.join.equivalences]
    equivalences += [[_index(columns[i]) for i in members] for members in join.equivalences]
    inputs = tuple(source for part in parts for source in part.join.inputs)
    flat: Relation = Join(inputs, merged(equivalences))
    return _with_columns(Filter(flat, tuple(predicates)) if predicates else flat, columns)


def _opened_with_plain_keys(source: Relation, keys: set[int]) -> "_Opened | Relation":
    """Opened, if every column that the join above compares is still a column.

    Two compared columns that are one column inside say that it is not NULL, which an equivalence of
    one column could not: such an input stays closed.
    """
    opened = _open(source)
    if opened is None:
        return source
    own = [scalar for i, scalar in enumerate(opened.columns) if i in keys]
    plain = [scalar.index for scalar in own if isinstance(scalar, ColumnRef)]
    return opened if len(plain) == len(own) == len(set(plain)) else source


def _open(node: Relation) -> _Opened | None:
    match node:
        case Join():
            columns = tuple(ColumnRef(i, sql_type) for i, sql_type in enumerate(node.types))
            return _Opened(node, columns)
        case Project(input=source, columns=picked):
            inner = _open(source)
            if inner is None:
                return None
            return _Opened(inner.join, tuple(inner.columns[i] for i in picked), inner.predicates)
        case Map(input=source, scalars=scalars) if not any(map(is_fallible, scalars)):
            inner = _open(source)
            if inner is None or not _all_columns(inner):
                return None
            return _Opened(inner.join, inner.columns + _over(inner, scalars), inner.predicates)
        case Filter(input=source, predicates=predicates) if not any(map(is_fallible, predicates)):
            inner = _open(source)
            if inner is None:
                return None
            return _Opened(inner.join, inner.columns, inner.predicates + _over(inner, predicates))
        case _:
            return None


def _all_columns(opened: _Opened) -> bool:
    """Whether nothing is computed yet: computed columns are not put into one another."""
    return all(isinstance(scalar, ColumnRef) for scalar in opened.columns)


def _over(opened: _Opened, scalars: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    values = dict(enumerate(opened.columns))
    return tuple(inline_columns(scalar, values) for scalar in scalars)


def _closed(source: Relation) -> _Opened:
    """An input that stays as it is, in the same form."""
    columns = tuple(ColumnRef(i, sql_type) for i, sql_type in enumerate(source.types))
    return _Opened(Join((source,)), columns)


def _index(scalar: Scalar) -> int:
    assert isinstance(scalar, ColumnRef), "compared columns are plain"
    return scalar.index


def _with_columns(source: Relation, columns: list[Scalar]) -> Relation:
    """Project, with a Map below it for columns that are computed."""
    width = len(source.types)
    computed = [scalar for scalar in columns if not isinstance(scalar, ColumnRef)]
    picked: list[int] = []
    next_computed = width
    for scalar in columns:
        if isinstance(scalar, ColumnRef):
            picked.append(scalar.index)
        else:
            picked.append(next_computed)
            next_computed += 1
    return Project(Map(source, tuple(computed)) if computed else source, tuple(picked))
