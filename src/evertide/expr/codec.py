"""Relations as msgpack bytes: plans travel between processes.

No pickle: what arrives names functions by their signatures and is built from known node kinds only.
A relation is a list of nodes that refer to their inputs by position, so that a subtree which is one
object in several places is written once and is one object again after reading.
"""

from collections.abc import Sequence
from typing import assert_never

import msgspec

from evertide.expr.functions.row import AggregateFunction
from evertide.expr.functions.rows import table_function_by_signature
from evertide.expr.relation import (
    AggregateCall,
    Apply,
    ArgumentOrder,
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
    OrderKey,
    OuterJoin,
    Project,
    RecursionLimit,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Types,
    Union,
    Window,
)
from evertide.expr.relation_walk import in_order_of_use, inputs_of
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_codec import (
    FunctionLookup,
    Plain,
    UnreadablePlan,
    as_int,
    as_ints,
    as_list,
    as_str,
    optional_int,
    plain_row,
    plain_scalar,
    plain_scalars,
    plain_types,
    read_row,
    read_scalar,
    read_scalars,
    read_types,
)
from evertide.expr.window_codec import plain_window_calls, read_window_calls
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId


def encode_scalar(scalar: Scalar) -> bytes:
    """A scalar as bytes."""
    return msgspec.msgpack.encode(plain_scalar(scalar))


def decode_scalar(encoded: bytes, functions: FunctionLookup) -> Scalar:
    """Inverse of encode_scalar."""
    return read_scalar(unpack(encoded), functions)


def encode_relation(relation: Relation) -> bytes:
    """A relation as bytes; the last node is the relation itself."""
    nodes = in_order_of_use(relation)
    positions = {id(node): position for position, node in enumerate(nodes)}
    return msgspec.msgpack.encode(
        [
            [[positions[id(source)] for source in inputs_of(node)], plain_node(node)]
            for node in nodes
        ]
    )


def decode_relation(encoded: bytes, functions: FunctionLookup) -> Relation:
    """Inverse of encode_relation."""
    nodes: list[Relation] = []
    for entry in as_list(unpack(encoded)):
        positions, plain = as_list(entry)
        nodes.append(_read_node(plain, [nodes[i] for i in as_ints(positions)], functions))
    return nodes[-1]


def unpack(encoded: bytes) -> Plain:
    """msgpack as plain values."""
    try:
        plain: Plain = msgspec.msgpack.decode(encoded)
    except msgspec.DecodeError as error:
        raise UnreadablePlan(str(error)) from error
    return plain


def plain_node(node: Relation) -> Plain:
    """One operator without its inputs. The names in front are part of the format."""
    match node:
        case Constant(rows=rows, types=types):
            return ["constant", plain_counted(types, rows), plain_types(types)]
        case Get(global_id=global_id, types=types):
            return ["get", global_id, plain_types(types)]
        case LocalGet(name=name, types=types):
            return ["local", name, plain_types(types)]
        case LetRec(names=names, limit=limit):
            return ["recursion", list(names), _plain_limit(limit)]
        case Project(columns=columns):
            return ["project", list(columns)]
        case Map(scalars=scalars):
            return ["map", plain_scalars(scalars)]
        case Filter(predicates=predicates):
            return ["filter", plain_scalars(predicates)]
        case Join(equivalences=equivalences):
            return ["join", [list(members) for members in equivalences]]
        case FlatMap(function=function, arguments=arguments, ordinality=ordinality):
            return ["flat map", function.signature, plain_scalars(arguments), ordinality]
        case Apply():
            return ["apply"]
        case OuterJoin(kind=kind, on=on):
            return ["outer join", kind, plain_scalars(on)]
        case Reduce(keys=keys, aggregates=aggregates):
            return ["reduce", plain_scalars(keys), plain_calls(aggregates)]
        case Distinct():
            return ["distinct"]
        case TopK(group=group, order=order, limit=limit, offset=offset):
            return ["top k", list(group), plain_order(order), limit, offset]
        case Window(group=group, order=order, calls=calls):
            return ["window", list(group), plain_order(order), plain_window_calls(calls)]
        case Negate():
            return ["negate"]
        case Threshold():
            return ["threshold"]
        case Union():
            return ["union"]
        case _:
            assert_never(node)


def _read_node(plain: Plain, inputs: list[Relation], functions: FunctionLookup) -> Relation:
    match plain, inputs:
        case ["constant", rows, sql_types], []:
            types = read_types(sql_types)
            return Constant(read_counted(types, rows), types)
        case ["get", str(global_id), sql_types], []:
            return Get(GlobalId(global_id), read_types(sql_types))
        case ["local", str(name), sql_types], []:
            return LocalGet(name, read_types(sql_types))
        case ["recursion", list(names), limit], [*values, body]:
            named = tuple(as_str(name) for name in names)
            return LetRec(named, tuple(values), body, _read_limit(limit))
        case ["project", columns], [source]:
            return Project(source, as_ints(columns))
        case ["map", scalars], [source]:
            return Map(source, read_scalars(scalars, functions))
        case ["filter", predicates], [source]:
            return Filter(source, read_scalars(predicates, functions))
        case ["join", list(equivalences)], _:
            return Join(tuple(inputs), tuple(as_ints(members) for members in equivalences))
        case ["flat map", str(signature), arguments, bool(ordinality)], [source]:
            function = table_function_by_signature(signature)
            return FlatMap(source, function, read_scalars(arguments, functions), ordinality)
        case ["apply"], [left, right]:
            return Apply(left, right)
        case ["outer join", str(kind), on], [left, right]:
            return OuterJoin(kind, left, right, read_scalars(on, functions))
        case ["reduce", keys, calls], [source]:
            return Reduce(source, read_scalars(keys, functions), read_calls(calls, functions))
        case ["distinct"], [source]:
            return Distinct(source)
        case ["top k", group, order, limit, int(offset)], [source]:
            return TopK(source, as_ints(group), read_order(order), optional_int(limit), offset)
        case ["window", group, order, calls], [source]:
            window_calls = read_window_calls(calls, functions)
            return Window(source, as_ints(group), read_order(order), window_calls)
        case ["negate"], [source]:
            return Negate(source)
        case ["threshold"], [source]:
            return Threshold(source)
        case ["union"], _:
            return Union(tuple(inputs))
        case _:
            raise UnreadablePlan(f"not an operator: {plain!r}")


def _plain_limit(limit: RecursionLimit | None) -> Plain:
    return None if limit is None else [limit.iterations, limit.fails]


def _read_limit(plain: Plain) -> RecursionLimit | None:
    if plain is None:
        return None
    iterations, fails = as_list(plain)
    return RecursionLimit(as_int(iterations), bool(fails))


def plain_counted(types: Types, rows: Sequence[tuple[Row, int]]) -> Plain:
    """Rows with multiplicities."""
    return [[plain_row(types, row), count] for row, count in rows]


def read_counted(types: Types, plain: Plain) -> tuple[tuple[Row, int], ...]:
    """Inverse of plain_counted."""
    pairs = [as_list(pair) for pair in as_list(plain)]
    return tuple([(read_row(types, row), as_int(count)) for row, count in pairs])


def plain_order(order: Sequence[OrderKey]) -> Plain:
    """ORDER BY columns."""
    return [[key.column, key.descending, key.nulls_first] for key in order]


def read_order(plain: Plain) -> tuple[OrderKey, ...]:
    """Inverse of plain_order."""
    keys = [as_list(key) for key in as_list(plain)]
    return tuple([OrderKey(as_int(c), bool(d), bool(n)) for c, d, n in keys])


def plain_calls(calls: Sequence[AggregateCall]) -> Plain:
    """Aggregates by signature."""
    return [
        [
            call.function.signature,
            None if call.argument is None else plain_scalar(call.argument),
            call.distinct,
            [[plain_scalar(o.key), o.descending, o.nulls_first] for o in call.order],
        ]
        for call in calls
    ]


def read_calls(plain: Plain, functions: FunctionLookup) -> tuple[AggregateCall, ...]:
    """Inverse of plain_calls."""
    return tuple([_read_call(call, functions) for call in as_list(plain)])


def _read_call(plain: Plain, functions: FunctionLookup) -> AggregateCall:
    signature, argument, distinct, order = as_list(plain)
    function = functions(as_str(signature))
    assert isinstance(function, AggregateFunction), f"{signature!r} is not an aggregate"
    scalar = None if argument is None else read_scalar(argument, functions)
    keys = [as_list(key) for key in as_list(order)]
    orders = tuple(ArgumentOrder(read_scalar(k, functions), bool(d), bool(n)) for k, d, n in keys)
    return AggregateCall(function, scalar, bool(distinct), orders)
