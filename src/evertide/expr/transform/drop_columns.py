"""Columns that nobody looks at go, so that arrangements keep no more than they must.

First, from the top down, what is asked of every object by all that use it together; then, from the
bottom up, each object is made once with the columns asked for. Asking per object rather than per
place keeps shared subtrees shared.
"""

from collections.abc import Callable
from dataclasses import replace
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
    Union,
    Window,
)
from evertide.expr.relation_walk import (
    argument_scalars,
    in_order_of_use,
    inputs_of,
    rewrite_arguments,
    rewrite_window_call,
)
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_walk import columns_of, move_columns
from evertide.expr.window import sees_ties

Columns: TypeAlias = frozenset[int]
# A relation and where the columns asked for are in it: old position to new.
Narrowed: TypeAlias = tuple[Relation, dict[int, int]]


def drop_columns(relation: Relation) -> Relation:
    """The relation, with the same columns, and below it only columns that are needed."""
    nodes = in_order_of_use(relation)
    asked: dict[int, Columns] = {id(node): frozenset() for node in nodes}
    asked[id(relation)] = frozenset(range(len(relation.types)))
    for node in reversed(nodes):
        for source, columns in zip(inputs_of(node), _asks(node, asked[id(node)]), strict=True):
            asked[id(source)] |= columns
    made: dict[int, Narrowed] = {}
    for node in nodes:
        made[id(node)] = _narrowed(node, asked[id(node)], lambda source: made[id(source)])
    return _exactly(made[id(relation)], list(range(len(relation.types))))


def _asks(node: Relation, asked: Columns) -> list[Columns]:
    """What a node that is asked for these columns asks of its inputs."""
    match node:
        case Constant() | Get() | LocalGet():
            return []
        case LetRec(values=values):
            # Whoever reads a binding counts on all its columns.
            return [*(frozenset(range(len(value.types))) for value in values), asked]
        case Project(columns=columns):
            return [frozenset(columns[i] for i in asked)]
        case Map(input=source, scalars=scalars):
            width = len(source.types)
            used = [scalars[i - width] for i in asked if i >= width]
            return [frozenset(i for i in asked if i < width) | _columns(*used)]
        case Filter(predicates=predicates):
            return [asked | _columns(*predicates)]
        case Join(inputs=inputs):
            return _asked_by_join(node, asked, len(inputs))
        case Reduce(keys=keys):
            return [_columns(*keys, *_arguments(node, asked))]
        case TopK(limit=0) | Negate():
            return [asked]
        case Union(inputs=inputs):
            return [asked] * len(inputs)
        case Distinct() | Threshold() | TopK():
            # All columns say which rows are equal, or which comes first.
            return [frozenset(range(len(node.types)))]
        case Window():
            return [_asked_by_window(node, asked)]
        case FlatMap(input=source, arguments=arguments):
            width = len(source.types)
            return [frozenset(i for i in asked if i < width) | _columns(*arguments)]
        case OuterJoin() | Apply():
            raise AssertionError("outer joins and Applies are lowered first")
        case _:
            assert_never(node)


def _asked_by_join(join: Join, asked: Columns, count: int) -> list[Columns]:
    arities = [len(source.types) for source in join.inputs]
    offsets = offsets_of(arities)
    needed = asked | {column for members in join.equivalences for column in members}
    return [
        frozenset(i for i in range(arities[n]) if offsets[n] + i in needed) for n in range(count)
    ]


def _asked_by_window(node: Window, asked: Columns) -> Columns:
    """All columns say which of equal rows comes first, if one of the functions cares."""
    width = len(node.input.types)
    calls = [node.calls[i - width] for i in asked if i >= width]
    if any(map(sees_ties, calls)):
        return frozenset(range(width))
    own = frozenset(i for i in asked if i < width)
    if not calls:
        return own
    ordered = frozenset(key.column for key in node.order)
    arguments = [scalar for call in calls for scalar in call.arguments]
    return own | frozenset(node.group) | ordered | _columns(*arguments)


def _columns(*scalars: Scalar) -> Columns:
    return frozenset[int]().union(*map(columns_of, scalars))


def _arguments(reduce: Reduce, asked: Columns) -> list[Scalar]:
    """Arguments of the aggregates asked for."""
    width = len(reduce.keys)
    calls = [reduce.aggregates[i - width] for i in asked if i >= width]
    return [scalar for call in calls for scalar in argument_scalars(call)]


def _narrowed(node: Relation, asked: Columns, made: Callable[[Relation], Narrowed]) -> Narrowed:
    """The node over its narrowed inputs. It may have more columns than asked for, never fewer."""
    wanted = sorted(asked)
    match node:
        case Constant(rows=rows, types=types):
            picked = tuple((tuple(row[i] for i in wanted), count) for row, count in rows)
            return Constant(picked, tuple(types[i] for i in wanted)), _places(wanted)
        case Get(types=types) | LocalGet(types=types):
            if len(wanted) == len(types):
                return node, _places(wanted)
            return Project(node, tuple(wanted)), _places(wanted)
        case LetRec(values=values, body=body):
            inner, places = made(body)
            whole = [_exactly(made(value), list(range(len(value.types)))) for value in values]
            return replace(node, values=tuple(whole), body=inner), places
        case Project(input=source, columns=columns):
            inner, places = made(source)
            return Project(inner, tuple(places[columns[i]] for i in wanted)), _places(wanted)
        case Map():
            return _narrowed_map(node, wanted, made(node.input))
        case Filter(input=source, predicates=predicates):
            inner, places = made(source)
            return Filter(inner, _moved(predicates, places)), places
        case Join():
            return _narrowed_join(node, wanted, made)
        case Reduce():
            return _narrowed_reduce(node, wanted, made(node.input))
        case TopK(input=source, limit=0):
            return TopK(_exactly(made(source), wanted), (), (), limit=0), _places(wanted)
        case Negate(input=source):
            return Negate(_exactly(made(source), wanted)), _places(wanted)
        case Distinct() | Threshold() | TopK():
            everything = list(range(len(node.types)))
            return replace(node, input=_exactly(made(node.input), everything)), _places(everything)
        case Union(inputs=inputs):
            narrow = tuple(_exactly(made(source), wanted) for source in inputs)
            return Union(narrow), _places(wanted)
        case Window():
            return _narrowed_window(node, wanted, made(node.input))
        case FlatMap():
            return _narrowed_flat_map(node, made(node.input))
        case OuterJoin() | Apply():
            raise AssertionError("outer joins and Applies are lowered first")
        case _:
            assert_never(node)


def _places(columns: list[int]) -> dict[int, int]:
    return {column: place for place, column in enumerate(columns)}


def _exactly(narrowed: Narrowed, wanted: list[int]) -> Relation:
    """These columns and no others, in this order."""
    node, places = narrowed
    columns = tuple(places[i] for i in wanted)
    return node if columns == tuple(range(len(node.types))) else Project(node, columns)


def _moved(scalars: tuple[Scalar, ...], places: dict[int, int]) -> tuple[Scalar, ...]:
    return tuple(move_columns(scalar, places) for scalar in scalars)


def _narrowed_map(node: Map, wanted: list[int], source: Narrowed) -> Narrowed:
    inner, places = source
    width = len(node.input.types)
    used = [i for i in wanted if i >= width]
    kept = tuple(node.scalars[i - width] for i in used)
    places = {i: places[i] for i in wanted if i < width} | {
        i: len(inner.types) + n for n, i in enumerate(used)
    }
    return Map(inner, _moved(kept, source[1])) if kept else inner, places


def _narrowed_window(node: Window, wanted: list[int], source: Narrowed) -> Narrowed:
    """Cut to what is needed exactly: the input is what is kept between ticks."""
    width = len(node.input.types)
    used = [i for i in wanted if i >= width]
    needed = sorted(_asked_by_window(node, frozenset(wanted)))
    if not used:
        return source
    places = _places(needed)
    calls = tuple(
        rewrite_window_call(node.calls[i - width], lambda scalar: move_columns(scalar, places))
        for i in used
    )
    order = tuple(replace(key, column=places[key.column]) for key in node.order)
    group = tuple(places[column] for column in node.group)
    narrow = Window(_exactly(source, needed), group, order, calls)
    return narrow, places | {i: len(needed) + n for n, i in enumerate(used)}


def _narrowed_flat_map(node: FlatMap, source: Narrowed) -> Narrowed:
    """The function's columns all stay: it makes them anyway."""
    inner, places = source
    width, added = len(node.input.types), len(node.types) - len(node.input.types)
    flat = replace(node, input=inner, arguments=_moved(node.arguments, places))
    return flat, places | {width + i: len(inner.types) + i for i in range(added)}


def _narrowed_join(node: Join, wanted: list[int], made: Callable[[Relation], Narrowed]) -> Narrowed:
    """Inputs are cut to what is needed exactly: they are what is kept between ticks."""
    arities = [len(source.types) for source in node.inputs]
    needs = _asked_by_join(node, frozenset(wanted), len(arities))
    inputs = tuple(
        _exactly(made(source), sorted(need))
        for source, need in zip(node.inputs, needs, strict=True)
    )
    offsets = offsets_of(arities)
    old = [offsets[n] + i for n, need in enumerate(needs) for i in sorted(need)]
    places = _places(old)
    equivalences = tuple(tuple(places[i] for i in members) for members in node.equivalences)
    return Join(inputs, equivalences), places


def _narrowed_reduce(node: Reduce, wanted: list[int], source: Narrowed) -> Narrowed:
    """Keys all stay: they say what a group is."""
    inner, places = source
    width = len(node.keys)
    used = [i for i in wanted if i >= width]
    calls = tuple(
        rewrite_arguments(node.aggregates[i - width], lambda scalar: move_columns(scalar, places))
        for i in used
    )
    return Reduce(inner, _moved(node.keys, places), calls), _places([*range(width), *used])
