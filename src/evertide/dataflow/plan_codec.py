"""Delta plans as msgpack bytes: the driver makes a plan, the resident task runs it.

Built on expr/codec: functions by signature, datums by their types, nothing pickled.
"""

from collections.abc import Sequence
from typing import assert_never

import msgspec

from evertide.dataflow.delta_plan import (
    ArrangeNode,
    ConstantNode,
    DeltaNode,
    DeltaPlan,
    FlatMapNode,
    InputNode,
    JoinNode,
    JoinPath,
    JoinStep,
    LinearNode,
    NegateNode,
    RecomputeNode,
    ReduceNode,
    TemporalFilterNode,
    ThresholdNode,
    TopKNode,
    UnionNode,
    WindowNode,
)
from evertide.expr.codec import (
    decode_relation,
    encode_relation,
    plain_calls,
    plain_counted,
    plain_order,
    read_calls,
    read_counted,
    read_order,
    unpack,
)
from evertide.expr.functions.rows import table_function_by_signature
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import LetRec, Types
from evertide.expr.scalar_codec import (
    FunctionLookup,
    Plain,
    UnreadablePlan,
    as_int,
    as_ints,
    as_list,
    as_str,
    optional_int,
    plain_scalars,
    plain_types,
    read_scalars,
    read_types,
)
from evertide.expr.window_codec import plain_window_calls, read_window_calls
from evertide.vocab.ids import GlobalId


def encode_plan(plan: DeltaPlan) -> bytes:
    """A plan as bytes."""
    return msgspec.msgpack.encode([plain_delta_node(node) for node in plan.nodes])


def decode_plan(encoded: bytes, functions: FunctionLookup = by_signature) -> DeltaPlan:
    """Inverse of encode_plan."""
    nodes = as_list(unpack(encoded))
    return DeltaPlan(tuple([_read_node(as_list(node), functions) for node in nodes]))


def node_key(node: DeltaNode) -> bytes:
    """Equal for nodes that do the same, and only for those."""
    return msgspec.msgpack.encode(plain_delta_node(node))


def plain_delta_node(node: DeltaNode) -> Plain:
    """One node: the name of its kind, its types, and its own fields."""
    types = plain_types(node.types)
    match node:
        case InputNode(global_id=global_id):
            return ["input", types, global_id]
        case ConstantNode(rows=rows):
            return ["constant", types, plain_counted(node.types, rows)]
        case LinearNode(input=source, scalars=scalars, predicates=predicates, columns=columns):
            parts = [plain_scalars(scalars), plain_scalars(predicates)]
            return ["linear", types, source, *parts, list(columns)]
        case FlatMapNode(input=source, function=function, arguments=arguments, ordinality=numbered):
            given = [function.signature, plain_scalars(arguments), numbered]
            return ["flat map", types, source, *given]
        case TemporalFilterNode(input=source, predicates=predicates):
            return ["temporal filter", types, source, plain_scalars(predicates)]
        case NegateNode(input=source):
            return ["negate", types, source]
        case UnionNode(inputs=inputs):
            return ["union", types, list(inputs)]
        case ArrangeNode(input=source, key=key, drop_null_keys=drop_null_keys):
            return ["arrange", types, source, list(key), drop_null_keys]
        case JoinNode(inputs=inputs, paths=paths):
            return ["join", types, list(inputs), [_plain_path(path) for path in paths]]
        case RecomputeNode(inputs=inputs, input_names=names, core=core):
            return ["recompute", types, list(inputs), list(names), encode_relation(core)]
        case ReduceNode(input=source, keys=keys, aggregates=aggregates):
            return ["reduce", types, source, plain_scalars(keys), plain_calls(aggregates)]
        case TopKNode(input=source, group=group, order=order, limit=limit, offset=offset):
            return ["top k", types, source, list(group), plain_order(order), limit, offset]
        case WindowNode(input=source, group=group, order=order, calls=calls):
            parts = [list(group), plain_order(order), plain_window_calls(calls)]
            return ["window", types, source, *parts]
        case ThresholdNode(input=source):
            return ["threshold", types, source]
        case _:
            assert_never(node)


def _read_node(plain: list[Plain], functions: FunctionLookup) -> DeltaNode:
    if len(plain) < 2:
        raise UnreadablePlan(f"not a node: {plain!r}")
    types = read_types(plain[1])
    match plain[0], plain[2:]:
        case "input", [str(global_id)]:
            return InputNode(GlobalId(global_id), types)
        case "constant", [rows]:
            return ConstantNode(read_counted(types, rows), types)
        case "linear", [int(source), scalars, predicates, columns]:
            return LinearNode(
                source,
                read_scalars(scalars, functions),
                read_scalars(predicates, functions),
                as_ints(columns),
                types,
            )
        case "flat map", [int(source), str(signature), arguments, bool(numbered)]:
            function = table_function_by_signature(signature)
            given = read_scalars(arguments, functions)
            return FlatMapNode(source, function, given, numbered, types)
        case "temporal filter", [int(source), predicates]:
            return TemporalFilterNode(source, read_scalars(predicates, functions), types)
        case "negate", [int(source)]:
            return NegateNode(source, types)
        case "union", [inputs]:
            return UnionNode(as_ints(inputs), types)
        case "arrange", [int(source), key, bool(drop_null_keys)]:
            return ArrangeNode(source, as_ints(key), drop_null_keys, types)
        case "join", [inputs, list(paths)]:
            return JoinNode(as_ints(inputs), tuple(_read_path(path) for path in paths), types)
        case "recompute", [inputs, list(names), bytes(core)]:
            recursion = decode_relation(core, functions)
            if not isinstance(recursion, LetRec):
                raise UnreadablePlan(f"not a recursion: {recursion!r}")
            named = tuple(as_str(name) for name in names)
            return RecomputeNode(as_ints(inputs), named, recursion, types)
        case "reduce", [int(source), keys, calls]:
            scalars_ = read_scalars(keys, functions)
            return ReduceNode(source, scalars_, read_calls(calls, functions), types)
        case "top k", [int(source), group, order, limit, int(offset)]:
            return _read_top_k(source, [group, order, limit], offset, types)
        case "window", [int(source), group, order, calls]:
            window_calls = read_window_calls(calls, functions)
            return WindowNode(source, as_ints(group), read_order(order), window_calls, types)
        case "threshold", [int(source)]:
            return ThresholdNode(source, types)
        case _:
            raise UnreadablePlan(f"not a node: {plain!r}")


def _read_top_k(source: int, parts: Sequence[Plain], offset: int, types: Types) -> TopKNode:
    group, order, limit = parts
    return TopKNode(source, as_ints(group), read_order(order), optional_int(limit), offset, types)


def _plain_path(path: JoinPath) -> Plain:
    steps: Plain = [
        [step.relation, step.arrangement, list(step.probe), [list(p) for p in step.also_equal]]
        for step in path.steps
    ]
    return [path.source, steps, list(path.columns)]


def _read_path(plain: Plain) -> JoinPath:
    source, steps, columns = as_list(plain)
    read = tuple([_read_step(step) for step in as_list(steps)])
    return JoinPath(as_int(source), read, as_ints(columns))


def _read_step(plain: Plain) -> JoinStep:
    relation, arrangement, probe, also_equal = as_list(plain)
    pairs = [as_ints(pair) for pair in as_list(also_equal)]
    checked = tuple([(bound, new) for bound, new in pairs])
    return JoinStep(as_int(relation), as_int(arrangement), as_ints(probe), checked)
